//! [Criterion.rs](https://github.com/criterion-rs/criterion.rs): `raw.csv` and `sample.json` of `target/criterion`, the JSON lines of
//! `cargo criterion --message-format json`, and what it prints.

use super::fields::Launches;
use crate::documents::{each_whole_document, has};
use crate::metrics::{Kind, Metrics, Sample};
use crate::reader::{Input, Reader};
use crate::rows;
use crate::units::{in_base, prefix};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::HashMap;
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "criterion",
    gets_wrong: &[
        "all samples are of one process: its interval is of that process, and too small for the next one",
        "the printed estimate is a slope through samples of more and more iterations: the long samples count the most",
        "a sample is the mean of its iterations: one slow call is not seen",
        "\"Performance has regressed\" compares two processes as if they differed by nothing but the code",
    ],
    detect: |input| {
        let is_sample = || has(input, &[&["\"sampling_mode\"", "\"iters\"", "\"times\""]]);
        input.head().any(|line| is_csv(line) || is_message(line) || times(line).is_some()) || is_sample()
    },
    read,
};

/// The header of `raw.csv`.
fn is_csv(line: &str) -> bool {
    line.starts_with("group,function,value,") && line.contains("iteration_count")
}

fn is_message(line: &str) -> bool {
    line.starts_with('{') && line.contains("\"benchmark-complete\"") && line.contains("\"measured_values\"")
}

/// A line of `cargo criterion`.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    reason: Cow<'a, str>,
    #[serde(borrow, default)]
    id: Cow<'a, str>,
    #[serde(default)]
    iteration_count: Vec<f64>,
    #[serde(default)]
    measured_values: Vec<f64>,
    #[serde(borrow, default)]
    unit: Cow<'a, str>,
    #[serde(borrow, default)]
    throughput: Vec<Throughput<'a>>,
    #[serde(borrow)]
    typical: Option<Estimate<'a>>,
    #[serde(borrow)]
    slope: Option<Estimate<'a>>,
}

#[derive(Deserialize)]
struct Throughput<'a> {
    per_iteration: f64,
    #[serde(borrow, default)]
    unit: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Estimate<'a> {
    estimate: f64,
    lower_bound: f64,
    upper_bound: f64,
    #[serde(borrow, default)]
    unit: Cow<'a, str>,
}

fn kind<'a>(benchmark: &'a str, unit: &'a str) -> Kind<'a> {
    Kind { benchmark, name: "time", unit, better: Some(Better::Lower) }
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let has_messages = input.text.lines().any(is_message);
    let mut reading = Reading { has_messages, ..Reading::default() };
    let mut is_any_line = false;
    for (line, number) in input.text.lines().zip(1..) {
        is_any_line |= reading.line(number, line.trim_end(), metrics);
    }
    reading.end(metrics);
    if !is_any_line {
        sample_json(input.text, metrics);
    }
}

/// What the lines so far say of those that follow.
#[derive(Default)]
struct Reading<'a> {
    /// What is printed for people is in the messages, too, and with its samples.
    has_messages: bool,
    launches: Launches,
    /// Columns of the table that is being read.
    columns: HashMap<&'a str, usize>,
    /// Of the table: the benchmark of the last row, and its launch.
    of_table: (String, u32),
    /// What stands before a result that has no name in its line.
    before: &'a str,
    /// The benchmark of the last time that was printed.
    printed: (String, u32),
    /// A benchmark that was begun, and in which line: its result is not printed yet.
    begun: Option<(u64, &'a str)>,
}

impl<'a> Reading<'a> {
    /// Whether the line is of a kind that is read line by line.
    fn line(&mut self, number: u64, line: &'a str, metrics: &mut Metrics) -> bool {
        if is_csv(line) {
            self.columns = line.split(',').zip(0..).collect();
            self.of_table = Default::default();
            return true;
        }
        if line.starts_with('{') && line.contains("\"reason\"") {
            self.message(number, line, metrics);
            return true;
        }
        if self.has_messages && !line.starts_with('{') {
            return false;
        }
        if let Some((name, times)) = times(line) {
            let name = if name.is_empty() { self.before } else { name };
            self.begun = None;
            self.time(name, times, number, metrics);
            return true;
        }
        if let Some((name, rates)) = brackets(line, "thrpt:").filter(|(name, _)| name.is_empty()) {
            self.rate(name, rates, number, metrics);
        } else if !self.columns.is_empty() && line.contains(',') {
            self.row(number, line, metrics);
        } else if line.trim_start().starts_with("time:") || line.contains("time:   [") {
            // What follows is not of the benchmark before.
            self.printed = Default::default();
            self.begun = None;
            metrics.skip(number, line, "the line is cut off, or its three values are no times");
        } else if line.contains("panicked at") {
            metrics.skip(number, line, "the benchmark failed");
        }
        if !line.is_empty() && !line.starts_with(' ') {
            self.before = name_of(line);
            if line.starts_with("Benchmarking ") && self.begun.is_none_or(|(_, name)| name != self.before) {
                self.end(metrics);
                self.begun = Some((number, self.before));
            }
        }
        false
    }

    /// A benchmark that was begun and has no result by now has none.
    fn end(&mut self, metrics: &mut Metrics) {
        if let Some((number, name)) = self.begun.take() {
            metrics.skip(
                number,
                name,
                "it was begun, and no result is printed: it failed, or the output is cut off",
            );
        }
    }

    fn message(&mut self, number: u64, line: &str, metrics: &mut Metrics) {
        let message: Message<'_> = match serde_json::from_str(line) {
            Ok(message) => message,
            Err(error) if error.is_eof() => return metrics.skip(number, line, "the line is cut off"),
            // Messages of cargo itself stand between.
            Err(_) if !is_message(line) => return,
            Err(error) => return metrics.skip(number, line, &format!("it is no message: {error}")),
        };
        if message.reason != "benchmark-complete" {
            return;
        }
        let launch = self.launches.next(&message.id, 1);
        let unit = in_base(1.0, &message.unit).1.to_owned();
        let kind = kind(&message.id, &unit);
        if message.iteration_count.len() != message.measured_values.len() {
            metrics.skip(number, &message.id, "there are not as many values as numbers of iterations");
        }
        for (value, count) in message.measured_values.iter().zip(&message.iteration_count) {
            let value = in_base(value / count, &message.unit).0;
            metrics.sample(number, kind, Sample { value, launch, ..Sample::default() });
        }
        for (what, estimate) in [("typical", &message.typical), ("slope", &message.slope)] {
            let Some(estimate) = estimate else { continue };
            let in_base = |value| in_base(value, &estimate.unit).0;
            metrics.summary(kind, what, in_base(estimate.estimate));
            metrics.summary(kind, &format!("{what} lower"), in_base(estimate.lower_bound));
            metrics.summary(kind, &format!("{what} upper"), in_base(estimate.upper_bound));
        }
        for throughput in &message.throughput {
            let per = throughput.per_iteration.to_string();
            metrics.set_of(kind, &format!("{} per iteration", throughput.unit), &per);
        }
    }

    fn row(&mut self, number: u64, line: &str, metrics: &mut Metrics) {
        let cells = rows::fields(line);
        let cell =
            |name| self.columns.get(name).and_then(|at| cells.get(*at)).map_or("", |cell| cell.as_ref());
        // Versions before 0.3 had nanoseconds alone.
        let (value, unit) = match cell("sample_time_nanos") {
            "" => (cell("sample_measured_value"), cell("unit")),
            value => (value, "ns"),
        };
        let (Ok(value), Ok(count)) = (value.parse::<f64>(), cell("iteration_count").parse::<f64>()) else {
            return metrics.skip(number, line, "the row is cut off, or has no numbers where they should be");
        };
        let parts = ["group", "function", "value"].map(cell);
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let benchmark = parts.join("/");
        let (value, unit) = in_base(value / count, unit);
        let kind = kind(&benchmark, unit);
        if self.of_table.0 != benchmark {
            self.of_table = (benchmark.clone(), self.launches.next(&benchmark, 1));
            let per = cell("throughput_num");
            if !per.is_empty() {
                metrics.set_of(kind, &format!("{} per iteration", cell("throughput_type")), per);
            }
        }
        let launch = self.of_table.1;
        metrics.sample(number, kind, Sample { value, launch, ..Sample::default() });
    }

    /// `NAME  time:   [lower estimate upper]`: no samples are printed.
    fn time(&mut self, name: &str, times: [(f64, &str); 3], number: u64, metrics: &mut Metrics) {
        let launch = self.launches.next(name, 1);
        self.printed = (name.to_owned(), launch);
        let [lower, value, upper] = times.map(|(value, unit)| in_base(value, unit).0);
        let kind = kind(name, "s");
        metrics.sample(number, kind, Sample { value, launch, ..Sample::default() });
        metrics.summary(kind, "lower", lower);
        metrics.summary(kind, "upper", upper);
        metrics.warn(
            "tool-drops-samples",
            &format!("{name}: only an estimate and its interval, within one process, are printed"),
            "read target/criterion/NAME/new/sample.json instead: it has every sample",
        );
    }

    fn rate(&mut self, _: &str, rates: [(f64, &str); 3], number: u64, metrics: &mut Metrics) {
        let [lower, rate, upper] = rates;
        if self.printed.0.is_empty() {
            return metrics.skip(number, "thrpt", "the time of its benchmark could not be read");
        }
        let Some((_, unit)) = per_second(rate.0, rate.1) else {
            return metrics.skip(number, rate.1, "the unit of this throughput is not known");
        };
        let kind = Kind { benchmark: &self.printed.0, name: "thrpt", unit, better: Some(Better::Higher) };
        let in_base =
            |(value, unit): (f64, &str)| per_second(value, unit).map_or(f64::NAN, |(value, _)| value);
        let launch = self.printed.1;
        metrics.sample(number, kind, Sample { value: in_base(rate), launch, ..Sample::default() });
        metrics.summary(kind, "lower", in_base(lower));
        metrics.summary(kind, "upper", in_base(upper));
    }
}

/// The benchmark that a line is about: `Benchmarking NAME: Analyzing`, or a name alone.
fn name_of(line: &str) -> &str {
    match line.strip_prefix("Benchmarking ") {
        Some(rest) => rest.rsplit_once(": ").map_or(rest, |(name, _)| name),
        None => line,
    }
}

/// The name and the three times of a result.
fn times(line: &str) -> Option<(&str, [(f64, &str); 3])> {
    let is_time = |(_, unit): &(f64, &str)| in_base(1.0, unit).1 == "s";
    brackets(line, "time:").filter(|(_, times)| times.iter().all(is_time))
}

/// `NAME  WORD  [1.0 ns 2.0 ns 3.0 ns]`.
fn brackets<'a>(line: &'a str, word: &str) -> Option<(&'a str, [(f64, &'a str); 3])> {
    let (name, rest) = line.rsplit_once(word)?;
    let inside = rest.trim().strip_prefix('[')?.strip_suffix(']')?;
    let mut words = inside.split(' ');
    let mut pair = || Some((words.next()?.parse::<f64>().ok()?, words.next()?));
    let three = [pair()?, pair()?, pair()?];
    words.next().is_none().then_some((name.trim(), three))
}

/// A throughput in bytes or elements per second.
fn per_second(value: f64, unit: &str) -> Option<(f64, &'static str)> {
    let (what, base) = match unit.strip_suffix("/s")? {
        what if what.ends_with("elem") => (what.strip_suffix("elem")?, "elem/s"),
        what if what.ends_with("bits") || what.ends_with('b') => {
            (what.trim_end_matches("bits").trim_end_matches('b'), "bit/s")
        }
        what => (what.strip_suffix('B')?, "B/s"),
    };
    Some((value * prefix(what)?, base))
}

/// `sample.json`, which does not say of which benchmark it is: its folder does.
fn sample_json(text: &str, metrics: &mut Metrics) {
    let mut launches = Launches::default();
    let keys: &[&[&str]] = &[&["\"iters\""], &["\"times\""]];
    each_whole_document(text, keys, metrics, |metrics, line, sample| {
        let lists = sample["iters"].as_array().zip(sample["times"].as_array());
        let Some((counts, times)) = lists else { return };
        if counts.len() != times.len() {
            metrics.skip(line, "times", "there are not as many times as numbers of iterations");
        }
        let launch = launches.next("", 1);
        for (count, time) in counts.iter().zip(times) {
            let value =
                time.as_f64().zip(count.as_f64()).map_or(f64::NAN, |(time, count)| time / count / 1e9);
            metrics.sample(line, kind("", "s"), Sample { value, launch, ..Sample::default() });
        }
        if let Some(mode) = sample["sampling_mode"].as_str() {
            metrics.set("sampling_mode", mode);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> tare_model::tool::ToolMetrics {
        assert!(READER.detects(&Input::of_text(text)), "{text}");
        READER.read(&Input::of_text(text))
    }

    #[test]
    fn a_table_has_each_sample_for_one_iteration() {
        let head = "group,function,value,throughput_num,throughput_type,sample_measured_value,unit,iteration_count\n";
        let read = of(&format!(
            "{head}g,\"f, \"\"x\"\"\",1,8,bytes,100.0,ns,4\n{head}g,\"f, \"\"x\"\"\",1,8,bytes,30,us,3\ng,f\n"
        ));
        let metric = &read.metrics[0];
        assert_eq!((metric.benchmark.as_str(), metric.unit.as_str()), ("g/f, \"x\"/1", "s"));
        assert_eq!(
            (metric.samples.as_slice(), metric.launches.as_slice()),
            ([25e-9, 1e-5].as_slice(), [0, 1].as_slice())
        );
        assert_eq!((read.skipped[0].line, metric.configuration["bytes per iteration"].as_str()), (5, "8"));
    }

    #[test]
    fn a_throughput_is_of_no_other_benchmark() {
        let read = of(
            "a                       time:   [1.0 ns 1.1 ns 1.2 ns]\n                        thrpt:  [1.0 GiB/s 1.1 GiB/s 1.2 GiB/s]\n\
                       b                       time:   [1.0 Kcycles 1.1 Kcycles 1.2 Kcycles]\n                        thrpt:  [3.0 GiB/s 3.1 GiB/s 3.2 GiB/s]\n",
        );
        let found: Vec<(&str, &str, usize)> =
            read.metrics.iter().map(|m| (m.benchmark.as_str(), m.name.as_str(), m.samples.len())).collect();
        assert_eq!(found, [("a", "time", 1), ("a", "thrpt", 1)]);
        let lines: Vec<u64> = read.skipped.iter().map(|skipped| skipped.line).collect();
        assert_eq!(lines, [3, 4]);
    }

    #[test]
    fn old_tables_have_nanoseconds() {
        let read = of("group,function,value,sample_time_nanos,iteration_count\ng,,,50,2\n");
        assert_eq!((read.metrics[0].benchmark.as_str(), read.metrics[0].samples[0]), ("g", 25e-9));
    }

    #[test]
    fn a_printed_result_is_its_estimate() {
        let read = of(
            "Benchmarking a: Analyzing\na       time:   [1.0 ms 2.0 ms 3.0 ms]\n        thrpt:  [1.0 MiB/s 2.0 MiB/s 3.0 MiB/s]\n\na long name\n     time: [1 us 2 us 3 us]\n     time: [1 us 2",
        );
        let found: Vec<_> =
            read.metrics.iter().map(|m| (m.benchmark.as_str(), m.name.as_str(), m.samples[0])).collect();
        assert_eq!(found, [("a", "time", 0.002), ("a", "thrpt", 2_097_152.0), ("a long name", "time", 2e-6)]);
        assert_eq!((read.metrics[0].summary["lower"], read.skipped[0].line), (0.001, 7));
    }

    #[test]
    fn a_benchmark_without_a_result_is_skipped() {
        let read = of(
            "Benchmarking a\nBenchmarking a: Analyzing\na  time: [1 ms 2 ms 3 ms]\nBenchmarking b\nBenchmarking c: Warming up\n",
        );
        let skipped: Vec<_> =
            read.skipped.iter().map(|skipped| (skipped.line, skipped.what.as_str())).collect();
        assert_eq!(skipped, [(4, "b"), (5, "c")]);
    }

    #[test]
    fn units_of_throughput_are_bytes_elements_and_bits() {
        assert_eq!(per_second(1.5, "Kelem/s"), Some((1500.0, "elem/s")));
        assert_eq!(per_second(1.5, "GB/s"), Some((1.5e9, "B/s")));
        assert_eq!(per_second(2.0, "B/s"), Some((2.0, "B/s")));
        assert_eq!(per_second(2.0, "Mb/s"), Some((2e6, "bit/s")));
        assert_eq!(per_second(2.0, "horses/s"), None);
    }
}
