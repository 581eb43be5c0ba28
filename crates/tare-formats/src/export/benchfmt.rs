//! Go's benchmark format, which benchstat reads.

use super::format::{Export, Exported, number, without_samples};
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use tare_model::outcome::Better;
use tare_model::tool::{ToolMetric, ToolMetrics};

pub(super) const EXPORT: Export = Export {
    name: "benchfmt",
    holds: "every sample of every metric; not what launch, thread and time they are of",
    write,
};

fn write(read: &ToolMetrics) -> Exported {
    let of_file = read.configuration.get("pkg").map_or("", String::as_str);
    let blocks = blocks(read, of_file);
    let is_of_all = blocks.iter().all(|block| block.package == of_file);
    let mut text = String::new();
    let mut put = |line: String| {
        // Writing to a string cannot fail.
        writeln!(text, "{line}").ok();
    };
    for (key, value) in &read.configuration {
        if is_key(key) && (is_of_all || key != "pkg") {
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
    let mut package = if is_of_all { of_file } else { "" };
    for Block { package: own, name, metrics } in blocks {
        if own != package {
            put(format!("pkg: {own}").trim_end().to_owned());
            package = own;
        }
        let most = metrics.iter().map(|metric| metric.samples.len()).max().unwrap_or(0);
        for at in 0..most {
            let values = metrics.iter().filter_map(|metric| {
                let (unit, scale) = unit(metric);
                Some(format!(" {} {unit}", number(scale * metric.samples.get(at)?)))
            });
            put(format!("{} 1{}", named(name), values.collect::<String>()));
        }
    }
    Exported { content: text.into_bytes(), left_out: without_samples(read) }
}

/// The metrics of one benchmark.
struct Block<'a> {
    /// Empty where there is none.
    package: &'a str,
    /// Without the package.
    name: &'a str,
    metrics: &'a [ToolMetric],
}

/// All benchmarks, those of a package together: each line that names one begins a process.
fn blocks<'a>(read: &'a ToolMetrics, of_file: &'a str) -> Vec<Block<'a>> {
    let is_go = read.format == "go-bench";
    let chunks = read.metrics.chunk_by(|one, other| one.benchmark == other.benchmark);
    let mut blocks: Vec<Block<'a>> = chunks
        .filter_map(|metrics| {
            let (package, name) = parts(&metrics.first()?.benchmark, of_file, is_go);
            Some(Block { package, name, metrics })
        })
        .collect();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for block in &blocks {
        let next = places.len();
        places.entry(block.package).or_insert(next);
    }
    blocks.sort_by_key(|block| places.get(block.package).copied());
    blocks
}

/// The package and the name in it: `a/b.BenchmarkX` is what the reader makes of both. `of_file`: that of the whole file, of which
/// results of other tools are as they stand.
fn parts<'a>(benchmark: &'a str, of_file: &'a str, is_go: bool) -> (&'a str, &'a str) {
    let own = benchmark.strip_prefix(of_file).and_then(|rest| rest.strip_prefix('.'));
    match own {
        Some(name) if !of_file.is_empty() => return (of_file, name),
        _ if !is_go => return (of_file, benchmark),
        _ => {}
    }
    let end = benchmark.find(".Benchmark").filter(|_| !benchmark.starts_with("Benchmark"));
    let apart = end.and_then(|end| Some((benchmark.get(..end)?, benchmark.get(end + 1..)?)));
    apart.unwrap_or(("", benchmark))
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
