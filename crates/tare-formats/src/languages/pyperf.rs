//! [pyperf](https://pyperf.readthedocs.io): what `-o FILE` writes.

use super::fields::{self, Launches};
use crate::documents::{each_whole_document, has};
use crate::json;
use crate::metrics::{Kind, Metrics, Sample};
use crate::reader::{Input, Reader};
use serde_json::Value;
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "pyperf",
    gets_wrong: &[
        "a value is the mean of so many loops: one slow call is not seen",
        "its mean and standard deviation are over the values of all processes as if each were independent: values of one process are not",
        "how many loops a value has is found in the first process, once: where that was disturbed, all values are too short or too long",
    ],
    detect: is_ours,
    read,
};

/// A suite has its benchmarks, and these their runs.
fn is_ours(input: &Input<'_>) -> bool {
    let values: &[&str] = &["\"benchmarks\"", "\"runs\"", "\"metadata\"", "\"values\""];
    let warm_ups: &[&str] = &["\"benchmarks\"", "\"runs\"", "\"metadata\"", "\"warmups\""];
    has(input, &[values, warm_ups]) && !has(input, &[&["\"machine_info\""]])
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut launches = Launches::default();
    let keys: &[&[&str]] = &[&["\"benchmarks\""], &["\"runs\""]];
    each_whole_document(input.text, keys, metrics, |metrics, line, document| {
        let common = &document["metadata"];
        let benchmarks: Vec<&Value> = document["benchmarks"].as_array().into_iter().flatten().collect();
        for (at, benchmark) in benchmarks.iter().enumerate() {
            // A benchmark without a name of its own has that of the suite, or none.
            let named = [&benchmark["metadata"]["name"], &common["name"]];
            let name = named.into_iter().find_map(Value::as_str).map(str::to_owned);
            let name = name.unwrap_or_else(|| if at == 0 { String::new() } else { format!("#{}", at + 1) });
            one(line, &name, benchmark, common, &mut launches, metrics);
        }
        if !benchmarks.is_empty() {
            fields::set_all(metrics, "", common);
            if fields::is_plain(&document["version"]) {
                metrics.set("version", &json::text(&document["version"]));
            }
        }
    });
}

/// What a unit of pyperf's is in base units, and what is measured in it.
fn measured(unit: Option<&str>) -> (&'static str, &'static str) {
    match unit {
        None | Some("second") => ("time", "s"),
        Some("byte") => ("memory", "B"),
        Some(_) => ("value", ""),
    }
}

fn one(
    line: u64,
    name: &str,
    benchmark: &Value,
    common: &Value,
    launches: &mut Launches,
    metrics: &mut Metrics,
) {
    let metadata = &benchmark["metadata"];
    let runs: Vec<&Value> = benchmark["runs"].as_array().into_iter().flatten().collect();
    let unit = [&metadata["unit"], &common["unit"]].into_iter().find_map(Value::as_str);
    let (what, base) = measured(unit);
    // Of numbers it is not known what they are of.
    let better = (what != "value").then_some(Better::Lower);
    let kind = Kind { benchmark: name, name: what, unit: base, better };
    let mut first_run = None;
    for run in &runs {
        // A run that has found out how many loops to take has warm-ups alone.
        let Some(values) = run["values"].as_array().filter(|values| !values.is_empty()) else { continue };
        let launch = launches.next(name, 1);
        for value in values {
            let value = json::number(value).unwrap_or(f64::NAN);
            metrics.sample(line, kind, Sample { value, launch, ..Sample::default() });
        }
        for name in ["mem_max_rss", "command_max_rss"] {
            if let Some(value) = json::number(&run["metadata"][name]) {
                let kind = Kind { name, unit: "B", better: Some(Better::Lower), ..kind };
                metrics.sample(line, kind, Sample { value, launch, ..Sample::default() });
            }
        }
        first_run.get_or_insert(&run["metadata"]);
    }
    let Some(run) = first_run else {
        return metrics.skip(line, name, "no run of it has values: only the number of loops was found");
    };
    fields::set_all_of(metrics, kind, metadata);
    // What else is said of a run (its date, the machine's load) is not of all.
    for setting in ["loops", "inner_loops", "cpu_affinity"] {
        if fields::is_plain(&run[setting]) {
            metrics.set_of(kind, setting, &json::text(&run[setting]));
        }
    }
    let warm_ups: usize = runs.iter().filter_map(|run| run["warmups"].as_array()).map(Vec::len).sum();
    if let Some(said) = fields::left_out(warm_ups) {
        metrics.set_of(kind, fields::LEFT_OUT, &said);
    }
    let warm_ups = |run: &&Value| run["values"].is_array() && run["warmups"].is_array();
    let is_warmed = runs.iter().any(warm_ups);
    if !is_warmed && what == "time" {
        metrics.warn(
            "tool-measures-cold",
            &format!("{name}: no run had a warm-up: its first value has what is done only once in a process"),
            "leave -w as it is, or give -w 1",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUITE: &str = r#"{"benchmarks": [
        {"metadata": {"name": "a", "loops": 8}, "runs": [
            {"warmups": [[8, 9.0]]}, {"values": [1.0, 2.0], "warmups": [[8, 5.0]]}, {"values": [3.0], "warmups": [[8, 5.0]]}]},
        {"metadata": {"name": "b", "unit": "byte"}, "runs": [{"values": [10]}]},
        {"metadata": {"name": "c"}, "runs": [{"warmups": [[1, 1.0]]}]}
    ], "metadata": {"python_version": "3.12"}, "version": "1.0"}"#;

    #[test]
    fn runs_with_values_are_launches_and_warm_ups_are_no_samples() {
        let read = READER.read(&Input::of_text(SUITE));
        let found: Vec<_> = read
            .metrics
            .iter()
            .map(|m| (m.benchmark.as_str(), m.unit.as_str(), m.samples.clone(), m.launches.clone()))
            .collect();
        assert_eq!(found, [("a", "s", vec![1.0, 2.0, 3.0], vec![0, 0, 1]), ("b", "B", vec![10.0], vec![0])]);
        assert_eq!(read.skipped[0].what, "c");
        assert_eq!(read.metrics[0].configuration["left out"], "3 warm-up iterations, which are not results");
        assert_eq!(read.metrics[1].configuration.get("left out"), None);
    }

    #[test]
    fn of_plain_numbers_it_is_not_known_which_way_is_better() {
        let read = READER.read(&Input::of_text(
            r#"{"benchmarks": [{"metadata": {"name": "a", "unit": "integer"}, "runs": [{"metadata": {"mem_max_rss": 9}, "values": [3]}]}]}"#,
        ));
        let found: Vec<_> = read.metrics.iter().map(|m| (m.name.as_str(), m.better)).collect();
        assert_eq!(found, [("value", None), ("mem_max_rss", Some(Better::Lower))]);
    }
}
