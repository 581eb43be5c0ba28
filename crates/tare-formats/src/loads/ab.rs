//! `ab`, which comes with Apache: its summary.

use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::loads::printed::{of_each, step_of};
use crate::numbers::{ms_in_ns, positive, share, whole};
use crate::result::{LatencySummary, Quantiles, ToolOutput, ToolResult, add_errors, short};
use crate::shapes::Shapes;
use std::collections::BTreeMap;
use std::time::Duration;
use tare_model::Reading;
use tare_model::trial::ErrorKind;

const NAME: &str = "ab";

/// The summary as text; tables in HTML (`-w`) are not read.
pub(crate) const FORMAT: Format = Format {
    name: NAME,
    gets_wrong: &[
        "its one thread is often busy all the time before the server is, and it does not say so",
        "it opens a connection for each request unless -k is given",
        "its latencies are whole milliseconds; those that it prints as 0 are left out here",
        "it counts connections that end without an answer as complete requests",
        "it counts answers of another length than the first as failed unless -l is given; here they are answers",
        "redirects are among its non-2xx responses",
    ],
    detect: |printed| {
        printed.lines().any(|line| {
            line.starts_with("This is ApacheBench, Version ") || line.trim_end().ends_with(" [#/sec] (mean)")
        })
    },
    read,
    shapes: SHAPES,
};

const SHAPES: Shapes = Shapes {
    lines: &[
        "Concurrency Level: #",
        "Time taken for tests: # seconds",
        "Complete requests: #",
        "(Connect: #, Receive: #, Length: #, Exceptions: #)",
        "Non-2xx responses: #",
        "Total transferred: # bytes",
        "Requests per second: # ..",
        "Time per request: # [ms] (mean)",
        "#% # ..",
    ],
    units: &[],
    documents: &[],
};

/// It opens all connections at once and sends on each as soon as it is open, all from one thread.
pub(crate) const GENERATOR: Generator = Generator {
    program: NAME,
    senders: Senders::All,
    set_up: SetUp { steady_for: Duration::from_millis(100), at_most: Duration::from_millis(400) },
    rate_options: &[],
    chatter: &["Completed ", "Finished "],
    format: Some(&FORMAT),
};

/// Starts of lines that say what went wrong.
const COMPLAINTS: [&str; 5] = ["apr_", "Test aborted", "SSL handshake failed", "SSL read failed", "ab: "];

/// Starts of lines of a run, in their order.
const ORDER: [&str; 4] = ["This is ApacheBench", "Benchmarking ", "Server Software:", "Complete requests:"];

fn read(printed: &str) -> ToolOutput {
    of_each(printed, |line| step_of(&ORDER, line), |lines| read_one(lines))
}

fn read_one(lines: &mut dyn Iterator<Item = &str>) -> ToolOutput {
    let mut result = ToolResult::unsaid(NAME);
    let (mut complaint, mut printed_s) = (None, None);
    let (mut errors, mut quantiles, mut mean_ns) = (BTreeMap::new(), Quantiles::default(), None);
    let mut unreceived = 0;
    for line in lines {
        if COMPLAINTS.iter().any(|complaint| line.starts_with(complaint)) {
            complaint.get_or_insert_with(|| short(line));
        } else if let Some((name, value)) = line.split_once(':') {
            let first = value.split_whitespace().next().unwrap_or_default();
            match name {
                "Complete requests" => {
                    result.operations = first.parse().map_or(result.operations, Reading::Measured)
                }
                "Concurrency Level" => {
                    result.connections = first.parse().map_or(result.connections, Reading::Measured)
                }
                "Total transferred" => {
                    result.bytes_in = first.parse().map_or(result.bytes_in, Reading::Measured)
                }
                "Requests per second" => {
                    result.rate_hz = positive(first).map_or(result.rate_hz, Reading::Measured)
                }
                "Time taken for tests" => printed_s = positive(first),
                // The second such line is over all connections.
                "Time per request" if value.ends_with("[ms] (mean)") => mean_ns = ms_in_ns(first),
                "(Connect" => unreceived = failures(line, &mut errors),
                "Non-2xx responses" => add_errors(&mut errors, ErrorKind::Status, first.parse().unwrap_or(0)),
                "Document Path" | "Document Length" | "Keep-Alive requests" => result.set(name, value.trim()),
                _ => {}
            }
        } else if let [percent, ms, ..] = line.split_whitespace().take(3).collect::<Vec<_>>()[..]
            && let Some(quantile) = percent.strip_suffix('%').and_then(share)
            && let Some(ns @ 1..) = ms_in_ns(ms)
        {
            quantiles.note(quantile, ns);
        }
    }
    if result.operations.value().is_none() {
        return ToolOutput { results: Vec::new(), complaint };
    }
    // A kind of error that did not occur is not printed.
    result.errors = Reading::Measured(errors);
    result.window_ns = window_ns(&result, printed_s);
    // An answer that broke off is among its complete requests.
    result.operations = result.operations.map(|count| count.saturating_sub(unreceived));
    let mean_ns =
        mean_ns.map_or_else(|| Reading::missing("ab has not printed a mean latency"), Reading::Measured);
    if let Some(latency) = LatencySummary::of(mean_ns, quantiles) {
        result.latency = Reading::Measured(latency);
    }
    ToolOutput { results: vec![result], complaint }
}

/// Notes the kinds in `(Connect: 0, Receive: 2, Length: 83, Exceptions: 0)`, of which an answer of another length is none; returns
/// how many answers broke off.
fn failures(line: &str, errors: &mut BTreeMap<ErrorKind, u64>) -> u64 {
    let mut unreceived = 0;
    for (name, value) in line.trim_matches(['(', ')']).split(", ").filter_map(|part| part.split_once(": ")) {
        let count = value.parse().unwrap_or(0);
        match name {
            "Connect" => add_errors(errors, ErrorKind::Connect, count),
            "Receive" => {
                add_errors(errors, ErrorKind::Io, count);
                unreceived = count;
            }
            "Exceptions" => add_errors(errors, ErrorKind::Io, count),
            _ => {}
        }
    }
    unreceived
}

/// The time is printed in whole milliseconds, and the rate, which was made from it, has more digits: requests over rate, where
/// the two agree.
fn window_ns(result: &ToolResult, printed_s: Option<f64>) -> Reading<u64> {
    let by_rate_s =
        result.operations.value().zip(result.rate_hz.value()).map(|(count, rate_hz)| *count as f64 / rate_hz);
    let agrees =
        |by_rate_s: &f64| printed_s.is_none_or(|printed_s| (by_rate_s - printed_s).abs() <= 0.000_501);
    match by_rate_s.filter(agrees).or(printed_s).and_then(|seconds| whole(seconds * 1e9)).filter(|ns| *ns > 0)
    {
        Some(ns) => Reading::Measured(ns),
        None => result.window_ns.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_another_length_are_no_errors_and_broken_connections_are() {
        let [result] = &read(include_str!("../../tests/fixtures/ab/lengths.txt")).results[..] else {
            panic!()
        };
        assert_eq!(result.errors.value(), Some(&BTreeMap::new()));
        let broken = "Complete requests: 9\n(Connect: 1, Receive: 2, Length: 3, Exceptions: 4)\nNon-2xx responses: 5\n";
        let [result] = &read(broken).results[..] else { panic!() };
        let errors = [(ErrorKind::Connect, 1), (ErrorKind::Io, 6), (ErrorKind::Status, 5)];
        assert_eq!(
            (result.errors.value(), result.operations.value()),
            (Some(&BTreeMap::from(errors)), Some(&7))
        );
    }

    #[test]
    fn a_latency_below_what_is_printed_is_left_out() {
        let [result] = &read(include_str!("../../tests/fixtures/ab/keepalive.txt")).results[..] else {
            panic!()
        };
        let latency = result.latency.value().unwrap();
        assert_eq!(latency.quantiles_ns, [(0.99, 3_000_000), (1.0, 15_000_000)]);
        assert_eq!(latency.mean_ns.value(), Some(&156_000));
    }

    #[test]
    fn runs_behind_each_other_are_results_of_their_own() {
        let one = include_str!("../../tests/fixtures/ab/404.txt");
        let alone = read(one).results;
        let both = read(&format!("{one}{one}"));
        assert_eq!((both.results, both.complaint), ([alone.clone(), alone].concat(), None));
        let cut_off = format!("{one}{}", &one[..300]);
        let read = read(&cut_off);
        assert_eq!((read.results.len(), read.complaint.is_some()), (1, true));
    }
}
