//! [github-action-benchmark](https://github.com/benchmark-action/github-action-benchmark): its custom formats, one for each better side.

use super::format::{Export, Exported, full_name, json};
use serde_json::{Value, json};
use tare_model::outcome::Better;
use tare_model::tool::{ToolMetric, ToolMetrics};

pub(super) const SMALLER: Export = Export {
    name: "github-action-benchmark",
    holds: "customSmallerIsBetter: the estimate of every metric of which less is better",
    write: |read| write(read, Better::Lower),
};

pub(super) const BIGGER: Export = Export {
    name: "github-action-benchmark-bigger",
    holds: "customBiggerIsBetter: the estimate of every metric of which more is better",
    write: |read| write(read, Better::Higher),
};

fn write(read: &ToolMetrics, side: Better) -> Exported {
    let mut entries: Vec<Value> = Vec::new();
    let mut left_out = Vec::new();
    for metric in &read.metrics {
        match entry(metric, side) {
            Ok(entry) => entries.push(entry),
            Err(why) => left_out.push((full_name(metric), why)),
        }
    }
    Exported { content: json(&Value::Array(entries)), left_out }
}

fn entry(metric: &ToolMetric, side: Better) -> Result<Value, &'static str> {
    let estimate = metric.estimate.as_ref().ok_or("it has no estimate")?;
    match metric.better {
        Some(better) if better == side => {}
        Some(Better::Higher) => return Err("more is better: github-action-benchmark-bigger holds it"),
        Some(Better::Lower) => return Err("less is better: github-action-benchmark holds it"),
        None => return Err("it is not known which side is better"),
    }
    let mut entry = json!({"name": full_name(metric), "unit": metric.unit, "value": estimate.value});
    if let Some([low, high]) = estimate.ci95 {
        entry["range"] = format!("{low} … {high}").into();
    }
    entry["extra"] = format!("{} samples", metric.samples.len()).into();
    Ok(entry)
}
