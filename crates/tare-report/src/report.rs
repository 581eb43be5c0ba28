//! A result that is laid out once: whoever shows it chooses the form.

use crate::block::{Rows, Text};
use crate::render;
use crate::render::terminal::Style;
use crate::sections::Part;

/// A result as sections for readers, and as rows for other programs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    pub(crate) parts: Vec<Part>,
    pub(crate) rows: Rows,
}

impl Report {
    /// For a terminal.
    pub fn terminal(&self, style: Style) -> String {
        render::terminal::render(&self.parts, style)
    }

    /// As one HTML page that needs nothing but itself: no network, no fonts, no scripts.
    pub fn html(&self) -> String {
        render::html::render(&self.parts)
    }

    /// As Markdown: tables in the common dialect.
    pub fn markdown(&self) -> String {
        render::markdown::render(&self.parts)
    }

    /// As CSV: full precision, base units, an empty field where there is no figure (RFC 4180).
    pub fn csv(&self) -> String {
        render::csv::rows(&self.rows)
    }

    /// Several of one kind, one after the other.
    pub fn joined(reports: impl IntoIterator<Item = Report>) -> Report {
        let mut all = Report::default();
        for mut report in reports {
            if let Some(first) = report.parts.first_mut().filter(|_| !all.parts.is_empty()) {
                first.blocks.insert(0, crate::block::Block::Line(Text::plain("")));
            }
            all.parts.append(&mut report.parts);
            all.rows.header = report.rows.header;
            all.rows.rows.append(&mut report.rows.rows);
        }
        all
    }
}
