//! What the file of a format that is written provides.

use tare_model::tool::{ToolMetric, ToolMetrics};

/// A format that results can be written in.
#[derive(Debug, Clone, Copy)]
pub struct Export {
    /// Its name; no two have the same.
    pub name: &'static str,
    /// What it holds, in a line.
    pub holds: &'static str,
    pub(crate) write: fn(&ToolMetrics) -> Exported,
}

/// A file's content, and what of the results it could not hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exported {
    /// A text with a line's end, or bytes.
    pub content: Vec<u8>,
    /// Metrics that are not in it, with the reason.
    pub left_out: Vec<(String, &'static str)>,
}

impl Export {
    /// The results in this format.
    pub fn write(&self, read: &ToolMetrics) -> Exported {
        (self.write)(read)
    }
}

/// The benchmark and the metric in one name.
pub(super) fn full_name(metric: &ToolMetric) -> String {
    match (metric.benchmark.as_str(), metric.name.as_str()) {
        ("", name) => name.to_owned(),
        (benchmark, name) => format!("{benchmark} {name}"),
    }
}

/// Metrics of which the tool gave no samples.
pub(super) fn without_samples(read: &ToolMetrics) -> Vec<(String, &'static str)> {
    let metrics = read.metrics.iter().filter(|metric| metric.samples.is_empty());
    metrics.map(|metric| (full_name(metric), "it has no samples")).collect()
}

/// JSON with a line's end.
pub(super) fn json(value: &serde_json::Value) -> Vec<u8> {
    // Keys are strings and numbers finite, so that nothing can fail.
    (serde_json::to_string_pretty(value).unwrap_or_default() + "\n").into_bytes()
}

/// A number as short as it can be written, without what a change of units leaves in its last digits.
pub(super) fn number(value: f64) -> String {
    let digits = format!("{value:.14e}");
    digits.parse::<f64>().map_or(digits, |short| short.to_string())
}
