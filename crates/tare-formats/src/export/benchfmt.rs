//! Go's benchmark format, which benchstat reads.

use super::format::{Export, Exported, number, without_samples};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use tare_model::outcome::Better;
use tare_model::tool::{ToolMetric, ToolMetrics};

pub(super) const EXPORT: Export = Export {
    name: "benchfmt",
    holds: "every sample of every metric; not what launch, thread and time they are of",
    write,
};

fn write(read: &ToolMetrics) -> Exported {
    let mut text = String::new();
    let mut put = |line: String| {
        // Writing to a string cannot fail.
        writeln!(text, "{line}").ok();
    };
    for (key, value) in &read.configuration {
        if is_key(key) {
            put(format!("{key}: {}", value.replace(['\r', '\n'], " ")));
        }
    }
    let mut said = BTreeSet::new();
    for metric in &read.metrics {
        let (unit, _) = unit(metric);
        // What benchstat takes for better when nobody says it: less, but of rates more.
        let usual = if unit.ends_with("/s") { Better::Higher } else { Better::Lower };
        if let Some(better) = metric.better.filter(|better| *better != usual && said.insert(unit.clone())) {
            let better = if better == Better::Higher { "higher" } else { "lower" };
            put(format!("Unit {unit} better={better}"));
        }
    }
    for benchmark in read.metrics.chunk_by(|one, other| one.benchmark == other.benchmark) {
        let [first, ..] = benchmark else { continue };
        let package = read.configuration.get("pkg").map(|package| format!("{package}."));
        let name =
            package.and_then(|package| first.benchmark.strip_prefix(&package)).unwrap_or(&first.benchmark);
        let most = benchmark.iter().map(|metric| metric.samples.len()).max().unwrap_or(0);
        for at in 0..most {
            let values = benchmark.iter().filter_map(|metric| {
                let (unit, scale) = unit(metric);
                Some(format!(" {} {unit}", number(scale * metric.samples.get(at)?)))
            });
            put(format!("{} 1{}", named(name), values.collect::<String>()));
        }
    }
    Exported { content: text.into_bytes(), left_out: without_samples(read) }
}

/// A key as the format has it: begins in lower case, without blanks or capitals.
fn is_key(key: &str) -> bool {
    key.starts_with(|c: char| c.is_lowercase())
        && !key.contains(|c: char| c.is_whitespace() || c.is_uppercase() || c == ':')
}

/// A name as the format has it: begins with `Benchmark`, without blanks.
fn named(name: &str) -> String {
    let joined = name.split_whitespace().collect::<Vec<_>>().join("_");
    match joined.strip_prefix("Benchmark") {
        Some(rest) if !rest.starts_with(|c: char| c.is_lowercase()) => joined,
        _ => {
            let mut letters = joined.chars();
            let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
            format!("Benchmark{first}{}", letters.as_str())
        }
    }
}

/// The unit as the format writes it, and what a value in base units is multiplied with.
fn unit(metric: &ToolMetric) -> (String, f64) {
    let name = metric.name.split_whitespace().collect::<Vec<_>>().join("-");
    match (metric.name.as_str(), metric.unit.as_str()) {
        // Go's own, which the reader has taken apart.
        ("MB/s", "B/s") => (name, 1e-6),
        (go, unit) if go == unit => (name, 1.0),
        (go, unit) if go.starts_with("ns/") && unit.starts_with("s/") => (name, 1e9),
        ("time", "s") => ("sec/op".into(), 1.0),
        (_, "s") => (format!("{name}-sec/op"), 1.0),
        (_, unit) => (format!("{name}-{}", unit.split_whitespace().collect::<Vec<_>>().join("-")), 1.0),
    }
}
