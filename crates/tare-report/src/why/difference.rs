//! What else was not the same, and what could not be compared.

use crate::block::{Block, Note, Text};
use crate::format::joined;
use crate::words;
use tare_model::why::{Difference, Why};

/// Longer texts are cut: two environments or command lines may hold anything.
const TEXT_CHARS_MAX: usize = 160;

pub(super) fn list(why: &Why) -> Vec<Block> {
    if why.differences.is_empty() {
        let text = "Nothing that was compared.";
        return vec![Block::Line(Text::plain(text))];
    }
    // The reason is given once for things of which it is the same.
    let mut before: Option<&Difference> = None;
    let mut notes = Vec::new();
    for difference in &why.differences {
        let repeated = before.is_some_and(|last| last.matters == difference.matters);
        notes.push(note(difference, repeated));
        before = Some(difference);
    }
    vec![Block::Notes(notes)]
}

fn note(difference: &Difference, repeated: bool) -> Note {
    let side = |text: &Option<String>| text.as_deref().map_or_else(|| "none".to_owned(), cut);
    let lines = match repeated {
        true => Vec::new(),
        false => vec![("so", joined(&difference.matters))],
    };
    Note {
        title: Text::strong(&difference.name),
        aside: String::new(),
        body: format!("{} → {} ({})", side(&difference.a), side(&difference.b), words::id(difference.kind)),
        lines,
    }
}

/// As much of a text as is read, with its end: where two are alike at first they differ there.
fn cut(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= TEXT_CHARS_MAX {
        return text.to_owned();
    }
    let half = TEXT_CHARS_MAX / 2;
    let head: String = chars.iter().take(half).collect();
    let tail: String = chars.iter().skip(chars.len() - half).collect();
    format!("{head} … {tail}")
}

pub(super) fn uncompared(why: &Why) -> Vec<Block> {
    let notes: Vec<Note> = why
        .uncompared
        .iter()
        .map(|missing| remark("missing", joined(&words::then_remedy(missing))))
        .collect();
    if notes.is_empty() { Vec::new() } else { vec![Block::Notes(notes)] }
}

/// A note of one line.
fn remark(title: &str, body: String) -> Note {
    Note { title: Text::strong(title), aside: String::new(), body, lines: Vec::new() }
}
