//! How long the server's threads waited for a CPU each time, as a histogram.

use super::source::{Medium, Section, Source};
use crate::block::{Block, Column, Row, Table, Text};
use crate::format::{count, hundredths, seconds};

pub(crate) static SECTION: Section = Section {
    title: "Waits for a CPU, by length",
    media: &[Medium::Terminal, Medium::Markdown, Medium::Page],
    build,
};

/// Rows, at most: where there are more powers of two, several share one.
const ROWS_MAX: usize = 12;
/// Characters of the longest bar.
const BAR_MAX: f64 = 40.0;

fn build(source: &Source) -> Vec<Block> {
    let switches = source.outcome.accounting.switches.as_ref();
    let powers = switches.and_then(|one| one.run_queue_ns.as_ref()).map_or(&[][..], |one| &one.powers);
    let rows = rows(powers);
    if rows.is_empty() {
        return Vec::new();
    }
    let all: f64 = rows.iter().map(|(_, waits)| waits).sum();
    let most = rows.iter().map(|(_, waits)| *waits).fold(0.0, f64::max);
    let row = |(below_s, waits): &(f64, f64)| {
        Row::Cells(vec![
            Text::plain(seconds(*below_s)),
            Text::plain(count(*waits)),
            Text::plain(hundredths(waits / all)),
            Text::dim(bar(waits / most)),
        ])
    };
    let columns = vec![
        Column::figures("shorter than", 0),
        Column::figures("times", 0),
        Column::figures("%", 1),
        Column::words("", 2),
    ];
    vec![Block::Table(Table { columns, rows: rows.iter().map(row).collect() })]
}

/// From the shortest waits that there were to the longest: the upper end in seconds, and how many.
fn rows(powers: &[f64]) -> Vec<(f64, f64)> {
    let is_some = |waits: &f64| *waits > 0.0;
    let (Some(first), Some(last)) = (powers.iter().position(is_some), powers.iter().rposition(is_some))
    else {
        return Vec::new();
    };
    let each = (last + 1 - first).div_ceil(ROWS_MAX);
    let row = |(at, waits): (usize, &[f64])| {
        let end = i32::try_from(first + (at + 1) * each).unwrap_or(i32::MAX);
        (2f64.powi(end) / 1e9, waits.iter().sum())
    };
    powers[first..=last].chunks(each).enumerate().map(row).collect()
}

/// Whatever is there at all is seen.
fn bar(share: f64) -> String {
    let length = if share > 0.0 { (share * BAR_MAX).round().clamp(1.0, BAR_MAX) } else { 0.0 };
    "█".repeat(length as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_begin_and_end_where_there_are_waits_and_are_few() {
        assert_eq!(rows(&[0.0, 3.0, 0.0, 1.0, 0.0]), [(4e-9, 3.0), (8e-9, 0.0), (16e-9, 1.0)]);
        let many = rows(&[1.0; 30]);
        assert_eq!((many.len(), many[0], many[9]), (10, (8e-9, 3.0), (2f64.powi(30) / 1e9, 3.0)));
        assert!(rows(&[]).is_empty() && rows(&[0.0; 9]).is_empty() && rows(&[f64::NAN]).is_empty());
    }

    #[test]
    fn bars_are_as_long_as_their_share_and_never_unseen() {
        let lengths = [1.0, 0.5, 1e-9, 0.0, f64::NAN].map(|share| bar(share).chars().count());
        assert_eq!(lengths, [40, 20, 1, 0, 0]);
    }
}
