//! [Locust](https://locust.io)'s `--json`: for each kind of request a histogram of its response times, and its requests in each second.

use crate::documents::{each_run, has};
use crate::json::number;
use crate::metrics::{Kind, Metrics, Sample};
use crate::reader::{Input, Reader};
use serde_json::Value;
use std::collections::BTreeMap;
use tare_model::outcome::Better;

/// Most response times that are kept one by one.
const TIMES_MAX: u64 = 1_000_000;
/// Most seconds of series that are kept.
const SECONDS_MAX: u64 = 1_000_000;

pub(crate) const READER: Reader = Reader {
    name: "locust-json",
    gets_wrong: &[
        "response times are rounded to two digits, and at least to milliseconds",
        "its requests count those that failed, with all their response times",
        "a user that waits for an answer sends nothing meanwhile: response times leave out how long requests should have been sent before",
    ],
    detect: |input| has(input, KEYS) && !input.text.contains(" # reqs "),
    read,
};

const KEYS: &[&[&str]] = &[&["\"num_none_requests\""]];

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut room = Room { times: TIMES_MAX, seconds: SECONDS_MAX };
    each_run(input.text, KEYS, "Locust's statistics", metrics, |metrics, document| {
        of_run(&document, &mut room, metrics);
    });
}

fn of_run(document: &Value, room: &mut Room, metrics: &mut Metrics) {
    if !document.is_array() {
        return metrics.skip(1, "Locust's statistics", "it is no list");
    }
    for entry in document.as_array().into_iter().flatten() {
        one(entry, room, metrics);
    }
    let sum = |key: &str| -> u64 {
        document
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|entry| entry[key].as_u64())
            .fold(0, u64::saturating_add)
    };
    let (requests, failures) = (sum("num_requests"), sum("num_failures"));
    if failures > 0 {
        let text = format!(
            "{failures} of {requests} requests failed, and their response times and number are among the others"
        );
        metrics.warn(
            "tool-counts-failures",
            &text,
            "make the server answer as it should, or give failing requests names of their own",
        );
    }
}

/// How much more is kept, over all kinds of requests.
struct Room {
    times: u64,
    seconds: u64,
}

fn one(entry: &Value, room: &mut Room, metrics: &mut Metrics) {
    let text = |key: &str| entry[key].as_str().unwrap_or_default();
    let name = [text("method"), text("name")].join(" ");
    let benchmark = name.trim();
    let kind = |name, unit, better| Kind { benchmark, name, unit, better };
    let (more, less) = (Some(Better::Higher), Some(Better::Lower));
    let time = kind("response time", "s", less);
    let Some(requests) = entry["num_requests"].as_u64() else {
        return metrics.skip(1, benchmark, "it has no number of requests");
    };
    metrics.sample(0, kind("requests", "req", None), requests as f64);
    let failures = number(&entry["num_failures"]);
    failures.into_iter().for_each(|count| metrics.sample(0, kind("failures", "req", less), count));
    let counts = entry["response_times"].as_object().into_iter().flatten();
    let mut times: Vec<(f64, u64)> =
        counts.filter_map(|(ms, count)| Some((ms.parse::<f64>().ok()?, count.as_u64()?))).collect();
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all = times.iter().map(|(_, count)| *count).fold(0, u64::saturating_add);
    if all <= room.times {
        room.times -= all;
        for (ms, count) in times {
            (0..count).for_each(|_| metrics.sample(0, time, ms / 1e3));
        }
    } else {
        metrics.skip(1, benchmark, "more response times than are kept one by one");
    }
    let total = number(&entry["total_response_time"]).filter(|_| requests > 0);
    if let Some(total) = total {
        metrics.summary(time, "mean", total / requests as f64 / 1e3);
    }
    for (what, key) in [("min", "min_response_time"), ("max", "max_response_time")] {
        number(&entry[key]).into_iter().for_each(|ms| metrics.summary(time, what, ms / 1e3));
    }
    series(&entry["num_reqs_per_sec"], kind("requests per second", "req/s", more), room, metrics);
}

/// The first and the last second were not measured from their beginning to their end.
fn series(counts: &Value, kind: Kind<'_>, room: &mut Room, metrics: &mut Metrics) {
    let counts = counts.as_object().into_iter().flatten();
    let counts: BTreeMap<i64, f64> =
        counts.filter_map(|(second, count)| Some((second.parse().ok()?, number(count)?))).collect();
    let ends = counts.first_key_value().zip(counts.last_key_value());
    let Some(((&first, _), (&last, _))) = ends else { return };
    match room.seconds.checked_sub(last.abs_diff(first)) {
        Some(left) => room.seconds = left,
        None => return metrics.skip(1, kind.name, "more seconds than are kept"),
    }
    for second in first.saturating_add(1)..last {
        let value = counts.get(&second).copied().unwrap_or(0.0);
        metrics.sample(0, kind, Sample { value, at_s: Some((second - first) as f64), ..Sample::default() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_is_as_many_samples_and_seconds_are_a_series() {
        let text = r#"[{"name": "/", "method": "GET", "num_requests": 3, "num_none_requests": 0, "num_failures": 1,
            "total_response_time": 9.0, "response_times": {"10": 1, "2": 2},
            "num_reqs_per_sec": {"100": 1, "103": 2}}]"#;
        let read = READER.read(&Input::of_text(text));
        let of = |name: &str| read.metrics.iter().find(|metric| metric.name == name).unwrap();
        assert_eq!(of("response time").samples, [0.002, 0.002, 0.01]);
        assert_eq!(of("response time").summary["mean"], 0.003);
        assert_eq!(
            (&of("requests per second").samples[..], &of("requests per second").at_s[..]),
            (&[0.0, 0.0][..], &[1.0, 2.0][..])
        );
        assert_eq!(read.warnings[0].id, "tool-counts-failures");
    }

    #[test]
    fn an_endless_histogram_is_said_and_not_kept() {
        let text = r#"[{"name": "/", "num_requests": 3, "num_none_requests": 0, "response_times": {"1": 18446744073709551615, "2": 7},
            "num_reqs_per_sec": {"-9223372036854775808": 1, "9223372036854775807": 2}}]"#;
        let read = READER.read(&Input::of_text(text));
        assert_eq!((read.metrics.len(), read.skipped_count), (1, 2));
    }
}
