//! The page of a cause, and the list of all.

use crate::block::{Block, Text, Tone};
use crate::sections::Part;
use crate::{Style, render};
use serde::Serialize;
use tare_model::cause_page::CausePage;

/// Every cause in a line.
pub fn list(pages: &[CausePage], style: Style) -> String {
    let rows = pages.iter().map(|page| (page.cause.id(), page.brief.clone())).collect();
    let more = Text::dim("What one is known by, what to do, how to confirm it: tare explain CAUSE");
    let parts = [
        Part { title: "", blocks: vec![Block::Pairs(rows)] },
        Part { title: "", blocks: vec![Block::Line(more)] },
    ];
    render::terminal::render(&parts, style)
}

/// One cause's page.
pub fn terminal(page: &CausePage, style: Style) -> String {
    let lead = Text::new(format!("{}: {}", page.cause.id(), page.brief), Tone::Strong);
    let headed = [
        ("What it means", &page.what_it_means),
        ("Evidence", &page.evidence),
        ("Looks the same but is not", &page.looks_the_same_but_is_not),
        ("What to do", &page.what_to_do),
        ("How to confirm", &page.how_to_confirm),
        ("Source", &page.source),
    ];
    let mut parts = vec![Part { title: "", blocks: vec![Block::Headline(lead)] }];
    parts.extend(headed.into_iter().map(|(title, texts)| Part { title, blocks: vec![items(title, texts)] }));
    if !page.injections.is_empty() {
        let names: Vec<String> =
            page.injections.iter().map(|name| format!("tare calibrate --only {name}")).collect();
        let text = Text::dim(format!("To see it happen: {}", names.join(", ")));
        parts.push(Part { title: "", blocks: vec![Block::Line(text)] });
    }
    render::terminal::render(&parts, style)
}

/// Paragraphs where they are read one after the other, else items.
fn items(title: &str, texts: &[String]) -> Block {
    let mark = if title == "What it means" || texts.len() < 2 { "" } else { "-" };
    Block::Pairs(texts.iter().map(|text| (mark.to_owned(), text.clone())).collect())
}

/// One page or all as JSON, indented, with a line's end.
///
/// # Errors
/// None that is known: every key is a string.
pub fn json<P: Serialize + ?Sized>(pages: &P) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(pages).map(|text| text + "\n")
}
