//! [k6](https://k6.io)'s summary as JSON: what `--summary-export` and `handleSummary` write.

use super::k6_points::{Contains, Holds, Known, better, better_rate, built_in, in_base, warn};
use crate::documents::{each_run, has};
use crate::json::{self, number};
use crate::metrics::{Kind, Metrics};
use crate::reader::{Input, Reader};
use serde_json::Value;
use tare_model::outcome::Better;

/// Checks may be in groups of groups.
const DEPTH_MAX: usize = 50;

pub(crate) const READER: Reader = Reader {
    name: "k6-summary",
    gets_wrong: &[
        "http_reqs and its rate count requests that failed, also those that never reached a server, over the whole test with its ramps",
        "http_req_duration leaves out the time for a connection, and holds the times of failures",
        "a user that waits for an answer sends nothing meanwhile: percentiles leave out how long requests should have been sent before",
        "--summary-export writes true for a threshold that failed, handleSummary writes ok: false",
    ],
    detect: |input| has(input, KEYS),
    read,
};

const KEYS: &[&[&str]] = &[&["\"metrics\"", "\"root_group\""], &["\"metrics\"", "\"k6_version\""]];

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    each_run(input.text, KEYS, "k6 summary", metrics, |metrics, document| {
        if document["results"]["metrics"].is_array() {
            of_list(&document, metrics);
        } else {
            of_object(&document, metrics);
        }
    });
}

fn of_object(document: &Value, metrics: &mut Metrics) {
    let Some(all) = document["metrics"].as_object() else {
        return metrics.skip(1, "metrics", "it has no metrics");
    };
    if let Some(ms) = number(&document["state"]["testRunDurationMs"]) {
        metrics.set("testRunDurationMs", &ms.to_string());
    }
    for (name, metric) in all {
        one(name, metric, metrics);
        thresholds(name, &metric["thresholds"], metrics);
    }
    checks(&document["root_group"], DEPTH_MAX, metrics);
    let of = |metric: &str, value: &str| {
        let metric = &document["metrics"][metric];
        number(&metric[value]).or_else(|| number(&metric["values"][value])).unwrap_or(0.0)
    };
    let (failed, dropped) = (of("http_req_failed", "passes"), of("dropped_iterations", "count"));
    warn(of("http_reqs", "count") as u64, failed as u64, dropped, metrics);
}

/// The newer form (`--new-machine-readable-summary`): a list, with shares counted as matches, and no rates.
fn of_list(document: &Value, metrics: &mut Metrics) {
    if let Some(seconds) = number(&document["config"]["duration"]) {
        metrics.set("duration", &format!("{seconds} s"));
    }
    metrics.set("k6_version", &json::text(&document["metadata"]["k6_version"]));
    let all = || document["results"]["metrics"].as_array().into_iter().flatten();
    for metric in all() {
        match metric["name"].as_str() {
            Some(name) => one(name, metric, metrics),
            None => metrics.skip(1, "metrics", "a metric has no name"),
        }
    }
    let of = |wanted: &str, value: &str| {
        let metric = all().find(|metric| metric["name"] == wanted);
        metric.and_then(|metric| number(&metric["values"][value])).unwrap_or(0.0)
    };
    let (failed, dropped) = (of("http_req_failed", "matches"), of("dropped_iterations", "count"));
    warn(of("http_reqs", "count") as u64, failed as u64, dropped, metrics);
}

fn one(name: &str, metric: &Value, metrics: &mut Metrics) {
    // --summary-export has the values beside the thresholds, and no type.
    let values = if metric["values"].is_object() { &metric["values"] } else { metric };
    let has = |key: &str| !values[key].is_null();
    let base = name.split('{').next().unwrap_or(name);
    let contains = match metric["contains"].as_str() {
        Some("time") => Contains::Time,
        Some("data") => Contains::Data,
        Some(_) => Contains::Other,
        None => built_in(base).map_or(Contains::Other, |known| known.contains),
    };
    let holds = match () {
        () if has("passes") && has("fails") || has("matches") => Holds::Rate,
        () if metric["type"] == "counter" || has("count") && has("rate") => Holds::Counter,
        () if has("value") => Holds::Gauge,
        () => Holds::Trend,
    };
    let known = Known { holds, contains };
    let mut note = |what: &str, value: f64, unit: &str, better: Option<Better>| {
        metrics.sample(0, Kind { benchmark: "", name: what, unit, better }, value);
    };
    let rate = |key: &str| number(&values[key]);
    let better = better(base, known);
    let mut any = false;
    match holds {
        Holds::Rate => {
            // The share that is true; of http_req_failed that is failures.
            if let Some(value) = rate("value").or_else(|| rate("rate")) {
                note(name, value, "", better);
                any = true;
            }
        }
        Holds::Counter => {
            let (unit, per_second) = match (contains, base) {
                (Contains::Data, _) => ("B", "B/s"),
                (_, "http_reqs") => ("req", "req/s"),
                _ => ("", "1/s"),
            };
            if let Some(value) = rate("count") {
                note(name, value, unit, better);
                any = true;
            }
            if let Some(value) = rate("rate") {
                note(&format!("{name} rate"), value, per_second, better_rate(base, known));
            }
        }
        Holds::Gauge => {
            if let Some(value) = rate("value") {
                note(name, value, "", None);
                any = true;
            }
        }
        // A request that reached no server took 0 s.
        Holds::Trend if base == "http_req_duration" && rate("max") == Some(0.0) => {
            return metrics.skip(1, name, "no request was answered: 0 s is no latency");
        }
        Holds::Trend => {
            for (statistic, value) in values.as_object().into_iter().flatten() {
                if let Some(value) = number(value) {
                    // How many there were is no time.
                    let (value, unit) =
                        if statistic == "count" { (value, "") } else { in_base(known, value) };
                    note(
                        &format!("{name} {statistic}"),
                        value,
                        unit,
                        better.filter(|_| statistic != "count"),
                    );
                    any = true;
                }
            }
        }
    }
    if !any {
        metrics.skip(1, name, "no value that is known");
    }
}

/// `true` is a failure where it stands alone.
fn thresholds(name: &str, thresholds: &Value, metrics: &mut Metrics) {
    for (threshold, verdict) in thresholds.as_object().into_iter().flatten() {
        let failed = verdict.as_bool().or_else(|| verdict["ok"].as_bool().map(|ok| !ok));
        if let Some(failed) = failed {
            let word = if failed { "failed" } else { "passed" };
            metrics.set(&format!("threshold {name} {threshold}"), word);
        }
    }
}

/// Checks of a group and of those in it, as shares that passed. They are objects by name, or a list.
fn checks(group: &Value, depth: usize, metrics: &mut Metrics) {
    fn each(value: &Value) -> impl Iterator<Item = &Value> {
        let by_name = value.as_object().into_iter().flat_map(|all| all.values());
        by_name.chain(value.as_array().into_iter().flatten())
    }
    let path = group["path"].as_str().unwrap_or_default();
    for check in each(&group["checks"]) {
        let counts = number(&check["passes"]).zip(number(&check["fails"]));
        let Some((name, (passes, fails))) = check["name"].as_str().zip(counts) else { continue };
        let name = format!("check {name}");
        let kind = Kind { benchmark: path, name: &name, unit: "", better: Some(Better::Higher) };
        if passes + fails > 0.0 {
            metrics.sample(0, kind, passes / (passes + fails));
        } else {
            metrics.skip(1, &name, "the check was never made");
        }
    }
    if depth > 0 {
        each(&group["groups"]).for_each(|group| checks(group, depth - 1, metrics));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_true_of_a_threshold_is_a_failure_and_ok_is_none() {
        let text = r#"{"root_group":{},"metrics":{
            "http_req_duration":{"avg":2.5,"p(95)":5,"thresholds":{"p(95)<1":true}},
            "own":{"type":"trend","contains":"default","values":{"avg":2.5},"thresholds":{"avg<3":{"ok":true}}}}}"#;
        let read = READER.read(&Input::of_text(text));
        let verdicts: Vec<&str> = read.configuration.values().map(String::as_str).collect();
        assert_eq!(verdicts, ["failed", "passed"]);
        let found: Vec<_> =
            read.metrics.iter().map(|m| (m.name.as_str(), m.unit.as_str(), m.samples[0])).collect();
        assert_eq!(
            found,
            [
                ("http_req_duration avg", "s", 0.0025),
                ("http_req_duration p(95)", "s", 0.005),
                ("own avg", "", 2.5)
            ]
        );
    }

    #[test]
    fn a_counter_of_the_script_may_count_anything() {
        let text = r#"{"root_group":{},"metrics":{"dropped_iterations":{"count":2,"rate":1.5},
            "http_reqs{status:200}":{"count":2,"rate":1.5},"login_errors":{"count":2,"rate":1.5}}}"#;
        let read = READER.read(&Input::of_text(text));
        let rates = read.metrics.iter().filter(|metric| metric.name.ends_with(" rate"));
        let better: Vec<_> = rates.map(|metric| (metric.name.as_str(), metric.better)).collect();
        assert_eq!(
            better,
            [
                ("dropped_iterations rate", Some(Better::Lower)),
                ("http_reqs{status:200} rate", Some(Better::Higher)),
                ("login_errors rate", None)
            ]
        );
    }

    #[test]
    fn what_is_cut_off_says_so() {
        let text = "{\"root_group\": {}, \"metrics\": {\"a\": {\"value\": 1}";
        assert!(READER.read(&Input::of_text(text)).skipped[0].why.contains("cut off"));
    }
}
