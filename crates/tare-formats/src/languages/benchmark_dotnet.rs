//! [BenchmarkDotNet](https://benchmarkdotnet.org): its JSON, full or brief, and the measurements in its log.

use super::shared::{Runs, at};
use crate::documents::{each_document, has};
use crate::json::{number, text};
use crate::metrics::{Kind, Metrics, Sample};
use crate::reader::{Input, Reader};
use crate::units::in_base;
use serde_json::Value;
use std::collections::HashMap;
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "benchmark-dotnet",
    gets_wrong: &[
        "its mean leaves out iterations that it takes for outliers, by default the slow ones: pauses of the collector are not in it",
        "it takes the time of an empty call from every figure: times of some nanoseconds are differences of two uncertain ones",
        "by default there is one launch: what differs between two processes is not in its error",
    ],
    detect: |input| has(input, &[KEYS]) || input.head().any(|line| measurement(line).is_some()),
    read,
};

const KEYS: &[&str] = &["\"HostEnvironmentInfo\"", "\"BenchmarkDotNetCaption\""];

/// What is measured: seconds for one operation.
fn time(benchmark: &str) -> Kind<'_> {
    Kind { benchmark, name: "time", unit: "s/op", better: Some(Better::Lower) }
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut found = false;
    let mut runs = Runs::default();
    each_document(input.text, &[KEYS], metrics, |metrics, line, document| {
        found = true;
        host(&document["HostEnvironmentInfo"], metrics);
        let benchmarks = document["Benchmarks"].as_array();
        let mut names: HashMap<String, u32> = HashMap::new();
        for benchmark in benchmarks.into_iter().flatten() {
            *names.entry(name(benchmark)).or_default() += 1;
        }
        if names.is_empty() {
            metrics.skip(line, "Benchmarks", "there is no benchmark in it");
        }
        for benchmark in benchmarks.into_iter().flatten() {
            let mut full = name(benchmark);
            // Jobs of one method have one name.
            if names.get(&full).is_some_and(|count| *count > 1)
                && let Some((_, job)) =
                    benchmark["DisplayInfo"].as_str().and_then(|info| info.split_once(": "))
            {
                full = format!("{full}: {job}");
            }
            runs.of(&full);
            one(line, &full, benchmark, &mut runs, metrics);
        }
    });
    if !found {
        log(input.text, metrics);
    }
}

fn name(benchmark: &Value) -> String {
    let name = ["FullName", "DisplayInfo", "Method"].into_iter().find_map(|key| benchmark[key].as_str());
    name.unwrap_or_default().to_owned()
}

fn host(host: &Value, metrics: &mut Metrics) {
    for (key, value) in host.as_object().into_iter().flatten() {
        if !value.is_object() && !value.is_array() && !value.is_null() {
            metrics.set(key, &text(value));
        }
    }
    if text(&host["Configuration"]).eq_ignore_ascii_case("debug") || host["HasAttachedDebugger"] == true {
        metrics.warn(
            "tool-debug-build",
            "the benchmarks were built for debugging, or a debugger was attached",
            "run it with -c Release and without a debugger",
        );
    }
}

fn one(line: u64, benchmark: &str, report: &Value, runs: &mut Runs, metrics: &mut Metrics) {
    let kind = time(benchmark);
    let (mut actual, mut results, mut overheads) = (Vec::new(), 0, Vec::new());
    for measured in report["Measurements"].as_array().into_iter().flatten() {
        let stage =
            stage(&text(&measured["IterationMode"]), measured["IterationStage"].as_str().unwrap_or_default());
        let values = number(&measured["Nanoseconds"]).zip(number(&measured["Operations"]));
        let Some((ns, operations)) = values.filter(|(_, operations)| *operations > 0.0) else {
            metrics.skip(line, benchmark, "a measurement has no nanoseconds or operations");
            continue;
        };
        let launch = number(&measured["LaunchIndex"]).map_or(0, |index| (index as u32).saturating_sub(1));
        let launch = runs.launch(launch);
        match stage {
            Stage::Actual => {
                actual.push(Sample { value: ns / operations / 1e9, launch, ..Sample::default() })
            }
            Stage::Result => results += 1,
            Stage::Overhead => overheads.push(ns / operations / 1e9),
            Stage::Other => {}
        }
    }
    let count = actual.len();
    for sample in &actual {
        metrics.sample(line, kind, *sample);
    }
    let place = (line, runs.current());
    statistics(place, benchmark, &report["Statistics"], count > 0, metrics);
    if let Some(parameters) = report["Parameters"].as_str().filter(|parameters| !parameters.is_empty()) {
        metrics.set_of(kind, "Parameters", parameters);
    }
    others(place, benchmark, report, metrics);
    left_out(benchmark, count, results, metrics);
    overhead(benchmark, &actual, overheads, metrics);
}

/// Which kind of iteration a measurement is.
#[derive(PartialEq)]
enum Stage {
    /// The code itself, with the loop around it.
    Actual,
    /// The same less the overhead, and without outliers.
    Result,
    /// The loop without the code.
    Overhead,
    Other,
}

/// Versions before 0.11 have modes alone.
fn stage(mode: &str, stage: &str) -> Stage {
    match (mode, stage) {
        ("Workload", "Actual") | ("MainTarget", "") => Stage::Actual,
        ("Workload", "Result") | ("Result", "") => Stage::Result,
        ("Overhead", "Actual") | ("IdleTarget", "") => Stage::Overhead,
        _ => Stage::Other,
    }
}

/// What the tool made of the results; without measurements its values are the samples.
fn statistics(place: (u64, u32), benchmark: &str, statistics: &Value, measured: bool, metrics: &mut Metrics) {
    let (line, launch) = place;
    if !statistics.is_object() {
        if !measured {
            metrics.skip(line, benchmark, "the benchmark failed: it has no statistics");
        }
        return;
    }
    let kind = time(benchmark);
    let originals = statistics["OriginalValues"].as_array().filter(|_| !measured);
    for value in originals.into_iter().flatten() {
        match number(value) {
            Some(ns) => metrics.sample(line, kind, at(ns / 1e9, launch)),
            None => metrics.skip(line, benchmark, "a value is no number"),
        }
    }
    let beside = measured || originals.is_some_and(|values| !values.is_empty());
    let names = ["Mean", "Median", "Min", "Max", "StandardDeviation", "StandardError"];
    let of_names = names.into_iter().map(|name| (name, &statistics[name]));
    let of_percentiles = ["P50", "P67", "P80", "P85", "P90", "P95", "P100"];
    let percentiles = of_percentiles.into_iter().map(|name| (name, &statistics["Percentiles"][name]));
    for (name, value) in of_names.chain(percentiles) {
        let Some(seconds) = number(value).map(|ns| ns / 1e9) else { continue };
        if beside {
            metrics.summary(kind, name, seconds);
        } else {
            let better = Some(Better::Lower).filter(|_| !name.starts_with("Standard"));
            metrics.sample(line, Kind { name, better, ..kind }, at(seconds, launch));
        }
    }
    if let Some(count) = number(&statistics["N"]) {
        metrics.summary(kind, "N", count);
    }
}

/// What diagnosers measured.
fn others(place: (u64, u32), benchmark: &str, report: &Value, metrics: &mut Metrics) {
    let (line, launch) = place;
    let found = report["Metrics"].as_array();
    for metric in found.into_iter().flatten() {
        let (Some(value), descriptor) = (number(&metric["Value"]), &metric["Descriptor"]) else { continue };
        let name =
            ["Id", "DisplayName"].into_iter().find_map(|key| descriptor[key].as_str()).unwrap_or("metric");
        let (value, unit) = match descriptor["Unit"].as_str().unwrap_or_default() {
            "Count" => (value, "".to_owned()),
            "KB" => (value * 1024.0, "B".to_owned()),
            unit => {
                let (value, unit) = in_base(value, unit);
                (value, unit.to_owned())
            }
        };
        let better = descriptor["TheGreaterTheBetter"].as_bool();
        let better = better.map(|more| if more { Better::Higher } else { Better::Lower });
        metrics.sample(line, Kind { benchmark, name, unit: &unit, better }, at(value, launch));
    }
    let bytes = number(&report["Memory"]["BytesAllocatedPerOperation"]);
    if let (true, Some(bytes)) = (found.is_none(), bytes) {
        let name = "BytesAllocatedPerOperation";
        metrics.sample(
            line,
            Kind { benchmark, name, unit: "B/op", better: Some(Better::Lower) },
            at(bytes, launch),
        );
    }
}

fn left_out(benchmark: &str, actual: usize, results: usize, metrics: &mut Metrics) {
    if results > 0 && results < actual {
        metrics.warn(
            "tool-drops-samples",
            &format!(
                "{benchmark}: {} of {actual} measured iterations are not in the tool's statistics (outliers)",
                actual - results
            ),
            "the samples here are all that were measured; [Outliers(OutlierMode.DontRemove)] keeps them in its statistics",
        );
    }
}

/// Warns where the empty loop is more than a hundredth of what was measured.
fn overhead(benchmark: &str, actual: &[Sample], mut overheads: Vec<f64>, metrics: &mut Metrics) {
    let mut values: Vec<f64> = actual.iter().map(|sample| sample.value).collect();
    let middle = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    let Some((overhead, value)) = middle(&mut overheads).zip(middle(&mut values)) else { return };
    if overhead > 0.01 * value {
        metrics.warn(
            "tool-subtracts-overhead",
            &format!(
                "{benchmark}: its statistics are less {:.3} ns of overhead than the {:.3} ns that were measured",
                overhead * 1e9,
                value * 1e9
            ),
            "the samples here have the overhead in them; let one call do more work, so that it does not matter",
        );
    }
}

/// `WorkloadActual  1: 16 op, 1328100.00 ns, 83.0063 us/op` of the log: seconds for one operation.
fn measurement(line: &str) -> Option<f64> {
    let rest = line.strip_prefix("WorkloadActual").or_else(|| line.strip_prefix("MainTarget"))?;
    let (_, values) = rest.strip_prefix(' ')?.split_once(": ")?;
    let (operations, rest) = values.split_once(" op, ")?;
    let (ns, _) = rest.split_once(" ns, ")?;
    let (operations, ns) = (operations.parse::<f64>().ok()?, ns.parse::<f64>().ok()?);
    (operations > 0.0).then_some(ns / operations / 1e9)
}

fn log(log: &str, metrics: &mut Metrics) {
    let (mut benchmark, mut launch, mut runs) = ("", 0, Runs::default());
    for (line, number) in log.lines().zip(1..) {
        if let Some(name) = line.strip_prefix("// Benchmark: ") {
            benchmark = name.trim();
            launch = runs.of(benchmark);
        } else if let Some((index, _)) =
            line.strip_prefix("// Launch: ").and_then(|rest| rest.split_once(' '))
        {
            launch = runs.launch(index.parse::<u32>().unwrap_or(1).saturating_sub(1));
        } else if let Some(value) = measurement(line.trim_end()) {
            metrics.sample(number, time(benchmark), Sample { value, launch, ..Sample::default() });
        } else if line.starts_with("WorkloadActual ") {
            metrics.skip(number, line, "the line is cut off, or no measurement");
        } else if line.contains("ExitCode != 0") || line.starts_with("System.") && line.contains("Exception")
        {
            metrics.skip(number, line, "the benchmark failed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_one_method_are_kept_apart() {
        let one = |job: &str, ns: u32| {
            format!(
                "{{\"DisplayInfo\": \"T.M: {job}\", \"FullName\": \"N.T.M\", \"Measurements\": [{{\"IterationMode\": \"Workload\", \"IterationStage\": \"Actual\", \"LaunchIndex\": 2, \"Operations\": 2, \"Nanoseconds\": {ns}}}]}}"
            )
        };
        let text = format!(
            "{{\"HostEnvironmentInfo\": {{\"BenchmarkDotNetCaption\": \"BenchmarkDotNet\"}}, \"Benchmarks\": [{}, {}]}}",
            one("Net8", 10),
            one("Net9", 20)
        );
        assert!(READER.detects(&Input::of_text(&text)));
        let read = READER.read(&Input::of_text(&text));
        let found: Vec<_> =
            read.metrics.iter().map(|m| (m.benchmark.as_str(), m.samples[0], m.launches[0])).collect();
        assert_eq!(found, [("N.T.M: Net8", 5e-9, 1), ("N.T.M: Net9", 10e-9, 1)]);
    }

    #[test]
    fn a_line_of_the_log_is_read_from_its_nanoseconds() {
        assert_eq!(measurement("WorkloadActual   1: 16 op, 3200.00 ns, 0.2000 us/op"), Some(200e-9));
        assert_eq!(measurement("WorkloadActual   1: 16 op"), None);
        assert_eq!(measurement("WorkloadWarmup   1: 16 op, 3200.00 ns, 0.2000 us/op"), None);
    }
}
