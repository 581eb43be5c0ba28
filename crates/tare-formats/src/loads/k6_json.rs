//! [k6](https://k6.io)'s `--out json`: one line for each measurement.

use super::k6_points::{Contains, Holds, Known, Point, Points, built_in};
use super::time::rfc3339;
use crate::metrics::Metrics;
use crate::reader::{Input, Reader};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::HashMap;

/// Most metrics whose kind is remembered.
const KNOWN_MAX: usize = 10_000;

pub(crate) const READER: Reader = Reader {
    name: "k6-json",
    gets_wrong: &[
        "http_req_duration leaves out the time for a connection (http_req_blocked, http_req_connecting), and holds the times of failures",
        "a user that waits for an answer sends nothing meanwhile: percentiles leave out how long requests should have been sent before",
        "the time of a measurement is that at which it ended",
    ],
    detect: |input| {
        // Which of the keys is first was changed by its versions.
        input.head().any(|line| {
            line.starts_with("{\"") && line.contains("\"type\":\"Metric\"") && line.contains("\"contains\":")
                || line.starts_with("{\"")
                    && line.contains("\"type\":\"Point\"")
                    && line.contains("\"metric\":\"")
        })
    },
    read,
};

// An option of a Cow is not borrowed: what may be missing is empty.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    metric: Cow<'a, str>,
    #[serde(borrow)]
    data: Data<'a>,
}

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(borrow, default)]
    time: Cow<'a, str>,
    #[serde(default)]
    value: Option<f64>,
    #[serde(borrow, default)]
    tags: Option<Tags<'a>>,
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    contains: Cow<'a, str>,
}

#[derive(Deserialize, Default)]
struct Tags<'a> {
    #[serde(borrow, default)]
    scenario: Cow<'a, str>,
    #[serde(borrow, default)]
    group: Cow<'a, str>,
    #[serde(borrow, default)]
    status: Cow<'a, str>,
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let (mut points, mut known) = (Points::default(), HashMap::new());
    for (text, number) in input.text.lines().zip(1..) {
        // Lines of a log may stand between.
        if !text.starts_with('{') {
            continue;
        }
        match serde_json::from_str::<Line<'_>>(text) {
            Ok(line) if line.kind == "Metric" => {
                // A run declares each metric once.
                if points.any() && known.contains_key(line.metric.as_ref()) {
                    std::mem::take(&mut points).finish(metrics);
                    metrics.next_launch();
                    known.clear();
                }
                if known.len() < KNOWN_MAX {
                    known.insert(line.metric.into_owned(), of_metric(&line.data.kind, &line.data.contains));
                }
            }
            Ok(line) if line.kind == "Point" => point(number, &line, &known, &mut points, metrics),
            Ok(_) => {}
            Err(why) if why.is_eof() => metrics.skip(number, text, "the line is cut off"),
            Err(_) if !text.contains("\"Point\"") => {}
            Err(why) => metrics.skip(number, text, &format!("it is no measurement of k6: {why}")),
        }
    }
    if !points.any() && metrics.is_empty() {
        metrics.skip(1, "k6", "metrics are declared, and none was measured");
    }
    points.finish(metrics);
}

fn of_metric(kind: &str, contains: &str) -> Known {
    Known {
        holds: match kind {
            "counter" => Holds::Counter,
            "gauge" => Holds::Gauge,
            "rate" => Holds::Rate,
            _ => Holds::Trend,
        },
        contains: match contains {
            "time" => Contains::Time,
            "data" => Contains::Data,
            _ => Contains::Other,
        },
    }
}

fn point(
    number: u64,
    line: &Line<'_>,
    known: &HashMap<String, Known>,
    points: &mut Points,
    metrics: &mut Metrics,
) {
    let other = Known { holds: Holds::Trend, contains: Contains::Other };
    let known = known.get(line.metric.as_ref()).copied().or_else(|| built_in(&line.metric)).unwrap_or(other);
    let Some(value) = line.data.value else {
        return metrics.skip(number, &line.metric, "the measurement has no value");
    };
    let Some(at) = rfc3339(&line.data.time) else {
        return metrics.skip(number, &line.metric, "the measurement has no time");
    };
    let none = Tags::default();
    let tags = line.data.tags.as_ref().unwrap_or(&none);
    let point = Point {
        line: number,
        metric: &line.metric,
        value,
        at,
        scenario: &tags.scenario,
        group: &tags.group,
        status: &tags.status,
    };
    points.add(known, &point, metrics);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> tare_model::tool::ToolMetrics {
        READER.read(&Input::of_text(text))
    }

    fn line(metric: &str, second: &str, value: f64, tags: &str) -> String {
        format!(
            "{{\"metric\":\"{metric}\",\"type\":\"Point\",\"data\":{{\"time\":\"2024-05-01T12:00:{second}Z\",\"value\":{value},\"tags\":{{{tags}}}}}}}\n"
        )
    }

    #[test]
    fn times_are_seconds_and_counters_are_sums() {
        let text = [
            line(
                "http_req_duration",
                "00.5",
                12.5,
                "\"scenario\":\"default\",\"group\":\"\",\"status\":\"200\"",
            ),
            line("http_reqs", "00.5", 1.0, ""),
            line("http_reqs", "02.5", 1.0, ""),
            line("http_reqs", "03.5", 1.0, ""),
            "log line\n".to_owned(),
            line("http_req_duration", "01.75", 7.5, "\"status\":\"503\""),
        ]
        .concat();
        let read = of(&text);
        let found: Vec<_> = read.metrics.iter().map(|m| (m.name.as_str(), m.samples.clone())).collect();
        assert_eq!(
            found,
            [
                ("http_req_duration", vec![0.0125, 0.0075]),
                ("http_reqs", vec![3.0]),
                ("http_reqs per second", vec![0.0, 1.0])
            ]
        );
        assert_eq!(read.metrics[0].at_s, [0.0, 1.25]);
        assert_eq!(read.warnings[0].id, "tool-counts-failures");
    }

    #[test]
    fn scenarios_and_groups_are_benchmarks() {
        let read = of(&[
            line("iteration_duration", "00", 1.0, "\"scenario\":\"a\",\"group\":\"::login\""),
            line("iteration_duration", "00", 1.0, "\"scenario\":\"default\""),
        ]
        .concat());
        let names: Vec<&str> = read.metrics.iter().map(|metric| metric.benchmark.as_str()).collect();
        assert_eq!(names, ["a::login", ""]);
    }

    #[test]
    fn what_is_cut_off_or_has_no_value_is_said() {
        let whole = line("vus", "00", 1.0, "");
        let read = of(&format!("{whole}{}\n{}", whole.replace(":1,", ":null,"), &whole[..60]));
        let lines: Vec<u64> = read.skipped.iter().map(|skipped| skipped.line).collect();
        assert_eq!((lines, read.metrics[0].samples.len()), (vec![2, 4], 1));
    }
}
