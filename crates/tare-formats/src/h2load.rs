//! [h2load](https://nghttp2.org), which comes with nghttp2: its summary, of HTTP/1.1 and HTTP/2.

use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::numbers::{Scaled, positive};
use crate::result::{LatencySummary, Quantiles, ToolOutput, ToolResult, short};
use std::collections::BTreeMap;
use std::time::Duration;
use tare_model::Reading;
use tare_model::trial::ErrorKind;

const NAME: &str = "h2load";

/// The summary.
pub(crate) const FORMAT: Format = Format {
    name: NAME,
    gets_wrong: &[
        "its one thread (-t) is often busy all the time before the server is, and it does not say so",
        "it prints the least, the greatest and the mean latency, and no percentiles",
        "its rate counts answers with an error status as requests",
        "without -D its time includes that in which connections are opened",
        "a request that a lost connection kept from being sent counts as an error, as one that broke off does",
    ],
    detect: |printed| {
        printed.lines().any(|line| {
            (line.starts_with("requests: ") && line.contains(" total, ") && line.contains(" errored, "))
                || line.starts_with("spawning thread #0: ")
        })
    },
    read,
};

/// Each thread opens its connections and sends on each as soon as it is open; the first thread of the process only waits.
pub(crate) const GENERATOR: Generator = Generator {
    program: NAME,
    senders: Senders::Workers,
    set_up: SetUp { steady_for: Duration::from_millis(100), at_most: Duration::from_millis(400) },
    rate_options: &[],
    chatter: &[],
    format: Some(&FORMAT),
};

/// Starts of lines that say what went wrong.
const COMPLAINTS: [&str; 3] = ["client could not connect to host", "Failed to ", "No protocol negotiated"];

/// Its units, on steps of a thousand below a minute.
const TIME_NS: [(&str, f64); 4] = [("us", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9)];

fn read(printed: &str) -> ToolOutput {
    let mut result = ToolResult::unsaid(NAME);
    let (mut complaint, mut printed_time, mut errors) = (None, None, BTreeMap::new());
    let (mut mean_ns, mut quantiles) = (None, Quantiles::default());
    let mut clients = None;
    for line in printed.lines().map(str::trim) {
        if COMPLAINTS.iter().any(|complaint| line.starts_with(complaint)) {
            complaint.get_or_insert_with(|| short(line));
            continue;
        }
        match line.split_whitespace().take(16).collect::<Vec<_>>()[..] {
            ["spawning", "thread", _, count, "total", "client(s).", ..] => {
                let sum = clients.unwrap_or(0_u32);
                clients = count.parse().ok().map(|count: u32| sum.saturating_add(count));
            }
            ["finished", "in", time, rate, "req/s,", _] => {
                printed_time = Scaled::parse(time.trim_end_matches(','), &TIME_NS);
                result.rate_hz = positive(rate).map_or(result.rate_hz, Reading::Measured);
            }
            [
                "requests:",
                _,
                "total,",
                _,
                "started,",
                done,
                "done,",
                _,
                "succeeded,",
                _,
                "failed,",
                errored,
                "errored,",
                timeout,
                "timeout",
            ] => {
                result.operations = done.parse().map_or(result.operations, Reading::Measured);
                count(&mut errors, ErrorKind::Io, errored);
                count(&mut errors, ErrorKind::Timeout, timeout);
            }
            ["status", "codes:", _, "2xx,", _, "3xx,", client, "4xx,", server, "5xx"] => {
                count(&mut errors, ErrorKind::Status, client);
                count(&mut errors, ErrorKind::Status, server);
            }
            ["traffic:", _, bytes, "total,", ..] => {
                let bytes = bytes.trim_matches(['(', ')']).parse();
                result.bytes_in = bytes.map_or(result.bytes_in, Reading::Measured);
            }
            ["time", "for", "request:", least, greatest, mean, ..] => {
                mean_ns = time_ns(mean);
                for (quantile, time) in [(0.0, least), (1.0, greatest)] {
                    time_ns(time).into_iter().for_each(|ns| quantiles.note(quantile, ns));
                }
            }
            ["Application", "protocol:", protocol] => result.set("protocol", protocol),
            _ => {}
        }
    }
    let Some(&done) = result.operations.value() else {
        return ToolOutput { results: Vec::new(), complaint };
    };
    result.errors = Reading::Measured(errors);
    result.connections = clients.map_or(result.connections, Reading::Measured);
    result.window_ns = window_ns(done, &result, printed_time);
    if done == 0 {
        // Zeros are printed then.
        result.latency = Reading::missing("no request was answered");
    } else if let Some(mean_ns) = mean_ns
        && let Some(latency) = LatencySummary::of(Reading::Measured(mean_ns), quantiles)
    {
        result.latency = Reading::Measured(latency);
    }
    ToolOutput { results: vec![result], complaint }
}

fn count(errors: &mut BTreeMap<ErrorKind, u64>, kind: ErrorKind, value: &str) {
    if let Ok(count @ 1..) = value.parse::<u64>() {
        let sum = errors.entry(kind).or_insert(0);
        *sum = sum.saturating_add(count);
    }
}

/// Requests over rate: the printed time is rounded, and with -D it holds the warm-up, which neither requests nor rate do.
fn window_ns(done: u64, result: &ToolResult, printed_time: Option<Scaled>) -> Reading<u64> {
    match result.rate_hz.value() {
        Some(&rate_hz) if rate_hz > 0.0 && done > 0 => {
            Reading::Measured((done as f64 / rate_hz * 1e9).round() as u64)
        }
        _ => printed_time
            .and_then(|time| time.rounded())
            .filter(|ns| *ns > 0)
            .map_or(result.window_ns.clone(), Reading::Measured),
    }
}

fn time_ns(text: &str) -> Option<u64> {
    Scaled::parse(text, &TIME_NS)?.rounded()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warm_up_is_not_in_the_window() {
        let [result] = &read(include_str!("../tests/fixtures/h2load/warm_up.txt")).results[..] else {
            panic!()
        };
        let window_s = *result.window_ns.value().unwrap() as f64 / 1e9;
        assert!((window_s - 1.0).abs() < 1e-3, "{window_s}");
    }

    #[test]
    fn error_statuses_and_lost_requests_are_apart() {
        let errors = |text| read(text).results[0].errors.clone().ok().unwrap();
        assert_eq!(
            errors(include_str!("../tests/fixtures/h2load/404.txt")),
            BTreeMap::from([(ErrorKind::Status, 300)])
        );
        assert_eq!(
            errors(include_str!("../tests/fixtures/h2load/broken.txt")),
            BTreeMap::from([(ErrorKind::Io, 92)])
        );
    }
}
