//! [bombardier](https://github.com/codesenberg/bombardier): its summary as text and as JSON (`-o json`).

use super::http_errors::kind_of;
use super::printed::{runs, seconds_ns};
use crate::documents::objects;
use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::json;
use crate::numbers::{Scaled, positive, share, whole};
use crate::result::measured;
use crate::result::{LatencySummary, Quantiles, ToolOutput, ToolResult, add_errors, short};
use crate::shapes::Shapes;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tare_model::Reading;
use tare_model::trial::ErrorKind;

const NAME: &str = "bombardier";

/// The summary.
pub(crate) const FORMAT: Format = Format {
    name: NAME,
    gets_wrong: &[
        "its Reqs/sec is a mean of the rates of short intervals, and often some per cent above requests over time; text has nothing else",
        "latencies of requests that failed, also of connections that were refused, are among the others",
        "with -r latencies leave out how long a request should have been sent before",
        "text does not say for how long it measured, and percentiles are only there with -l",
    ],
    detect: |printed| is_text(printed) || is_json(printed),
    read: |printed| match is_json(printed) {
        true => read_json(printed),
        false => read_text(printed),
    },
    shapes: SHAPES,
};

const SHAPES: Shapes = Shapes {
    lines: &[
        ".. using # connection(s)",
        "Reqs/sec # * *",
        "Latency # * #",
        "#% #",
        "1xx - #, 2xx - #, 3xx - #, 4xx - #, 5xx - #",
        "others - #",
    ],
    units: &["us", "ms", "s", "m", "h"],
    documents: &[&["\"req2xx\""]],
};

/// Go's runtime: any of its threads sends.
pub(crate) const GENERATOR: Generator = Generator {
    program: NAME,
    senders: Senders::All,
    set_up: SetUp { steady_for: Duration::from_millis(100), at_most: Duration::from_millis(400) },
    rate_options: &["-r", "--rate"],
    chatter: &[],
    format: Some(&FORMAT),
};

/// A line below a minute is in thousands, above it in sixties.
const TIME_NS: [(&str, f64); 5] = [("us", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9)];

fn is_text(printed: &str) -> bool {
    printed.lines().any(|line| {
        line.starts_with("Bombarding ")
            || line.starts_with("Statistics ")
                && line.split_whitespace().take(5).eq(["Statistics", "Avg", "Stdev", "Max"])
            || line.starts_with("    1xx - ") && line.contains(", 2xx - ")
    })
}

fn is_json(printed: &str) -> bool {
    printed.contains("\"req2xx\":") && printed.contains("\"timeTakenSeconds\":")
}

fn read_text(printed: &str) -> ToolOutput {
    let mut output = ToolOutput::default();
    for run in runs(printed, |line| line.starts_with("Statistics ")) {
        let (result, complaint) = one(&run);
        output.results.extend(result);
        output.complaint = output.complaint.or(complaint);
    }
    output
}

fn one(lines: &[&str]) -> (Option<ToolResult>, Option<String>) {
    let mut result = ToolResult::unsaid(NAME);
    let (mut answers, mut others, mut errors, mut in_errors) = (None, None, BTreeMap::new(), false);
    let (mut mean_ns, mut quantiles, mut complaint) = (None, Quantiles::default(), None);
    for line in lines {
        // A bar of progress ends with a carriage return.
        let line = line.rsplit('\r').next().unwrap_or_default().trim();
        match line.split_whitespace().take(16).collect::<Vec<_>>()[..] {
            ["Reqs/sec", mean, _, _] => result.rate_hz = measured(positive(mean), result.rate_hz),
            ["Latency", mean, _, greatest] => {
                mean_ns = time_ns(mean);
                time_ns(greatest).into_iter().for_each(|ns| quantiles.note(1.0, ns));
            }
            [percent, time] if percent.ends_with('%') => {
                if let Some((share, ns)) = share(percent.trim_end_matches('%')).zip(time_ns(time)) {
                    quantiles.note(share, ns);
                }
            }
            ["1xx", "-", _, "2xx", "-", _, ..] => {
                let counts: Vec<(&str, u64)> = line
                    .split(", ")
                    .filter_map(|part| part.split_once(" - "))
                    .filter_map(|(class, count)| Some((class, count.parse().ok()?)))
                    .collect();
                answers = Some(counts.iter().map(|(_, count)| *count).fold(0, u64::saturating_add));
                for (_, count) in counts.iter().filter(|(class, _)| matches!(*class, "4xx" | "5xx")) {
                    add_errors(&mut errors, ErrorKind::Status, *count);
                }
            }
            ["others", "-", count] => others = count.parse::<u64>().ok(),
            ["Errors:"] => in_errors = true,
            ["Throughput:", ..] => in_errors = false,
            ["Bombarding", url, .., "using", connections, "connection(s)"] => {
                result.connections = measured(connections.parse().ok(), result.connections);
                result.set("url", url);
            }
            [_, ..] if in_errors => {
                if let Some((what, count)) = line.rsplit_once(" - ") {
                    add_errors(&mut errors, kind_of(what), count.parse().unwrap_or(0));
                    complaint.get_or_insert_with(|| short(what));
                }
            }
            _ => {}
        }
    }
    if result.rate_hz.value().is_none() && answers.is_none() {
        return (None, complaint);
    }
    result.operations = measured(answers, result.operations);
    if let Some(others) = others {
        result.errors = Reading::Measured(with_others(errors, others));
    }
    result.bytes_in = Reading::missing("bombardier prints bytes read and written together, for each second");
    let mean_ns = measured(mean_ns, Reading::missing("bombardier has not printed a mean latency"));
    result.latency = match answers {
        Some(0) => Reading::missing("no request was answered"),
        _ => measured(LatencySummary::of(mean_ns, quantiles), result.latency),
    };
    (Some(result), complaint)
}

/// `others` are failures without a status; not each has a line that says why.
fn with_others(mut errors: BTreeMap<ErrorKind, u64>, others: u64) -> BTreeMap<ErrorKind, u64> {
    let without_status = errors.iter().filter(|(kind, _)| **kind != ErrorKind::Status);
    let explained = without_status.map(|(_, count)| *count).fold(0, u64::saturating_add);
    add_errors(&mut errors, ErrorKind::Io, others.saturating_sub(explained));
    errors
}

fn time_ns(text: &str) -> Option<u64> {
    Scaled::parse(text, &TIME_NS)?.rounded()
}

fn read_json(printed: &str) -> ToolOutput {
    let mut output = ToolOutput::default();
    for run in objects(printed, &[&["\"req2xx\""]]) {
        output.results.extend(of_json(&run));
        let first = run["result"]["errors"][0]["description"].as_str();
        output.complaint = output.complaint.or(first.map(short));
    }
    output
}

fn of_json(run: &Value) -> Option<ToolResult> {
    let (spec, figures) = (&run["spec"], &run["result"]);
    figures["req2xx"].as_u64()?;
    let of = |class: &str| figures[class].as_u64().unwrap_or(0);
    let answers =
        ["req1xx", "req2xx", "req3xx", "req4xx", "req5xx"].map(of).into_iter().fold(0, u64::saturating_add);
    let mut result = ToolResult::unsaid(NAME);
    result.operations = Reading::Measured(answers);
    let seconds = json::number(&figures["timeTakenSeconds"]).filter(|seconds| *seconds > 0.0);
    result.window_ns = measured(seconds.and_then(seconds_ns), result.window_ns);
    // The printed rate is a mean of rates.
    result.rate_hz = measured(seconds.map(|seconds| answers as f64 / seconds), result.rate_hz);
    result.bytes_in = measured(figures["bytesRead"].as_u64(), result.bytes_in);
    let connections = spec["numberOfConnections"].as_u64().and_then(|count| u32::try_from(count).ok());
    result.connections = measured(connections, result.connections);
    let mut errors = BTreeMap::new();
    add_errors(&mut errors, ErrorKind::Status, of("req4xx").saturating_add(of("req5xx")));
    for error in figures["errors"].as_array().into_iter().flatten() {
        let kind = kind_of(error["description"].as_str().unwrap_or_default());
        add_errors(&mut errors, kind, error["count"].as_u64().unwrap_or(0));
    }
    result.errors = Reading::Measured(with_others(errors, of("others")));
    let latency = &figures["latency"];
    let us = |value: &Value| json::number(value).and_then(|us| whole(us * 1e3));
    let mut quantiles = Quantiles::default();
    us(&latency["max"]).into_iter().for_each(|ns| quantiles.note(1.0, ns));
    for (percent, value) in latency["percentiles"].as_object().into_iter().flatten() {
        if let Some((share, ns)) = share(percent).zip(us(value)) {
            quantiles.note(share, ns);
        }
    }
    let mean_ns =
        measured(us(&latency["mean"]), Reading::missing("bombardier has not printed a mean latency"));
    result.latency = match answers {
        0 => Reading::missing("no request was answered"),
        _ => measured(LatencySummary::of(mean_ns, quantiles), result.latency),
    };
    for setting in ["url", "client", "testType", "rate"] {
        if !spec[setting].is_null() {
            result.set(setting, &json::text(&spec[setting]));
        }
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_json_is_requests_over_time_and_not_the_mean_of_rates() {
        let [result] = &read_json(include_str!("../../tests/fixtures/bombardier/json.json")).results[..]
        else {
            panic!()
        };
        let rate_hz = *result.rate_hz.value().unwrap();
        // It prints 5789.
        assert!((rate_hz - 5137.0 / 1.005_948_704).abs() < 1e-6, "{rate_hz}");
    }

    #[test]
    fn failures_that_no_line_explains_are_counted_all_the_same() {
        let errors = BTreeMap::from([(ErrorKind::Status, 5), (ErrorKind::Timeout, 2)]);
        let all = with_others(errors, 3);
        assert_eq!(
            all,
            BTreeMap::from([(ErrorKind::Io, 1), (ErrorKind::Status, 5), (ErrorKind::Timeout, 2)])
        );
    }

    #[test]
    fn counts_beyond_all_numbers_are_no_panic() {
        let errors = BTreeMap::from([(ErrorKind::Connect, u64::MAX), (ErrorKind::Timeout, u64::MAX)]);
        assert_eq!(with_others(errors.clone(), u64::MAX), errors);
    }

    #[test]
    fn json_that_is_cut_off_is_said_to_be() {
        let text = include_str!("../../tests/fixtures/bombardier/json.json");
        let cut = &text[..text.len() - 30];
        assert!(FORMAT.detects(cut));
        let read = crate::load_metrics::of(&FORMAT, cut);
        assert_eq!((read.format.as_str(), read.metrics.len(), read.skipped_count), ("bombardier", 0, 1));
    }
}
