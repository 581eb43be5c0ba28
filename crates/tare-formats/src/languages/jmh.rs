//! [JMH](https://github.com/openjdk/jmh): what `-rf json`, `-rf csv` and `-rf scsv` write, and its log where there is none of them.

use super::fields::{self, Launches};
use super::{jmh_csv, jmh_log};
use crate::documents::{has, whole_documents};
use crate::json;
use crate::metrics::{Kind, Metrics, Sample};
use crate::reader::{Input, Reader};
use crate::units::in_base;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "jmh",
    gets_wrong: &[
        "scoreError takes all iterations of all forks as independent and normally distributed: forks differ by more than their iterations do, and it is too small",
        "a benchmark that failed is not in the file at all: only the log says so",
        "a value of thrpt and avgt is a mean over an iteration: one slow call is not seen",
        "its log and its table round to three decimals, and the table has no values of iterations: -rf json has both",
        "sample mode takes the time of some calls only, in a histogram with steps of about 0.2 %, with the cost of the clock in each",
    ],
    detect: |input| {
        has(input, &[&["\"primaryMetric\"", "\"scoreUnit\"", "\"benchmark\"", "\"mode\""]])
            || input.head().any(|line| jmh_csv::separator(line).is_some() || jmh_log::begins(line))
    },
    read,
};

/// Of a histogram no more are kept, over all forks of a result: a thinned one has the same quantiles.
const HISTOGRAM_MAX: u64 = 200_000;

/// Settings of a result beside its parameters.
const SETTINGS: [&str; 16] = [
    "jmhVersion",
    "jvm",
    "jdkVersion",
    "vmName",
    "vmVersion",
    "threads",
    "forks",
    "mode",
    "warmupIterations",
    "warmupTime",
    "warmupBatchSize",
    "measurementIterations",
    "measurementTime",
    "measurementBatchSize",
    "jvmArgs",
    fields::LEFT_OUT,
];

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let keys: &[&[&str]] = &[&["\"primaryMetric\""], &["\"jmhVersion\""]];
    let documents = whole_documents(input.text, keys, metrics);
    let mut results = Vec::new();
    for (line, document) in &documents {
        let all = document.as_array().map_or(std::slice::from_ref(document), Vec::as_slice);
        let ours = all.iter().filter(|result| result["primaryMetric"].is_object());
        results.extend(ours.map(|result| (*line, result)));
    }
    let rows = jmh_csv::results(input.text, metrics);
    results.extend(rows.iter().map(|(line, result)| (*line, result)));
    // What is printed has the same results with fewer digits.
    let printed = if results.is_empty() { jmh_log::results(input.text, metrics) } else { Vec::new() };
    results.extend(printed.iter().map(|(line, result)| (*line, result)));
    let names = Names::of(&results);
    let mut launches = Launches::default();
    for (line, result) in results {
        one(line, result, &names, &mut launches, metrics);
    }
}

/// What the names of benchmarks must say so that no two results have the same.
#[derive(Default)]
struct Names {
    /// Settings that are not the same in all results.
    differing: Vec<&'static str>,
    /// The modes of each benchmark.
    modes: HashMap<String, BTreeSet<String>>,
}

impl Names {
    fn of(results: &[(u64, &Value)]) -> Names {
        let is_different = |name: &str| results.windows(2).any(|two| two[0].1[name] != two[1].1[name]);
        let differing =
            ["threads", "jdkVersion", "vmName", "jvmArgs"].into_iter().filter(|name| is_different(name));
        let mut names = Names { differing: differing.collect(), modes: HashMap::new() };
        for (_, result) in results {
            let mode = json::text(&result["mode"]);
            names.modes.entry(names.benchmark(result)).or_default().insert(mode);
        }
        names
    }

    /// The method with its parameters, and what differs from other results.
    fn benchmark(&self, result: &Value) -> String {
        let mut name = json::text(&result["benchmark"]);
        for (parameter, value) in result["params"].as_object().into_iter().flatten() {
            name += &format!(" {parameter}={}", json::text(value));
        }
        for setting in &self.differing {
            name += &format!(" {setting}={}", json::text(&result[setting]));
        }
        name
    }
}

fn one(line: u64, result: &Value, names: &Names, launches: &mut Launches, metrics: &mut Metrics) {
    let benchmark = names.benchmark(result);
    let mode = json::text(&result["mode"]);
    let primary = &result["primaryMetric"];
    let forks = [&primary["rawData"], &primary["rawDataHistogram"]]
        .into_iter()
        .filter_map(Value::as_array)
        .map(Vec::len)
        .max()
        .unwrap_or(0);
    let first = launches.next(&format!("{benchmark} {mode}"), forks.max(1) as u32);
    let place = Place { line, benchmark: &benchmark, first };
    place.metric(&mode, primary, metrics);
    // One benchmark in several modes has secondary results of the same name in each.
    let is_alone = names.modes.get(&benchmark).is_none_or(|modes| modes.len() < 2);
    for (name, secondary) in result["secondaryMetrics"].as_object().into_iter().flatten() {
        let name = if is_alone { name.clone() } else { format!("{mode} {name}") };
        place.metric(&name, secondary, metrics);
    }
    let unit = Unit::of(&json::text(&primary["scoreUnit"]));
    let kind = Kind { benchmark: &benchmark, name: &mode, unit: &unit.base, better: unit.better };
    for setting in SETTINGS {
        let value = &result[setting];
        match value.as_array() {
            Some(list) if !list.is_empty() => {
                let words: Vec<String> = list.iter().take(20).map(json::text).collect();
                metrics.set_of(kind, setting, &words.join(" "));
            }
            _ if fields::is_plain(value) => metrics.set_of(kind, setting, &json::text(value)),
            _ => {}
        }
    }
    fields::set_all_of(metrics, kind, &result["params"]);
    if result["forks"].as_u64() == Some(0) {
        metrics.warn(
            "tool-shares-process",
            &format!(
                "{benchmark} ran with forks 0: inside of JMH's own process, with what ran there before it"
            ),
            "run it with -f 5: each fork is a new process, and how forks differ is then in the interval",
        );
    }
}

/// Where the results of one benchmark go.
struct Place<'a> {
    line: u64,
    benchmark: &'a str,
    /// The first fork's launch.
    first: u32,
}

impl Place<'_> {
    fn metric(&self, name: &str, metric: &Value, metrics: &mut Metrics) {
        let tool_unit = json::text(&metric["scoreUnit"]);
        let unit = Unit::of(&tool_unit);
        let kind = Kind { benchmark: self.benchmark, name, unit: &unit.base, better: unit.better };
        let raw = metric["rawData"].as_array();
        let histograms = metric["rawDataHistogram"].as_array();
        for (fork, launch) in raw.into_iter().flatten().zip(self.first..) {
            for value in fork.as_array().into_iter().flatten() {
                let value = json::number(value).map_or(f64::NAN, |value| unit.in_base(value));
                metrics.sample(self.line, kind, Sample { value, launch, ..Sample::default() });
            }
        }
        if let Some(forks) = histograms {
            self.histogram(kind, &unit, forks, metrics);
            for (percent, value) in metric["scorePercentiles"].as_object().into_iter().flatten() {
                if let Some(value) = json::number(value) {
                    let percent = percent.strip_suffix(".0").unwrap_or(percent);
                    metrics.summary(kind, &format!("p{percent}"), unit.in_base(value));
                }
            }
        }
        if raw.is_none() && histograms.is_none() {
            let Some(score) = json::number(&metric["score"]) else {
                return metrics.skip(self.line, self.benchmark, "neither values nor a score are in it");
            };
            let value = unit.in_base(score);
            metrics.sample(self.line, kind, Sample { value, launch: self.first, ..Sample::default() });
        }
        for (what, field) in [("score", "score"), ("score error 99.9%", "scoreError")] {
            if let Some(value) = json::number(&metric[field]).filter(|value| value.is_finite()) {
                metrics.summary(kind, what, unit.in_base(value));
            }
        }
    }

    /// Lists of a value and how often it was, for each fork and iteration; so many of them that all have no place are thinned.
    fn histogram(&self, kind: Kind<'_>, unit: &Unit, forks: &[Value], metrics: &mut Metrics) {
        let mut count = 0_u64;
        for pair in forks.iter().flat_map(list).flat_map(list) {
            match times_of(pair) {
                Some((_, times)) => count = count.saturating_add(times),
                None => metrics.skip(self.line, self.benchmark, "no value with a count in the histogram"),
            }
        }
        let every = count.div_ceil(HISTOGRAM_MAX).max(1);
        for (fork, launch) in forks.iter().zip(self.first..) {
            for iteration in list(fork) {
                // Of each `every` values in a row the middle one.
                let (mut passed, mut next) = (0_u64, every / 2);
                for (value, times) in list(iteration).iter().filter_map(times_of) {
                    passed = passed.saturating_add(times);
                    let value = unit.in_base(value);
                    while next < passed {
                        metrics.sample(self.line, kind, Sample { value, launch, ..Sample::default() });
                        next = next.saturating_add(every);
                    }
                }
            }
        }
        if every > 1 {
            metrics.warn(
                "samples-thinned",
                &format!(
                    "{}: of {count} times every {every}th is kept, in their order of size",
                    self.benchmark
                ),
                "the percentiles that JMH gives are of all of them",
            );
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A value of a histogram, and how often it was.
fn times_of(pair: &Value) -> Option<(f64, u64)> {
    Some((json::number(&pair[0])?, pair[1].as_u64()?))
}

/// A unit of JMH's in base units.
struct Unit {
    base: String,
    better: Option<Better>,
    /// What the value is divided by, in the word of [`in_base`], and whether it is a rate.
    time: String,
    of: Of,
}

#[derive(Clone, Copy, PartialEq)]
enum Of {
    /// `ns/op`.
    Time,
    /// `ops/ms`.
    Rate,
    /// `MB/sec`, of 2²⁰ bytes.
    Mebibytes,
    Other,
}

impl Unit {
    fn of(unit: &str) -> Unit {
        let (what, per) = unit.split_once('/').unwrap_or((unit, ""));
        let is_time = |word: &str| in_base(1.0, long(word)).1 == "s";
        let (base, of, time, better) = match (what, per) {
            ("ops", per) if is_time(per) => ("op/s".to_owned(), Of::Rate, per, Some(Better::Higher)),
            ("MB", "sec") => ("B/s".to_owned(), Of::Mebibytes, "", None),
            (what, "op") if is_time(what) => ("s/op".to_owned(), Of::Time, what, Some(Better::Lower)),
            (what, "") if is_time(what) => ("s".to_owned(), Of::Time, what, Some(Better::Lower)),
            ("B", "op") => (unit.to_owned(), Of::Other, "", Some(Better::Lower)),
            _ => (unit.to_owned(), Of::Other, "", None),
        };
        Unit { base, better, time: long(time).to_owned(), of }
    }

    fn in_base(&self, value: f64) -> f64 {
        match self.of {
            Of::Time => in_base(value, &self.time).0,
            Of::Rate => match self.time.as_str() {
                "ms" => value * 1e3,
                "us" => value * 1e6,
                "ns" => value * 1e9,
                time => value / in_base(1.0, time).0,
            },
            Of::Mebibytes => value * 1_048_576.0,
            Of::Other => value,
        }
    }
}

/// JMH's words for long times in those of others.
fn long(word: &str) -> &str {
    match word {
        "hr" => "h",
        word => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> tare_model::tool::ToolMetrics {
        READER.read(&Input::of_text(text))
    }

    fn result(fields: &str, primary: &str) -> String {
        format!(r#"{{"benchmark": "a.B.c", "mode": "avgt", {fields} "primaryMetric": {{{primary}}}}}"#)
    }

    #[test]
    fn units_are_those_of_seconds_bytes_and_operations() {
        let of = |value, unit: &str| {
            let unit = Unit::of(unit);
            (unit.in_base(value), unit.base)
        };
        assert_eq!(of(12.5, "ns/op"), (1.25e-8, "s/op".to_owned()));
        assert_eq!(of(2.0, "hr/op"), (7200.0, "s/op".to_owned()));
        assert_eq!(of(3.0, "ops/us"), (3e6, "op/s".to_owned()));
        assert_eq!(of(30.0, "ops/min"), (0.5, "op/s".to_owned()));
        assert_eq!(of(1.0, "MB/sec"), (1_048_576.0, "B/s".to_owned()));
        assert_eq!(of(5.0, "ms"), (0.005, "s".to_owned()));
        assert_eq!(of(5.0, "counts"), (5.0, "counts".to_owned()));
    }

    #[test]
    fn the_same_benchmark_again_has_further_launches() {
        let one = result("", r#""scoreUnit": "ns/op", "rawData": [[1, 2], [3]]"#);
        let read = of(&format!("[{one}]\nlog\n[{one}]"));
        assert_eq!(read.metrics[0].launches, [0, 0, 1, 2, 2, 3]);
        assert_eq!(read.metrics[0].samples[2], 3e-9);
    }

    #[test]
    fn settings_are_of_the_metric_of_the_mode() {
        let read = of(&result(
            r#""jmhVersion": "1.37", "params": {"n": "3"},"#,
            r#""scoreUnit": "ns/op", "rawData": [[1]]"#,
        ));
        let settings = &read.metrics[0].configuration;
        assert_eq!((settings["jmhVersion"].as_str(), settings["n"].as_str()), ("1.37", "3"));
    }

    #[test]
    fn what_differs_between_results_is_in_the_name() {
        let raw = r#""scoreUnit": "ns/op", "rawData": [[1]]"#;
        let read = of(&format!("[{}, {}]", result(r#""threads": 1,"#, raw), result(r#""threads": 4,"#, raw)));
        let names: Vec<&str> = read.metrics.iter().map(|metric| metric.benchmark.as_str()).collect();
        assert_eq!(names, ["a.B.c threads=1", "a.B.c threads=4"]);
    }

    #[test]
    fn no_numbers_are_skipped() {
        let read = of(&result("", r#""scoreUnit": "ns/op", "rawData": [["NaN", 2, "-INF", 3]]"#));
        assert_eq!((read.metrics[0].samples.len(), read.skipped_count), (2, 2));
        let read = of(&result("", r#""scoreUnit": "ns/op""#));
        assert_eq!((read.metrics.len(), read.skipped_count), (0, 1));
    }

    #[test]
    fn a_large_histogram_is_thinned_evenly() {
        let read = of(&result(
            "",
            r#""scoreUnit": "us/op", "rawDataHistogram": [[[[1.0, 1000000], [2.0, 3000000], [3.0]]]]"#,
        ));
        let samples = &read.metrics[0].samples;
        let small = samples.iter().filter(|value| **value == 1e-6).count();
        assert_eq!((samples.len(), small), (200_000, 50_000));
        assert_eq!((read.warnings[0].id.as_ref(), read.skipped_count), ("samples-thinned", 1));
    }

    #[test]
    fn a_file_that_is_cut_off_is_said_to_be() {
        let read = of("[\n{\n\"jmhVersion\": \"1.37\",\n\"primaryMetric\": {\n");
        assert_eq!((read.skipped[0].line, read.skipped[0].why.contains("cut off")), (5, true));
    }

    #[test]
    fn a_table_has_scores_with_their_parameters() {
        let head =
            r#""Benchmark","Mode","Threads","Samples","Score","Score Error (99.9%)","Unit","Param: n""#;
        let text = format!(
            "{head}\n\"a.B.c\",\"avgt\",1,5,12.5,NaN,\"ns/op\",10\n\"a.B.d\",\"thrpt\",1,5,3.0,0.5,\"ops/us\",\n\"a.B"
        );
        let semicolons = "\"Benchmark\";\"Mode\";\"Threads\";\"Samples\";\"Score\";\"Unit\"\n\"a\";\"avgt\";1;5;12,5;\"ns/op\"\n";
        assert!(READER.detects(&Input::of_text(&text)) && READER.detects(&Input::of_text(semicolons)));
        let read = of(&text);
        let found: Vec<_> =
            read.metrics.iter().map(|m| (m.benchmark.as_str(), m.name.as_str(), m.samples[0])).collect();
        assert_eq!(found, [("a.B.c n=10", "avgt", 1.25e-8), ("a.B.d", "thrpt", 3e6)]);
        assert_eq!((read.metrics[1].unit.as_str(), read.metrics[1].better), ("op/s", Some(Better::Higher)));
        assert_eq!(read.metrics[1].summary["score error 99.9%"], 5e5);
        assert_eq!(of(semicolons).metrics[0].samples, [1.25e-8]);
    }
}
