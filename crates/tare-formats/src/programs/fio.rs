//! [fio](https://fio.readthedocs.io/): `--output-format=json` and `json+`, the lines of `terse`, and its text where there is neither.

use super::common::{HIGHER, LOWER, kind, percentile};
use super::{fio_terse, fio_text};
use crate::documents::{has, with_keys};
use crate::extent::End;
use crate::json::{self, CUT_OFF};
use crate::metrics::{Metrics, Sample};
use crate::reader::{Input, Reader};
use crate::units::in_base;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

pub(crate) const READER: Reader = Reader {
    name: "fio",
    gets_wrong: &[
        "without direct=1 reads and writes are answered by the page cache: the figures are then of memory",
        "with rate or rate_iops a request that is sent late is not late in its latency: the time that it waited to be sent is left out",
        "its text has three or four digits, whole numbers of requests a second and times in whole units: --output-format=json has all digits",
        "percentiles come from a histogram with steps of up to 1.6 %",
        "with group_reporting the rates of jobs that ran in different windows are added up",
    ],
    detect: |input| {
        has(input, KEYS) || input.head().any(|line| fio_terse::is_line(line) || fio_text::is_line(line))
    },
    read,
};

const KEYS: &[&[&str]] = &[&["\"fio version\""]];

/// Engines whose requests go through the page cache where `direct` is not set.
const FILE_ENGINES: &[&str] =
    &["sync", "psync", "vsync", "pvsync", "pvsync2", "libaio", "posixaio", "io_uring", "mmap", "splice"];

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    // Only one report is kept: there may be one for each second of hours.
    let (mut last, mut launch): (Option<(u64, Value)>, u32) = (None, 0);
    for document in with_keys(input.text, KEYS) {
        if document.end == End::Missing {
            metrics.skip(document.line, "report", CUT_OFF);
            continue;
        }
        let report = match document.parse() {
            Ok(report) => report,
            Err((line, why)) => {
                metrics.skip(line, "report", &why);
                continue;
            }
        };
        match last.take() {
            Some((line, earlier)) if continues(&earlier, &report) => {
                let why = "a report of --status-interval: the figures of the one behind it are of the whole time until then";
                metrics.skip(line, "report", why);
            }
            Some((line, earlier)) => launch = run(line, launch, &earlier, metrics),
            None => {}
        }
        last = Some((document.line, report));
    }
    if let Some((line, report)) = last {
        run(line, launch, &report, metrics);
    }
    fio_terse::read(input, metrics);
    if metrics.is_empty() {
        fio_text::read(input, metrics);
    }
}

/// The number of the next run.
fn run(line: u64, launch: u32, report: &Value, metrics: &mut Metrics) -> u32 {
    Run { line, launch, options: options(&report["global options"]) }.read(report, metrics);
    launch.saturating_add(1)
}

/// Whether the later report is of the same run: its clock went on by as much as the time that the jobs have run.
fn continues(earlier: &Value, later: &Value) -> bool {
    let seconds = |report: &Value| {
        let elapsed = jobs(report).next().and_then(|job| job["elapsed"].as_f64());
        report["timestamp"].as_f64().zip(elapsed)
    };
    let names = |report: &Value| jobs(report).map(|job| job["jobname"].clone()).collect::<Vec<_>>();
    match (seconds(earlier), seconds(later)) {
        (Some((was, ran)), Some((is, runs))) => {
            runs >= ran && ((is - was) - (runs - ran)).abs() < 1.5 && names(earlier) == names(later)
        }
        _ => false,
    }
}

/// Those of `--client`, too, but for the sum over all clients.
fn jobs(report: &Value) -> impl Iterator<Item = &Value> {
    let of = |key: &str| report[key].as_array().into_iter().flatten();
    of("jobs").chain(of("client_stats")).filter(|job| job["jobname"] != "All clients")
}

fn options(value: &Value) -> BTreeMap<String, String> {
    let options = value.as_object().into_iter().flatten();
    options.map(|(name, value)| (name.clone(), json::text(value))).collect()
}

struct Run {
    line: u64,
    launch: u32,
    /// Those of `[global]`.
    options: BTreeMap<String, String>,
}

impl Run {
    fn read(&self, report: &Value, metrics: &mut Metrics) {
        metrics.set("fio version", &json::text(&report["fio version"]));
        for (name, value) in &self.options {
            metrics.set(name, value);
        }
        let (mut workers, mut counts) = (HashMap::<&str, u32>::new(), HashMap::<&str, u32>::new());
        for job in jobs(report) {
            *counts.entry(job["jobname"].as_str().unwrap_or_default()).or_default() += 1;
        }
        // (group, direction) -> shortest and longest time in ms.
        let mut windows: HashMap<(u64, &str), (f64, f64)> = HashMap::new();
        for job in jobs(report) {
            let name = job["jobname"].as_str().unwrap_or_default();
            let worker = workers.entry(name).or_default();
            // Jobs that are reported as a group are one.
            let which = counts.get(name).filter(|count| **count > 1).map(|_| *worker);
            self.job(job, name, which, metrics);
            *worker += 1;
            for direction in DIRECTIONS {
                if let Some(ms) = job[*direction]["runtime"].as_f64().filter(|ms| *ms > 0.0) {
                    let group = job["groupid"].as_u64().unwrap_or_default();
                    let window = windows.entry((group, *direction)).or_insert((ms, ms));
                    *window = (window.0.min(ms), window.1.max(ms));
                }
            }
        }
        for ((group, direction), (least, most)) in windows {
            if least < most * 0.9 {
                metrics.warn(
                    "tool-window-differs",
                    &format!("the {direction}s of group {group} ran for {} s to {} s, each job in a window of its own: their rates do not add up", least / 1e3, most / 1e3),
                    "give all jobs the same time: time_based and runtime",
                );
            }
        }
    }

    fn job(&self, job: &Value, name: &str, worker: Option<u32>, metrics: &mut Metrics) {
        let error = job["error"].as_i64().unwrap_or_default();
        if error != 0 {
            let why = format!("the job ended with error {error}: its figures are of a part of the work");
            return metrics.skip(self.line, name, &why);
        }
        let mut own = self.options.clone();
        for (option, value) in options(&job["job options"]) {
            metrics.set(&format!("{name}: {option}"), &value);
            own.insert(option, value);
        }
        let mut note = |of: &str, unit: &str, better, value: Option<f64>| {
            if let Some(value) = value {
                let sample = Sample { value, launch: self.launch, worker, at_s: None };
                metrics.sample(self.line, kind(name, of, unit, better), sample);
            }
        };
        for direction in DIRECTIONS {
            let part = &job[*direction];
            // Version 1 counts no requests.
            let count = part["total_ios"].as_f64().or_else(|| part["io_bytes"].as_f64());
            if count.is_none_or(|count| count <= 0.0) {
                continue;
            }
            // Before version 3 only KiB/s.
            let bw = part["bw_bytes"].as_f64().or_else(|| part["bw"].as_f64().map(|kib| kib * 1024.0));
            note(&format!("{direction} bw"), "B/s", HIGHER, bw);
            note(&format!("{direction} iops"), "op/s", HIGHER, json::number(&part["iops"]));
            note(&format!("{direction} total_ios"), "op", None, part["total_ios"].as_f64());
            latencies(part, direction, &mut note);
        }
        latencies(&job["sync"], "sync", &mut note);
        for of in ["usr_cpu", "sys_cpu"] {
            note(of, "%", None, job[of].as_f64());
        }
        for direction in DIRECTIONS {
            spread(&job[*direction], name, worker, direction, metrics);
        }
        warnings(job, name, &own, metrics);
    }
}

const DIRECTIONS: &[&str] = &["read", "write", "trim", "mixed"];

/// Means, extremes and percentiles of the times to submit, to complete and of both, each a metric: there are no samples of them.
fn latencies(
    part: &Value,
    direction: &str,
    note: &mut impl FnMut(&str, &str, Option<tare_model::outcome::Better>, Option<f64>),
) {
    for what in ["slat", "clat", "lat"] {
        // Until version 2 in microseconds, with no unit in the name.
        let found = [("_ns", "ns"), ("_us", "us"), ("", "us")]
            .into_iter()
            .map(|(ending, unit)| (&part[format!("{what}{ending}")], unit))
            .find(|(figures, _)| figures.is_object());
        let Some((figures, unit)) = found else { continue };
        // A kind that was not measured has zeros.
        if figures["N"].as_u64() == Some(0) || figures["max"].as_f64() == Some(0.0) {
            continue;
        }
        let mut figure = |name: &str, value: &Value| {
            let seconds = json::number(value).map(|value| in_base(value, unit).0);
            note(&format!("{direction} {what} {name}"), "s", LOWER, seconds);
        };
        for name in ["mean", "stddev", "min", "max"] {
            figure(name, &figures[name]);
        }
        let percentiles = figures["percentile"].as_object().into_iter().flatten();
        let mut percentiles: Vec<(f64, &String, &Value)> =
            percentiles.filter_map(|(name, value)| Some((name.parse().ok()?, name, value))).collect();
        percentiles.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (_, name, value) in percentiles {
            figure(&percentile(name), value);
        }
    }
}

/// What fio says of the rates of its intervals of half a second.
fn spread(part: &Value, job: &str, worker: Option<u32>, direction: &str, metrics: &mut Metrics) {
    for (of, unit, scale, names) in [
        (
            "bw",
            "B/s",
            1024.0,
            [("bw_min", "min"), ("bw_max", "max"), ("bw_mean", "mean"), ("bw_dev", "stddev")],
        ),
        (
            "iops",
            "op/s",
            1.0,
            [("iops_min", "min"), ("iops_max", "max"), ("iops_mean", "mean"), ("iops_stddev", "stddev")],
        ),
    ] {
        if part[format!("{of}_samples")].as_u64().is_none_or(|count| count == 0) {
            continue;
        }
        let name = format!("{direction} {of}");
        let of_job = worker.map_or(String::new(), |worker| format!(" of job {worker}"));
        for (key, what) in names {
            if let Some(value) = part[key].as_f64() {
                metrics.summary(
                    kind(job, &name, unit, HIGHER),
                    &format!("{what} of intervals{of_job}"),
                    value * scale,
                );
            }
        }
    }
}

fn warnings(job: &Value, name: &str, options: &BTreeMap<String, String>, metrics: &mut Metrics) {
    let is = |option: &str, value: &str| options.get(option).is_some_and(|set| set == value);
    let engine = options.get("ioengine").map_or("psync", String::as_str);
    let is_buffered = !is("direct", "1") && !is("buffered", "0") && FILE_ENGINES.contains(&engine);
    let bytes = |direction: &str| job[direction]["io_bytes"].as_f64().unwrap_or_default();
    let moved = bytes("read") + bytes("write");
    if !options.is_empty() && is_buffered && moved > 0.0 {
        metrics.warn(
            "tool-measures-page-cache",
            &format!("job `{name}` has no direct=1: {:.1} MB went through the page cache, and may never have been on the device", moved / 1e6),
            "set direct=1, or say that the cache is what is measured",
        );
    }
    let rate = options.iter().find(|(option, _)| matches!(option.as_str(), "rate" | "rate_iops"));
    if let Some((option, rate)) = rate {
        let iops: f64 = DIRECTIONS.iter().filter_map(|of| job[*of]["iops"].as_f64()).sum();
        metrics.warn(
            "tool-percentiles-omit-waiting",
            &format!("job `{name}` has {option}={rate} and did {iops:.1} requests a second: how long requests waited to be sent is not in the latencies"),
            "compare the rate that was reached with the one that was asked for: where it is less, the latencies are too short",
        );
    }
    let errors = job["total_err"].as_u64().unwrap_or_default();
    if errors > 0 {
        metrics.warn(
            "tool-counts-failures",
            &format!("{errors} requests of job `{name}` failed and were gone over (continue_on_error)"),
            "see the job's first_error, and repair what fails before comparing rates",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> tare_model::tool::ToolMetrics {
        assert!(READER.detects(&Input::of_text(text)));
        READER.read(&Input::of_text(text))
    }

    fn value(read: &tare_model::tool::ToolMetrics, name: &str) -> Option<f64> {
        read.metrics.iter().find(|metric| metric.name == name).map(|metric| metric.samples[0])
    }

    #[test]
    fn old_versions_have_kib_and_microseconds() {
        let read = of(r#"{"fio version": "fio-2.2.10", "jobs": [{"jobname": "a", "error": 0,
            "read": {"io_bytes": 100, "bw": 2, "iops": 3.5, "clat": {"min": 1, "max": 9, "mean": 2.5, "stddev": 1, "percentile": {"99.000000": 8}}},
            "write": {"io_bytes": 0, "bw": 0, "iops": 0}}]}"#);
        assert_eq!(value(&read, "read bw"), Some(2048.0));
        assert_eq!(value(&read, "read clat mean"), Some(2.5e-6));
        assert_eq!(value(&read, "read clat p99"), Some(8e-6));
        assert_eq!(value(&read, "write bw"), None);
        assert_eq!(read.warnings, []);
    }

    #[test]
    fn a_failed_job_and_a_report_that_is_cut_off_are_said() {
        let failed = r#"{"fio version": "fio-3.1", "jobs": [{"jobname": "a", "error": 5, "read": {"total_ios": 4, "bw_bytes": 1}}]}"#;
        let read = of(&format!("noise\n{failed}\n{}", &failed[..60]));
        let lines: Vec<u64> = read.skipped.iter().map(|skipped| skipped.line).collect();
        assert_eq!(lines, [3, 2]);
        assert!(read.metrics.is_empty());
    }

    #[test]
    fn words_that_are_no_number_are_said() {
        let read = of(
            r#"{"fio version": "fio-3.1", "jobs": [{"jobname": "a", "read": {"total_ios": 4, "bw_bytes": 1, "iops": -nan}}]}"#,
        );
        assert_eq!((read.metrics.len(), read.skipped_count), (2, 1));
    }
}
