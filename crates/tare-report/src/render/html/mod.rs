//! For a browser: one page that needs nothing but itself, in light and dark, on paper and on a telephone.
//!
//! Every text goes through [`Escaped`]; the page's own policy forbids scripts and the network on top of that.

mod drawing;
mod escape;

use crate::block::{Align, Block, Figure, Flame, Note, Row, Table, Text, Tone};
use crate::sections::Part;
use drawing::{bars, chart, steps};
use escape::{Escaped, put};

const STYLE: &str = include_str!("page.css");

/// The whole page.
pub(crate) fn render(parts: &[Part]) -> String {
    let headline = parts.iter().flat_map(|part| &part.blocks).find_map(|block| match block {
        Block::Headline(text) => Some(text.text.as_str()),
        _ => None,
    });
    let mut page = String::with_capacity(64 * 1024);
    put(
        &mut page,
        format_args!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <title>tare: {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n",
            Escaped(headline.unwrap_or("result"))
        ),
    );
    for part in parts {
        if part.title.is_empty() {
            page.push_str("<section class=\"lead\">\n");
        } else {
            put(&mut page, format_args!("<section>\n<h2>{}</h2>\n", Escaped(part.title)));
        }
        part.blocks.iter().for_each(|one| block(&mut page, one));
        page.push_str("</section>\n");
    }
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn block(page: &mut String, block: &Block) {
    match block {
        Block::Headline(text) => {
            put(page, format_args!("<h1 class=\"{}\">{}</h1>\n", class(text.tone), Escaped(&text.text)))
        }
        Block::Line(text) => put(page, format_args!("<p>{}</p>\n", toned(text))),
        Block::Pairs(pairs) => {
            page.push_str("<dl class=\"pairs\">\n");
            for (label, value) in pairs {
                put(page, format_args!("<dt>{}</dt><dd>{}</dd>\n", Escaped(label), Escaped(value)));
            }
            page.push_str("</dl>\n");
        }
        Block::Table(one) => table(page, one),
        Block::Notes(notes) => notes.iter().for_each(|one| note(page, one)),
        Block::Figures(figures) => {
            page.push_str("<div class=\"figures\">\n");
            figures.iter().for_each(|one| figure(page, one));
            page.push_str("</div>\n");
        }
        Block::Steps(all) => steps(page, all),
        Block::Bars(all) => bars(page, all),
        Block::Chart(one) => chart(page, one),
        Block::Flame(one) => flame(page, one),
    }
}

fn flame(page: &mut String, flame: &Flame) {
    let (caption, facts) = (Escaped(&flame.caption), Escaped(&flame.facts));
    put(page, format_args!("<figure><figcaption>{caption}</figcaption>\n{}\n", flame.svg));
    put(page, format_args!("<p class=\"dim\">{facts}</p></figure>\n"));
}

fn figure(page: &mut String, figure: &Figure) {
    put(
        page,
        format_args!(
            "<div class=\"figure\"><p class=\"label\">{}</p><p class=\"value {}\">{}</p>",
            Escaped(figure.label),
            class(figure.value.tone),
            Escaped(&figure.value.text)
        ),
    );
    for note in figure.notes.iter().filter(|note| !note.is_empty()) {
        put(page, format_args!("<p class=\"dim\">{}</p>", Escaped(note)));
    }
    page.push_str("</div>\n");
}

fn table(page: &mut String, table: &Table) {
    page.push_str("<div class=\"scroll\"><table>\n");
    let side = |align: Align| match align {
        Align::Left => "words",
        Align::Right => "number",
    };
    if table.columns.iter().any(|column| !column.title.is_empty()) {
        page.push_str("<thead><tr>");
        for column in &table.columns {
            let title = Escaped(&column.title);
            put(page, format_args!("<th scope=\"col\" class=\"{}\">{title}</th>", side(column.align)));
        }
        page.push_str("</tr></thead>\n");
    }
    page.push_str("<tbody>\n");
    for row in &table.rows {
        let (cells, kind) = match row {
            Row::Cells(cells) => (cells, ""),
            Row::Total(cells) => (cells, " class=\"total\""),
            Row::Heading(text) => {
                let span = table.columns.len();
                put(
                    page,
                    format_args!(
                        "<tr><th class=\"words group\" colspan=\"{span}\">{}</th></tr>\n",
                        toned(text)
                    ),
                );
                continue;
            }
        };
        put(page, format_args!("<tr{kind}>"));
        for (column, cell) in table.columns.iter().zip(cells) {
            put(page, format_args!("<td class=\"{}\">{}</td>", side(column.align), toned(cell)));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}

fn note(page: &mut String, note: &Note) {
    put(
        page,
        format_args!(
            "<article class=\"note {}\"><h3>{} <small>{}</small></h3>\n",
            class(note.title.tone),
            Escaped(&note.title.text),
            Escaped(&note.aside)
        ),
    );
    if !note.body.is_empty() {
        put(page, format_args!("<p>{}</p>\n", Escaped(&note.body)));
    }
    if !note.lines.is_empty() {
        page.push_str("<dl>\n");
        for (label, text) in &note.lines {
            put(page, format_args!("<dt>{}</dt><dd>{}</dd>\n", Escaped(label), Escaped(text)));
        }
        page.push_str("</dl>\n");
    }
    page.push_str("</article>\n");
}

fn toned(text: &Text) -> String {
    match text.tone {
        Tone::Plain => Escaped(&text.text).to_string(),
        tone => format!("<span class=\"{}\">{}</span>", class(tone), Escaped(&text.text)),
    }
}

/// A tone's class in the style sheet.
fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Strong => "strong",
        Tone::Dim => "dim",
        Tone::Good => "good",
        Tone::Warn => "warn",
        Tone::Bad => "bad",
    }
}
