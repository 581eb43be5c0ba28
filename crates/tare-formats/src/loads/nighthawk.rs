//! [Nighthawk](https://github.com/envoyproxy/nighthawk)'s JSON (`--output-format json`), as `api/client/output.proto` describes it.

use crate::documents::{each_run, has};
use crate::json::{self, number};
use crate::metrics::{Kind, Metrics};
use crate::reader::{Input, Reader};
use serde_json::Value;
use tare_model::outcome::Better;

/// Of its many percentiles the ones at or just above these are metrics.
const WANTED: [f64; 6] = [0.5, 0.9, 0.95, 0.99, 0.999, 1.0];

pub(crate) const READER: Reader = Reader {
    name: "nighthawk",
    gets_wrong: &[
        "unless --open-loop is given, a request that is due while all connections are busy is not sent: latencies leave that out \
         (sequencer.blocking counts it)",
        "request_to_response leaves out the time in which a request waits for a connection (queue_to_connect)",
        "its connection limit is of each worker, and --rps too",
    ],
    detect: |input| has(input, KEYS),
    read,
};

const KEYS: &[&[&str]] = &[
    &["\"statistics\"", "\"percentile\"", "\"benchmark_http_client."],
    &["\"statistics\"", "\"percentile\"", "\"sequencer."],
];

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    each_run(input.text, KEYS, "Nighthawk's output", metrics, |metrics, output| {
        of_run(&output, metrics);
    });
}

fn of_run(output: &Value, metrics: &mut Metrics) {
    for (setting, value) in output["options"].as_object().into_iter().flatten() {
        if !value.is_object() && !value.is_array() {
            metrics.set(setting, &json::text(value));
        }
    }
    let results = || output["results"].as_array().into_iter().flatten();
    if results().next().is_none() {
        metrics.skip(1, "results", "it has no results");
    }
    for result in results() {
        // Of several workers there is one result each, and one of all.
        let name = result["name"].as_str().unwrap_or_default();
        let benchmark = if name == "global" { "" } else { name };
        let duration = either(result, "execution_duration", "executionDuration");
        let seconds = duration.as_str().and_then(seconds).filter(|seconds| *seconds > 0.0);
        counters(result, benchmark, seconds, metrics);
        for statistic in result["statistics"].as_array().into_iter().flatten() {
            one(statistic, benchmark, metrics);
        }
    }
}

/// A key as the file has it, or as protobuf's own JSON would.
fn either<'v>(value: &'v Value, snake: &str, camel: &str) -> &'v Value {
    if value[snake].is_null() { &value[camel] } else { &value[snake] }
}

/// `0.000059131s`.
fn seconds(text: &str) -> Option<f64> {
    text.strip_suffix('s')?.parse().ok().filter(|seconds: &f64| seconds.is_finite())
}

fn counters(result: &Value, benchmark: &str, seconds: Option<f64>, metrics: &mut Metrics) {
    if let Some(seconds) = seconds {
        metrics.sample(0, Kind { benchmark, name: "execution_duration", unit: "s", better: None }, seconds);
    }
    let (mut failed, mut overflow) = (0.0, 0.0);
    for counter in result["counters"].as_array().into_iter().flatten() {
        // Whole numbers of 64 bits are strings in protobuf's JSON.
        let Some((name, value)) = counter["name"].as_str().zip(number(&counter["value"])) else {
            metrics.skip(1, &counter.to_string(), "the counter has no name or no value");
            continue;
        };
        let better = match name {
            "benchmark.http_2xx" => Some(Better::Higher),
            "benchmark.http_4xx"
            | "benchmark.http_5xx"
            | "benchmark.pool_connection_failure"
            | "benchmark.stream_resets" => {
                failed += value;
                Some(Better::Lower)
            }
            "benchmark.pool_overflow" => {
                overflow += value;
                Some(Better::Lower)
            }
            _ => None,
        };
        let unit = if name.ends_with("_bytes_total") { "B" } else { "" };
        metrics.sample(0, Kind { benchmark, name, unit, better }, value);
        if let Some(seconds) = seconds.filter(|_| name == "benchmark.http_2xx") {
            let kind = Kind { benchmark, name: "benchmark.http_2xx per second", unit: "req/s", better };
            metrics.sample(0, kind, value / seconds);
        }
    }
    if failed > 0.0 {
        let text = format!(
            "{failed} requests failed: a status of 4xx or 5xx, a lost connection or a stream that was reset"
        );
        metrics.warn("tool-counts-failures", &text, "read latency_2xx, which is of successes alone");
    }
    if overflow > 0.0 {
        let text = format!(
            "{overflow} requests were not sent, for all connections were busy: no latency has their waiting"
        );
        metrics.warn(
            "tool-percentiles-omit-waiting",
            &text,
            "give more --connections, or ask for a lower --rps",
        );
    }
}

fn one(statistic: &Value, benchmark: &str, metrics: &mut Metrics) {
    let Some(id) = statistic["id"].as_str() else {
        return metrics.skip(1, "statistics", "a statistic has no id");
    };
    let count = number(&statistic["count"]).unwrap_or_default();
    if id == "sequencer.blocking" && count > 0.0 {
        let text =
            format!("{count} times a request was due and could not be sent: no latency has this waiting");
        metrics.warn("tool-percentiles-omit-waiting", &text, "use --open-loop, or ask for a lower --rps");
    }
    if count == 0.0 {
        // Nothing of this kind happened.
        return;
    }
    // Sizes have raw values, times have a duration.
    let value = |of: &Value, duration: &str, raw: [&str; 2]| {
        let time = of[duration].as_str().and_then(seconds).map(|seconds| (seconds, "s"));
        time.or_else(|| number(either(of, raw[0], raw[1])).map(|value| (value, "B")))
    };
    let mut note = |what: &str, figure: Option<(f64, &str)>| {
        if let Some((value, unit)) = figure {
            let better = (unit == "s").then_some(Better::Lower);
            metrics.sample(0, Kind { benchmark, name: &format!("{id} {what}"), unit, better }, value);
        }
    };
    note("mean", value(statistic, "mean", ["raw_mean", "rawMean"]));
    note("min", value(statistic, "min", ["raw_min", "rawMin"]));
    note("stdev", value(statistic, "pstdev", ["raw_pstdev", "rawPstdev"]));
    let percentiles = statistic["percentiles"].as_array().into_iter().flatten();
    let mut percentiles: Vec<(f64, (f64, &str))> = percentiles
        .filter_map(|entry| {
            let figure = value(entry, "duration", ["raw_value", "rawValue"])?;
            Some((number(&entry["percentile"]).unwrap_or_default(), figure))
        })
        .collect();
    percentiles.sort_by(|a, b| a.0.total_cmp(&b.0));
    for wanted in WANTED {
        let Some((percentile, figure)) = percentiles.iter().find(|(percentile, _)| *percentile >= wanted)
        else {
            continue;
        };
        match *percentile >= 1.0 {
            true if wanted < 1.0 => {}
            true => note("max", Some(*figure)),
            false => note(&format!("p{}", (percentile * 1e8).round() / 1e6), Some(*figure)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_named_as_the_tool_has_them() {
        let read = READER
            .read(&Input::of_text(include_str!("../../tests/fixtures/nighthawk/documented_output.json")));
        let of = |name: &str| {
            read.metrics.iter().find(|metric| metric.name == name).map(|metric| metric.samples[0])
        };
        assert_eq!(of("benchmark_http_client.request_to_response p99.0625"), Some(0.000_084_2));
        assert_eq!(of("benchmark_http_client.request_to_response max"), Some(0.002_1));
        assert_eq!(of("benchmark_http_client.response_body_size mean"), Some(10.0));
        assert_eq!(of("benchmark.http_2xx per second"), Some(300.0));
        assert_eq!(of("benchmark_http_client.latency_5xx mean"), None);
        assert!(read.warnings.iter().any(|warning| warning.id == "tool-percentiles-omit-waiting"));
    }
}
