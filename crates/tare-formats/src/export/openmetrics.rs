//! [OpenMetrics](https://prometheus.io/docs/specs/om/open_metrics_spec/) text.

use super::format::{Export, Exported, full_name};
use std::fmt::Write as _;
use tare_model::tool::{ToolMetric, ToolMetrics};

pub(super) const EXPORT: Export = Export {
    name: "openmetrics",
    holds: "the estimate of every metric with its interval, as gauges; no samples",
    write,
};

fn write(read: &ToolMetrics) -> Exported {
    let mut left_out = Vec::new();
    let mut families =
        [("estimate", String::new()), ("ci95_low", String::new()), ("ci95_high", String::new())];
    for metric in &read.metrics {
        let Some(estimate) = &metric.estimate else {
            left_out.push((full_name(metric), "it has no estimate"));
            continue;
        };
        let values =
            [Some(estimate.value), estimate.ci95.map(|ends| ends[0]), estimate.ci95.map(|ends| ends[1])];
        for ((family, lines), value) in families.iter_mut().zip(values) {
            if let Some(value) = value {
                // Writing to a string cannot fail.
                writeln!(lines, "tare_{family}{} {value}", labels(metric, &read.format)).ok();
            }
        }
    }
    let mut text = String::new();
    for (family, lines) in families.iter().filter(|(_, lines)| !lines.is_empty()) {
        let help = match *family {
            "estimate" => "Median of a metric.",
            "ci95_low" => "Lower end of its 95 % interval.",
            _ => "Upper end of its 95 % interval.",
        };
        text += &format!("# TYPE tare_{family} gauge\n# HELP tare_{family} {help}\n{lines}");
    }
    Exported { content: (text + "# EOF\n").into_bytes(), left_out }
}

fn labels(metric: &ToolMetric, format: &str) -> String {
    let label = |name: &str, value: &str| {
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("{name}=\"{escaped}\"")
    };
    let all = [
        label("format", format),
        label("benchmark", &metric.benchmark),
        label("metric", &metric.name),
        label("unit", &metric.unit),
    ];
    format!("{{{}}}", all.join(","))
}
