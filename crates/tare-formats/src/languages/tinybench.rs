//! [tinybench](https://github.com/tinylibs/tinybench): `console.table(bench.table())`, the same as JSON, or its results as JSON.

use super::shared::{Runs, at, grouped};
use crate::documents::{each_document, has};
use crate::json::{number, text};
use crate::metrics::{Kind, Metrics};
use crate::reader::{Input, Reader};
use crate::units::in_base;
use serde_json::Value;
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "tinybench",
    gets_wrong: &[
        "since version 3 its throughput is a mean of each call's rate: it is higher than calls by time where calls differ",
        "each call is timed alone: of short ones a good part is the clock's own time and its steps",
        "unless it is set to keep samples, what is left is statistics of one process",
    ],
    detect: |input| input.head().any(is_header) || has(input, DOCUMENTS) && !has(input, &[&["\"fullName\""]]),
    read,
};

/// Rows of a table as JSON, of version 2 and of later ones; results with `state` in version 4 and later, with `latency` since 3, with `hz` in 2.
const DOCUMENTS: &[&[&str]] = &[
    &["\"Task Name\"", "\"ops/sec\""],
    &["\"Task name\"", "\"Latency "],
    &["\"Task name\"", "\"Error\""],
    &["\"latency\"", "\"throughput\"", "\"rme\"", "\"samples"],
    &["\"hz\"", "\"period\"", "\"rme\"", "\"totalTime\""],
];

fn is_header(line: &str) -> bool {
    line.starts_with('│') && (line.contains(" Task name ") || line.contains(" Task Name "))
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut header: Vec<&str> = Vec::new();
    let mut runs = Runs::default();
    for (line, number) in input.text.lines().zip(1..) {
        if !line.starts_with('│') {
            continue;
        }
        let cells: Vec<&str> = line.trim_end().trim_matches('│').split('│').map(str::trim).take(50).collect();
        if is_header(line) {
            header = cells;
        } else if !header.is_empty() {
            if header.len() != cells.len() {
                metrics.skip(number, line, "the line has not as many cells as the header: it is cut off");
                continue;
            }
            let cells = cells.iter().map(|cell| cell.trim_matches('\'').to_owned());
            row(number, &header.iter().copied().zip(cells).collect::<Vec<_>>(), &mut runs, metrics);
        }
    }
    // What is printed as a table and as JSON too is of one run.
    let (mut rows, mut results) = (Runs::default(), Runs::default());
    each_document(input.text, DOCUMENTS, metrics, |metrics, line, document| {
        let all = document["results"].as_array().or(document.as_array());
        for (index, one) in all.map_or(std::slice::from_ref(&document), Vec::as_slice).iter().enumerate() {
            match one.as_object().filter(|row| row.contains_key("Task name") || row.contains_key("Task Name"))
            {
                Some(cells) => {
                    let cells = cells.iter().map(|(key, value)| (key.as_str(), text(value)));
                    row(line, &cells.collect::<Vec<_>>(), &mut rows, metrics);
                }
                None => {
                    let name = one["name"].as_str().map_or_else(|| format!("task {index}"), str::to_owned);
                    let result = if one["result"].is_object() { &one["result"] } else { one };
                    self::result((line, results.of(&name)), &name, result, metrics);
                }
            }
        }
    });
}

/// A row of the table: column and cell.
fn row(line: u64, cells: &[(&str, String)], runs: &mut Runs, metrics: &mut Metrics) {
    let of = |name: &str| cells.iter().find(|(column, cell)| *column == name && !cell.is_empty());
    let Some((_, benchmark)) = of("Task name").or_else(|| of("Task Name")) else {
        return metrics.skip(line, "a row", "it has no task name");
    };
    if let Some((_, error)) = of("Error") {
        return metrics.skip(line, benchmark, &format!("the benchmark failed: {error}"));
    }
    let mut any = false;
    let launch = runs.of(benchmark);
    for (column, cell) in cells {
        let (name, unit) = match column.split_once(" (") {
            Some((name, unit)) => (name, unit.trim_end_matches(')')),
            None if *column == "ops/sec" => ("ops/sec", "ops/s"),
            None => continue,
        };
        let (value, deviation) = cell.split_once('±').unwrap_or((cell, ""));
        let Some(value) = grouped(value.trim()) else {
            metrics.skip(line, &format!("{benchmark} {name}"), "no number, or one in another locale's form");
            continue;
        };
        let (value, base) = if unit == "ops/s" { (value, "op/s") } else { in_base(value, unit) };
        let better = if base == "op/s" { Better::Higher } else { Better::Lower };
        let kind = Kind { benchmark, name, unit: base, better: Some(better) };
        metrics.sample(line, kind, at(value, launch));
        any = true;
        if let Some(percent) = deviation.trim().strip_suffix('%').and_then(|percent| percent.parse().ok()) {
            metrics.summary(kind, "rme %", percent);
        }
        if let Some((_, samples)) = of("Samples") {
            metrics.set_of(kind, "Samples", samples);
        }
    }
    if !any {
        metrics.skip(line, benchmark, "there is no figure in its row");
    }
}

/// The result of a task as JSON.
fn result(place: (u64, u32), benchmark: &str, result: &Value, metrics: &mut Metrics) {
    let (line, _) = place;
    let state = result["state"].as_str().unwrap_or("completed");
    if result["error"].is_object() || result["error"].is_string() || state == "errored" {
        return metrics.skip(line, benchmark, &format!("the benchmark failed ({state})"));
    }
    for key in ["runtime", "runtimeVersion", "timestampProviderName"] {
        if let Some(value) = result[key].as_str() {
            metrics.set(key, value);
        }
    }
    if result["latency"].is_object() {
        statistics(place, benchmark, "latency ", &result["latency"], metrics);
        statistics(place, benchmark, "throughput ", &result["throughput"], metrics);
        rates(benchmark, result, metrics);
    } else if number(&result["mean"]).is_some() {
        statistics(place, benchmark, "", result, metrics);
    } else {
        metrics.skip(line, benchmark, &format!("it has no statistics ({state})"));
    }
}

/// Figures of which tinybench and vitest make times in milliseconds.
const FIGURES: &[&str] = &["mean", "median", "min", "max", "p50", "p75", "p99", "p995", "p999"];

/// Statistics of one thing, of a line and a launch; `what` stands before each name. Samples that were kept are samples, and then all else is beside them.
pub(super) fn statistics(place: (u64, u32), benchmark: &str, what: &str, of: &Value, metrics: &mut Metrics) {
    let (line, launch) = place;
    let is_rate = what.starts_with("throughput");
    let unit = if is_rate { "op/s" } else { "s" };
    let better = Some(if is_rate { Better::Higher } else { Better::Lower });
    let scaled = |value: f64| if is_rate { value } else { value / 1e3 };
    let samples = of["samples"].as_array().filter(|samples| !samples.is_empty());
    let of_samples =
        Kind { benchmark, name: if what.is_empty() { "samples" } else { what.trim_end() }, unit, better };
    for sample in samples.into_iter().flatten() {
        match number(sample) {
            Some(value) => metrics.sample(line, of_samples, at(scaled(value), launch)),
            None => metrics.skip(line, benchmark, "a sample is no number"),
        }
    }
    for figure in FIGURES {
        let Some(value) = number(&of[*figure]).map(scaled) else { continue };
        if samples.is_some() {
            metrics.summary(of_samples, figure, value);
        } else {
            let name = format!("{what}{figure}");
            metrics.sample(line, Kind { name: &name, ..of_samples }, at(value, launch));
        }
    }
    let mean = format!("{what}mean");
    let beside = if samples.is_some() { of_samples } else { Kind { name: &mean, ..of_samples } };
    metrics.summary(beside, "sd", number(&of["sd"]).map_or(f64::NAN, scaled));
    metrics.summary(beside, "rme %", number(&of["rme"]).unwrap_or(f64::NAN));
    for key in ["samplesCount", "sampleCount"] {
        if let Some(count) = number(&of[key]) {
            metrics.set_of(beside, key, &count.to_string());
        }
    }
    if let Some(hz) = number(&of["hz"]) {
        metrics.sample(
            line,
            Kind { benchmark, name: "hz", unit: "op/s", better: Some(Better::Higher) },
            at(hz, launch),
        );
    }
}

/// Warns where the mean of rates is not the rate.
fn rates(benchmark: &str, result: &Value, metrics: &mut Metrics) {
    let (rate, ms) = (number(&result["throughput"]["mean"]), number(&result["latency"]["mean"]));
    let Some((rate, ms)) = rate.zip(ms).filter(|(_, ms)| *ms > 0.0) else { return };
    if rate > 1.1 * 1e3 / ms {
        metrics.warn(
            "tool-averages-rates",
            &format!(
                "{benchmark}: its mean throughput {rate:.1} op/s is a mean of each call's rate; by the mean latency it is {:.1} op/s",
                1e3 / ms
            ),
            "compare latencies, or compute the rate from the mean latency",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_samples_are_samples() {
        let read = READER.read(&Input::of_text(
            "[{\"name\": \"a\", \"result\": {\"totalTime\": 1, \"hz\": 500, \"period\": 2, \"rme\": 1, \"mean\": 2, \"samples\": [1, 3]}}]",
        ));
        let found: Vec<_> = read.metrics.iter().map(|m| (m.name.as_str(), m.samples.clone())).collect();
        assert_eq!(found, [("samples", vec![1e-3, 3e-3]), ("hz", vec![500.0])]);
        assert_eq!(read.metrics[0].summary["mean"], 2e-3);
    }

    #[test]
    fn a_number_of_another_locale_is_not_guessed() {
        let read = READER.read(&Input::of_text(
            "│ (index) │ Task Name │ ops/sec │\n│ 0 │ 'a' │ '1.234.567' │\n│ 1 │ 'b' │ '1,234' │\n│ 2 │ 'c'\n",
        ));
        assert_eq!((read.metrics[0].benchmark.as_str(), read.metrics[0].samples[0]), ("b", 1234.0));
        let lines: Vec<u64> = read.skipped.iter().map(|skipped| skipped.line).collect();
        assert_eq!(lines, [2, 2, 4]);
    }
}
