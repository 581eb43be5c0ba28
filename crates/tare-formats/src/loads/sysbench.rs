//! [sysbench](https://github.com/akopytov/sysbench): its summary, of a database or of the machine.

use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::numbers::{positive, share, whole};
use crate::result::{LatencySummary, Quantiles, ToolOutput, ToolResult, short};
use crate::shapes::Shapes;
use std::collections::BTreeMap;
use std::time::Duration;
use tare_model::trial::ErrorKind;
use tare_model::{Missing, Reading};

const NAME: &str = "sysbench";

/// The summary.
pub(crate) const FORMAT: Format = Format {
    name: NAME,
    gets_wrong: &[
        "with --rate latencies leave out how long an event waited to be begun",
        "the one percentile (--percentile) comes from a histogram with steps of some per cent",
        "its output does not name the test: mutex and threads, and the scripts of a database, look alike",
        "errors that an option makes it ignore are counted, and their transactions tried again",
    ],
    detect: |printed| printed.lines().any(|line| line.starts_with("sysbench ") && line.contains("(using ")),
    read,
    shapes: SHAPES,
};

const SHAPES: Shapes = Shapes {
    lines: &[
        "Number of threads: #",
        "total time: #s",
        "time elapsed: #s",
        "total number of events: #",
        "events per second: #",
        "events/s (eps): #",
        "transactions: * (# per sec.)",
        "ignored errors: # ..",
        "min: #",
        "avg: #",
        "max: #",
        "#th percentile: #",
    ],
    units: &[],
    documents: &[],
};

/// Each thread opens its connection before any sends; the first thread only waits.
pub(crate) const GENERATOR: Generator = Generator {
    program: NAME,
    senders: Senders::Workers,
    set_up: SetUp { steady_for: Duration::from_millis(120), at_most: Duration::from_secs(5) },
    rate_options: &["--rate"],
    chatter: &[],
    format: Some(&FORMAT),
};

/// The part of the summary that a line stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Other,
    Latency,
}

fn read(printed: &str) -> ToolOutput {
    let mut result = ToolResult::unsaid(NAME);
    let (mut complaint, mut part, mut is_summary) = (None, Part::Other, false);
    let (mut mean_ns, mut quantiles, mut threads_count) = (None, Quantiles::default(), None);
    for line in printed.lines().map(str::trim) {
        if line.starts_with("FATAL: ") {
            complaint.get_or_insert_with(|| short(line));
        }
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        let words: Vec<&str> = value.split_whitespace().take(4).collect();
        let ns = || positive(value).and_then(|ms| whole(ms * 1e6));
        match (part, name, words.as_slice()) {
            (_, "Latency (ms)", _) => part = Part::Latency,
            (_, "Threads fairness", _) => part = Part::Other,
            (Part::Latency, "avg", _) => mean_ns = ns(),
            (Part::Latency, "min", _) => note(&mut quantiles, Some(0.0), ns()),
            (Part::Latency, "max", _) => note(&mut quantiles, Some(1.0), ns()),
            (Part::Latency, name, _) => {
                note(
                    &mut quantiles,
                    name.split_once("th percentile").and_then(|(percent, _)| share(percent)),
                    ns(),
                );
            }
            // The second is that of version 1.1.
            (_, "total time" | "time elapsed", [seconds]) => {
                let seconds = seconds.strip_suffix('s').and_then(positive);
                if let Some(ns) = seconds.and_then(|seconds| whole(seconds * 1e9)) {
                    result.window_ns = Reading::Measured(ns);
                }
            }
            // Of the machine; the second is that of version 1.1.
            (_, "events per second" | "events/s (eps)", [rate]) => {
                result.rate_hz = positive(rate).map_or(result.rate_hz, Reading::Measured);
            }
            (_, "total number of events", [count]) => {
                is_summary = true;
                result.operations = count.parse().map_or(result.operations, Reading::Measured);
            }
            // Of a database: the rate with more digits than events over time have.
            (_, "transactions", [_, rate, "per", "sec.)"]) => {
                let rate_hz = rate.strip_prefix('(').and_then(positive);
                result.rate_hz = rate_hz.map_or(result.rate_hz, Reading::Measured);
                // A thread has one connection, of a database alone.
                result.connections = threads_count.map_or(result.connections, Reading::Measured);
            }
            (_, "ignored errors", [count, ..]) => {
                if let Ok(count) = count.parse::<u64>() {
                    let kinds = (count > 0).then_some((ErrorKind::Status, count));
                    result.errors = Reading::Measured(BTreeMap::from_iter(kinds));
                }
            }
            (_, "Number of threads", [threads]) => {
                threads_count = threads.parse().ok();
            }
            (_, "Target transaction rate", _) => result.set(name, value),
            _ => {}
        }
    }
    if !is_summary {
        return ToolOutput { results: Vec::new(), complaint };
    }
    finished(&mut result, mean_ns, quantiles);
    ToolOutput { results: vec![result], complaint }
}

fn note(quantiles: &mut Quantiles, quantile: Option<f64>, ns: Option<u64>) {
    if let Some((quantile, ns)) = quantile.zip(ns) {
        quantiles.note(quantile, ns);
    }
}

/// What follows from other lines, and what it never says.
fn finished(result: &mut ToolResult, mean_ns: Option<u64>, quantiles: Quantiles) {
    let by_time = result.operations.value().zip(result.window_ns.value());
    let by_time = by_time.filter(|(_, ns)| **ns > 0).map(|(count, ns)| *count as f64 * 1e9 / *ns as f64);
    if let (None, Some(rate_hz)) = (result.rate_hz.value(), by_time) {
        result.rate_hz = Reading::Measured(rate_hz);
    }
    result.bytes_in = Reading::Missing(Missing::new("sysbench does not count bytes"));
    let mean_ns = mean_ns
        .map_or_else(|| Reading::missing("sysbench has not printed a mean latency"), Reading::Measured);
    if let Some(latency) = LatencySummary::of(mean_ns, quantiles) {
        result.latency = Reading::Measured(latency);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_1_1_has_other_words_for_rate_and_time() {
        let text = "sysbench 1.1.0 (using bundled LuaJIT 2.1.0-beta3)\n\nCPU speed:\n    events per second:  1750.60\n\nThroughput:\n    \
                    events/s (eps):                      1234.5000\n    time elapsed:                        2.0001s\n    \
                    total number of events:              2469\n";
        let output = read(text);
        let result = &output.results[0];
        assert_eq!(result.rate_hz.value(), Some(&1234.5));
        assert_eq!(
            (result.window_ns.value(), result.operations.value()),
            (Some(&2_000_100_000), Some(&2469))
        );
    }
}
