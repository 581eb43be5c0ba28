//! [Go's benchmark format](https://go.googlesource.com/proposal/+/master/design/14313-benchmark-format.md): what `go test -bench` prints, as text or
//! with `-json`.

use crate::metrics::{Kind, Metrics, Sample};
use crate::reader::{Input, Reader};
use crate::units::in_base;
use serde::Deserialize;
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
    detect,
    read,
};

/// An event of `-json`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event<'a> {
    #[serde(borrow)]
    action: Cow<'a, str>,
    #[serde(borrow, default)]
    package: Cow<'a, str>,
    #[serde(borrow, default)]
    test: Cow<'a, str>,
    #[serde(borrow, default)]
    output: Cow<'a, str>,
}

/// Calls `each` with every line that was printed, the line of the file that it ends in, and its package where that is known. Events of `-json` hold
/// parts of lines, and those of several packages and tests stand between each other.
fn each_line<'a>(lines: impl Iterator<Item = &'a str>, mut each: impl FnMut(u64, &str, Option<&str>)) {
    let mut parts: HashMap<(String, String), String> = HashMap::new();
    let mut last = 0;
    for (line, number) in lines.zip(1..) {
        last = number;
        if !line.starts_with('{') {
            each(number, line.trim_end(), None);
            continue;
        }
        let Ok(event) = serde_json::from_str::<Event<'_>>(line) else { continue };
        if event.action != "output" {
            continue;
        }
        let part = parts.entry((event.package.clone().into_owned(), event.test.into_owned())).or_default();
        *part += &event.output;
        if part.ends_with('\n') {
            let whole = std::mem::take(part);
            let package = Some(event.package.as_ref()).filter(|package| !package.is_empty());
            whole.lines().for_each(|line| each(number, line.trim_end(), package));
        }
    }
    for ((package, _), part) in parts.iter().filter(|(_, part)| !part.is_empty()) {
        each(last, part, Some(package));
    }
}

/// Whether one of the first lines is a result, or a name with its figures in the next one.
fn detect(input: &Input<'_>) -> bool {
    let (mut found, mut begun) = (false, false);
    each_line(input.head(), |_, line, _| {
        let first = line.split_whitespace().next().unwrap_or_default();
        found |= is_result(line) || begun && is_result(&format!("BenchmarkX {line}")) && line.contains("/op");
        begun = is_name(first) || begun && !first.is_empty();
    });
    found
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
    /// A name that was printed before its figures: alone, or with what the benchmark printed behind it.
    begun: Option<String>,
    /// The package of the line, where the line itself says it (`-json`).
    package: Option<String>,
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut state = State::default();
    each_line(input.text.lines(), |number, line, package| {
        state.package = package.map(str::to_owned);
        state.read(number, line, metrics);
    });
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
            [name, "---", "FAIL:" | "SKIP:", ..] if is_name(name) => {
                let failed = line.contains("--- FAIL:");
                metrics.skip(
                    number,
                    name,
                    if failed { "the benchmark failed" } else { "the benchmark was skipped" },
                );
            }
            // It has printed something before its figures.
            [name, word, ..] if is_name(name) && word.parse::<u64>().is_err() => {
                self.begun = Some((*name).to_owned())
            }
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
            return metrics.skip(number, name, "the line is cut off");
        }
        let benchmark = match self.package.as_ref().or(self.configuration.get("pkg")) {
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

/// `ns/op` in seconds for one operation, `MB/s` (of 10⁶) in bytes a second. A user's own unit may be called `min` or `h` and be no time.
fn scaled(value: f64, unit: &str) -> (f64, String) {
    let in_seconds = |what: &str| match what {
        "ns" | "us" | "µs" | "μs" | "ms" | "s" | "sec" => in_base(value, what).0,
        _ => f64::NAN,
    };
    match unit.split_once('/') {
        Some(("MB", "s")) => (value * 1e6, "B/s".to_owned()),
        Some((what, per)) if in_seconds(what).is_finite() => (in_seconds(what), format!("s/{per}")),
        None if in_seconds(unit).is_finite() => (in_seconds(unit), "s".to_owned()),
        _ => (value, unit.to_owned()),
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
        let read = of("BenchmarkX-2 100 1 ns/op 5\nBenchmarkY-2 1\n");
        let lines: Vec<u64> = read.skipped.iter().map(|skipped| skipped.line).collect();
        assert_eq!((lines, read.skipped_count, read.metrics.len()), (vec![1, 2], 2, 1));
    }

    #[test]
    fn what_a_benchmark_prints_before_its_figures_is_none_of_them() {
        let read = of(
            "BenchmarkX-2   hello 5\n  20  4409 ns/op\nBenchmarkZ-2 --- FAIL: BenchmarkZ-2\nBenchmarkS --- SKIP: x\n",
        );
        assert_eq!((read.metrics.len(), read.metrics[0].benchmark.as_str()), (1, "BenchmarkX-2"));
        assert_eq!(read.metrics[0].samples, [4409e-9]);
        let why: Vec<&str> = read.skipped.iter().map(|skipped| skipped.why.as_str()).collect();
        assert_eq!(why, ["the benchmark failed", "the benchmark was skipped"]);
    }

    #[test]
    fn a_metric_that_is_called_min_is_no_time() {
        let read = of("BenchmarkX-2 100 1 ns/op 5 min 3 h/op\n");
        let found: Vec<(&str, f64)> = read.metrics.iter().map(|m| (m.unit.as_str(), m.samples[0])).collect();
        assert_eq!(found, [("s/op", 1e-9), ("min", 5.0), ("h/op", 3.0)]);
    }

    #[test]
    fn events_of_packages_between_each_other_are_put_together() {
        let event = |package: &str, output: &str| {
            format!(
                "{{\"Action\":\"output\",\"Package\":\"{package}\",\"Test\":\"BenchmarkX\",\"Output\":\"{output}\"}}\n"
            )
        };
        let text = [
            event("a", "BenchmarkX-2 \\t"),
            event("b", "BenchmarkX-2 \\t"),
            event("a", "100\\t1 ns/op\\n"),
            event("b", "100\\t2 ns/op\\n"),
        ]
        .concat();
        assert!(READER.detects(&Input::of_text(&text)));
        let read = of(&text);
        let found: Vec<(&str, f64)> =
            read.metrics.iter().map(|m| (m.benchmark.as_str(), m.samples[0])).collect();
        assert_eq!(found, [("a.BenchmarkX-2", 1e-9), ("b.BenchmarkX-2", 2e-9)]);
    }
}
