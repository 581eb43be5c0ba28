//! The results of another tool: each metric with its interval, what was not understood, and what the tool gets wrong.

use crate::Report;
use crate::block::{Block, Column, Field, Row, Rows, Table, Text};
use crate::format::{spread, with_unit};
use crate::sections::{Part, warnings::note};
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
    if !read.warnings.is_empty() {
        let notes = read.warnings.iter().map(note).collect();
        parts.push(Part { title: "Warnings", blocks: vec![Block::Notes(notes)] });
    }
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
    let mut rows = Vec::new();
    let mut last: Option<&str> = None;
    for metric in &read.metrics {
        if last != Some(&metric.benchmark) && !metric.benchmark.is_empty() {
            rows.push(Row::Heading(Text::strong(metric.benchmark.clone())));
        }
        last = Some(&metric.benchmark);
        rows.push(Row::Cells(cells(metric)));
    }
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
        let end = |at: usize| estimate.and_then(|estimate| estimate.ci95).map(|ends| ends[at]);
        vec![
            metric.benchmark.as_str().into(),
            metric.name.as_str().into(),
            metric.unit.as_str().into(),
            estimate.map(|estimate| estimate.value).into(),
            end(0).into(),
            end(1).into(),
            (metric.samples.len() as f64).into(),
        ]
    };
    Rows {
        header: &["benchmark", "metric", "unit", "median", "ci95_low", "ci95_high", "samples"],
        rows: read.metrics.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Style;
    use std::collections::BTreeMap;
    use tare_model::outcome::Better;
    use tare_model::tool::ToolEstimate;
    use tare_model::warning::Warning;

    fn example() -> ToolMetrics {
        let metric = |benchmark: &str, name: &str, unit: &str, samples: &[f64], ci95| ToolMetric {
            benchmark: benchmark.into(),
            name: name.into(),
            unit: unit.into(),
            better: Some(Better::Lower),
            samples: samples.to_vec(),
            launches: (0..samples.len() as u32).collect(),
            workers: Vec::new(),
            at_s: Vec::new(),
            configuration: BTreeMap::new(),
            summary: BTreeMap::new(),
            estimate: Some(ToolEstimate { value: samples[0], unit: unit.into(), ci95 }),
        };
        ToolMetrics {
            schema: 2,
            format: "go-bench".into(),
            metrics: vec![
                metric("p.BenchmarkSort-2", "ns/op", "s/op", &[1.25e-8, 1.3e-8], Some([1.2e-8, 1.3e-8])),
                metric("p.BenchmarkSort-2", "B/op", "B/op", &[80.0], None),
                metric("", "rate", "req/s", &[120_000.0], None),
            ],
            configuration: BTreeMap::from([("goos".to_owned(), "linux".to_owned())]),
            skipped: vec![Skipped {
                what: "BenchmarkX-2".into(),
                line: 7,
                why: "the line is cut off".into(),
            }],
            skipped_count: 3,
            warnings: vec![Warning {
                id: "one-launch".into(),
                text: "of one process".into(),
                hint: "start it again".into(),
            }],
            gets_wrong: vec!["its mean hides one slow iteration".into()],
        }
    }

    #[test]
    fn results_of_a_tool_in_every_form() {
        let read = example();
        let report = report(&read);
        let plain = Style { color: false, width: 100, unicode: true };
        insta::assert_snapshot!("tool_terminal", report.terminal(plain));
        insta::assert_snapshot!("tool_markdown", report.markdown());
        insta::assert_snapshot!("tool_csv", report.csv());
        insta::assert_snapshot!("tool_json", json(&read).unwrap());
        let html = report.html();
        assert!(html.contains("BenchmarkSort-2") && html.contains("one slow iteration"));
    }
}
