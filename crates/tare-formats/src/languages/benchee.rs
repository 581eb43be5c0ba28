//! [Benchee](https://github.com/bencheeorg/benchee) of Elixir: its console, and the file of benchee_json.

use super::shared::{Runs, at as of_launch};
use crate::documents::{each_document, has};
use crate::json::number;
use crate::metrics::{Kind, Metrics};
use crate::reader::{Input, Reader};
use crate::units::in_base;
use serde_json::Value;
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "benchee",
    gets_wrong: &[
        "on a console it prints statistics alone, of two decimals in a unit that all lines share",
        "samples are of one process of the virtual machine: two runs differ by more than its deviation",
        "functions of less than some hundred nanoseconds are run many times for one sample: their percentiles are of means",
    ],
    detect: |input| has(input, DOCUMENTS) || input.head().any(is_header),
    read,
};

/// Since 1.0 nanoseconds; before, microseconds, in one list of scenarios or in maps by job.
const DOCUMENTS: &[&[&str]] = &[
    &["\"run_time_data\"", "\"job_name\""],
    &["\"run_time_statistics\"", "\"run_times\""],
    &["\"run_times\"", "\"statistics\"", "\"std_dev_ips\""],
];

fn is_header(line: &str) -> bool {
    line.starts_with("Name ") && {
        let mut words = line.split_whitespace().skip(1);
        words.next() == Some("ips") && words.next() == Some("average") && words.next() == Some("deviation")
    }
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut found = false;
    let mut runs = Runs::default();
    each_document(input.text, DOCUMENTS, metrics, |metrics, line, document| {
        found = true;
        match document.as_array() {
            Some(scenarios) => {
                scenarios.iter().for_each(|one| scenario(line, one, &mut runs, metrics));
            }
            None => by_job(line, &document, &mut runs, metrics),
        }
    });
    if !found {
        let mut console = Console::default();
        for (line, number) in input.text.lines().zip(1..) {
            console.read(number, line.trim_end(), metrics);
        }
    }
}

fn scenario(line: u64, scenario: &Value, runs: &mut Runs, metrics: &mut Metrics) {
    let text = |key: &str| scenario[key].as_str().filter(|text| !text.is_empty());
    let name = text("name").or_else(|| text("job_name")).unwrap_or_default();
    let benchmark = match text("input_name").filter(|input| *input != "__no_input") {
        Some(input) => format!("{name} ({input})"),
        None => name.to_owned(),
    };
    let place = (line, runs.of(&benchmark));
    let kinds = [("run_time", "s", 1e9), ("memory_usage", "B", 1.0), ("reductions", "", 1.0)];
    for (what, unit, divisor) in kinds {
        let data = &scenario[format!("{what}_data")];
        let kind = Kind { benchmark: &benchmark, name: what, unit, better: Some(Better::Lower) };
        if data.is_object() {
            samples(place, kind, &data["samples"], &data["statistics"], divisor, metrics);
        }
    }
    if scenario["run_times"].is_array() {
        let kind = Kind { benchmark: &benchmark, name: "run_time", unit: "s", better: Some(Better::Lower) };
        samples(place, kind, &scenario["run_times"], &scenario["run_time_statistics"], 1e6, metrics);
    }
}

/// Maps from jobs to their run times and statistics, as the first versions write.
fn by_job(line: u64, document: &Value, runs: &mut Runs, metrics: &mut Metrics) {
    for (benchmark, times) in document["run_times"].as_object().into_iter().flatten() {
        let kind = Kind { benchmark, name: "run_time", unit: "s", better: Some(Better::Lower) };
        samples((line, runs.of(benchmark)), kind, times, &document["statistics"][benchmark], 1e6, metrics);
    }
}

fn samples(
    place: (u64, u32),
    kind: Kind<'_>,
    samples: &Value,
    statistics: &Value,
    divisor: f64,
    metrics: &mut Metrics,
) {
    let (line, launch) = place;
    let all = samples.as_array().filter(|samples| !samples.is_empty());
    for sample in all.into_iter().flatten() {
        match number(sample) {
            Some(value) => metrics.sample(line, kind, of_launch(value / divisor, launch)),
            None => metrics.skip(line, kind.benchmark, "a sample is no number"),
        }
    }
    let figures = ["average", "median", "minimum", "maximum", "std_dev"];
    let figures = figures.into_iter().map(|name| (name.to_owned(), &statistics[name]));
    let percentiles = statistics["percentiles"].as_object().into_iter().flatten();
    for (name, value) in figures.chain(percentiles.map(|(rank, value)| (format!("p{rank}"), value))) {
        let Some(value) = number(value).map(|value| value / divisor) else { continue };
        if all.is_some() {
            metrics.summary(kind, &name, value);
        } else {
            let name = format!("{} {name}", kind.name);
            let better = kind.better.filter(|_| !name.ends_with("std_dev"));
            metrics.sample(line, Kind { name: &name, better, ..kind }, of_launch(value, launch));
        }
    }
    if all.is_none() && number(&statistics["average"]).is_none() && kind.name == "run_time" {
        metrics.skip(line, kind.benchmark, "it has no run times");
    }
}

/// Which table of a console is read.
#[derive(Default, PartialEq, Clone, Copy)]
enum Table {
    #[default]
    None,
    RunTime,
    Memory,
    Reductions,
    Extended,
}

#[derive(Default)]
struct Console {
    table: Table,
    /// Whether the header of the table was read.
    begun: bool,
    input: String,
    runs: Runs,
}

impl Console {
    fn read(&mut self, number: u64, line: &str, metrics: &mut Metrics) {
        if is_header(line) {
            (self.table, self.begun) = (Table::RunTime, true);
        } else if line.starts_with("Memory usage statistics:") {
            (self.table, self.begun) = (Table::Memory, false);
        } else if line.starts_with("Reduction count statistics:") {
            (self.table, self.begun) = (Table::Reductions, false);
        } else if line.starts_with("Extended statistics:") {
            self.table = Table::Extended;
            metrics.skip(number, line, "extended statistics are not read");
        } else if line.starts_with("Comparison:") || line.starts_with("**") {
            self.table = Table::None;
        } else if let Some(input) = line.strip_prefix("##### With input ") {
            self.input = input.trim_end_matches('#').trim().to_owned();
            self.table = Table::None;
        } else if line.starts_with("Name ") {
            self.begun = true;
        } else if line.is_empty() {
            // An empty line stands between a table's title and its header too.
            self.table = if self.begun { Table::None } else { self.table };
        } else if self.begun && matches!(self.table, Table::RunTime | Table::Memory | Table::Reductions) {
            self.row(number, line, metrics);
        } else if self.table == Table::None {
            setting(line, metrics);
        }
    }

    fn row(&mut self, number: u64, line: &str, metrics: &mut Metrics) {
        // Comparisons to the quickest stand behind a dash.
        let own = line.split_once(" - ").map_or(line, |(own, _)| own);
        let words: Vec<&str> = own.split_whitespace().take(200).collect();
        let read = match words.iter().rposition(|word| word.starts_with('±')) {
            Some(at) => self.statistics(number, &words, at, metrics),
            None => self.alone(number, &words, metrics),
        };
        if read.is_none() {
            metrics.skip(number, line, "the line is cut off, or its figures are not understood");
        }
    }

    fn named(&self, words: &[&str]) -> String {
        let name = words.join(" ");
        if self.input.is_empty() { name } else { format!("{name} ({})", self.input) }
    }

    /// `name  3.79 K  263.87 μs  ±15.49%  259.47 μs  329.29 μs`; the deviation stands at `at`.
    fn statistics(&mut self, number: u64, words: &[&str], at: usize, metrics: &mut Metrics) -> Option<()> {
        let mut left = Numbers { words: words.get(..at)?, better: self.what().1 };
        let average = left.last()?;
        let ips = if self.table == Table::RunTime { Some(left.last()?) } else { None };
        let benchmark = self.named(left.words);
        let mut after = Numbers { words: words.get(at + 1..)?, better: self.what().1 };
        let (p99, median) = (after.last(), after.last());
        let what = self.what().0;
        let launch = self.runs.of(&format!("{what} {benchmark}"));
        for (name, found) in [("average", Some(average)), ("median", median), ("99th %", p99)] {
            let Some((value, unit)) = found else {
                metrics.skip(number, &benchmark, &format!("its {name} is missing: the line is cut off"));
                continue;
            };
            let name = format!("{what} {name}");
            let kind = Kind { benchmark: &benchmark, name: &name, unit: &unit, better: Some(Better::Lower) };
            metrics.sample(number, kind, of_launch(value, launch));
        }
        if let Some((value, _)) = ips {
            let kind = Kind { benchmark: &benchmark, name: "ips", unit: "i/s", better: Some(Better::Higher) };
            metrics.sample(number, kind, of_launch(value, launch));
        }
        let deviation = words.get(at)?.trim_start_matches('±').trim_end_matches('%').parse();
        let name = format!("{what} average");
        let kind = Kind {
            benchmark: &benchmark,
            name: &name,
            unit: &average_unit(self.table),
            better: Some(Better::Lower),
        };
        metrics.summary(kind, "deviation %", deviation.unwrap_or(f64::NAN));
        Some(())
    }

    /// `name  625 KB`: all measurements were the same.
    fn alone(&mut self, number: u64, words: &[&str], metrics: &mut Metrics) -> Option<()> {
        if self.table == Table::RunTime {
            return None;
        }
        let (what, better) = self.what();
        let mut left = Numbers { words, better };
        let (value, unit) = left.last()?;
        let benchmark = self.named(left.words);
        let name = format!("{what} average");
        let launch = self.runs.of(&format!("{what} {benchmark}"));
        metrics.sample(
            number,
            Kind { benchmark: &benchmark, name: &name, unit: &unit, better: Some(Better::Lower) },
            of_launch(value, launch),
        );
        Some(())
    }

    fn what(&self) -> (&'static str, Table) {
        match self.table {
            Table::Memory => ("memory_usage", self.table),
            Table::Reductions => ("reductions", self.table),
            _ => ("run_time", self.table),
        }
    }
}

fn average_unit(table: Table) -> String {
    match table {
        Table::RunTime => "s",
        Table::Memory => "B",
        _ => "",
    }
    .to_owned()
}

/// Takes numbers with their units from the end of a line.
struct Numbers<'a> {
    words: &'a [&'a str],
    better: Table,
}

impl Numbers<'_> {
    fn last(&mut self) -> Option<(f64, String)> {
        let (last, rest) = self.words.split_last()?;
        // Old versions write the unit onto the number.
        let end = last.rfind(|c: char| c.is_ascii_digit()).map(|at| at + 1);
        let (digits, unit) = match end {
            Some(end) => {
                self.words = rest;
                last.split_at(end)
            }
            None => {
                let (digits, rest) = rest.split_last()?;
                self.words = rest;
                (*digits, *last)
            }
        };
        let value: f64 = digits.parse().ok()?;
        let bytes = |power: i32| (value * 1024_f64.powi(power), "B".to_owned());
        Some(match unit {
            "" => (value, if self.better == Table::Memory { "B" } else { "" }.to_owned()),
            "K" => (value * 1e3, String::new()),
            "M" => (value * 1e6, String::new()),
            "B" if self.better == Table::Memory => (value, "B".to_owned()),
            "B" => (value * 1e9, String::new()),
            "T" => (value * 1e12, String::new()),
            "KB" => bytes(1),
            "MB" => bytes(2),
            "GB" => bytes(3),
            unit => {
                let (value, base) = in_base(value, unit);
                (value, base.to_owned())
            }
        })
    }
}

/// Lines above the results: `Elixir 1.16.0`, `warmup: 2 s`.
fn setting(line: &str, metrics: &mut Metrics) {
    const KEYS: &[&str] = &[
        "Operating System",
        "CPU Information",
        "Number of Available Cores",
        "Available memory",
        "JIT enabled",
        "warmup",
        "time",
        "memory time",
        "reduction time",
        "parallel",
        "inputs",
    ];
    if let Some((key, value)) = line.split_once(": ").filter(|(key, _)| KEYS.contains(key)) {
        metrics.set(key, value.trim());
        if key == "parallel" && value.trim() != "1" {
            metrics.warn(
                "tool-runs-in-parallel",
                &format!(
                    "{} processes ran each function at once: times have their waiting for each other in them",
                    value.trim()
                ),
                "compare times of parallel: 1",
            );
        }
    } else if let Some((key, version)) = line.split_once(' ')
        && matches!(key, "Elixir" | "Erlang")
        && version.starts_with(|c: char| c.is_ascii_digit())
    {
        metrics.set(key, version);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_off_is_said() {
        let read = READER.read(&Input::of_text(
            "Name          ips        average  deviation         median         99th %\nf g      3.79 K      263.87 μs    ±15.49%      259.47 μs\nh      3.79\n",
        ));
        let average = read.metrics.iter().find(|metric| metric.name == "run_time average").unwrap();
        assert_eq!((average.benchmark.as_str(), average.samples[0]), ("f g", 263.87e-6));
        let lines: Vec<u64> = read.skipped.iter().map(|skipped| skipped.line).collect();
        assert_eq!(lines, [2, 3]);
    }

    #[test]
    fn the_first_versions_have_microseconds() {
        let read = READER.read(&Input::of_text(
            "{\"statistics\": {\"a\": {\"std_dev_ips\": 1.0, \"average\": 300.0}}, \"run_times\": {\"a\": [200, 400]}}",
        ));
        assert_eq!(read.metrics[0].samples, [200e-6, 400e-6]);
        assert_eq!(read.metrics[0].summary["average"], 300e-6);
    }
}
