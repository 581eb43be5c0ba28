//! The results of another tool: each metric with its interval, what was not understood, and what the tool gets wrong.

use crate::Report;
use crate::block::{Block, Column, Field, Row, Rows, Table, Text};
use crate::format::{spread, with_unit};
use crate::sections::{Part, warnings};
use crate::words::things;
use std::collections::BTreeSet;
use tare_model::tool::{Skipped, ToolMetric, ToolMetrics};

/// The results, laid out.
pub fn report(read: &ToolMetrics) -> Report {
    let lead = format!(
        "{}: {}, {}",
        read.format,
        things(read.metrics.len(), "metric"),
        things(read.metrics.iter().map(|metric| metric.samples.len()).sum(), "sample")
    );
    let mut blocks = vec![Block::Headline(Text::strong(lead))];
    if !read.configuration.is_empty() {
        let pairs = read.configuration.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        blocks.push(Block::Pairs(pairs));
    }
    blocks.push(table(read));
    let mut parts = vec![Part { title: "", blocks }];
    if read.skipped_count > 0 {
        parts.push(Part { title: "Not understood", blocks: vec![skipped(read)] });
    }
    parts.extend(warnings::part(&read.warnings));
    if !read.gets_wrong.is_empty() {
        parts.push(Part { title: "What this tool gets wrong", blocks: vec![wrong(read)] });
    }
    Report { parts, rows: rows(read) }
}

/// As the JSON object that scripts rely on, indented.
///
/// # Errors
/// None that is known.
pub fn json(read: &ToolMetrics) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(read).map(|text| text + "\n")
}

/// What the tool gets wrong, one item each.
pub(crate) fn wrong(read: &ToolMetrics) -> Block {
    Block::Pairs(read.gets_wrong.iter().map(|text| ("-".to_owned(), text.clone())).collect())
}

/// A row for each metric, under its benchmark.
pub(crate) fn table(read: &ToolMetrics) -> Block {
    let columns = vec![
        Column::words("metric", 0),
        Column::figures("median", 0),
        Column::figures("95 %", 1),
        Column::figures("samples", 2),
        Column::figures("launches", 3),
    ];
    let rows = Row::below_headings(&read.metrics, |metric| metric.benchmark.as_str(), cells);
    Block::Table(Table { columns, rows })
}

fn cells(metric: &ToolMetric) -> Vec<Text> {
    let each = |value: f64| with_unit(value, &metric.unit);
    let (value, interval) = match &metric.estimate {
        Some(estimate) => (each(estimate.value), spread(estimate.value, estimate.ci95, each)),
        None => (crate::format::NONE.to_owned(), String::new()),
    };
    let launches: BTreeSet<u32> = metric.launches.iter().copied().collect();
    vec![
        Text::plain(metric.name.clone()),
        Text::plain(value),
        Text::plain(interval),
        Text::dim(metric.samples.len().to_string()),
        Text::dim(launches.len().to_string()),
    ]
}

/// The first things that were not understood, and how many more there are.
pub(crate) fn skipped(read: &ToolMetrics) -> Block {
    const SHOWN: usize = 10;
    let line =
        |skipped: &Skipped| (format!("line {}", skipped.line), format!("{}: {}", skipped.what, skipped.why));
    let mut lines: Vec<(String, String)> = read.skipped.iter().take(SHOWN).map(line).collect();
    let more = read.skipped_count.saturating_sub(lines.len() as u64);
    if more > 0 {
        lines.push((String::new(), format!("and {more} more")));
    }
    Block::Pairs(lines)
}

fn rows(read: &ToolMetrics) -> Rows {
    let row = |metric: &ToolMetric| -> Vec<Field> {
        let estimate = metric.estimate.as_ref();
        let [low, high] = Field::ends(estimate.and_then(|estimate| estimate.ci95));
        vec![
            metric.benchmark.as_str().into(),
            metric.name.as_str().into(),
            metric.unit.as_str().into(),
            estimate.map(|estimate| estimate.value).into(),
            low,
            high,
            (metric.samples.len() as f64).into(),
        ]
    };
    Rows {
        header: &["benchmark", "metric", "unit", "median", "ci95_low", "ci95_high", "samples"],
        rows: read.metrics.iter().map(row).collect(),
    }
}
