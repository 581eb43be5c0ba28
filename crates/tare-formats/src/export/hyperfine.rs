//! The file of `hyperfine --export-json`, for its scripts.

use super::format::{Export, Exported, full_name, json};
use serde_json::{Value, json};
use tare_model::tool::{ToolMetric, ToolMetrics};

pub(super) const EXPORT: Export =
    Export { name: "hyperfine", holds: "every sample of the times; of other metrics nothing", write };

fn write(read: &ToolMetrics) -> Exported {
    let mut results: Vec<Value> = Vec::new();
    let mut left_out = Vec::new();
    let is_time = |metric: &ToolMetric| metric.unit == "s" || metric.unit.starts_with("s/");
    // Beside the time of a run; by themselves they are no commands.
    let is_cpu = |metric: &ToolMetric| matches!(metric.name.as_str(), "user" | "system" | "cpu_time");
    for metric in &read.metrics {
        match metric.samples.is_empty() {
            _ if is_cpu(metric) => {}
            true => left_out.push((full_name(metric), "it has no samples")),
            false if is_time(metric) => results.push(result(metric, read)),
            false => left_out.push((full_name(metric), "it is no time")),
        }
    }
    Exported { content: json(&json!({"results": results})), left_out }
}

fn result(metric: &ToolMetric, read: &ToolMetrics) -> Value {
    let count = metric.samples.len() as f64;
    let mean = metric.samples.iter().sum::<f64>() / count;
    let squares: f64 = metric.samples.iter().map(|value| (value - mean).powi(2)).sum();
    let mut sorted = metric.samples.clone();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let at = |at: usize| sorted.get(at).copied().unwrap_or(mean);
    let median =
        if sorted.len() % 2 == 1 { at(middle) } else { 0.5 * (at(middle.saturating_sub(1)) + at(middle)) };
    // hyperfine has the mean of both over its runs.
    let of_cpu = |name: &str| {
        let cpu =
            read.metrics.iter().find(|other| other.benchmark == metric.benchmark && other.name == name)?;
        (!cpu.samples.is_empty()).then(|| cpu.samples.iter().sum::<f64>() / cpu.samples.len() as f64)
    };
    let command = match (metric.benchmark.as_str(), metric.name.as_str()) {
        ("", name) => name.to_owned(),
        (benchmark, "time") => benchmark.to_owned(),
        _ => full_name(metric),
    };
    json!({
        "command": command,
        "mean": mean,
        "stddev": (count > 1.0).then(|| (squares / (count - 1.0)).sqrt()),
        "median": median,
        "user": of_cpu("user"),
        "system": of_cpu("system"),
        "min": at(0),
        "max": at(sorted.len().saturating_sub(1)),
        "times": metric.samples,
    })
}
