//! [asv](https://asv.readthedocs.io) (airspeed velocity): a file of `results/MACHINE/`, of versions 1 and 2.

use super::fields::{self, Launches};
use crate::documents::{each_whole_document, has};
use crate::json;
use crate::metrics::{Kind, Metrics, Sample};
use crate::reader::{Input, Reader};
use serde_json::Value;
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "asv",
    gets_wrong: &[
        "a result is the median of all samples: those of one process are not independent, and processes differ by more",
        "without --record-samples only the median, quartiles and an interval are kept",
        "the file has no units: what track_ benchmarks count is only in benchmarks.json",
        "results of several rounds (--interleave-rounds) and processes are in one list: which sample is of which process is lost",
    ],
    detect: |input| has(input, &[SECOND, FIRST]) || has(input, &[OLD]) && input.text.contains("\"env_name\""),
    read,
};

/// Keys of a file of version 2, of version 1, and of one that was written before `started_at` was.
const SECOND: &[&str] = &["\"commit_hash\"", "\"results\"", "\"requirements\"", "\"result_columns\""];
const FIRST: &[&str] =
    &["\"commit_hash\"", "\"results\"", "\"requirements\"", "\"started_at\"", "\"ended_at\""];
const OLD: &[&str] = &["\"commit_hash\"", "\"results\"", "\"requirements\"", "\"profiles\""];

/// What asv says of each combination of parameters beside the result, in version 2, and how that is called here.
const STATISTICS: [(&str, &str); 6] = [
    ("stats_ci_99_a", "ci99 lower"),
    ("stats_ci_99_b", "ci99 upper"),
    ("stats_q_25", "p25"),
    ("stats_q_75", "p75"),
    ("stats_number", "number"),
    ("stats_repeat", "repeat"),
];

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut launches = Launches::default();
    let keys: &[&[&str]] = &[&["\"result_columns\""], &["\"commit_hash\""]];
    each_whole_document(input.text, keys, metrics, |metrics, line, file| {
        let Some(results) = file["results"].as_object() else { return };
        let columns: Vec<&str> =
            file["result_columns"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (name, result) in results {
            let result = Result { name, result, columns: &columns };
            result.read(line, &mut launches, metrics);
        }
        fields::set_all(metrics, "", &file["params"]);
        fields::set_all(metrics, "requirements", &file["requirements"]);
        for setting in ["commit_hash", "env_name", "python", "date", "version"] {
            if fields::is_plain(&file[setting]) {
                metrics.set(setting, &json::text(&file[setting]));
            }
        }
    });
}

/// One benchmark.
struct Result<'a> {
    name: &'a str,
    result: &'a Value,
    columns: &'a [&'a str],
}

impl<'a> Result<'a> {
    /// A column of version 2 or a field of version 1; `Null` where there is none.
    fn field(&self, name: &str) -> &'a Value {
        match self.result {
            Value::Array(values) => {
                let at = self.columns.iter().position(|column| *column == name);
                at.and_then(|at| values.get(at)).unwrap_or(&Value::Null)
            }
            other => &other[name],
        }
    }

    fn read(&self, line: u64, launches: &mut Launches, metrics: &mut Metrics) {
        let is_bare = self.result.is_number();
        let results = if is_bare { self.result } else { self.field("result") };
        if results.is_null() {
            return metrics.skip(line, self.name, "the benchmark failed, or was skipped");
        }
        let results = results.as_array().map_or(std::slice::from_ref(results), Vec::as_slice);
        let names = combinations(self.field("params"), results.len());
        for (at, result) in results.iter().enumerate() {
            let benchmark = match names.get(at).filter(|name| !name.is_empty()) {
                Some(parameters) => format!("{}({parameters})", self.name),
                None => self.name.to_owned(),
            };
            let kind = Kind { benchmark: &benchmark, ..usual(self.name) };
            let launch = launches.next(&benchmark, 1);
            let samples = self.field("samples")[at].as_array();
            let value = json::number(result);
            match (samples, value) {
                (Some(samples), _) if !samples.is_empty() => {
                    for value in samples {
                        let value = json::number(value).unwrap_or(f64::NAN);
                        metrics.sample(line, kind, Sample { value, launch, ..Sample::default() });
                    }
                }
                (_, Some(value)) if value.is_nan() => {
                    metrics.skip(line, &benchmark, "asv has no value for these parameters: not applicable");
                }
                (_, Some(value)) => metrics.sample(line, kind, Sample { value, launch, ..Sample::default() }),
                (_, None) => metrics.skip(line, &benchmark, "it failed with these parameters"),
            }
            if value.is_some_and(f64::is_finite) {
                self.statistics(at, kind, metrics);
            }
        }
    }

    fn statistics(&self, at: usize, kind: Kind<'_>, metrics: &mut Metrics) {
        for (column, name) in STATISTICS {
            if let Some(value) = json::number(&self.field(column)[at]) {
                metrics.summary(kind, name, value);
            }
        }
        let first = &self.field("stats")[at];
        for (field, name) in [("q_25", "p25"), ("q_75", "p75"), ("number", "number"), ("repeat", "repeat")] {
            if let Some(value) = json::number(&first[field]) {
                metrics.summary(kind, name, value);
            }
        }
        for (at, name) in [(0, "ci99 lower"), (1, "ci99 upper")] {
            if let Some(value) = json::number(&first["ci_99"][at]) {
                metrics.summary(kind, name, value);
            }
        }
    }
}

/// What a benchmark of this name measures; the name's first part says it.
fn usual(name: &str) -> Kind<'static> {
    let method = name.rsplit('.').next().unwrap_or_default();
    let kind = |name, unit, better| Kind { benchmark: "", name, unit, better };
    let lower = Some(Better::Lower);
    match method.split_once('_').map_or(method, |(first, _)| first).to_ascii_lowercase().as_str() {
        "time" | "timeraw" => kind("time", "s", lower),
        "mem" => kind("mem", "B", lower),
        "peakmem" => kind("peakmem", "B", lower),
        "track" => kind("track", "", None),
        _ if method.starts_with("Time") => kind("time", "s", lower),
        _ => kind("result", "", None),
    }
}

/// The parameters of each result: the last list changes the fastest.
fn combinations(parameters: &Value, count: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    for list in parameters.as_array().into_iter().flatten() {
        let values: Vec<String> = list.as_array().into_iter().flatten().map(json::text).collect();
        // No more than results: what a broken file multiplies to has no end.
        all = all
            .iter()
            .flat_map(|begun| {
                let join = if begun.is_empty() { "" } else { ", " };
                values.iter().map(move |value| format!("{begun}{join}{value}"))
            })
            .take(count)
            .collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(results: &str) -> tare_model::tool::ToolMetrics {
        let text = format!(
            r#"{{"commit_hash": "a", "requirements": {{}}, "result_columns": ["result", "params", "stats_q_25", "samples"], "results": {results}, "version": 2}}"#
        );
        assert!(READER.detects(&Input::of_text(&text)));
        READER.read(&Input::of_text(&text))
    }

    #[test]
    fn each_combination_of_parameters_is_a_benchmark() {
        let read = of(
            r#"{"m.time_a": [[1, 2, NaN, null], [["1", "2"], ["'x'", "'y'"]], [0.5, 1.5, null, null], [[1, 1.5], null, null, null]]}"#,
        );
        let found: Vec<_> = read
            .metrics
            .iter()
            .map(|m| (m.benchmark.as_str(), m.samples.clone(), m.summary["p25"]))
            .collect();
        assert_eq!(found, [("m.time_a(1, 'x')", vec![1.0, 1.5], 0.5), ("m.time_a(1, 'y')", vec![2.0], 1.5)]);
        let skipped: Vec<&str> = read.skipped.iter().map(|skipped| skipped.what.as_str()).collect();
        assert_eq!(skipped, ["m.time_a(2, 'x')", "m.time_a(2, 'y')"]);
    }

    #[test]
    fn many_parameters_of_few_results_end() {
        let lists = vec!["[\"1\", \"2\", \"3\"]"; 60].join(",");
        let read = of(&format!(r#"{{"m.track_a": [[1], [{lists}]], "m.time_b": null}}"#));
        assert_eq!((read.metrics.len(), read.metrics[0].unit.as_str(), read.skipped_count), (1, "", 1));
    }
}
