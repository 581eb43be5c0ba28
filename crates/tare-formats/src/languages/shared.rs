//! What several readers of this folder need: JSON that stands between other lines, and numbers as people write them.

use crate::json;
use crate::metrics::{Metrics, Sample};
use crate::reader::Input;
use serde_json::Value;
use std::collections::HashSet;

/// So many bytes behind the beginning of a document the keys that only one tool has must stand.
const HEAD_BYTES: usize = 16 << 10;
/// So many beginnings of documents are looked at by a detection.
const STARTS_MAX: usize = 50;
/// So many documents may be broken or without an end: each may be searched for to the end of the text.
const BROKEN_MAX: usize = 10;
/// Deeper than this no tool's results are.
const DEPTH_MAX: usize = 200;

/// Whether a JSON document begins here: an object with a key, or an array of objects.
fn begins(text: &str) -> bool {
    let mut rest = text.bytes().take(200).filter(|byte| !byte.is_ascii_whitespace());
    matches!((rest.next(), rest.next()), (Some(b'{'), Some(b'"')) | (Some(b'['), Some(b'{')))
        && text.starts_with(['{', '['])
}

/// Whether a document that begins at the start of a line has all of `keys` near its beginning.
pub(crate) fn has(input: &Input<'_>, keys: &[&str]) -> bool {
    let mut starts = 0;
    for line in input.head() {
        if !line.starts_with(['{', '[']) || starts > STARTS_MAX {
            continue;
        }
        // The line is a part of the text: what follows it begins where it does.
        let at = line.as_ptr() as usize - input.text.as_ptr() as usize;
        let Some(text) = input.text.get(at..).filter(|text| begins(text)) else { continue };
        starts += 1;
        let end = (0..=HEAD_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
        let head = &text[..end.unwrap_or_default()];
        if keys.iter().all(|key| head.contains(key)) {
            return true;
        }
    }
    false
}

/// Where a document ends, or how it could be ended.
enum Extent {
    Whole(usize),
    /// The text ends first: so much of it is of complete values, and this closes what is open there.
    Cut(usize, String),
}

fn extent(text: &str) -> Extent {
    let (mut open, mut in_string, mut escaped) = (Vec::new(), false, false);
    let mut complete = (0, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' if open.len() < DEPTH_MAX => open.push(byte),
            b'}' | b']' => {
                open.pop();
                complete = (at + 1, open.len());
                if open.is_empty() {
                    return Extent::Whole(at + 1);
                }
            }
            _ => {}
        }
    }
    // Since the last bracket was closed others were only opened: those below are as they were.
    let close = |bracket: &u8| if *bracket == b'{' { '}' } else { ']' };
    Extent::Cut(complete.0, open.iter().take(complete.1).rev().map(close).collect())
}

/// Gives every JSON document of the text that has all keys of one of `sets`, with the line that it begins in. Of one that is cut off, what was complete.
pub(crate) fn each_document(
    text: &str,
    sets: &[&[&str]],
    metrics: &mut Metrics,
    mut then: impl FnMut(&mut Metrics, u64, &Value),
) {
    let (mut rest, mut line, mut broken) = (text, 1, 0);
    while !rest.is_empty() {
        let mut taken = rest.find('\n').map_or(rest.len(), |at| at + 1);
        if begins(rest) && broken < BROKEN_MAX {
            let extent = extent(rest);
            let (length, close) = match &extent {
                Extent::Whole(length) => (*length, None),
                Extent::Cut(length, close) => (*length, Some(close)),
            };
            broken += usize::from(close.is_some());
            let document = &rest[..length];
            // The complete part of what is cut off may end before its keys.
            if is_one_of(document, sets) || close.is_some() && is_one_of(rest, sets) {
                let parsed = match close {
                    None => json::parse(document),
                    Some(close) => json::parse(&format!("{document}{close}")),
                };
                match parsed {
                    Ok(value) => {
                        then(metrics, line, &value);
                        taken = length.max(taken.min(length + 1));
                        if close.is_some() {
                            taken = rest.len();
                            let last = line + rest.trim_end().matches('\n').count() as u64;
                            metrics.skip(last, "the end", CUT_OFF);
                        }
                    }
                    Err((at, why)) => {
                        broken += 1;
                        let why = if close.is_some() { CUT_OFF } else { &why };
                        metrics.skip(line + at.saturating_sub(1), document, why);
                    }
                }
            } else if close.is_none() {
                taken = length;
            }
        }
        line += rest[..taken].matches('\n').count() as u64;
        rest = &rest[taken..];
        // What stands behind a document in its last line begins no other.
        if taken > 0 && !rest.is_empty() && !text[..text.len() - rest.len()].ends_with('\n') {
            let to = rest.find('\n').map_or(rest.len(), |at| at + 1);
            line += u64::from(rest[..to].ends_with('\n'));
            rest = &rest[to..];
        }
    }
}

/// Why what follows is missing.
pub(crate) const CUT_OFF: &str = "it ends in the middle: the file is cut off";

fn is_one_of(text: &str, sets: &[&[&str]]) -> bool {
    sets.iter().any(|keys| keys.iter().all(|key| text.contains(key)))
}

/// Which launch results are of, where runs were appended to one file: what comes again is of the next one.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    first: u32,
    last: u32,
    seen: HashSet<String>,
}

impl Runs {
    /// The launch of a result by its name.
    pub(crate) fn of(&mut self, name: &str) -> u32 {
        if self.seen.contains(name) {
            self.next();
        }
        self.seen.insert(name.to_owned());
        self.first
    }

    /// A run begins here; before the first result it has begun already.
    pub(crate) fn next(&mut self) {
        if !self.seen.is_empty() {
            self.first = self.last.saturating_add(1);
            self.last = self.first;
            self.seen.clear();
        }
    }

    /// The launch where a run itself counts several, from 0 on.
    pub(crate) fn launch(&mut self, index: u32) -> u32 {
        let launch = self.first.saturating_add(index);
        self.last = self.last.max(launch);
        launch
    }

    pub(crate) fn current(&self) -> u32 {
        self.first
    }
}

/// A value of a launch.
pub(crate) fn at(value: f64, launch: u32) -> Sample {
    Sample { value, launch, ..Sample::default() }
}

/// A number that may have commas between groups of three digits: `1,234,567.8`.
pub(crate) fn grouped(text: &str) -> Option<f64> {
    let (whole, _) = text.split_once('.').unwrap_or((text, ""));
    let mut groups = whole.trim_start_matches('-').split(',');
    let first = groups.next()?;
    let mut rest = groups.peekable();
    let is_grouped = rest.peek().is_none() || first.len() <= 3 && rest.all(|group| group.len() == 3);
    let digits = is_grouped.then(|| text.replace(',', ""))?;
    digits.parse().ok().filter(|value: &f64| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documents, and what was skipped, each with its line.
    type Found = (Vec<(u64, Value)>, Vec<(u64, String)>);

    fn documents(text: &str) -> Found {
        let mut metrics = Metrics::new("test");
        let mut found = Vec::new();
        each_document(text, &[&["\"k\""]], &mut metrics, |_, line, value| found.push((line, value.clone())));
        let skipped = metrics.finish(&[]).skipped;
        (found, skipped.into_iter().map(|skipped| (skipped.line, skipped.why)).collect())
    }

    #[test]
    fn documents_stand_between_other_lines() {
        let (found, skipped) = documents(
            "log\n[12:00] {x}\n{\"k\": \"}\\\"\"}\n{\"other\": 1}\n\nlog\n[\n {\"k\": 2}\n] end\n{\"k\": NaN}",
        );
        let lines: Vec<u64> = found.iter().map(|(line, _)| *line).collect();
        assert_eq!((lines, skipped), (vec![3, 7, 10], vec![]));
        assert_eq!(found[1].1[0]["k"], 2);
    }

    #[test]
    fn of_one_that_is_cut_off_what_was_complete_is_read() {
        let (found, skipped) = documents("{\"k\": [{\"a\": 1},\n {\"a\": 2},\n {\"a\": ");
        assert_eq!(found[0].1["k"].as_array().map(Vec::len), Some(2));
        assert_eq!(skipped, [(3, CUT_OFF.to_owned())]);
        let (found, skipped) = documents("{\"k\": ");
        assert_eq!((found.len(), skipped.len()), (0, 1));
    }

    #[test]
    fn commas_stand_between_groups_of_three() {
        assert_eq!(grouped("1,234,567.8"), Some(1_234_567.8));
        assert_eq!(grouped("12345"), Some(12345.0));
        assert_eq!(grouped("1,23"), None);
        assert_eq!(grouped("inf"), None);
    }
}
