//! A row for each sample (RFC 4180).

use super::format::{Export, Exported, without_samples};
use std::fmt::Write as _;
use tare_model::outcome::Better;
use tare_model::tool::ToolMetrics;

pub(super) const EXPORT: Export =
    Export { name: "csv", holds: "every sample with its launch, worker and time", write };

fn write(read: &ToolMetrics) -> Exported {
    let mut text = String::from("benchmark,metric,unit,better,launch,worker,at_s,value\n");
    for metric in &read.metrics {
        let better = match metric.better {
            Some(Better::Higher) => "higher",
            Some(Better::Lower) => "lower",
            None => "",
        };
        let head = [&metric.benchmark, &metric.name, &metric.unit].map(|field| quoted(field)).join(",");
        for (at, value) in metric.samples.iter().enumerate() {
            let launch = metric.launches.get(at).copied().unwrap_or_default();
            let worker = metric.workers.get(at).map(ToString::to_string).unwrap_or_default();
            let at_s = metric.at_s.get(at).map(ToString::to_string).unwrap_or_default();
            // Writing to a string cannot fail.
            writeln!(text, "{head},{better},{launch},{worker},{at_s},{value}").ok();
        }
    }
    Exported { content: text.into_bytes(), left_out: without_samples(read) }
}

fn quoted(field: &str) -> String {
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}
