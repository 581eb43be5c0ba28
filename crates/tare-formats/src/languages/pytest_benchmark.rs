//! [pytest-benchmark](https://pytest-benchmark.readthedocs.io): what `--benchmark-json`, `--benchmark-save` and
//! `--benchmark-autosave` write.

use super::fields::{self, Launches};
use crate::documents::{each_whole_document, has};
use crate::json;
use crate::metrics::{Kind, Metrics, Sample};
use crate::reader::{Input, Reader};
use serde_json::Value;
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "pytest-benchmark",
    gets_wrong: &[
        "all rounds are of one process: they are not independent, and their spread is less than that of two runs",
        "a round of several iterations is their mean: one slow call is not seen",
        "min and ops draw the eye: the first is the luckiest round, the second one over the mean, which one slow round moves",
        "a benchmark that failed is not in the file at all",
    ],
    detect: |input| has(input, &[&["\"machine_info\"", "\"commit_info\"", "\"benchmarks\""]]),
    read,
};

/// What is given instead of rounds, and in which unit it is.
const AGGREGATES: [&str; 8] = ["median", "mean", "min", "max", "stddev", "iqr", "q1", "q3"];

/// Reading the clock takes some 50 ns: 5 % of this.
const SHORT_S: f64 = 1e-6;

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut launches = Launches::default();
    let keys: &[&[&str]] = &[&["\"machine_info\""], &["\"benchmarks\""]];
    each_whole_document(input.text, keys, metrics, |metrics, line, document| {
        let Some(benchmarks) = document["benchmarks"].as_array() else { return };
        for benchmark in benchmarks {
            one(line, benchmark, &mut launches, metrics);
        }
        let machine = &document["machine_info"];
        fields::set_all(metrics, "", machine);
        fields::set_all(metrics, "cpu", &machine["cpu"]);
        fields::set_all(metrics, "commit", &document["commit_info"]);
        for setting in ["datetime", "version"] {
            if fields::is_plain(&document[setting]) {
                metrics.set(setting, &json::text(&document[setting]));
            }
        }
        if benchmarks.is_empty() {
            metrics.skip(line, "benchmarks", "no benchmark is in it: all failed, or none was chosen");
        }
    });
}

fn one(line: u64, benchmark: &Value, launches: &mut Launches, metrics: &mut Metrics) {
    let name = ["fullname", "name"].into_iter().find_map(|field| benchmark[field].as_str());
    let name = name.unwrap_or_default();
    let stats = &benchmark["stats"];
    let launch = launches.next(name, 1);
    let time = |name: &'static str| Kind { benchmark: "", name, unit: "s", better: Some(Better::Lower) };
    let kind = Kind { benchmark: name, ..time("time") };
    let data = stats["data"].as_array().filter(|data| !data.is_empty());
    for value in data.into_iter().flatten() {
        let value = json::number(value).unwrap_or(f64::NAN);
        metrics.sample(line, kind, Sample { value, launch, ..Sample::default() });
    }
    let mut described = kind;
    if data.is_none() {
        let mut is_any = false;
        for aggregate in AGGREGATES {
            let Some(value) = json::number(&stats[aggregate]) else { continue };
            let kind = Kind { benchmark: name, ..time(aggregate) };
            metrics.sample(line, kind, Sample { value, launch, ..Sample::default() });
            described = if is_any { described } else { kind };
            is_any = true;
        }
        if !is_any {
            return metrics.skip(line, name, "neither rounds nor statistics are in it: the benchmark failed");
        }
        metrics.warn(
            "tool-drops-samples",
            &format!("{name}: only statistics were saved, of {} rounds", json::text(&stats["rounds"])),
            "save the rounds: --benchmark-json=FILE, or --benchmark-save-data with --benchmark-save",
        );
    }
    for setting in ["rounds", "iterations"] {
        if fields::is_plain(&stats[setting]) {
            metrics.set_of(described, setting, &json::text(&stats[setting]));
        }
    }
    for settings in ["options", "params", "extra_info"] {
        fields::set_all_of(metrics, described, &benchmark[settings]);
    }
    if fields::is_plain(&benchmark["group"]) {
        metrics.set_of(described, "group", &json::text(&benchmark["group"]));
    }
    let round = json::number(&stats["median"]).zip(json::number(&stats["iterations"]));
    if let Some((median, iterations)) = round.filter(|(median, iterations)| median * iterations < SHORT_S) {
        metrics.warn(
            "tool-times-the-clock",
            &format!(
                "{name}: a round of {iterations} iterations takes {:.0} ns: reading the clock is a part of that",
                median * iterations * 1e9
            ),
            "give it more iterations a round (benchmark.pedantic(…, iterations=1000)) or more work",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(benchmark: &str) -> tare_model::tool::ToolMetrics {
        let text = format!(r#"{{"machine_info": {{}}, "commit_info": {{}}, "benchmarks": [{benchmark}]}}"#);
        assert!(READER.detects(&Input::of_text(&text)));
        READER.read(&Input::of_text(&text))
    }

    #[test]
    fn rounds_are_samples_and_not_the_statistics() {
        let read = of(
            r#"{"fullname": "t.py::a[1]", "params": {"n": 1}, "stats": {"mean": 2.0, "data": [1.0, NaN, 3.0]}}"#,
        );
        let metric = &read.metrics[0];
        assert_eq!((metric.samples.as_slice(), read.metrics.len()), ([1.0, 3.0].as_slice(), 1));
        assert_eq!((read.skipped_count, metric.configuration["n"].as_str()), (1, "1"));
    }

    #[test]
    fn statistics_alone_are_metrics_of_their_own() {
        let read =
            of(r#"{"name": "a", "stats": {"mean": 2e-7, "median": 1e-7, "rounds": 9, "iterations": 1}}"#);
        let names: Vec<&str> = read.metrics.iter().map(|metric| metric.name.as_str()).collect();
        assert_eq!(names, ["median", "mean"]);
        let ids: Vec<&str> = read.warnings.iter().map(|warning| warning.id.as_ref()).collect();
        assert_eq!(ids, ["tool-drops-samples", "tool-times-the-clock"]);
    }

    #[test]
    fn a_benchmark_without_figures_is_skipped() {
        assert_eq!(of(r#"{"name": "a", "stats": {}}"#).skipped_count, 1);
        assert_eq!(of("").skipped_count, 1);
    }
}
