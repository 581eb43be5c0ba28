//! [h2load](https://nghttp2.org), which comes with nghttp2: its summary, of HTTP/1.1 and HTTP/2.

use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::loads::printed::{of_each, step_of};
use crate::numbers::{Scaled, positive};
use crate::result::{LatencySummary, Quantiles, ToolOutput, ToolResult, add_errors, short};
use crate::shapes::Shapes;
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
        "before version 1.55 it prints the least, the greatest and the mean latency, and no percentiles",
        "with --rps it sends at a rate for each client, and does not print it",
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
    shapes: SHAPES,
};

const SHAPES: Shapes = Shapes {
    lines: &[
        "spawning thread * # total client(s). ..",
        "finished in #, # req/s, *",
        "requests: # total, # started, # done, # succeeded, # failed, # errored, # timeout",
        "status codes: # 2xx, # 3xx, # 4xx, # 5xx",
        "traffic: * (#) total, ..",
        "time for request: # # # ..",
        "request : # # # # # # ..",
    ],
    units: &["us", "ms", "s", "m"],
    documents: &[],
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

/// Starts of lines of a run, in their order.
const ORDER: [&str; 4] = ["starting benchmark...", "spawning thread #0:", "finished in ", "requests: "];

fn read(printed: &str) -> ToolOutput {
    of_each(printed, |line| step_of(&ORDER, line), |lines| read_one(lines))
}

fn read_one(lines: &mut dyn Iterator<Item = &str>) -> ToolOutput {
    let mut result = ToolResult::unsaid(NAME);
    let (mut complaint, mut printed_time, mut errors) = (None, None, BTreeMap::new());
    let (mut mean_ns, mut quantiles) = (None, Quantiles::default());
    let (mut clients, mut come_and_go, mut is_http1) = (None, false, false);
    for line in lines {
        if COMPLAINTS.iter().any(|complaint| line.starts_with(complaint)) {
            complaint.get_or_insert_with(|| short(line));
            continue;
        }
        match line.split_whitespace().take(16).collect::<Vec<_>>()[..] {
            ["spawning", "thread", _, count, "total", "client(s).", ..] => {
                let sum = clients.unwrap_or(0_u32);
                clients = count.parse().ok().map(|count: u32| sum.saturating_add(count));
                come_and_go |= line.contains(" will be created every ");
            }
            ["finished", "in", time, rate, "req/s,", _] => {
                printed_time = Scaled::parse(time.trim_end_matches(','), &TIME_NS);
                result.rate_hz = positive(rate).map_or(result.rate_hz, Reading::Measured);
            }
            ["requests:", ..] => {
                let of = |what: &str| named(line, what);
                // Those that were done hold streams that were reset, and the rate does not.
                let answers = of("succeeded").zip(of("failed")).zip(of("errored"));
                let answers =
                    answers.map(|((good, bad), lost)| good.saturating_add(bad).saturating_sub(lost));
                result.operations = answers.map_or(result.operations, Reading::Measured);
                count_lost(line, &mut errors);
            }
            ["status", "codes:", ..] => {
                for class in ["4xx", "5xx"] {
                    add_errors(&mut errors, ErrorKind::Status, named(line, class).unwrap_or(0));
                }
            }
            ["traffic:", _, bytes, "total,", ..] => {
                let bytes = bytes.trim_matches(['(', ')']).parse();
                result.bytes_in = bytes.map_or(result.bytes_in, Reading::Measured);
            }
            ["time", "for", "request:", least, greatest, mean, ..] => {
                mean_ns = time_ns(mean);
                note(&mut quantiles, &[(0.0, least), (1.0, greatest)]);
            }
            // Since 1.55 with percentiles.
            ["request", ":", least, greatest, median, p95, p99, mean, ..] => {
                mean_ns = time_ns(mean);
                let printed = [(0.0, least), (0.5, median), (0.95, p95), (0.99, p99), (1.0, greatest)];
                note(&mut quantiles, &printed);
            }
            ["Application", "protocol:", protocol] => {
                is_http1 = protocol == "http/1.1";
                result.set("protocol", protocol);
            }
            _ => {}
        }
    }
    let Some(&done) = result.operations.value() else {
        return ToolOutput { results: Vec::new(), complaint };
    };
    result.errors = Reading::Measured(errors);
    // Clients of HTTP/2 have as many requests in flight as -m allows, which is not printed.
    result.connections = match clients.filter(|_| is_http1 && !come_and_go) {
        Some(clients) => Reading::Measured(clients),
        None => Reading::missing("h2load does not print how many requests are in flight"),
    };
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

/// Requests that got no answer. Those that timed out are among those that are called errored.
fn count_lost(line: &str, errors: &mut BTreeMap<ErrorKind, u64>) {
    let of = |what: &str| named(line, what).unwrap_or(0);
    let timed_out = of("timeout");
    add_errors(errors, ErrorKind::Io, of("errored").saturating_sub(timed_out));
    add_errors(errors, ErrorKind::Timeout, timed_out);
}

/// The count in front of a name: 7 of `failed` in `requests: 9 done, 7 failed, 0 timeout`.
fn named(line: &str, what: &str) -> Option<u64> {
    let (_, counts) = line.split_once(": ")?;
    let found = counts.split(", ").find_map(|count| count.strip_suffix(what)?.strip_suffix(' '))?;
    found.parse().ok()
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

fn note(quantiles: &mut Quantiles, printed: &[(f64, &str)]) {
    for (quantile, time) in printed {
        time_ns(time).into_iter().for_each(|ns| quantiles.note(*quantile, ns));
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
        let [result] = &read(include_str!("../../tests/fixtures/h2load/warm_up.txt")).results[..] else {
            panic!()
        };
        let window_s = *result.window_ns.value().unwrap() as f64 / 1e9;
        assert!((window_s - 1.0).abs() < 1e-3, "{window_s}");
    }

    /// Made from the source of h2load 1.65: no such version could be had here.
    #[test]
    fn newer_versions_print_percentiles_and_streams_that_were_reset_are_no_answers() {
        let text = "spawning thread #0: 2 total client(s). 10 total requests\nApplication protocol: h2c\n\
            finished in 1.00s, 6.00 req/s, 1.00KB/s\n\
            requests: 10 total, 10 started, 10 done, 5 succeeded, 5 failed, 4 errored, 0 timeout\n\
            status codes: 5 2xx, 0 3xx, 0 4xx, 1 5xx\n\
            request     :     10us   1.20ms    100us    300us    900us    150us     50us    95.00%\n";
        let [result] = &read(text).results[..] else { panic!() };
        assert_eq!((result.operations.value(), result.window_ns.value()), (Some(&6), Some(&1_000_000_000)));
        assert!(result.connections.value().is_none());
        let latency = result.latency.value().unwrap();
        assert_eq!((latency.mean_ns.value(), latency.quantiles_ns.len()), (Some(&150_000), 5));
        assert_eq!(latency.quantiles_ns[3], (0.99, 900_000));
    }

    #[test]
    fn error_statuses_and_lost_requests_are_apart() {
        let errors = |text| read(text).results[0].errors.clone().ok().unwrap();
        assert_eq!(
            errors(include_str!("../../tests/fixtures/h2load/404.txt")),
            BTreeMap::from([(ErrorKind::Status, 300)])
        );
        assert_eq!(
            errors(include_str!("../../tests/fixtures/h2load/broken.txt")),
            BTreeMap::from([(ErrorKind::Io, 92)])
        );
    }

    /// As h2load.cc counts: a client that times out adds its requests to the timeouts, and to the errors as every client does that is given up.
    #[test]
    fn a_request_that_timed_out_is_one_error() {
        let text = "spawning thread #0: 2 total client(s). 10 total requests\nfinished in 1.00s, 5.00 req/s, 1.00KB/s\n\
            requests: 10 total, 10 started, 9 done, 5 succeeded, 5 failed, 4 errored, 3 timeout\n\
            status codes: 5 2xx, 0 3xx, 0 4xx, 1 5xx\n";
        let [result] = &read(text).results[..] else { panic!() };
        assert_eq!(result.operations.value(), Some(&6));
        let expected = [(ErrorKind::Io, 1), (ErrorKind::Status, 1), (ErrorKind::Timeout, 3)];
        assert_eq!(result.errors.value(), Some(&BTreeMap::from(expected)));
    }

    #[test]
    fn runs_behind_each_other_are_results_of_their_own() {
        let one = include_str!("../../tests/fixtures/h2load/404.txt");
        let alone = read(one).results;
        let both = read(&format!("{one}{one}"));
        assert_eq!((both.results, both.complaint), ([alone.clone(), alone].concat(), None));
    }
}
