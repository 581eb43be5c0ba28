//! For a README, an issue, a chat: tables in the common dialect (GitHub's).

use crate::block::{Align, Block, Note, Row, Table, Text};
use crate::sections::Part;

/// All parts, ending with a newline.
pub(crate) fn render(parts: &[Part]) -> String {
    let mut text = String::new();
    for part in parts {
        if !part.title.is_empty() {
            text.push_str(&format!("\n### {}\n", part.title));
        }
        for block in &part.blocks {
            if matches!(
                block,
                Block::Figures(_) | Block::Steps(_) | Block::Bars(_) | Block::Chart(_) | Block::Flame(_)
            ) {
                continue;
            }
            if !text.is_empty() {
                text.push('\n');
            }
            match block {
                Block::Figures(_) | Block::Steps(_) | Block::Bars(_) | Block::Chart(_) | Block::Flame(_) => {}
                Block::Headline(Text { text: line, .. }) => text.push_str(&format!("**{}**\n", escape(line))),
                Block::Line(Text { text: line, .. }) => text.push_str(&format!("{}\n", escape(line))),
                Block::Pairs(pairs) => {
                    for (label, value) in pairs {
                        match label.as_str() {
                            // The item's own mark is enough.
                            "" | "-" => text.push_str(&format!("- {}\n", escape(value))),
                            label => text.push_str(&format!("- {}: {}\n", escape(label), escape(value))),
                        }
                    }
                }
                Block::Table(rows) => table(&mut text, rows),
                Block::Notes(notes) => notes.iter().for_each(|one| note(&mut text, one)),
            }
        }
    }
    text
}

fn note(text: &mut String, note: &Note) {
    text.push_str(&format!(
        "- **{}** {} {}\n",
        escape(&note.title.text),
        escape(&note.aside),
        escape(&note.body)
    ));
    for (label, line) in &note.lines {
        text.push_str(&format!("  - {label}: {}\n", escape(line)));
    }
}

fn table(text: &mut String, table: &Table) {
    let row =
        |cells: &mut dyn Iterator<Item = String>| format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
    text.push_str(&row(&mut table.columns.iter().map(|column| escape(&column.title))));
    let rules = table.columns.iter().map(|column| match column.align {
        Align::Left => ":---".to_string(),
        Align::Right => "---:".to_string(),
    });
    text.push_str(&row(&mut { rules }));
    for line in &table.rows {
        match line {
            Row::Cells(cells) | Row::Total(cells) => {
                text.push_str(&row(&mut cells.iter().map(|cell| escape(&cell.text))));
            }
            Row::Heading(heading) => text.push_str(&row(&mut std::iter::once(escape(&heading.text)))),
        }
    }
}

/// Text that stays text: on one line, and none of it markup.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{a0}' => escaped.push(' '),
            c if c.is_control() => escaped.push(' '),
            '\\' | '`' | '*' | '_' | '|' | '<' | '>' | '[' | ']' | '#' | '~' => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}
