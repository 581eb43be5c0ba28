//! The JSON of `--json-out-file`: of each kind of operation its rates, its latencies, and both for each second.

use super::histogram::Histogram;
use crate::documents::{each_run, has};
use crate::json::{number, text};
use crate::loads::shared::{LESS, MORE, kind};
use crate::metrics::{Metrics, Sample};
use crate::reader::Input;
use serde_json::{Map, Value};

pub(super) fn detect(input: &Input<'_>) -> bool {
    has(input, KEYS)
}

const KEYS: &[&[&str]] =
    &[&["\"configuration\"", "\"Connections per thread\""], &["\"configuration\"", "\"key_pattern\""]];

pub(super) fn read(input: &Input<'_>, metrics: &mut Metrics) {
    each_run(input.text, KEYS, "JSON of memtier_benchmark", metrics, |metrics, document| {
        of_run(&document, metrics);
    });
}

fn of_run(document: &Value, metrics: &mut Metrics) {
    for (part, names) in [("configuration", CONFIGURATION), ("run information", RUN)] {
        for name in names {
            let value = &document[part][*name];
            if !value.is_null() {
                metrics.set(name, &text(value));
            }
        }
    }
    let sections = document.as_object().into_iter().flatten();
    let sections: Vec<_> = sections.filter(|(_, section)| section["Totals"].is_object()).collect();
    for (name, section) in &sections {
        // Of one run the table needs no name.
        let prefix = if sections.len() > 1 { format!("{name} ") } else { String::new() };
        for (operation, figures) in section.as_object().into_iter().flatten() {
            match figures {
                Value::Object(figures) if figures.contains_key("Ops/sec") => {
                    figures_of(&format!("{prefix}{operation}"), figures, metrics);
                }
                // Before 1.3: shares below latencies.
                Value::Array(steps) => shares(&format!("{prefix}{operation}"), steps, metrics),
                _ => {}
            }
        }
    }
    if sections.is_empty() {
        metrics.skip(1, "JSON of memtier_benchmark", "it has no results");
    }
    warn(document, sections.iter().any(|(name, _)| name.contains("AVERAGE")), metrics);
}

const CONFIGURATION: &[&str] = &[
    "protocol",
    "run_count",
    "requests",
    "rate_limit",
    "clients",
    "threads",
    "test_time",
    "ratio",
    "pipeline",
    "data_size",
    "key_pattern",
];
const RUN: &[&str] = &[
    "Threads",
    "Connections per thread",
    "Requests per client",
    "Seconds",
    "Benchmark completion status",
    "Format version",
];

/// Figures of one kind of operation: those of the whole run, then of each second.
fn figures_of(operation: &str, figures: &Map<String, Value>, metrics: &mut Metrics) {
    let value = |name: &str| figures.get(name).and_then(number);
    let count = value("Count").unwrap_or(0.0);
    if figures.contains_key("Count") && count == 0.0 {
        // It prints latencies of none.
        return;
    }
    for (name, value) in figures.iter().filter_map(|(name, value)| Some((name.as_str(), number(value)?))) {
        let (unit, better, scale) = match name {
            "Ops/sec" | "Hits/sec" if value == 0.0 && count > 0.0 && name == "Ops/sec" => {
                metrics.skip(
                    1,
                    operation,
                    "a rate of 0 though operations were counted: the run was interrupted",
                );
                continue;
            }
            "Ops/sec" | "Hits/sec" => ("op/s", MORE, 1.0),
            "Misses/sec" | "MOVED/sec" | "ASK/sec" | "Connection Errors/sec" => ("op/s", LESS, 1.0),
            "KB/sec" | "KB/sec RX" | "KB/sec TX" => ("B/s", MORE, 1024.0),
            "Count" => ("op", None, 1.0),
            "Connection Errors" => ("op", LESS, 1.0),
            _ => continue,
        };
        metrics.sample(0, kind(operation, name, unit, better), value * scale);
    }
    // Versions that print both mean the same with both.
    let mean = value("Average Latency").or_else(|| value("Latency"));
    let named = [("mean", mean), ("min", value("Min Latency")), ("max", value("Max Latency"))];
    for (name, ms) in named {
        if let Some(ms) = ms {
            metrics.sample(0, kind(operation, &format!("latency {name}"), "s", LESS), ms / 1e3);
        }
    }
    let percentiles = figures.get("Percentile Latencies").and_then(Value::as_object);
    for (name, value) in percentiles.into_iter().flatten() {
        if let Some(ms) = percentile(name).and(number(value)) {
            let name = format!("latency {}", percentile(name).unwrap_or_default());
            metrics.sample(0, kind(operation, &name, "s", LESS), ms / 1e3);
        }
    }
    if let Some(encoded) =
        percentiles.and_then(|all| all.get("Histogram log format")?.get("Compressed Histogram")?.as_str())
    {
        histogram(operation, encoded, metrics);
    }
    for (second, figures) in figures.get("Time-Serie").and_then(Value::as_object).into_iter().flatten() {
        of_second(operation, second, figures, metrics);
    }
}

/// `p99.90` as others write it: `p99.9`.
fn percentile(name: &str) -> Option<String> {
    name.strip_prefix('p')?.parse::<f64>().ok().map(|percent| format!("p{percent}"))
}

/// Quantiles that it did not print, of all operations.
fn histogram(operation: &str, encoded: &str, metrics: &mut Metrics) {
    let Some(histogram) = Histogram::decode(encoded) else {
        return metrics.skip(1, operation, "its histogram cannot be decoded");
    };
    let kind = kind(operation, "latency in its histogram", "s", LESS);
    for (name, quantile) in [
        ("p1", 0.01),
        ("p10", 0.1),
        ("p25", 0.25),
        ("p50", 0.5),
        ("p75", 0.75),
        ("p90", 0.9),
        ("p95", 0.95),
        ("p99", 0.99),
        ("p99.9", 0.999),
        ("p99.99", 0.9999),
        ("max", 1.0),
    ] {
        if let Some(us) = histogram.quantile(quantile) {
            metrics.summary(kind, name, us as f64 / 1e6);
        }
    }
    metrics.summary(kind, "count", histogram.count() as f64);
}

fn of_second(operation: &str, second: &str, figures: &Value, metrics: &mut Metrics) {
    let Some(at_s) = second.parse::<f64>().ok().filter(|at| at.is_finite()) else {
        return metrics.skip(1, second, "it is no second");
    };
    let mut note = |name: &str, unit: &str, better, value: f64| {
        let sample = Sample { value, at_s: Some(at_s), ..Sample::default() };
        metrics.sample(0, kind(operation, &format!("{name} by second"), unit, better), sample);
    };
    let count = number(&figures["Count"]);
    count.into_iter().for_each(|count| note("Count", "op", MORE, count));
    if count == Some(0.0) {
        return;
    }
    for (name, value) in figures.as_object().into_iter().flatten() {
        let Some(value) = number(value) else { continue };
        match name.as_str() {
            "Average Latency" => note("latency mean", "s", LESS, value / 1e3),
            "Min Latency" => note("latency min", "s", LESS, value / 1e3),
            "Max Latency" => note("latency max", "s", LESS, value / 1e3),
            "Bytes RX" | "Bytes TX" => note(name, "B", None, value),
            name => {
                if let Some(percentile) = percentile(name) {
                    note(&format!("latency {percentile}"), "s", LESS, value / 1e3);
                }
            }
        }
    }
}

/// `{"<=msec": 0.5, "percent": 99.1}`: the first latency that so many are not above.
fn shares(operation: &str, steps: &[Value], metrics: &mut Metrics) {
    let steps: Vec<(f64, f64)> =
        steps.iter().filter_map(|step| Some((number(&step["<=msec"])?, number(&step["percent"])?))).collect();
    for (name, percent) in [("p50", 50.0), ("p90", 90.0), ("p95", 95.0), ("p99", 99.0), ("p99.9", 99.9)] {
        if let Some((ms, _)) = steps.iter().find(|(_, share)| *share >= percent) {
            metrics.summary(kind(operation, "latency in its table", "s", LESS), name, ms / 1e3);
        }
    }
}

fn warn(document: &Value, averages: bool, metrics: &mut Metrics) {
    let configuration = &document["configuration"];
    if let Some(rate) = number(&configuration["rate_limit"]).filter(|rate| *rate > 0.0) {
        let text = format!(
            "it paced each connection at {rate} requests a second, and its percentiles begin when a request was sent, not when it was due"
        );
        metrics.warn(
            "tool-percentiles-omit-waiting",
            &text,
            "measure latency under a rate with a generator that knows when each request was due",
        );
    }
    if averages {
        let text = "the percentiles of several runs are averages of each run's, and no percentiles of all operations";
        metrics.warn("tool-averages-percentiles", text, "use the figures of each run (--print-all-runs)");
    }
    if let Some(status) = document["run information"]["Benchmark completion status"]
        .as_str()
        .filter(|status| status.starts_with("INTERRUPTED"))
    {
        metrics.warn(
            "tool-was-interrupted",
            &format!("the run is not whole: {status}"),
            "let it end by itself",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_of_an_interrupted_run_is_none() {
        let text = "{\"configuration\": {\"rate_limit\": 5}, \"run information\": {\"Connections per thread\": 5, \"Benchmark completion status\": \"INTERRUPTED (x)\"},\n\
            \"ALL STATS\": {\"Totals\": {\"Count\": 10, \"Ops/sec\": 0.00, \"Latency\": 1.5}, \"Waits\": {\"Count\": 0, \"Ops/sec\": 0}}}";
        let mut metrics = Metrics::new("memtier");
        assert!(detect(&Input::of_text(text)));
        read(&Input::of_text(text), &mut metrics);
        let read = metrics.finish(&[]);
        let names: Vec<_> = read.metrics.iter().map(|metric| metric.name.as_str()).collect();
        assert_eq!((names, read.skipped_count), (vec!["Count", "latency mean"], 1));
        let ids: Vec<_> = read.warnings.iter().map(|warning| warning.id.as_str()).collect();
        assert_eq!(ids, ["tool-percentiles-omit-waiting", "tool-was-interrupted"]);
    }
}
