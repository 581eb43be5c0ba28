//! [Go's benchmark format](https://go.googlesource.com/proposal/+/master/design/14313-benchmark-format.md): what `go test -bench` prints, as text or
//! with `-json`.

use crate::metrics::{Kind, Metrics, Sample};
use crate::reader::{Input, Reader};
use crate::units::in_base;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "go-bench",
    gets_wrong: &[
        "samples of -count are of one process: they are not independent, and their spread is less than that of two runs",
        "ns/op is a mean over b.N: one slow iteration is not seen",
        "a timer that is stopped inside of the loop over b.N costs more than short work, and is in the figure",
    ],
    detect: |input| input.head().any(|line| is_result(&unwrapped(line))),
    read,
};

/// The text of a line of `-json`, else the line itself.
fn unwrapped(line: &str) -> Cow<'_, str> {
    if !line.starts_with('{') {
        return Cow::Borrowed(line);
    }
    let event: Option<Value> = serde_json::from_str(line).ok();
    match event.as_ref().map(|event| (&event["Action"], &event["Output"])) {
        Some((Value::String(action), Value::String(output))) if action == "output" => {
            Cow::Owned(output.clone())
        }
        _ => Cow::Borrowed(""),
    }
}

/// `BenchmarkName-8  1000  12.5 ns/op …`.
fn is_result(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let named = words.next().is_some_and(is_name);
    let counted = words.next().is_some_and(|count| count.parse::<u64>().is_ok());
    let valued = words.next().is_some_and(|value| value.parse::<f64>().is_ok());
    named && counted && valued && words.next().is_some()
}

/// A benchmark's name: the word and something that does not go on in lower case.
fn is_name(word: &str) -> bool {
    word.strip_prefix("Benchmark").is_some_and(|rest| !rest.starts_with(|c: char| c.is_lowercase()))
}

/// What the lines so far say of those that follow.
#[derive(Default)]
struct State {
    /// `key: value` lines, in force until they are said again.
    configuration: BTreeMap<String, String>,
    /// `Unit NAME better=higher` lines.
    better: HashMap<String, Better>,
    /// Each package's process is a launch: `pkg:` or `PASS`/`ok` begin another for the same benchmark.
    launch: u32,
    /// A name that was printed alone, before its figures.
    begun: Option<String>,
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut state = State::default();
    // Output events of -json may hold parts of lines.
    let mut part = String::new();
    for (line, number) in input.text.lines().zip(1..) {
        let text = unwrapped(line);
        if line.starts_with('{') {
            part += &text;
            if !part.ends_with('\n') {
                continue;
            }
            let whole = std::mem::take(&mut part);
            state.read(number, whole.trim_end(), metrics);
        } else {
            state.read(number, text.trim_end(), metrics);
        }
    }
    if !part.is_empty() {
        state.read(input.text.lines().count() as u64, &part, metrics);
    }
    for (key, value) in state.configuration {
        metrics.set(&key, &value);
    }
}

impl State {
    fn read(&mut self, number: u64, line: &str, metrics: &mut Metrics) {
        let words: Vec<&str> = line.split_whitespace().take(200).collect();
        match words.as_slice() {
            ["PASS"] | ["ok", ..] => self.launch += 1,
            ["FAIL", ..] | ["---", "FAIL:", ..] => metrics.skip(number, line, "the benchmark failed"),
            ["---", "SKIP:", name, ..] => metrics.skip(number, name, "the benchmark was skipped"),
            ["Unit", unit, rest @ ..] => {
                let better = |word: &&str| match *word {
                    "better=higher" => Some(Better::Higher),
                    "better=lower" => Some(Better::Lower),
                    _ => None,
                };
                if let Some(better) = rest.iter().find_map(better) {
                    self.better.insert((*unit).to_owned(), better);
                }
            }
            [name] if is_name(name) => self.begun = Some((*name).to_owned()),
            [name, count, values @ ..] if is_name(name) => self.result(number, name, count, values, metrics),
            // The name stood alone, and what the benchmark printed between is over.
            [count, values @ ..]
                if self.begun.is_some() && values.len() >= 2 && count.parse::<u64>().is_ok() =>
            {
                let name = self.begun.take().unwrap_or_default();
                self.result(number, &name, count, values, metrics);
            }
            _ => self.key(line),
        }
    }

    /// `goos: linux`: a key in lower case without blanks.
    fn key(&mut self, line: &str) {
        let Some((key, value)) = line.split_once(": ") else { return };
        let is_key = key.starts_with(|c: char| c.is_lowercase()) && !key.contains(char::is_whitespace);
        if is_key && self.configuration.len() < 100 {
            self.configuration.insert(key.to_owned(), value.trim().to_owned());
        }
    }

    fn result(&mut self, number: u64, name: &str, count: &str, values: &[&str], metrics: &mut Metrics) {
        self.begun = None;
        if count.parse::<u64>().is_err() || values.len() < 2 {
            let cut = values.is_empty() || count.parse::<u64>().is_ok();
            let why =
                if cut { "the line is cut off" } else { "no number of iterations stands behind the name" };
            return metrics.skip(number, name, why);
        }
        let benchmark = match self.configuration.get("pkg") {
            Some(package) => format!("{package}.{name}"),
            None => name.to_owned(),
        };
        let mut pairs = values.chunks_exact(2);
        for pair in &mut pairs {
            let &[value, unit] = pair else { continue };
            let Ok(value) = value.parse::<f64>() else {
                metrics.skip(number, name, &format!("the value of {unit} is no number"));
                continue;
            };
            let (scaled, base) = scaled(value, unit);
            let better = self.better.get(unit).copied().or_else(|| usual(unit));
            let kind = Kind { benchmark: &benchmark, name: unit, unit: &base, better };
            metrics.sample(number, kind, Sample { value: scaled, launch: self.launch, ..Sample::default() });
        }
        if !pairs.remainder().is_empty() {
            metrics.skip(number, name, "the line is cut off behind a value");
        }
    }
}

/// `ns/op` in seconds for one operation, `MB/s` (of 10⁶) in bytes a second.
fn scaled(value: f64, unit: &str) -> (f64, String) {
    match unit.split_once('/') {
        Some(("MB", "s")) => (value * 1e6, "B/s".to_owned()),
        Some((what, per)) => {
            let (value, base) = in_base(value, what);
            (value, format!("{base}/{per}"))
        }
        None => {
            let (value, base) = in_base(value, unit);
            (value, base.to_owned())
        }
    }
}

/// As benchstat has it: rates are better when they are higher, all else when it is lower.
fn usual(unit: &str) -> Option<Better> {
    match unit {
        _ if unit.ends_with("/s") => Some(Better::Higher),
        _ if unit.ends_with("/op") || unit.ends_with("-bytes") || unit.starts_with("ns") => {
            Some(Better::Lower)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> tare_model::tool::ToolMetrics {
        READER.read(&Input::of_text(text))
    }

    #[test]
    fn every_pair_of_every_line_is_a_sample() {
        let read = of(
            "pkg: a/b\nUnit hits better=higher\nBenchmarkX-2\t100\t12.5 ns/op\t3 hits\nBenchmarkX-2 100 13 ns/op 4 hits\n",
        );
        let found: Vec<_> =
            read.metrics.iter().map(|m| (m.name.as_str(), m.samples.clone(), m.better)).collect();
        assert_eq!(
            found,
            [
                ("ns/op", vec![12.5e-9, 13.0e-9], Some(Better::Lower)),
                ("hits", vec![3.0, 4.0], Some(Better::Higher))
            ]
        );
        assert_eq!(
            (read.metrics[0].benchmark.as_str(), read.metrics[0].unit.as_str()),
            ("a/b.BenchmarkX-2", "s/op")
        );
    }

    #[test]
    fn a_name_alone_waits_for_its_figures() {
        let read = of("BenchmarkX-2\nlog: printed by it\n     100\t12.5 ns/op\n");
        assert_eq!(read.metrics[0].samples, [12.5e-9]);
        assert_eq!(read.skipped, []);
    }

    #[test]
    fn what_is_cut_off_is_said() {
        let read = of("BenchmarkX-2 100 1 ns/op 5\nBenchmarkY-2 1\nBenchmarkZ abc 1 ns/op\n");
        let lines: Vec<u64> = read.skipped.iter().map(|skipped| skipped.line).collect();
        assert_eq!((lines, read.skipped_count, read.metrics.len()), (vec![1, 2, 3], 3, 1));
    }
}
