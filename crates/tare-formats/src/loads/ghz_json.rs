//! [ghz](https://ghz.sh)'s JSON (`-O json`, `-O pretty`): each call with its time.

use super::time::{rfc3339, seconds_between};
use crate::documents::{has, with_keys};
use crate::json;
use crate::metrics::{Kind, Metrics, Sample};
use crate::reader::{Input, Reader};
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "ghz-json",
    gets_wrong: &[
        "its count and rps hold calls that failed; its average holds their times, and its percentiles do not",
        "calls that are broken off at the end of -z are counted as errors (transport is closing)",
        "with --rps each worker waits for its answer: latencies leave out how long a call should have been sent before",
        "the time of a call is that at which it ended",
    ],
    detect: |input| has(input, KEYS),
    read,
};

const KEYS: &[&[&str]] = &[&["\"endReason\"", "\"load-schedule\"", "\"fastest\""]];

/// Calls are many: they are read apart from the rest.
#[derive(Deserialize)]
struct Report<'a> {
    #[serde(borrow, default)]
    details: Option<Vec<Call<'a>>>,
    #[serde(flatten)]
    rest: serde_json::Map<String, Value>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow, default)]
    timestamp: Cow<'a, str>,
    #[serde(default)]
    latency: Option<f64>,
    #[serde(borrow, default)]
    status: Cow<'a, str>,
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    for document in with_keys(input.text, KEYS) {
        metrics.begin_run(document.line);
        of_run(document.text, metrics);
        metrics.end_run();
    }
}

fn of_run(text: &str, metrics: &mut Metrics) {
    let Report { details, rest: report } = match serde_json::from_str(text) {
        Ok(report) => report,
        Err(why) => {
            let text = match why.is_eof() {
                true => "it ends in the middle: the file is cut off".to_owned(),
                // Its own line is that of the file.
                false => format!(
                    "it is no report of ghz: {}",
                    why.to_string().split(" at line ").next().unwrap_or_default()
                ),
            };
            return metrics.skip(why.line() as u64, "ghz's report", &text);
        }
    };
    let report = Value::Object(report);
    let options = &report["options"];
    for setting in [
        "call",
        "host",
        "concurrency",
        "connections",
        "total",
        "rps",
        "async",
        "duration",
        "CPUs",
        "load-schedule",
    ] {
        if !options[setting].is_null() {
            metrics.set(setting, &json::text(&options[setting]));
        }
    }
    metrics.set("endReason", &json::text(&report["endReason"]));
    let benchmark = report["name"].as_str().or(options["call"].as_str()).unwrap_or_default();
    let kind = |name, unit, better| Kind { benchmark, name, unit, better };
    for (key, name, unit, per_unit, better) in [
        ("count", "count", "call", 1.0, None),
        ("total", "total", "s", 1e9, None),
        ("rps", "rps", "call/s", 1.0, Some(Better::Higher)),
    ] {
        if let Some(value) = json::number(&report[key]) {
            metrics.sample(0, kind(name, unit, better), value / per_unit);
        }
    }
    let latency = kind("latency", "s", Some(Better::Lower));
    let mut summary = |what: &str, ns: &Value| {
        if let Some(ns) = json::number(ns) {
            metrics.summary(latency, what, ns / 1e9);
        }
    };
    for (what, key) in [("mean with failures", "average"), ("min", "fastest"), ("max", "slowest")] {
        summary(what, &report[key]);
    }
    for quantile in report["latencyDistribution"].as_array().into_iter().flatten() {
        summary(&format!("p{}", quantile["percentage"]), &quantile["latency"]);
    }
    let failed = calls(&details.unwrap_or_default(), latency, metrics);
    statuses(&report, failed, metrics);
}

/// Each call; how many failed.
fn calls(details: &[Call<'_>], latency: Kind<'_>, metrics: &mut Metrics) -> u64 {
    let failure = Kind { name: "time until failure", better: None, ..latency };
    let (mut begun, mut failed) = (None, 0);
    for call in details {
        let Some((ns, at)) = call.latency.zip(rfc3339(&call.timestamp)) else {
            metrics.skip(1, &call.timestamp, "the call has no latency or no time");
            continue;
        };
        let at_s = Some(seconds_between(*begun.get_or_insert(at), at));
        let is_good = call.status == "OK";
        failed += u64::from(!is_good);
        let kind = if is_good { latency } else { failure };
        metrics.sample(0, kind, Sample { value: ns / 1e9, at_s, ..Sample::default() });
    }
    if begun.is_none() {
        metrics.skip(1, "details", "it lists no calls: only what ghz made of them is known");
    }
    failed
}

fn statuses(report: &Value, failed: u64, metrics: &mut Metrics) {
    let statuses = report["statusCodeDistribution"].as_object().into_iter().flatten();
    let statuses: BTreeMap<&str, u64> =
        statuses.filter_map(|(status, count)| Some((status.as_str(), count.as_u64()?))).collect();
    for (status, count) in &statuses {
        metrics.set(&format!("status {status}"), &count.to_string());
    }
    let known: u64 = statuses
        .iter()
        .filter(|(status, _)| **status != "OK")
        .map(|(_, count)| *count)
        .fold(0, u64::saturating_add);
    let failed = failed.max(known);
    if failed > 0 {
        let all = json::number(&report["count"]).unwrap_or_default();
        let first = report["errorDistribution"].as_object().and_then(|errors| errors.keys().next());
        let first = first.map_or("no reason is given", String::as_str);
        let text =
            format!("{failed} of {all} calls failed, and count and rps hold them; one reason: {first}");
        metrics.warn("tool-counts-failures", &text, "compare calls that are OK over total");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_failed_are_apart() {
        let read = READER.read(&Input::of_text(include_str!("../../tests/fixtures/ghz-json/rate.json")));
        let count =
            |name: &str| read.metrics.iter().find(|metric| metric.name == name).unwrap().samples.len();
        assert_eq!((count("latency"), count("time until failure")), (28, 1));
        assert!(read.warnings[0].text.starts_with("1 of 29 calls failed"), "{}", read.warnings[0].text);
    }
}
