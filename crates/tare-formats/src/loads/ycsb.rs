//! [YCSB](https://github.com/brianfrankcooper/YCSB): its measurements as text or JSON, with series and raw latencies, and its status lines.

use super::shared::{LESS, MORE, kind};
use crate::documents::with_keys;
use crate::format::Format;
use crate::json::number;
use crate::metrics::{Kind, Metrics, Sample};
use crate::numbers::{positive, whole};
use crate::reader::{Input, Reader};
use crate::result::{ToolOutput, ToolResult, add_errors};
use crate::shapes::Shapes;
use crate::units::in_base;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tare_model::trial::ErrorKind;
use tare_model::{Missing, Reading};

const NAME: &str = "ycsb";

const GETS_WRONG: &[&str] = &[
    "with -target a latency begins when an operation was sent, not when it was due, unless measurement.interval is intended or both",
    "its rate is over the whole run: opening connections and a slow first second are in it",
    "a time series has the mean of each interval, which shows no slow operation",
    "its histogram of whole milliseconds (measurementtype=histogram) rounds percentiles down to them",
    "operations that failed are counted by their kind (Return=), and are among those of the rate",
];

/// The end of a run as text. What starts it is a script, and Java opens connections as it loads: nothing is known of its set-up.
pub(crate) const FORMAT: Format = Format {
    name: NAME,
    gets_wrong: GETS_WRONG,
    detect: |printed| printed.contains("[OVERALL], ") && printed.lines().any(is_measurement),
    read: summary,
    shapes: SHAPES,
};

const SHAPES: Shapes = Shapes {
    lines: &["[OVERALL], RunTime(ms), #", "[OVERALL], Throughput(ops/sec), #"],
    units: &[],
    documents: &[],
};

/// All of them.
pub(crate) const READER: Reader = Reader {
    name: NAME,
    gets_wrong: GETS_WRONG,
    detect: |input| {
        FORMAT.detects(input.text)
            || input.head().any(|line| is_measurement(line) || is_status(line) || is_raw_head(line))
            || is_json(input)
    },
    read,
};

fn summary(printed: &str) -> ToolOutput {
    let mut result = ToolResult::unsaid(NAME);
    let (mut errors, mut run_ms) = (BTreeMap::new(), None);
    for line in printed.lines().map(str::trim_end) {
        let Some((operation, rest)) = line.strip_prefix('[').and_then(|line| line.split_once("], ")) else {
            continue;
        };
        let Some((name, value)) = rest.rsplit_once(", ") else { continue };
        match (operation, name) {
            ("OVERALL", "RunTime(ms)") => run_ms = positive(value),
            ("OVERALL", "Throughput(ops/sec)") => {
                result.rate_hz = positive(value).map_or(result.rate_hz, Reading::Measured)
            }
            // Intended- has the same again.
            (operation, name)
                if name.starts_with("Return=")
                    && name != "Return=OK"
                    && !operation.starts_with("Intended-") =>
            {
                add_errors(&mut errors, ErrorKind::Status, value.parse().unwrap_or(0));
            }
            _ => {}
        }
    }
    let Some(&rate_hz) = result.rate_hz.value() else { return ToolOutput::default() };
    if let Some(ms) = run_ms.filter(|ms| *ms > 0.0) {
        // The rate was made from this time and the count.
        result.operations = whole(rate_hz * ms / 1e3).map_or(result.operations, Reading::Measured);
        result.window_ns = whole(ms * 1e6).map_or(result.window_ns, Reading::Measured);
    }
    result.errors = Reading::Measured(errors);
    result.latency =
        Reading::Missing(Missing::new("YCSB has latencies of each kind of operation, and none of all"));
    result.bytes_in = Reading::Missing(Missing::new("YCSB does not count bytes"));
    ToolOutput { results: vec![result], complaint: None }
}

fn is_measurement(line: &str) -> bool {
    line.starts_with("[OVERALL], RunTime(ms), ") || line.starts_with("[OVERALL], Throughput(ops/sec), ")
}

fn is_status(line: &str) -> bool {
    line.contains(" current ops/sec; [") || line.ends_with(" operations;") && line.contains(" sec: ")
}

fn is_raw_head(line: &str) -> bool {
    line.ends_with(" latency raw data: op, timestamp(ms), latency(us)")
}

fn is_json(input: &Input<'_>) -> bool {
    let mut lines = input.head();
    lines.any(|line| line.contains("\"metric\" : \"OVERALL\"") || line.contains("\"metric\":\"OVERALL\""))
}

/// What was not read of one operation, and how it is measured.
#[derive(Default)]
struct State {
    has_target: bool,
    omits: bool,
    intended: bool,
    /// Numbers are counts of whole milliseconds, and no means of intervals.
    histogram: bool,
    /// Raw latencies stand behind their head.
    raw: bool,
    /// The heads of raw latencies so far: each once in each run.
    raw_heads: BTreeSet<String>,
    /// The run's own time stood there: once in each run.
    has_run_time: bool,
    /// Seconds of the last line on how far the run is.
    status_s: f64,
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut state = State::default();
    if is_json(input) {
        for document in with_keys(input.text, &[&["\"metric\""]]) {
            match document.parse() {
                Ok(value) => state.json(document.line, &value, metrics),
                Err((line, why)) => metrics.skip(line, "JSON of YCSB", &why),
            }
        }
    } else {
        for (line, number) in input.text.lines().map(str::trim_end).zip(1..) {
            state.line(number, line, metrics);
        }
    }
    if state.omits && !state.intended && state.has_target {
        let text =
            "it was paced (-target), and its latencies begin when an operation was sent, not when it was due";
        metrics.warn(
            "tool-percentiles-omit-waiting",
            text,
            "run with -p measurement.interval=both, and take Intended-",
        );
    }
}

impl State {
    fn line(&mut self, number: u64, line: &str, metrics: &mut Metrics) {
        if is_raw_head(line) {
            if self.raw_heads.contains(line) {
                self.next_run(metrics);
            }
            self.raw_heads.insert(line.to_owned());
            self.raw = true;
        } else if let Some(rest) = line.strip_prefix('[') {
            let parts = rest
                .split_once("], ")
                .and_then(|(operation, rest)| Some((operation, rest.rsplit_once(", ")?)));
            match parts {
                Some((operation, (name, value))) => {
                    self.measurement(number, operation, name, value.trim().parse().ok(), metrics);
                }
                None if rest.contains("],") => metrics.skip(number, line, "the line is cut off"),
                None => {}
            }
        } else if let Some(command) = line.strip_prefix("Command line: ") {
            self.has_target |= command.contains("-target ");
            metrics.set("command line", command);
        } else if is_status(line) {
            self.status(number, line, metrics);
        } else if self.raw {
            raw(number, line, metrics);
        }
    }

    fn json(&mut self, line: u64, value: &Value, metrics: &mut Metrics) {
        let (operation, name) = (&value["metric"], &value["measurement"]);
        if let (Some(operation), Some(name)) = (operation.as_str(), name.as_str()) {
            self.measurement(line, operation, name, number(&value["value"]), metrics);
        }
    }

    fn measurement(
        &mut self,
        line: u64,
        operation: &str,
        name: &str,
        value: Option<f64>,
        metrics: &mut Metrics,
    ) {
        self.intended |= operation.starts_with("Intended-");
        if operation == "OVERALL"
            && name.starts_with("RunTime")
            && std::mem::replace(&mut self.has_run_time, true)
        {
            self.next_run(metrics);
            self.has_run_time = true;
        }
        let Some(value) = value else {
            return metrics.skip(line, &format!("[{operation}], {name}"), "there is no number");
        };
        if operation.starts_with("TOTAL_GC") {
            return metrics.set(&format!("{operation} {name}"), &value.to_string());
        }
        // Of an interval of a series, or of a bucket of a histogram.
        if let Ok(at_ms) = name.trim_start_matches('>').parse::<f64>() {
            if self.histogram {
                return metrics.summary(kind(operation, "operations by whole ms", "op", None), name, value);
            }
            return interval(line, operation, at_ms, value, metrics);
        }
        let (plain, unit) =
            name.strip_suffix(')').and_then(|name| name.split_once('(')).unwrap_or((name, ""));
        self.histogram |= plain == "LatencyVariance";
        self.omits |= plain.ends_with("PercentileLatency");
        let (value, unit) = match unit {
            "ops/sec" => (value, "op/s"),
            // Of raw data the names have no unit.
            _ if is_of_raw(plain) => in_base(value, "us"),
            // It is the square of the unit that it has in its name.
            _ if plain == "LatencyVariance" => (value / 1e12, "s^2"),
            unit => in_base(value, unit),
        };
        let (unit, better) = match plain {
            "Throughput" => (unit, MORE),
            "LatencyVariance" => (unit, LESS),
            "Below is a summary of latency in microseconds:" => return,
            "Operations" | "Total Operations" | "Return=OK" => ("op", None),
            plain if is_of_raw(plain) => (unit, LESS),
            plain if plain.starts_with("Return=") => ("op", LESS),
            "RunTime" => (unit, None),
            plain if plain.contains("Latency") => (unit, LESS),
            _ => (unit, None),
        };
        metrics.sample(line, Kind { benchmark: operation, name: plain, unit, better }, value);
    }
}

impl State {
    /// `2026-11-28 02:54:05:559 10 sec: 400 operations; 40.1 current ops/sec; …`.
    fn status(&mut self, number: u64, line: &str, metrics: &mut Metrics) {
        let Some((before, rest)) = line.split_once(" sec: ") else { return };
        let at_s = before.rsplit(' ').next().and_then(|second| second.parse::<f64>().ok());
        let Some(at_s) = at_s else { return };
        // Another run counts from its own beginning.
        if at_s < std::mem::replace(&mut self.status_s, at_s) {
            self.next_run(metrics);
        }
        let rate = rest.split("; ").find_map(|part| part.strip_suffix(" current ops/sec"));
        let Some(rate) = rate else { return };
        // A comma is not of thousands here: YCSB leaves them out, and some languages write one for the point.
        let Ok(value) = rate.replace(',', ".").parse::<f64>() else {
            let what = format!("{rate} current ops/sec");
            return metrics.skip(number, &what, "the tool printed no finite number");
        };
        let sample = Sample { value, at_s: Some(at_s), ..Sample::default() };
        metrics.sample(number, kind("", "current ops/sec", "op/s", MORE), sample);
    }

    fn next_run(&mut self, metrics: &mut Metrics) {
        metrics.next_launch();
        (self.has_run_time, self.raw, self.histogram) = (false, false, false);
        self.raw_heads.clear();
    }
}

/// A latency of the summary behind raw data.
fn is_of_raw(name: &str) -> bool {
    let percent = name.strip_prefix('p').map(str::parse::<f64>);
    matches!(name, "Average" | "Min" | "Max") || matches!(percent, Some(Ok(_)))
}

/// Series have the mean latency of each interval in microseconds.
fn interval(line: u64, operation: &str, at_ms: f64, us: f64, metrics: &mut Metrics) {
    let sample = Sample { value: us / 1e6, at_s: Some(at_ms / 1e3), ..Sample::default() };
    metrics.sample(line, kind(operation, "latency mean of intervals", "s", LESS), sample);
}

/// `READ,1795834451245,2`: milliseconds since 1970, microseconds.
fn raw(number: u64, line: &str, metrics: &mut Metrics) {
    let parts: Vec<&str> = line.split(',').take(4).collect();
    let [operation, at_ms, us] = parts.as_slice() else { return };
    let (Ok(at_ms), Ok(us)) = (at_ms.parse::<f64>(), us.parse::<f64>()) else {
        return metrics.skip(number, line, "there are no numbers, or the line is cut off");
    };
    let sample = Sample { value: us / 1e6, at_s: Some(at_ms / 1e3), ..Sample::default() };
    metrics.sample(number, kind(operation, "latency", "s", LESS), sample);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_the_rate_over_the_time() {
        let text = "[OVERALL], RunTime(ms), 97\n[OVERALL], Throughput(ops/sec), 4123.711340206186\n[READ], Return=OK, 390\n\
            [READ], Return=ERROR, 10\n[Intended-READ], Return=ERROR, 10\n";
        let [one] = &summary(text).results[..] else { panic!() };
        assert_eq!((one.operations.value(), one.window_ns.value()), (Some(&400), Some(&97_000_000)));
        assert_eq!(one.errors.value(), Some(&BTreeMap::from([(ErrorKind::Status, 10)])));
    }

    #[test]
    fn a_paced_run_without_intended_latencies_is_warned_of() {
        let of = |more: &str| {
            READER.read(&Input::of_text(&format!("Command line: -target 200\n[OVERALL], Throughput(ops/sec), 198.5\n[READ], 99thPercentileLatency(us), 4\n{more}")))
        };
        let read = of("");
        assert_eq!(read.metrics[1].samples, [4e-6]);
        assert_eq!(read.warnings.len(), 1);
        assert!(of("[Intended-READ], 99thPercentileLatency(us), 4\n").warnings.is_empty());
    }

    #[test]
    fn what_is_no_number_is_said() {
        let read = READER.read(&Input::of_text(
            "[OVERALL], Throughput(ops/sec), 198.5\n[READ], AverageLatency(us), NaN\n[READ], Aver",
        ));
        assert_eq!(read.skipped.iter().map(|skipped| skipped.line).collect::<Vec<_>>(), [2, 3]);
    }
}
