//! The page of a cause, and the list of all.

use crate::Report;
use crate::block::{Block, Field, Rows, Text};
use crate::sections::Part;
use serde::Serialize;
use tare_model::cause_page::CausePage;

/// Every cause in a line, laid out.
pub fn list(pages: &[CausePage]) -> Report {
    let pairs = pages.iter().map(|page| (page.cause.id(), page.brief.clone())).collect();
    let more = Text::dim("What one is known by, what to do, how to confirm it: tare explain CAUSE");
    let parts = vec![
        Part { title: "", blocks: vec![Block::Pairs(pairs)] },
        Part { title: "", blocks: vec![Block::Line(more)] },
    ];
    let row = |page: &CausePage| -> Vec<Field> { vec![page.cause.id().into(), page.brief.as_str().into()] };
    Report { parts, rows: Rows { header: &["cause", "brief"], rows: pages.iter().map(row).collect() } }
}

/// One cause's page, laid out.
pub fn report(page: &CausePage) -> Report {
    let cause = page.cause.id();
    let headed = [
        ("What it means", "what_it_means", &page.what_it_means),
        ("Evidence", "evidence", &page.evidence),
        ("Looks the same but is not", "looks_the_same_but_is_not", &page.looks_the_same_but_is_not),
        ("What to do", "what_to_do", &page.what_to_do),
        ("How to confirm", "how_to_confirm", &page.how_to_confirm),
        ("Source", "source", &page.source),
    ];
    let row =
        |part: &str, text: &str| -> Vec<Field> { vec![cause.as_str().into(), part.into(), text.into()] };
    let mut rows = vec![row("brief", &page.brief)];
    let lead = Text::strong(format!("{cause}: {}", page.brief));
    let mut parts = vec![Part { title: "", blocks: vec![Block::Headline(lead)] }];
    for (title, part, texts) in headed {
        parts.push(Part { title, blocks: vec![items(title, texts)] });
        rows.extend(texts.iter().map(|text| row(part, text)));
    }
    if !page.injections.is_empty() {
        let names: Vec<String> =
            page.injections.iter().map(|name| format!("tare calibrate --only {name}")).collect();
        let text = Text::dim(format!("To see it happen: {}", names.join(", ")));
        parts.push(Part { title: "", blocks: vec![Block::Line(text)] });
        rows.extend(page.injections.iter().map(|name| row("injection", name)));
    }
    Report { parts, rows: Rows { header: &["cause", "part", "text"], rows } }
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
