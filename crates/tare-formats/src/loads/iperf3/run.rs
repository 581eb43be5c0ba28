//! What iperf3 says of a test, whichever way it prints it.

use crate::result::short;

/// Whose count of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Sent,
    Received,
}

/// One line of figures, or one object of them.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub line: u64,
    pub side: Side,
    /// Of the other direction, with --bidir.
    pub reverse: bool,
    /// Which stream; `None`: the sum of all.
    pub stream: Option<u32>,
    /// Of the whole test, and no interval of it.
    pub is_total: bool,
    pub omitted: bool,
    pub start_s: f64,
    pub end_s: f64,
    pub bytes: f64,
    pub bytes_hz: f64,
    pub more: Vec<(&'static str, &'static str, f64)>,
}

/// One test.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub protocol: &'static str,
    pub streams: Option<u32>,
    pub settings: Vec<(String, String)>,
    pub rows: Vec<Row>,
    /// In the tool's own words, and the line.
    pub error: Option<(u64, String)>,
    pub warnings: Vec<(&'static str, String, &'static str)>,
    pub skipped: Vec<(u64, String, String)>,
}

/// Most rows that are kept of one test: days of intervals.
const ROWS_MAX: usize = 200_000;

impl Run {
    pub fn add(&mut self, row: Row) {
        if self.rows.len() < ROWS_MAX {
            self.rows.push(row);
        } else {
            self.skip(row.line, "an interval", "more intervals than are kept");
        }
    }

    pub fn skip(&mut self, line: u64, what: &str, why: &str) {
        if self.skipped.len() < ROWS_MAX {
            self.skipped.push((line, short(what), why.to_owned()));
        }
    }

    /// The rows of whole tests: sums where there are some, else those of the only stream.
    pub fn totals(&self) -> impl Iterator<Item = &Row> {
        let has_sum =
            |side: Side| self.rows.iter().any(|row| row.is_total && row.stream.is_none() && row.side == side);
        let (sent, received) = (has_sum(Side::Sent), has_sum(Side::Received));
        let summed = move |row: &Row| if row.side == Side::Sent { sent } else { received };
        self.rows.iter().filter(move |row| row.is_total && (row.stream.is_none() || !summed(row)))
    }

    /// Whether its figures tell intervals of several streams apart from their sum.
    pub fn has_streams(&self) -> bool {
        self.rows.iter().any(|row| row.stream.is_some_and(|stream| stream > 0))
    }
}
