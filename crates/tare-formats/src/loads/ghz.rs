//! [ghz](https://ghz.sh), a load generator for gRPC: its summary as text.

use super::printed::{runs, seconds_ns};
use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::numbers::{positive, share};
use crate::result::measured;
use crate::result::{LatencySummary, Quantiles, ToolOutput, ToolResult, add_errors, short};
use crate::shapes::Shapes;
use crate::units::in_base;
use std::collections::BTreeMap;
use std::time::Duration;
use tare_model::Reading;
use tare_model::trial::ErrorKind;

const NAME: &str = "ghz";

/// The summary.
pub(crate) const FORMAT: Format = Format {
    name: NAME,
    gets_wrong: &[
        "its Count and Requests/sec hold calls that failed; its Average holds their times, and its percentiles do not",
        "calls that are broken off at the end of -z are counted as errors (transport is closing)",
        "with --rps each worker waits for its answer: latencies leave out how long a call should have been sent before",
        "all workers share one connection, unless --connections is given",
    ],
    detect: |printed| printed.lines().any(is_line),
    read,
    shapes: SHAPES,
};

const SHAPES: Shapes = Shapes {
    lines: &[
        "Count: #",
        "Total: # ~",
        "Slowest: # ~",
        "Fastest: # ~",
        "Requests/sec: #",
        "# % in # ~",
        "[* # responses",
        "[* # response",
    ],
    units: &["ns", "us", "µs", "μs", "ms", "s", "min", "h"],
    documents: &[],
};

/// Go's runtime: any of its threads sends.
pub(crate) const GENERATOR: Generator = Generator {
    program: NAME,
    senders: Senders::All,
    set_up: SetUp { steady_for: Duration::from_millis(100), at_most: Duration::from_millis(400) },
    rate_options: &["-r", "--rps"],
    chatter: &[],
    format: Some(&FORMAT),
};

/// hey's summary is alike, but has no count, and no blank before `%`.
pub(super) fn is_line(line: &str) -> bool {
    line.strip_prefix("  Count:\t").is_some_and(|count| count.parse::<u64>().is_ok())
        || line.starts_with("  ") && line.contains(" % in ") && is_percentile(line)
}

/// `  50 % in 3.44 ms`: words alone are of anybody.
fn is_percentile(line: &str) -> bool {
    match line.split_whitespace().take(6).collect::<Vec<_>>()[..] {
        [percent, "%", "in", value, unit] => {
            share(percent).is_some() && positive(value).is_some() && in_base(0.0, unit).1 == "s"
        }
        _ => false,
    }
}

fn read(printed: &str) -> ToolOutput {
    let mut output = ToolOutput::default();
    for run in runs(printed, |line| line == "Summary:") {
        let (result, complaint) = one(&run);
        output.results.extend(result);
        output.complaint = output.complaint.or(complaint);
    }
    output
}

fn one(lines: &[&str]) -> (Option<ToolResult>, Option<String>) {
    let mut result = ToolResult::unsaid(NAME);
    let (mut quantiles, mut good, mut others) = (Quantiles::default(), None, 0_u64);
    let (mut errors, mut in_errors, mut complaint) = (BTreeMap::new(), false, None);
    for line in lines {
        let ns = |value: &str, unit: &str| {
            let (seconds, base) = in_base(positive(value)?, unit);
            seconds_ns(seconds).filter(|_| base == "s")
        };
        match line.split_whitespace().take(12).collect::<Vec<_>>()[..] {
            ["Name:", ..] => result.name = line.split_once(':').map(|(_, name)| short(name.trim())),
            ["Count:", count] => result.set("calls", count),
            ["Total:", value, unit] => result.window_ns = measured(ns(value, unit), result.window_ns),
            ["Slowest:", value, unit] => note(&mut quantiles, 1.0, ns(value, unit)),
            ["Fastest:", value, unit] => note(&mut quantiles, 0.0, ns(value, unit)),
            ["Requests/sec:", rate] => result.rate_hz = measured(positive(rate), result.rate_hz),
            [percent, "%", "in", value, unit] => {
                share(percent).into_iter().for_each(|share| note(&mut quantiles, share, ns(value, unit)));
            }
            ["Status", "code", "distribution:"] => good = Some(good.unwrap_or(0_u64)),
            ["Error", "distribution:"] => in_errors = true,
            [status, count, "responses" | "response"] if good.is_some() => {
                let count: u64 = count.parse().unwrap_or(0);
                match status {
                    "[OK]" => good = Some(count),
                    _ => others = others.saturating_add(count),
                }
            }
            [count, _, ..] if in_errors && count.starts_with('[') => {
                let reason = line.split_once(']').map_or("", |(_, reason)| reason.trim());
                let count = count.trim_matches(['[', ']']).parse().unwrap_or(0);
                add_errors(&mut errors, kind_of(reason), count);
                complaint.get_or_insert_with(|| short(reason));
            }
            _ => {}
        }
    }
    if result.rate_hz.value().is_none() && good.is_none() {
        return (None, complaint);
    }
    if let Some(good) = good {
        // Failures without a reason have a status.
        let known = errors.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
        add_errors(&mut errors, ErrorKind::Status, others.saturating_sub(known));
        // A status is an answer.
        let statuses = errors.get(&ErrorKind::Status).copied().unwrap_or(0);
        result.operations = Reading::Measured(good.saturating_add(statuses));
        result.errors = Reading::Measured(errors);
    }
    // The mean is of all calls, and the others of those that succeeded: they do not go together.
    let mean = Reading::missing("the mean that ghz prints holds calls that failed");
    result.latency = match good {
        Some(0) => Reading::missing("no call was answered"),
        _ => measured(LatencySummary::of(mean, quantiles), result.latency),
    };
    (Some(result), complaint)
}

fn note(quantiles: &mut Quantiles, quantile: f64, ns: Option<u64>) {
    ns.into_iter().for_each(|ns| quantiles.note(quantile, ns));
}

/// What gRPC says went wrong.
fn kind_of(reason: &str) -> ErrorKind {
    let has = |words: &str| reason.contains(words);
    if has("code = DeadlineExceeded") {
        ErrorKind::Timeout
    } else if has("while dialing") || has("connection refused") {
        ErrorKind::Connect
    } else if has("transport is closing") || has("connection reset") || has("EOF") {
        ErrorKind::Io
    } else {
        ErrorKind::Status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_a_percent_sign_are_no_summary() {
        assert!(is_line("  50 % in 3.44 ms ") && is_line("  Count:\t60"));
        for other in
            ["  Spent 12 % in GC", "  12 % in 3 runs", "  x % in 3 ms", "12 % in 3 ms", "  Count:\tmany"]
        {
            assert!(!is_line(other) && !FORMAT.detects(other), "{other}");
        }
    }

    #[test]
    fn a_status_is_an_answer_and_a_lost_connection_is_none() {
        let [result] = &read(include_str!("../../tests/fixtures/ghz/duration.txt")).results[..] else {
            panic!()
        };
        // 307 OK, 17 with a status, 1 broken off at the end.
        assert_eq!(result.operations.value(), Some(&324));
        assert_eq!(
            result.errors.value(),
            Some(&BTreeMap::from([(ErrorKind::Io, 1), (ErrorKind::Status, 17)]))
        );
    }
}
