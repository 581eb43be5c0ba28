//! What hyperfine writes from version 2 on: each run with all that was measured of it.

use super::common::{LOWER, Names, kind};
use super::hyperfine_summaries::{deviation, summary as noted};
use super::hyperfine_warnings::{failures, short};
use crate::json;
use crate::metrics::{Metrics, Sample};
use crate::units::in_base;
use serde_json::Value;

/// The unit of what has none in the file.
const COUNT: &str = "1";

/// One command of the JSON file, whose runs are launches from `first` on.
pub(super) fn result(
    result: &Value,
    line: u64,
    first: u32,
    benchmark: &str,
    parameters: &[(&str, String)],
    metrics: &mut Metrics,
) {
    let mut codes = Vec::new();
    for (run, launch) in result["measurements"].as_array().into_iter().flatten().zip(first..) {
        for (name, figure) in entries(run) {
            if name == "exit_code" {
                codes.push(figure);
                continue;
            }
            // A metric that was not measured has no value.
            if figure.is_null() {
                continue;
            }
            let value = json::number(&figure["value"]).unwrap_or(f64::NAN);
            let (value, unit) = base(name, value, figure["unit"].as_str().unwrap_or(COUNT));
            let sample = Sample { value, launch, ..Sample::default() };
            metrics.sample(line, kind(benchmark, name, unit, LOWER), sample);
        }
    }
    for (name, summary) in entries(&result["summary"]) {
        for what in ["mean", "stddev", "median"] {
            if let Some(value) = summary[what].as_f64() {
                let (value, unit) = base(name, value, summary["unit"].as_str().unwrap_or(COUNT));
                noted(kind(benchmark, name, unit, LOWER), first, what, Some(value), metrics);
            }
        }
    }
    let time = kind(benchmark, "time_wall_clock", "s", LOWER);
    for (name, value) in parameters {
        metrics.set_of(time, name, value);
    }
    for (name, value) in entries(&result["environment"]) {
        metrics.set_of(time, name, &json::text(value));
    }
    failures(benchmark, &codes, metrics);
    short(benchmark, "median", result["summary"]["time_wall_clock"]["median"].as_f64(), metrics);
}

/// One command of the CSV file, where each metric has columns of its own.
pub(super) fn row(head: &[String], fields: &[String], line: u64, names: &mut Names, metrics: &mut Metrics) {
    let field = |name: &str| {
        let at = head.iter().position(|column| column == name)?;
        fields.get(at).map(String::as_str)
    };
    let benchmark = names.unique(field("command").unwrap_or_default().to_owned());
    for metric in head.iter().filter_map(|column| column.strip_suffix("_unit")) {
        let unit = field(&format!("{metric}_unit")).filter(|unit| !unit.is_empty()).unwrap_or(COUNT);
        for what in ["mean", "median", "min", "max", "stddev"] {
            let name = format!("{metric} {what}");
            // What could not be measured of this command is empty.
            let Some(text) = field(&format!("{metric}_{what}")).filter(|text| !text.is_empty()) else {
                continue;
            };
            let (value, unit) = base(metric, text.parse().unwrap_or(f64::NAN), unit);
            if what == "stddev" {
                deviation(kind(&benchmark, &format!("{metric} mean"), unit, LOWER), value, metrics);
                continue;
            }
            metrics.sample(line, kind(&benchmark, &name, unit, LOWER), value);
            if (metric, what) == ("time_wall_clock", "median") {
                short(&benchmark, "median", Some(value), metrics);
            }
            for (column, value) in head.iter().zip(fields) {
                if let Some(parameter) = column.strip_prefix("parameter_") {
                    metrics.set_of(kind(&benchmark, &name, unit, LOWER), parameter, value);
                }
            }
        }
    }
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// Seconds, bytes or a count; the B of a count is a billion.
pub(super) fn base<'a>(metric: &str, value: f64, unit: &'a str) -> (f64, &'a str) {
    let is_memory = metric.starts_with("memory");
    match unit {
        "count" => (value, COUNT),
        "k" | "K" => (value * 1e3, COUNT),
        "M" => (value * 1e6, COUNT),
        "B" if !is_memory => (value * 1e9, COUNT),
        "byte" | "B" => (value, "B"),
        "KB" | "kB" => (value * 1e3, "B"),
        "MB" => (value * 1e6, "B"),
        "GB" => (value * 1e9, "B"),
        "TB" => (value * 1e12, "B"),
        "KiB" => (value * 1024.0, "B"),
        "MiB" => (value * 1024.0 * 1024.0, "B"),
        "GiB" => (value * 1024.0 * 1024.0 * 1024.0, "B"),
        other => in_base(value, other),
    }
}

#[cfg(test)]
mod tests {
    use super::super::hyperfine::READER;
    use crate::reader::Input;

    fn of(text: &str) -> tare_model::tool::ToolMetrics {
        assert!(READER.detects(&Input::of_text(text)), "{text}");
        READER.read(&Input::of_text(text))
    }

    #[test]
    fn each_run_is_a_launch_with_all_that_was_measured() {
        let run = |s: f64, code: &str| {
            format!(
                r#"{{"time_wall_clock": {{"value": {s}, "unit": "second"}}, "memory_peak_resident": {{"value": 4096, "unit": "byte"}},
                "instructions": {{"value": 7}}, "cpu_cycles": null, "exit_code": {code}}}"#
            )
        };
        let read = of(&format!(
            r#"{{"schema_version": 2, "primary_metric": "time_wall_clock", "results": [{{"command": "a", "name": "b",
            "measurements": [{}, {}], "parameters": {{"n": {{"value": "1"}}}},
            "summary": {{"time_wall_clock": {{"unit": "second", "count": 2, "mean": 1.5, "stddev": null, "median": 1.5}}}}}}]}}"#,
            run(1.0, "0"),
            run(2.0, "null")
        ));
        let found: Vec<_> =
            read.metrics.iter().map(|m| (m.name.as_str(), m.unit.as_str(), m.samples.clone())).collect();
        assert_eq!(
            found,
            [
                ("instructions", "1", vec![7.0, 7.0]),
                ("memory_peak_resident", "B", vec![4096.0, 4096.0]),
                ("time_wall_clock", "s", vec![1.0, 2.0]),
            ]
        );
        let time = &read.metrics[2];
        assert_eq!(
            (time.benchmark.as_str(), time.launches.clone(), time.summary["mean"]),
            ("b", vec![0, 1], 1.5)
        );
        assert_eq!(time.configuration["n"], "1");
        assert!(read.warnings.iter().any(|warning| warning.text.contains("1 of 2 runs")));
    }

    #[test]
    fn columns_have_units_of_their_own() {
        let read = of(
            "command,time_wall_clock_unit,time_wall_clock_mean,time_wall_clock_stddev,time_wall_clock_median,\
            time_wall_clock_min,time_wall_clock_max,instructions_unit,instructions_mean,instructions_stddev,instructions_median,\
            instructions_min,instructions_max\na,ms,10.5,,10,9,12,B,2,,,,\n",
        );
        let found: Vec<_> = read.metrics.iter().map(|m| (m.name.as_str(), m.samples[0])).collect();
        assert_eq!(
            found,
            [
                ("time_wall_clock mean", 0.0105),
                ("time_wall_clock median", 0.01),
                ("time_wall_clock min", 0.009),
                ("time_wall_clock max", 0.012),
                ("instructions mean", 2e9),
            ]
        );
    }
}
