//! [hyperfine](https://github.com/sharkdp/hyperfine): `--export-json`, where each time is of a process of its own, and `--export-csv` and the text,
//! which have only figures over all runs.

use super::common::{LOWER, Names, kind};
use super::hyperfine_summaries::{deviation, summary};
use super::hyperfine_warnings::{failures, short};
use super::{hyperfine_2 as version_2, hyperfine_text as text};
use crate::documents::{has, with_keys};
use crate::extent::End;
use crate::json;
use crate::metrics::{Kind, Metrics, Sample};
use crate::reader::{Input, Reader};
use crate::rows::fields;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

pub(crate) const READER: Reader = Reader {
    name: "hyperfine",
    gets_wrong: &[
        "all runs of a command come one after another: a machine that slows down meanwhile looks like a slower command",
        "with a shell (the default of version 1) the mean time of a shell's start is taken off each time: below 5 ms little but noise is left",
        "user and system time are means over the runs: how much they vary is not said",
    ],
    detect,
    read,
};

const CSV_HEAD: &str = "command,mean,stddev,median,user,system,min,max";
/// From version 2 on each metric has columns of its own, whichever comes first.
const CSV_HEAD_2: &str = "_unit,";

/// Of version 1 and of version 2.
const DOCUMENTS: &[&[&str]] = &[
    &["\"results\"", "\"command\"", "\"stddev\"", "\"median\"", "\"system\""],
    &["\"results\"", "\"command\"", "\"measurements\"", "\"time_wall_clock\""],
];

fn detect(input: &Input<'_>) -> bool {
    has(input, DOCUMENTS) || input.head().any(|line| is_csv_head(line) || text::is_line(line))
}

fn is_csv_head(line: &str) -> bool {
    let of_version_2 =
        |rest: &str| rest.contains(CSV_HEAD_2) && rest.contains("_mean,") && rest.contains("_stddev,");
    line.starts_with(CSV_HEAD) || line.strip_prefix("command,").is_some_and(of_version_2)
}

/// What it prints is often kept with a file that it writes of the same runs: each command is read of that which says most of it.
fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut known = Known::default();
    for document in with_keys(input.text, &[&["\"results\""]]) {
        if document.end == End::Missing {
            metrics.skip(document.line, "results", "they end in the middle: the file is cut off");
            continue;
        }
        match document.parse() {
            Ok(report) => results(&report, document.line, &mut known, metrics),
            Err((line, why)) => metrics.skip(line, "results", &why),
        }
    }
    let of_rows = rows(input.text, &known.commands, metrics);
    known.commands.extend(of_rows);
    text::read(input.text, &known.commands, metrics);
}

/// What was read of JSON files.
#[derive(Default)]
struct Known {
    /// Commands, as a file or the text may call them.
    commands: HashSet<String>,
    /// How many launches of each benchmark there were: files may be appended to each other.
    launches: HashMap<String, u32>,
}

impl Known {
    /// The first launch of so many that a file has of a benchmark.
    fn first_launch(&mut self, benchmark: &str, count: usize) -> u32 {
        let next = self.launches.entry(benchmark.to_owned()).or_default();
        let first = *next;
        *next = next.saturating_add(u32::try_from(count.max(1)).unwrap_or(u32::MAX));
        first
    }
}

fn results(document: &Value, line: u64, known: &mut Known, metrics: &mut Metrics) {
    let mut names = Names::default();
    let results = document["results"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut counts: HashMap<&str, u32> = HashMap::new();
    for result in results {
        *counts.entry(name(result)).or_default() += 1;
    }
    for result in results.iter().filter(|result| result["command"].is_string()) {
        let parameters: Vec<(&str, String)> = (result["parameters"].as_object().into_iter().flatten())
            .map(|(name, value)| (name.as_str(), json::text(value.get("value").unwrap_or(value))))
            .collect();
        // Commands of one name are distinguished by their parameters, where these are different.
        let name = name(result);
        let is_one_of_many = counts.get(name).is_some_and(|count| *count > 1) && !parameters.is_empty();
        let said: Vec<String> = parameters.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let benchmark = names.unique(match is_one_of_many {
            true => format!("{name} ({})", said.join(", ")),
            false => name.to_owned(),
        });
        known.commands.extend([name.trim_end().to_owned(), benchmark.trim_end().to_owned()]);
        if let Some(measurements) = result["measurements"].as_array() {
            let first = known.first_launch(&benchmark, measurements.len());
            version_2::result(result, line, first, &benchmark, &parameters, metrics);
            continue;
        }
        let times = result["times"].as_array().map(Vec::as_slice).unwrap_or_default();
        let time = kind(&benchmark, "time", "s", LOWER);
        let first = known.first_launch(&benchmark, times.len());
        runs(line, time, first, times, metrics);
        let memory = result["memory_usage_byte"].as_array().map(Vec::as_slice).unwrap_or_default();
        runs(line, kind(&benchmark, "memory", "B", LOWER), first, memory, metrics);
        let figure = |name: &str| json::number(&result[name]);
        if times.is_empty() {
            metrics.skip(
                line,
                &benchmark,
                "the times of its runs are not in the file, only figures over all of them",
            );
            aggregates(line, first, &benchmark, figure, metrics);
        } else {
            for name in ["mean", "stddev", "median"] {
                summary(time, first, name, figure(name), metrics);
            }
            cpu(line, first, &benchmark, figure, metrics);
        }
        for (name, value) in parameters {
            metrics.set_of(time, name, &value);
        }
        let codes = result["exit_codes"].as_array().map(Vec::as_slice).unwrap_or_default();
        failures(&benchmark, &codes.iter().collect::<Vec<_>>(), metrics);
        short(&benchmark, "median", figure("median"), metrics);
    }
}

/// What the user calls the command; before version 2 that is the command.
fn name(result: &Value) -> &str {
    result["name"].as_str().or_else(|| result["command"].as_str()).unwrap_or_default()
}

/// Each run is a process of its own.
fn runs(line: u64, of: Kind<'_>, first: u32, values: &[Value], metrics: &mut Metrics) {
    for (value, launch) in values.iter().zip(first..) {
        let value = json::number(value).unwrap_or(f64::NAN);
        metrics.sample(line, of, Sample { value, launch, ..Sample::default() });
    }
}

/// What is left where no run's time is given.
fn aggregates(
    line: u64,
    launch: u32,
    benchmark: &str,
    figure: impl Fn(&str) -> Option<f64>,
    metrics: &mut Metrics,
) {
    for (name, kept) in
        [("mean", "time mean"), ("median", "time median"), ("min", "time min"), ("max", "time max")]
    {
        if let Some(value) = figure(name) {
            metrics.sample(
                line,
                kind(benchmark, kept, "s", LOWER),
                Sample { value, launch, ..Sample::default() },
            );
        }
    }
    if let Some(value) = figure("stddev") {
        deviation(kind(benchmark, "time mean", "s", LOWER), value, metrics);
    }
    cpu(line, launch, benchmark, figure, metrics);
}

/// Means, whatever else is given.
fn cpu(line: u64, launch: u32, benchmark: &str, figure: impl Fn(&str) -> Option<f64>, metrics: &mut Metrics) {
    for (name, kept) in [("user", "user mean"), ("system", "system mean")] {
        if let Some(value) = figure(name) {
            let sample = Sample { value, launch, ..Sample::default() };
            metrics.sample(line, kind(benchmark, kept, "s", LOWER), sample);
        }
    }
}

/// The lines of `--export-csv`, below each head, of commands that are not known; these commands.
fn rows(text: &str, known: &HashSet<String>, metrics: &mut Metrics) -> HashSet<String> {
    let mut head: Vec<String> = Vec::new();
    let (mut names, mut commands) = (Names::default(), HashSet::new());
    for (line, number) in text.lines().zip(1..) {
        if is_csv_head(line) {
            head = owned(line);
            names = Names::default();
            metrics.next_launch();
            continue;
        }
        if head.is_empty() || line.trim().is_empty() {
            continue;
        }
        let fields = owned(line);
        let (Some(command), true) = (fields.first(), fields.len() == head.len()) else {
            // Here begins what it prints, or a JSON file.
            if text::is_head(line) || line.trim_end() == "{" {
                head.clear();
                continue;
            }
            metrics.skip(
                number,
                line,
                "it has not as many fields as the head: cut off, or of something else",
            );
            continue;
        };
        if known.contains(command.trim_end()) {
            continue;
        }
        let field = |name: &str| {
            let at = head.iter().position(|column| column == name)?;
            fields.get(at).and_then(|text| text.parse::<f64>().ok())
        };
        if head.iter().any(|column| column.ends_with("_unit")) {
            version_2::row(&head, &fields, number, &mut names, metrics);
            commands.insert(command.trim_end().to_owned());
            continue;
        }
        if field("mean").is_none() {
            metrics.skip(number, command, "its mean is no number");
            continue;
        }
        let benchmark = names.unique(command.clone());
        commands.insert(command.trim_end().to_owned());
        aggregates(number, 0, &benchmark, field, metrics);
        for (column, value) in head.iter().zip(&fields) {
            if let Some(name) = column.strip_prefix("parameter_") {
                metrics.set_of(kind(&benchmark, "time mean", "s", LOWER), name, value);
            }
        }
        short(&benchmark, "median", field("median"), metrics);
    }
    commands
}

/// The fields of a row of its CSV.
fn owned(line: &str) -> Vec<String> {
    fields(line.trim_end()).into_iter().map(Cow::into_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> tare_model::tool::ToolMetrics {
        assert!(READER.detects(&Input::of_text(text)));
        READER.read(&Input::of_text(text))
    }

    const ONE: &str = r#"{"results": [{"command": "a", "mean": 1.5, "stddev": null, "median": 1.5, "user": 0.1, "system": 0.2,
        "times": [1, 2], "memory_usage_byte": [4096, 8192], "exit_codes": [0, null]}, {"command": "a", "mean": 2, "median": 2, "times": []}]}"#;

    #[test]
    fn every_run_is_a_launch_and_a_command_that_comes_again_another_benchmark() {
        let read = of(ONE);
        let of_name = |benchmark: &str, name: &str| {
            read.metrics.iter().find(|m| m.benchmark == benchmark && m.name == name).unwrap().clone()
        };
        let time = of_name("a", "time");
        assert_eq!((time.samples, time.launches), (vec![1.0, 2.0], vec![0, 1]));
        let memory = of_name("a", "memory");
        assert_eq!((memory.samples, memory.unit.as_str()), (vec![4096.0, 8192.0], "B"));
        assert_eq!(of_name("a #2", "time mean").samples, [2.0]);
        assert_eq!(read.skipped.len(), 1);
        assert!(read.warnings.iter().any(|w| w.text.contains("1 of 2 runs") && w.text.contains("signal")));
    }

    const TWO: &str = r#"{"results": [{"command": "a", "mean": 1.5, "stddev": 0.7, "median": 1.5, "user": 0.1, "system": 0.2, "times": [1, 2]}]}"#;

    #[test]
    fn files_that_are_appended_hold_further_launches() {
        let read = of(&format!("{TWO}\n{TWO}\n"));
        let found: Vec<_> = read
            .metrics
            .iter()
            .map(|m| (m.benchmark.as_str(), m.name.as_str(), m.launches.as_slice()))
            .collect();
        assert_eq!(
            found,
            [
                ("a", "time", &[0, 1, 2, 3][..]),
                ("a", "user mean", &[0, 2][..]),
                ("a", "system mean", &[0, 2][..])
            ]
        );
        assert!(read.metrics[0].summary.is_empty());
        let csv = "command,mean,stddev,median,user,system,min,max\na,1,0,1,0,0,1,1\na,2,0,2,0,0,2,2\n";
        let read = of(&csv.repeat(2));
        let means: Vec<_> = read.metrics.iter().filter(|m| m.name == "time mean").collect();
        assert_eq!((means.len(), means[1].benchmark.as_str()), (2, "a #2"));
        assert_eq!((means[0].launches.as_slice(), means[0].summary.len()), (&[0, 1][..], 0));
    }

    #[test]
    fn each_command_is_read_of_what_says_most_of_it() {
        let printed = "Benchmark 1: a\n  Time (mean ± σ):  1.5 s ± 0.7 s  [User: 0.1 s, System: 0.2 s]\n\n\
            Benchmark 2: b\n  Time (mean ± σ):  2.5 s ± 0.7 s  [User: 0.1 s, System: 0.2 s]\n\n\
            Benchmark 3: c\n  Time (mean ± σ):  3.5 s ± 0.7 s  [User: 0.1 s, System: 0.2 s]\n";
        let csv =
            "command,mean,stddev,median,user,system,min,max\na,1.5,0,1.5,0,0,1,2\nb,2.5,0,2.5,0,0,2,3\n";
        for all in [format!("{printed}{csv}{{\n{}\n", &TWO[1..]), format!("{TWO}\n{csv}{printed}")] {
            let read = of(&all);
            let found: Vec<_> = read
                .metrics
                .iter()
                .filter(|m| m.name == "time" || m.name == "time median" || m.name == "time mean")
                .map(|m| (m.benchmark.as_str(), m.name.as_str(), m.samples.len()))
                .collect();
            let expected =
                [("a", "time", 2), ("b", "time mean", 1), ("b", "time median", 1), ("c", "time mean", 1)];
            assert_eq!((found, read.skipped_count), (expected.to_vec(), 0), "{all}");
        }
    }

    #[test]
    fn what_is_cut_off_is_said() {
        let read = of(&ONE[..ONE.len() - 30]);
        assert_eq!((read.metrics.len(), read.skipped_count), (0, 1));
        let read = of("command,mean,stddev,median,user,system,min,max\n\"a,b\",1,0,1,0,0,1,1\nc,2,0\n");
        assert_eq!((read.metrics[0].benchmark.as_str(), read.metrics[0].samples[0]), ("a,b", 1.0));
        assert_eq!(read.skipped[0].line, 3);
    }
}
