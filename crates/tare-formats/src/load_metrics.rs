//! The summary of a load as metrics.

use crate::format::Format;
use crate::metrics::{Kind, Metrics, Sample};
use crate::result::ToolResult;
use tare_model::outcome::Better;
use tare_model::tool::ToolMetrics;

/// Every result of `printed`; those of the same name are launches, one after another.
pub(crate) fn of(format: &Format, printed: &str) -> ToolMetrics {
    let output = format.read(printed);
    let mut metrics = Metrics::new(format.name);
    let mut launches = std::collections::BTreeMap::new();
    for result in &output.results {
        let name = result.name.clone().unwrap_or_default();
        let launch: &mut u32 = launches.entry(name).or_default();
        one(result, *launch, &mut metrics);
        *launch += 1;
    }
    let unread = format.shapes.note_unread(printed, 1, &mut metrics);
    if output.results.is_empty() && output.complaint.is_none() && unread == 0 {
        metrics.skip(1, format.name, "it holds no whole summary: the output is cut off");
    }
    if let Some(complaint) = &output.complaint {
        let hint = "read the tool's own output: its figures may be of a part of the load";
        metrics.warn("tool-complains", &format!("{} says: {complaint}", format.name), hint);
    }
    metrics.finish(format.gets_wrong)
}

/// One result, of the launch with this number.
pub(crate) fn one(result: &ToolResult, launch: u32, metrics: &mut Metrics) {
    let benchmark = result.name.as_deref().unwrap_or_default();
    let (more, less) = (Some(Better::Higher), Some(Better::Lower));
    let mut note = |kind: Kind<'_>, value: Option<f64>| {
        if let Some(value) = value {
            metrics.sample(0, kind, Sample { value, launch, ..Sample::default() });
        }
    };
    note(kind(benchmark, "throughput", "op/s", more), result.rate_hz.value().copied());
    note(kind(benchmark, "operations", "op", None), result.operations.value().map(|count| *count as f64));
    let failed = result.errors.value().map(|errors| errors.values().map(|count| *count as f64).sum());
    note(kind(benchmark, "errors", "op", less), failed);
    if let Some(latency) = result.latency.value() {
        note(kind(benchmark, "latency mean", "s", less), latency.mean_ns.value().map(|ns| *ns as f64 / 1e9));
        for (quantile, ns) in &latency.quantiles_ns {
            let name = match *quantile {
                0.0 => "latency min".to_owned(),
                1.0 => "latency max".to_owned(),
                quantile => format!("latency p{}", (quantile * 1e8).round() / 1e6),
            };
            note(kind(benchmark, &name, "s", less), Some(*ns as f64 / 1e9));
        }
    }
    for (setting, value) in &result.settings {
        metrics.set(setting, value);
    }
}

fn kind<'a>(benchmark: &'a str, name: &'a str, unit: &'a str, better: Option<Better>) -> Kind<'a> {
    Kind { benchmark, name, unit, better }
}
