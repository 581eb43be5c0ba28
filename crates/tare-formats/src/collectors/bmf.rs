//! [Bencher Metric Format](https://bencher.dev/docs/reference/bencher-metric-format/): benchmarks, their measures, and a value of each.

use super::figures::scaled;
use crate::documents::{each_document, has};
use crate::json::{self, number};
use crate::metrics::{Kind, Metrics, Sample};
use crate::reader::{Input, Reader};
use serde_json::Value;
use std::collections::HashSet;
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "bmf",
    gets_wrong: &[
        "there is one value of each measure: how much it varies is in its two bounds at best, and what they mean is not said",
        "units are of the measure's name alone: latency is taken for nanoseconds",
    ],
    // The shape is of few words: all of it must be right, for which it is read.
    detect: |input| {
        has(input, &[KEYS])
            && input.is_json()
            && input.text.trim_start().starts_with('{')
            && json::parse(input.text.trim()).is_ok_and(|document| is_bmf(&document))
    },
    read,
};

const KEYS: &[&str] = &["\"value\""];

/// Objects of objects of objects with a value and its bounds, nothing else, and something that settings of a program have not.
fn is_bmf(document: &Value) -> bool {
    let is_key = |key: &String| matches!(key.as_str(), "value" | "lower_value" | "upper_value");
    let is_measure = |value: &Value| {
        number(&value["value"]).is_some() && value.as_object().is_some_and(|all| all.keys().all(is_key))
    };
    let is_benchmark =
        |value: &Value| value.as_object().is_some_and(|all| !all.is_empty() && all.values().all(is_measure));
    let Some(benchmarks) = document.as_object().filter(|all| !all.is_empty()) else { return false };
    let mut names = HashSet::new();
    let measures = benchmarks.values().filter_map(Value::as_object).flatten();
    let has_sign = measures.fold(false, |found, (name, value)| {
        names.insert(name);
        found || is_measure_name(name) || value.as_object().is_some_and(|keys| keys.len() > 1)
    });
    benchmarks.values().all(is_benchmark) && (has_sign || names.len() > 1)
}

/// Whether it is one of Bencher's own, or has a unit in it.
fn is_measure_name(name: &str) -> bool {
    const UNITS: &str = "s ms us µs ns b kb mb gb kib mib gib bytes";
    let last = name.rsplit([' ', '_', '-']).next().unwrap_or_default().to_lowercase();
    let has_unit = last.len() < name.len() && UNITS.split(' ').any(|unit| unit == last);
    measure(name) != ("", None) || has_unit || name.contains(['/', '%', '(', '['])
}

/// The unit in which Bencher's own measures are, and which way is better.
fn measure(name: &str) -> (&'static str, Option<Better>) {
    match name {
        "latency" => ("ns", Some(Better::Lower)),
        "throughput" => ("op/s", Some(Better::Higher)),
        "build-time" => ("s", Some(Better::Lower)),
        "file-size" | "memory" | "total-bytes" => ("B", Some(Better::Lower)),
        "instructions" | "l1-hits" | "l2-hits" | "l3-hits" | "ram-hits" | "total-read+write"
        | "estimated-cycles" => ("", Some(Better::Lower)),
        _ => ("", None),
    }
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut launch = 0;
    each_document(input.text, &[KEYS], metrics, |metrics, line, document| {
        for (benchmark, measures) in document.as_object().into_iter().flatten() {
            let Some(measures) = measures.as_object() else {
                metrics.skip(line, benchmark, "it has no measures");
                continue;
            };
            for (name, found) in measures {
                let (unit, better) = measure(name);
                let Some(value) = number(&found["value"]) else {
                    metrics.skip(line, &format!("{benchmark} {name}"), "it has no value");
                    continue;
                };
                let (value, base) = scaled(value, unit);
                let kind = Kind { benchmark, name, unit: &base, better };
                metrics.sample(line, kind, Sample { value, launch, ..Sample::default() });
                for bound in ["lower_value", "upper_value"] {
                    let (value, _) = scaled(number(&found[bound]).unwrap_or(f64::NAN), unit);
                    metrics.summary(kind, bound, value);
                }
            }
        }
        launch += 1;
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_other_value_makes_it_no_bmf() {
        let detects = |text| READER.detects(&Input::of_text(text));
        assert!(detects("{\"a\": {\"latency\": {\"value\": 5}}}"));
        assert!(detects("{\"a\": {\"x\": {\"value\": 5, \"upper_value\": 6}}}"));
        assert!(detects("{\"a\": {\"wait (ms)\": {\"value\": 5}}}"));
        assert!(!detects("{\"settings\": {\"font\": {\"value\": 12}}}"));
        assert!(!detects("{\"a\": {\"latency\": {\"value\": 12, \"type\": \"int\"}}}"));
        assert!(!detects("{\"a\": {\"latency\": {\"value\": 5}}, \"b\": 1}"));
        assert!(!detects("{\"a\": {\"latency\": {\"value\": \"x\"}}}"));
    }
}
