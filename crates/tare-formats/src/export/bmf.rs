//! [Bencher Metric Format](https://bencher.dev/docs/reference/bencher-metric-format/).

use super::format::{Export, Exported, full_name, json};
use serde_json::{Map, Value, json};
use tare_model::tool::{ToolMetric, ToolMetrics};

pub(super) const EXPORT: Export = Export {
    name: "bmf",
    holds: "the estimate of every metric with its interval, in base units; no samples",
    write,
};

/// The name of a measure says its unit there: that of the value, where the tool's own word has another (`ns/op` of seconds).
fn measure_of(metric: &ToolMetric) -> &str {
    let has_unit = metric.name.contains('/');
    if has_unit && !metric.unit.is_empty() { &metric.unit } else { &metric.name }
}

fn write(read: &ToolMetrics) -> Exported {
    let mut benchmarks: Map<String, Value> = Map::new();
    let mut left_out = Vec::new();
    for metric in &read.metrics {
        let Some(estimate) = &metric.estimate else {
            left_out.push((full_name(metric), "it has no estimate"));
            continue;
        };
        let mut measure = json!({"value": estimate.value});
        if let Some([low, high]) = estimate.ci95 {
            measure["lower_value"] = low.into();
            measure["upper_value"] = high.into();
        }
        let benchmark = if metric.benchmark.is_empty() { &read.format } else { &metric.benchmark };
        let measures = benchmarks.entry(benchmark.clone()).or_insert_with(|| json!({}));
        measures[measure_of(metric)] = measure;
    }
    Exported { content: json(&Value::Object(benchmarks)), left_out }
}
