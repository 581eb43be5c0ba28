//! [Go's benchmark format](https://go.googlesource.com/proposal/+/master/design/14313-benchmark-format.md): what `go test -bench` prints, as text or
//! with `-json`.

use crate::metrics::{Kind, Metrics, Sample};
use crate::reader::{Input, Reader};
use crate::result::short;
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

/// A line of the file.
enum Line<'a> {
    /// As it was printed, and its package where that is known.
    Printed(&'a str, Option<&'a str>),
    /// One of `-json` that is no event.
    Broken(&'a str),
}

/// Calls `each` with every line that was printed, and the line of the file that it ends in. Events of `-json` hold parts of lines, and those of
/// several packages and tests stand between each other.
fn each_line<'a>(lines: impl Iterator<Item = &'a str>, mut each: impl FnMut(u64, Line<'_>)) {
    let mut parts: HashMap<(String, String), String> = HashMap::new();
    let (mut last, mut is_json) = (0, false);
    for (line, number) in lines.zip(1..) {
        last = number;
        if !line.starts_with('{') {
            each(number, Line::Printed(line.trim_end(), None));
            continue;
        }
        let Ok(event) = serde_json::from_str::<Event<'_>>(line) else {
            // What a benchmark itself prints stands inside of events, where there are some.
            if is_json || line.contains("\"Action\":") {
                each(number, Line::Broken(line));
            }
            continue;
        };
        is_json = true;
        if event.action != "output" {
            continue;
        }
        let part = parts.entry((event.package.clone().into_owned(), event.test.into_owned())).or_default();
        *part += &event.output;
        if part.ends_with('\n') {
            let whole = std::mem::take(part);
            let package = Some(&*event.package).filter(|package| !package.is_empty());
            whole.lines().for_each(|line| each(number, Line::Printed(line.trim_end(), package)));
        }
    }
    for ((package, _), part) in parts.iter().filter(|(_, part)| !part.is_empty()) {
        each(last, Line::Printed(part.as_str(), Some(package.as_str())));
    }
}

/// Whether one of the first lines is a result, or a name with its figures in the next one.
fn detect(input: &Input<'_>) -> bool {
    let (mut found, mut begun) = (false, false);
    each_line(input.head(), |_, line| {
        let Line::Printed(line, _) = line else { return };
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

/// Keys of which another value is no other set-up: they are in the benchmark's name, or of the machine.
const OF_ALL: [&str; 4] = ["pkg", "goos", "goarch", "cpu"];
/// Most keys of a package that are kept.
const KEYS_MAX: usize = 100;

/// What the lines so far say of those that follow.
#[derive(Default)]
struct State {
    /// `key: value` lines, in force until they are said again: by the package that printed them (`-json`), those of text under no name.
    configuration: HashMap<String, BTreeMap<String, String>>,
    /// The value of each key, where it is the same in all of the file.
    values: BTreeMap<String, Option<String>>,
    /// What held for each metric, by its benchmark and unit; of several values none.
    held: HashMap<(String, String), BTreeMap<String, Option<String>>>,
    /// `Unit NAME better=higher` lines.
    better: HashMap<String, Better>,
    /// By package: each has processes of its own.
    launches: HashMap<String, Launch>,
    /// A name that was printed before its figures: alone, or with what the benchmark printed behind it.
    begun: Option<String>,
    /// The package of the line, where the line itself says it (`-json`).
    package: Option<String>,
}

/// The process whose results are read.
#[derive(Default)]
struct Launch {
    number: u32,
    /// Without one that has ended is no other than the next.
    has_results: bool,
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut state = State::default();
    each_line(input.text.lines(), |number, line| match line {
        Line::Printed(line, package) => {
            state.package = package.map(str::to_owned);
            state.read(number, line, metrics);
        }
        Line::Broken(line) => {
            metrics.skip(number, line, "it is no event of -json: it is cut off, or of something else");
        }
    });
    state.end(metrics);
}

impl State {
    fn read(&mut self, number: u64, line: &str, metrics: &mut Metrics) {
        if let Some(package) = passed(line) {
            self.end_launch(package);
            // Where no line before said the package, its results are of none.
            if self.package().is_empty() {
                self.end_launch("");
            }
            return;
        }
        let words: Vec<&str> = line.split_whitespace().take(200).collect();
        match words.as_slice() {
            ["PASS"] => {
                let package = self.package().to_owned();
                self.end_launch(&package);
            }
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

    /// The package that results are of; empty where nothing says it.
    fn package(&self) -> &str {
        let said = || self.configuration.get("").and_then(|now| now.get("pkg")).map(String::as_str);
        self.package.as_deref().or_else(said).unwrap_or_default()
    }

    /// What follows of the package is of another process.
    fn end_launch(&mut self, package: &str) {
        if let Some(launch) = self.launches.get_mut(package).filter(|launch| launch.has_results) {
            *launch = Launch { number: launch.number.saturating_add(1), has_results: false };
        }
    }

    fn key(&mut self, line: &str) {
        let Some((key, value)) = configuration(line) else { return };
        if key == "pkg" {
            self.end_launch(value);
        }
        let now = self.configuration.entry(self.package.clone().unwrap_or_default()).or_default();
        if value.is_empty() {
            now.remove(key);
            return;
        }
        if now.len() >= KEYS_MAX && !now.contains_key(key) {
            return;
        }
        now.insert(key.to_owned(), value.to_owned());
        match self.values.get_mut(key) {
            None => {
                self.values.insert(key.to_owned(), Some(value.to_owned()));
            }
            Some(known) if known.as_deref() != Some(value) => *known = None,
            Some(_) => {}
        }
    }

    /// Notes under what a metric was measured, and warns where that was something else before.
    fn hold(&mut self, benchmark: &str, unit: &str, metrics: &mut Metrics) {
        let now = self.configuration.get(self.package.as_deref().unwrap_or_default());
        let others = now.into_iter().flatten().filter(|(key, _)| !OF_ALL.contains(&key.as_str()));
        let others: Vec<(&String, &String)> = others.collect();
        if others.is_empty() {
            return;
        }
        let held = self.held.entry((benchmark.to_owned(), unit.to_owned())).or_default();
        for (key, value) in others {
            match held.get_mut(key) {
                None => {
                    held.insert(key.clone(), Some(value.clone()));
                }
                Some(known) if known.as_ref().is_some_and(|known| known != value) => {
                    let first = short(&known.take().unwrap_or_default());
                    let value = short(value);
                    metrics.warn(
                        "tool-mixes-configurations",
                        &format!(
                            "{benchmark} {unit}: values under `{key}: {first}` and under `{key}: {value}` are samples of one metric"
                        ),
                        &format!("keep the results of each `{key}` in a file of its own, and compare the files"),
                    );
                }
                Some(_) => {}
            }
        }
    }

    /// What is the same in all of the file is of the file, the rest of the metrics that were measured under it.
    fn end(self, metrics: &mut Metrics) {
        for (key, value) in &self.values {
            if let Some(value) = value {
                metrics.set(key, value);
            }
        }
        for ((benchmark, name), held) in &self.held {
            let (_, unit) = scaled(0.0, name);
            let kind = Kind { benchmark: benchmark.as_str(), name: name.as_str(), unit: &unit, better: None };
            for (key, value) in held {
                let is_of_file = self.values.get(key).is_some_and(Option::is_some);
                if let Some(value) = value.as_ref().filter(|_| !is_of_file) {
                    metrics.set_of(kind, key, value);
                }
            }
        }
    }

    fn result(&mut self, number: u64, name: &str, count: &str, values: &[&str], metrics: &mut Metrics) {
        self.begun = None;
        if count.parse::<u64>().is_err() || values.len() < 2 {
            return metrics.skip(number, name, "the line is cut off");
        }
        let package = self.package().to_owned();
        let benchmark = if package.is_empty() { name.to_owned() } else { format!("{package}.{name}") };
        let launch = self.launches.entry(package).or_default();
        launch.has_results = true;
        let launch = launch.number;
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
            metrics.sample(number, kind, Sample { value: scaled, launch, ..Sample::default() });
            self.hold(&benchmark, unit, metrics);
        }
        if !pairs.remainder().is_empty() {
            metrics.skip(number, name, "the line is cut off behind a value");
        }
    }
}

/// `goos: linux`: a key that begins in lower case, without blanks and capitals. From one without a value on nothing is said of it.
fn configuration(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let is_apart = value.is_empty() || value.starts_with([' ', '\t']);
    let is_key = key.starts_with(|c: char| c.is_lowercase())
        && !key.contains(|c: char| c.is_whitespace() || c.is_uppercase());
    (is_key && is_apart).then_some((key, value.trim()))
}

/// The package of `ok  \tPACKAGE\t1.234s`, which is the last line of a process.
fn passed(line: &str) -> Option<&str> {
    let mut fields = line.split('\t');
    let is_ok = fields.next()?.trim_end() == "ok";
    let package = fields.next()?;
    let time = fields.next()?.split(' ').next()?;
    let is_time = time == "(cached)" || time.strip_suffix('s').is_some_and(|s| s.parse::<f64>().is_ok());
    (is_ok && is_time).then_some(package)
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
    fn values_under_two_configurations_are_said_to_be_mixed() {
        let text = "goos: linux\nvm: kvm\ncommit: a\nBenchmarkX 1 1 ns/op\nBenchmarkY 1 1 ns/op\ncommit: b\nBenchmarkX 1 2 ns/op\n";
        let read = of(text);
        assert_eq!(read.metrics[0].samples, [1e-9, 2e-9]);
        let warning = &read.warnings[0];
        assert_eq!((read.warnings.len(), warning.id.as_str()), (1, "tool-mixes-configurations"));
        assert!(warning.text.contains("`commit: a`") && warning.text.contains("`commit: b`"), "{warning:?}");
        // What is not the same in all of the file is of a metric, or of none.
        let of_file: Vec<&str> = read.configuration.keys().map(String::as_str).collect();
        assert_eq!(of_file, ["goos", "vm"]);
        assert!(read.metrics[0].configuration.is_empty());
        assert_eq!(read.metrics[1].configuration["commit"], "a");
        // Another value for another benchmark mixes nothing; neither does another package.
        for apart in [
            "commit: a\nBenchmarkX 1 1 ns/op\ncommit: b\nBenchmarkY 1 1 ns/op\n",
            "commit: a\nBenchmarkX 1 1 ns/op\ncommit: a\nBenchmarkX 1 1 ns/op\n",
            "pkg: a\nBenchmarkX 1 1 ns/op\npkg: b\nBenchmarkX 1 1 ns/op\n",
        ] {
            assert_eq!(of(apart).warnings, [], "{apart}");
        }
    }

    #[test]
    fn each_package_counts_its_own_processes() {
        let launches = |text: &str| -> Vec<(String, Vec<u32>)> {
            of(text).metrics.into_iter().map(|metric| (metric.benchmark, metric.launches)).collect()
        };
        let run =
            |package: &str| format!("pkg: {package}\nBenchmarkX 1 1 ns/op\nok then\nBenchmarkX 1 1 ns/op\n");
        let end = |package: &str| format!("PASS\nok  \t{package}\t0.341s\n");
        let both = [run("a"), end("a"), run("b"), end("b")].concat();
        let of_both = |launches: &[u32]| {
            vec![
                ("a.BenchmarkX".to_owned(), launches.to_vec()),
                ("b.BenchmarkX".to_owned(), launches.to_vec()),
            ]
        };
        assert_eq!(launches(&both), of_both(&[0, 0]));
        assert_eq!(launches(&both.repeat(2)), of_both(&[0, 0, 1, 1]));
        // Files of results alone have no ends.
        assert_eq!(launches(&[run("a"), run("b")].concat().repeat(2)), of_both(&[0, 0, 1, 1]));
        let unnamed = "BenchmarkX 1 1 ns/op\nok  \ta\t(cached)\nBenchmarkX 1 1 ns/op\n";
        assert_eq!(launches(unnamed), [("BenchmarkX".to_owned(), vec![0, 1])]);
    }

    #[test]
    fn another_package_that_ends_meanwhile_ends_no_process() {
        let event = |package: &str, output: &str| {
            format!("{{\"Action\":\"output\",\"Package\":\"{package}\",\"Output\":\"{output}\\n\"}}\n")
        };
        let x = "BenchmarkX 1 1 ns/op";
        let text = [event("a", x), event("b", "PASS"), event("b", "ok  \\tb\\t0.1s"), event("a", x)].concat();
        let read = of(&text);
        assert_eq!((read.metrics.len(), read.metrics[0].launches.as_slice()), (1, &[0, 0][..]));
    }

    #[test]
    fn a_line_that_is_no_event_is_said() {
        let event = "{\"Action\":\"output\",\"Package\":\"a\",\"Output\":\"BenchmarkX 1 1 ns/op\\n\"}\n";
        let read = of(&format!("{event}{{\"Time\":\"2026-11-28T02:34:40Z\",\"Act\n"));
        assert_eq!((read.metrics[0].samples.len(), read.skipped_count, read.skipped[0].line), (1, 1, 2));
        // Without events it is what the benchmark printed.
        assert_eq!(of("BenchmarkX 1 1 ns/op\n{\"level\": \"info\"}\n").skipped_count, 0);
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
