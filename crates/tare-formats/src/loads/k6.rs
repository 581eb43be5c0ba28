//! [k6](https://k6.io): the summary at the end of a test, of version 1 and of those before.

use super::printed::{duration_ns, quantile, runs};
use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::numbers::{positive, whole};
use crate::result::measured;
use crate::result::{LatencySummary, Quantiles, SETTINGS_MAX, ToolOutput, ToolResult, add_errors, short};
use crate::shapes::Shapes;
use std::collections::BTreeMap;
use std::time::Duration;
use tare_model::Reading;
use tare_model::trial::ErrorKind;

const NAME: &str = "k6";

/// The summary.
pub(crate) const FORMAT: Format = Format {
    name: NAME,
    gets_wrong: &[
        "http_reqs and its rate count requests that failed, also those that never reached a server",
        "http_req_duration leaves out the time for a connection (http_req_blocked, http_req_connecting), and holds 0 s for each request that \
         reached no server",
        "a user that waits for an answer sends nothing meanwhile: percentiles leave out how long requests should have been sent before; \
         with an arrival rate they are dropped iterations",
        "its rate is over the whole test, with ramps, pauses and set-up",
    ],
    detect: |printed| printed.lines().any(is_row),
    read,
    shapes: SHAPES,
};

/// The mark of a threshold may stand before a row.
const SHAPES: Shapes = Shapes {
    lines: &[
        ".. http_reqs..* # #/s",
        ".. iterations..* # #/s",
        ".. http_req_failed..* * # out of #",
        ".. http_req_failed..* * ✓ # ✗ #",
        ".. http_req_duration..* avg=# min=# med=# max=# p(#)=# p(#)=#",
        ".. iteration_duration..* avg=# min=# med=# max=# p(#)=# p(#)=#",
        ".. data_received..* # ~ * *",
    ],
    units: &["ns", "us", "µs", "μs", "ms", "s", "m", "h", "B", "kB", "MB", "GB", "TB"],
    documents: &[],
};

/// Go's runtime: any of its threads sends. It runs the script's set-up before, and starts users one after another.
pub(crate) const GENERATOR: Generator = Generator {
    program: NAME,
    senders: Senders::All,
    set_up: SetUp { steady_for: Duration::from_millis(200), at_most: Duration::from_secs(1) },
    // --rps is a limit, and the rate of a scenario stands in the script.
    rate_options: &[],
    chatter: &["running (", "default   [", "default ✓ [", "default ↓ [", "INFO["],
    format: Some(&FORMAT),
};

/// The rows that each summary has, one of them at least.
fn is_row(line: &str) -> bool {
    let line = bare(line);
    ["http_reqs..", "iterations..", "iteration_duration..", "data_received..", "http_req_duration.."]
        .iter()
        .any(|start| line.starts_with(start))
        && line.contains(": ")
}

/// Without blanks and the mark of a threshold.
fn bare(line: &str) -> &str {
    line.trim_start().trim_start_matches(['✓', '✗', ' '])
}

fn read(printed: &str) -> ToolOutput {
    let mut output = ToolOutput::default();
    for run in runs(printed, |line| line.starts_with("execution: ")) {
        let mut summary = Summary::default();
        run.iter().for_each(|line| summary.read(line));
        output.complaint = output.complaint.or(summary.complaint.take());
        output.results.extend(summary.into_result());
    }
    output
}

#[derive(Default)]
struct Summary {
    requests: Option<(u64, f64)>,
    iterations: Option<(u64, f64)>,
    failed: Option<u64>,
    bytes_in: Option<u64>,
    http: Option<Trend>,
    iteration: Option<Trend>,
    settings: Vec<(&'static str, String)>,
    is_over: bool,
    complaint: Option<String>,
}

#[derive(Default)]
struct Trend {
    mean_ns: Option<u64>,
    quantiles: Quantiles,
}

impl Summary {
    fn read(&mut self, line: &str) {
        if ["ERRO[", "time=\""].iter().any(|start| line.starts_with(start)) {
            if line.starts_with("ERRO[")
                || line.contains(" level=error ")
                || line.contains("\"Request Failed\"")
            {
                self.complaint.get_or_insert_with(|| short(line));
            }
            return;
        }
        // Rows of scenarios and groups stand behind those of the whole test.
        self.is_over |= line.starts_with("█ SCENARIO: ")
            || line.starts_with("█ GROUP: ")
            || line.starts_with("↳ GROUP: ");
        if self.is_over {
            return;
        }
        let setting = ["scenarios: ", "script: "].into_iter().find_map(|start| {
            line.strip_prefix(start).map(|value| (start.trim_end_matches(": "), value.to_owned()))
        });
        if let Some(setting) = setting {
            self.set(setting);
            return;
        }
        let Some((name, value)) = bare(line).split_once(": ") else { return };
        let Some(name) = name.strip_suffix('.').map(|name| name.trim_end_matches('.')) else { return };
        let value = value.trim();
        match name {
            "http_reqs" => self.requests = counter(value),
            "iterations" => self.iterations = counter(value),
            "http_req_failed" => self.failed = failed(value),
            "http_req_duration" => self.http = Some(trend(value)),
            "iteration_duration" => self.iteration = Some(trend(value)),
            "data_received" => self.bytes_in = bytes(value),
            "vus_max" | "dropped_iterations" => {
                let name = if name == "vus_max" { "vus_max" } else { "dropped_iterations" };
                let value = value.split_whitespace().next().unwrap_or_default();
                self.set((name, value.to_owned()));
            }
            _ => {}
        }
    }

    fn set(&mut self, setting: (&'static str, String)) {
        if self.settings.len() < SETTINGS_MAX {
            self.settings.push(setting);
        }
    }

    fn into_result(self) -> Option<ToolResult> {
        let mut result = ToolResult::unsaid(NAME);
        // A script that sends no HTTP has only iterations.
        let (counted, trend) = match self.requests {
            Some(requests) => (requests, self.http),
            None => {
                result.name = Some("iterations".to_owned());
                (self.iterations?, self.iteration)
            }
        };
        let (count, rate_hz) = counted;
        result.operations = Reading::Measured(count);
        result.rate_hz = Reading::Measured(rate_hz);
        let seconds = (rate_hz > 0.0).then(|| count as f64 / rate_hz);
        result.window_ns = measured(seconds.and_then(|seconds| whole(seconds * 1e9)), result.window_ns);
        if let Some(failed) = self.failed.filter(|_| self.requests.is_some()) {
            // A status or a connection: the summary does not say which.
            let mut errors = BTreeMap::new();
            add_errors(&mut errors, ErrorKind::Unexpected, failed);
            result.errors = Reading::Measured(errors);
        }
        result.bytes_in = measured(self.bytes_in, result.bytes_in);
        if let Some(Trend { mean_ns, quantiles }) = trend {
            let mean_ns = measured(mean_ns, Reading::missing("k6 has not printed a mean latency"));
            // A request that never reached a server took 0 s.
            let none_answered = self.failed == Some(count) && mean_ns.value() == Some(&0);
            result.latency = match none_answered {
                true => Reading::missing("no request was answered"),
                false => measured(LatencySummary::of(mean_ns, quantiles), result.latency),
            };
            if none_answered {
                result.operations = Reading::Measured(0);
            }
        }
        for (setting, value) in &self.settings {
            result.set(setting, value);
        }
        if let Some((count, _)) = self.iterations {
            result.set("iterations", &count.to_string());
        }
        Some(result)
    }
}

/// `100     9.803921/s`.
fn counter(value: &str) -> Option<(u64, f64)> {
    let mut words = value.split_whitespace();
    let count = words.next()?.parse().ok()?;
    Some((count, positive(words.next()?.strip_suffix("/s")?)?))
}

/// `12.00% 12 out of 100`, before version 1 `12.00% ✓ 12 ✗ 88`: what is true is a failure.
fn failed(value: &str) -> Option<u64> {
    let words: Vec<&str> = value.split_whitespace().take(5).collect();
    match words[..] {
        [_, count, "out", "of", _] | [_, "✓", count, "✗", _] => count.parse().ok(),
        _ => None,
    }
}

/// `avg=1.03ms min=1µs med=4µs max=101ms p(90)=6µs p(95)=8µs`.
fn trend(value: &str) -> Trend {
    let mut trend = Trend::default();
    for (name, value) in value.split_whitespace().filter_map(|pair| pair.split_once('=')).take(100) {
        let ns = duration_ns(value).and_then(whole);
        match (name, quantile(name)) {
            ("avg", _) => trend.mean_ns = ns,
            (_, Some(quantile)) => ns.into_iter().for_each(|ns| trend.quantiles.note(quantile, ns)),
            _ => {}
        }
    }
    trend
}

/// `1.2 MB  115 kB/s`, in thousands.
fn bytes(value: &str) -> Option<u64> {
    let mut words = value.split_whitespace();
    let number = positive(words.next()?)?;
    let scale = match words.next()? {
        "B" => 1.0,
        "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        _ => return None,
    };
    whole(number * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_true_of_failures_is_a_failure() {
        assert_eq!(failed("0.00%   ✓ 0        ✗ 100"), Some(0));
        assert_eq!(failed("12.00%  ✓ 12       ✗ 88"), Some(12));
        assert_eq!(failed("25.00%  5 out of 20"), Some(5));
        assert_eq!(failed("25.00%"), None);
    }

    #[test]
    fn sections_of_scenarios_are_not_the_whole_test() {
        let [result] = &read(include_str!("../../tests/fixtures/k6/full_1.8.txt")).results[..] else {
            panic!()
        };
        assert_eq!(result.operations.value(), Some(&50));
    }

    #[test]
    fn rows_have_marks_of_thresholds_and_long_times() {
        let text = "  execution: local\n   ✗ http_req_duration..............: avg=1m2.5s min=0s med=617.42µs max=2s p(99.9)=1.5s\n\
            ✓ http_reqs......................: 100     2.5/s\n";
        let result = read(text).results.remove(0);
        let latency = result.latency.value().unwrap();
        assert_eq!(latency.mean_ns.value(), Some(&62_500_000_000));
        assert_eq!(
            latency.quantiles_ns,
            [(0.0, 0), (0.5, 617_420), (0.999, 1_500_000_000), (1.0, 2_000_000_000)]
        );
        assert_eq!(result.window_ns.value(), Some(&40_000_000_000));
    }
}
