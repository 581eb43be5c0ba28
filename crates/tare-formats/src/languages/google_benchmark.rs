//! [google-benchmark](https://github.com/google/benchmark): JSON, CSV and what it prints on a console.

use super::google_console;
use super::google_run::Run;
use crate::documents::{each_document, has};
use crate::json::{number, text};
use crate::metrics::{Kind, Metrics, Sample};
use crate::reader::{Input, Reader};
use crate::units::in_base;
use serde_json::Value;
use std::collections::HashSet;
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "google-benchmark",
    gets_wrong: &[
        "bytes_per_second, items_per_second and rates of counters are divided by CPU time unless a benchmark says UseRealTime: waiting is not in them",
        "repetitions are of one process: they are not independent, and their spread is less than that of two runs",
        "a time is a mean over all iterations of a repetition: one slow iteration is not seen",
        "with several threads a time is that of all iterations of all threads together, in most versions: it is no latency",
    ],
    detect: |input| {
        has(input, &[KEYS]) || input.head().any(|line| is_header(line) || google_console::is_header(line))
    },
    read,
};

/// The context has them in every version.
const KEYS: &[&str] = &["\"context\"", "\"num_cpus\"", "\"mhz_per_cpu\""];

/// Fields of a run that are no metric of it.
const NO_METRICS: &[&str] = &[
    "name",
    "family_index",
    "per_family_instance_index",
    "run_name",
    "run_type",
    "repetitions",
    "repetition_index",
    "threads",
    "iterations",
    "time_unit",
    "label",
    "aggregate_name",
    "aggregate_unit",
    "error_occurred",
    "error_message",
    "skipped",
    "skip_message",
    "big_o",
];

/// Endings of the names of aggregates, in files that do not say what a run is.
const AGGREGATES: &[&str] = &["mean", "median", "stddev", "cv", "BigO", "RMS"];

fn is_header(line: &str) -> bool {
    line.starts_with("name,iterations,real_time,cpu_time,time_unit")
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut launch = 0;
    each_document(input.text, &[KEYS], metrics, |metrics, line, document| {
        context(&document["context"], metrics);
        let runs = document["benchmarks"].as_array().into_iter().flatten();
        let runs: Vec<(u64, &Run)> = runs.filter_map(|run| Some((line, run.as_object()?))).collect();
        if runs.is_empty() {
            metrics.skip(line, "benchmarks", "there is no benchmark in it");
        }
        all(&runs, launch, metrics);
        launch += 1;
    });
    for (first, table) in tables(input.text) {
        let runs = rows(first, table, metrics);
        let runs: Vec<(u64, &Run)> = runs.iter().map(|(line, run)| (*line, run)).collect();
        all(&runs, launch, metrics);
        launch += 1;
    }
    if launch == 0 {
        let (above, runs) = google_console::read(input.text, metrics);
        context(&above, metrics);
        all(&runs.iter().map(|(line, run)| (*line, run)).collect::<Vec<_>>(), launch, metrics);
    }
}

/// Every table of CSV, with the line of its header.
fn tables(text: &str) -> Vec<(u64, &str)> {
    let mut at = 0;
    let mut starts = Vec::new();
    for (line, number) in text.split_inclusive('\n').zip(1..) {
        if is_header(line) {
            starts.push((number, at));
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).map(|(_, at)| *at).chain([text.len()]);
    starts.iter().zip(ends).map(|((number, at), end)| (*number, &text[*at..end])).collect()
}

/// The rows of a table as JSON has them; empty cells are no fields.
fn rows(first: u64, table: &str, metrics: &mut Metrics) -> Vec<(u64, Run)> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(table.as_bytes());
    let names = reader.headers().cloned().unwrap_or_default();
    let mut rows = Vec::new();
    for record in reader.records() {
        let Ok(record) = record else { continue };
        let line = first + record.position().map_or(0, |position| position.line().saturating_sub(1));
        if record.len() != names.len() {
            // A log line has no commas; a row that is cut off has.
            if record.len() > 1 {
                metrics.skip(
                    line,
                    record.get(0).unwrap_or_default(),
                    "the line has not as many cells as the header",
                );
            }
            continue;
        }
        let cells = names.iter().zip(record.iter()).filter(|(_, cell)| !cell.is_empty());
        let mut row: Run = cells.map(|(name, cell)| (name.to_owned(), Value::from(cell))).collect();
        // Where a fit is printed its order stands in place of its unit, which is then not known.
        let unit = row.get("time_unit").and_then(Value::as_str).unwrap_or_default();
        if !["ns", "us", "ms", "s"].contains(&unit)
            && let Some(order) = row.remove("time_unit")
        {
            row.insert("big_o".to_owned(), order);
        }
        rows.push((line, row));
    }
    rows
}

/// What the tool says of the machine and of itself.
fn context(context: &Value, metrics: &mut Metrics) {
    for (key, value) in context.as_object().into_iter().flatten() {
        if key != "caches" {
            metrics.set(key, &text(value));
        }
    }
    if context["library_build_type"] == "debug" {
        metrics.warn(
            "tool-debug-build",
            "google-benchmark's own library was built as debug: it adds time to every iteration that pauses or counts",
            "build the library with CMAKE_BUILD_TYPE=Release",
        );
    }
    if text(&context["cpu_scaling_enabled"]) == "true" {
        metrics.warn(
            "cpu-scaling",
            "the frequency of the CPU was not fixed while it measured (cpu_scaling_enabled)",
            "set the governor to performance, and run it again",
        );
    }
    let (load, cpus) = (number(&context["load_avg"][0]), number(&context["num_cpus"]));
    if let Some((load, cpus)) = load.zip(cpus).filter(|(load, cpus)| load > cpus) {
        metrics.warn(
            "machine-busy",
            &format!("when it began, {load:.1} threads wanted to run on {cpus} CPUs (load_avg)"),
            "run it again on a machine that does nothing else",
        );
    }
}

fn all(runs: &[(u64, &Run)], launch: u32, metrics: &mut Metrics) {
    let names: HashSet<&str> = runs.iter().filter_map(|(_, run)| run.get("name")?.as_str()).collect();
    let mut measured = HashSet::new();
    let mut aggregates = Vec::new();
    for (line, run) in runs {
        let Some(name) = run.get("name").and_then(Value::as_str) else {
            metrics.skip(*line, "a benchmark", "it has no name");
            continue;
        };
        let message = |key| run.get(key).map(text).unwrap_or_default();
        if let Some((base, aggregate)) = aggregate(run, name, &names) {
            aggregates.push((*line, *run, base, aggregate));
        } else if message("error_occurred") == "true" {
            metrics.skip(*line, name, &format!("the benchmark failed: {}", message("error_message")));
        } else if message("skipped") == "true" {
            metrics.skip(*line, name, &format!("the benchmark was skipped: {}", message("skip_message")));
        } else {
            let name = run.get("run_name").and_then(Value::as_str).unwrap_or(name);
            measured.insert(name);
            iteration(*line, run, name, launch, metrics);
        }
    }
    for (line, run, base, aggregate) in aggregates {
        summary(line, run, base, aggregate, measured.contains(base), launch, metrics);
    }
}

/// The benchmark and the aggregate that a run is, if it is one. Old versions and CSV say it by the name alone.
fn aggregate<'a>(run: &'a Run, name: &'a str, names: &HashSet<&str>) -> Option<(&'a str, &'a str)> {
    if let Some(kind) = run.get("run_type").and_then(Value::as_str) {
        let base = run.get("run_name").and_then(Value::as_str).unwrap_or(name);
        let aggregate = run.get("aggregate_name").and_then(Value::as_str).unwrap_or("aggregate");
        return (kind == "aggregate").then_some((base, aggregate));
    }
    let (base, end) = name.rsplit_once('_').filter(|(_, end)| AGGREGATES.contains(end))?;
    let others = |one: &str, two: &str| {
        names.contains(format!("{base}_{one}").as_str()) && names.contains(format!("{base}_{two}").as_str())
    };
    (names.contains(base) || others("mean", "median") || others("BigO", "RMS")).then_some((base, end))
}

/// A value of a run in its base unit.
fn scaled<'a>(run: &'a Run, key: &'a str, value: f64) -> (f64, &'a str) {
    match key {
        "real_time" | "cpu_time" if run.contains_key("big_o") => (value, ""),
        "real_time" | "cpu_time" | "real_coefficient" | "cpu_coefficient" => {
            in_base(value, run.get("time_unit").and_then(Value::as_str).unwrap_or("ns"))
        }
        "bytes_per_second" => (value, "B/s"),
        "items_per_second" => (value, "items/s"),
        "max_bytes_used" | "total_allocated_bytes" | "net_heap_growth" => (value, "B"),
        _ => (value, ""),
    }
}

fn better(key: &str) -> Option<Better> {
    match key {
        "real_time"
        | "cpu_time"
        | "real_coefficient"
        | "cpu_coefficient"
        | "allocs_per_iter"
        | "max_bytes_used"
        | "total_allocated_bytes"
        | "net_heap_growth" => Some(Better::Lower),
        "bytes_per_second" | "items_per_second" => Some(Better::Higher),
        _ => None,
    }
}

/// Every field with a number that is a metric, the times before all else.
fn values(run: &Run) -> impl Iterator<Item = (&str, f64)> {
    const TIMES: &[&str] = &["real_time", "cpu_time"];
    let times = TIMES.iter().filter_map(|key| run.get_key_value(*key));
    let others =
        run.iter().filter(|(key, _)| !NO_METRICS.contains(&key.as_str()) && !TIMES.contains(&key.as_str()));
    times.chain(others).filter_map(|(key, value)| Some((key.as_str(), number(value)?)))
}

fn iteration(line: u64, run: &Run, benchmark: &str, launch: u32, metrics: &mut Metrics) {
    for (key, value) in values(run) {
        let (value, unit) = scaled(run, key, value);
        let kind = Kind { benchmark, name: key, unit, better: better(key) };
        metrics.sample(line, kind, Sample { value, launch, ..Sample::default() });
        for setting in ["threads", "label"] {
            if let Some(value) = run.get(setting) {
                metrics.set_of(kind, setting, &text(value));
            }
        }
    }
    if !values(run).any(|(key, _)| key == "real_time") {
        metrics.skip(line, benchmark, "it has no real_time");
    }
    faults(run, benchmark, metrics);
}

/// What this run shows of the faults that the tool is known for.
fn faults(run: &Run, benchmark: &str, metrics: &mut Metrics) {
    let value = |key: &str| run.get(key).and_then(number);
    let by_clock = benchmark.contains("/real_time") || benchmark.contains("/manual_time");
    let times = value("real_time").zip(value("cpu_time")).filter(|(_, cpu)| *cpu > 0.0);
    let rate = ["items_per_second", "bytes_per_second"].into_iter().find_map(|key| Some((key, value(key)?)));
    if let (false, Some((real, cpu)), Some((key, rate))) = (by_clock, times, rate)
        && real > 1.1 * cpu
    {
        metrics.warn(
            "tool-divides-by-cpu-time",
            &format!(
                "{benchmark}: {key} {rate:.4e} is of CPU time alone; of the time that passed it is {:.4e}",
                rate * cpu / real
            ),
            "add ->UseRealTime() to the benchmark, or compute rates from real_time",
        );
    }
    if let Some(threads) = value("threads").filter(|threads| *threads > 1.0) {
        metrics.warn(
            "tool-divides-by-threads",
            &format!(
                "{benchmark}: with {threads} threads its real_time is the time that passed by the iterations of all threads, in most versions"
            ),
            "compare it with runs of as many threads and of the same version alone; it is no latency",
        );
    }
}

/// What the tool made of repetitions: beside them, or alone where it was set to leave them out.
fn summary(
    line: u64,
    run: &Run,
    base: &str,
    aggregate: &str,
    measured: bool,
    launch: u32,
    metrics: &mut Metrics,
) {
    let ratio = aggregate == "cv" || run.get("aggregate_unit").and_then(Value::as_str) == Some("percentage");
    for (key, value) in values(run) {
        let of_time = matches!(key, "real_time" | "cpu_time");
        if ratio && of_time && !run.contains_key("run_type") {
            metrics.skip(line, base, "in CSV this tool writes a wrong cv of times");
            continue;
        }
        let (scaled, unit) = if ratio || aggregate == "RMS" { (value, "") } else { scaled(run, key, value) };
        let is_typical = ["mean", "median", "min", "max", "BigO"].contains(&aggregate);
        let better = better(key).filter(|_| is_typical);
        if measured {
            let (_, unit) = self::scaled(run, key, value);
            metrics.summary(Kind { benchmark: base, name: key, unit, better }, aggregate, scaled);
        } else {
            let name = format!("{key} {aggregate}");
            let kind = Kind { benchmark: base, name: &name, unit, better };
            metrics.sample(line, kind, Sample { value: scaled, launch, ..Sample::default() });
            if let Some(big_o) = run.get("big_o") {
                metrics.set_of(kind, "big_o", &text(big_o));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(runs: &str) -> tare_model::tool::ToolMetrics {
        let text =
            format!("{{\"context\": {{\"num_cpus\": 2, \"mhz_per_cpu\": 1}}, \"benchmarks\": [{runs}]}}");
        assert!(READER.detects(&Input::of_text(&text)));
        READER.read(&Input::of_text(&text))
    }

    #[test]
    fn old_versions_name_aggregates_by_their_ends() {
        let read = of(
            "{\"name\": \"a\", \"iterations\": 1, \"real_time\": 2, \"cpu_time\": 1, \"time_unit\": \"us\"}, {\"name\": \"a_mean\", \"real_time\": 2, \"cpu_time\": 1, \"time_unit\": \"us\"}, {\"name\": \"x_mean\", \"real_time\": 5, \"time_unit\": \"s\"}",
        );
        let found: Vec<_> = read.metrics.iter().map(|m| (m.benchmark.as_str(), m.samples.clone())).collect();
        assert_eq!(found, [("a", vec![2e-6]), ("a", vec![1e-6]), ("x_mean", vec![5.0])]);
        let real = read.metrics.iter().find(|metric| metric.name == "real_time").unwrap();
        assert_eq!(real.summary["mean"], 2e-6);
    }

    #[test]
    fn what_was_skipped_says_why() {
        let read = of(
            "{\"name\": \"a\", \"run_type\": \"iteration\", \"skipped\": true, \"skip_message\": \"no GPU\"}, {\"name\": \"b\", \"run_type\": \"iteration\", \"error_occurred\": true, \"error_message\": \"bad\"}",
        );
        let why: Vec<&str> = read.skipped.iter().map(|skipped| skipped.why.as_str()).collect();
        assert_eq!(why, ["the benchmark was skipped: no GPU", "the benchmark failed: bad"]);
    }

    #[test]
    fn files_behind_each_other_are_launches() {
        let one = "{\"context\": {\"num_cpus\": 2, \"mhz_per_cpu\": 1}, \"benchmarks\": [{\"name\": \"a\", \"real_time\": 1}]}\n";
        let read = READER.read(&Input::of_text(&format!("log\n{one}log\n{one}")));
        assert_eq!(read.metrics[0].launches, [0, 1]);
    }
}
