//! [Catch2](https://github.com/catchorg/Catch2)'s benchmarks: the XML reporter, and what is printed on a console.

use super::shared::{Runs, at};
use crate::metrics::{Kind, Metrics};
use crate::reader::{Input, Reader};
use crate::units::in_base;
use quick_xml::events::{BytesStart, Event};
use std::collections::HashMap;
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "catch2",
    gets_wrong: &[
        "it prints no samples: what is left of a benchmark is a mean, which one slow sample moves",
        "its interval is a bootstrap of samples of one process: between two runs it differs by more",
        "BENCHMARK_ADVANCED without meter.measure times its own preparation",
    ],
    detect: |input| {
        input.head().any(|line| line.trim_start().starts_with("<BenchmarkResults ") || is_header(line))
    },
    read,
};

/// The first line above results on a console.
fn is_header(line: &str) -> bool {
    line.starts_with("benchmark name ") && line.contains(" samples ") && line.contains(" iterations ")
}

fn mean(benchmark: &str) -> Kind<'_> {
    Kind { benchmark, name: "mean", unit: "s", better: Some(Better::Lower) }
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let start = ["<?xml", "<Catch"].into_iter().filter_map(|start| input.text.find(start)).min();
    match start.filter(|_| input.text.contains("<BenchmarkResults ")) {
        Some(start) => documents(input.text, start, metrics),
        None => console(input.text, metrics),
    }
}

/// One document of XML behind the other.
fn documents(text: &str, start: usize, metrics: &mut Metrics) {
    let mut lines = Lines { text, at: 0, line: 1 };
    let (mut from, mut launch) = (start, 0);
    while let Some(end) = xml(&mut lines, from, launch, metrics) {
        let rest = &text[end..];
        let next = ["<?xml", "<Catch"].into_iter().filter_map(|start| rest.find(start)).min();
        let Some(next) = next else { return };
        (from, launch) = (end + next, launch + 1);
    }
}

/// The benchmark that is read.
#[derive(Default)]
struct Open {
    name: String,
    attributes: HashMap<String, String>,
    mean: Option<f64>,
    launch: u32,
}

fn attributes(start: &BytesStart<'_>) -> HashMap<String, String> {
    let mut all = start.attributes();
    all.with_checks(false)
        .flatten()
        .map(|attribute| {
            let key = String::from_utf8_lossy(attribute.key.as_ref()).into_owned();
            let raw = String::from_utf8_lossy(&attribute.value).into_owned();
            let value = quick_xml::escape::unescape(&raw).map_or(raw.clone(), std::borrow::Cow::into_owned);
            (key, value)
        })
        .collect()
}

/// One document, and where it ends; `None` where it does not.
fn xml(lines: &mut Lines<'_>, from: usize, launch: u32, metrics: &mut Metrics) -> Option<usize> {
    let text = lines.text;
    let mut reader = quick_xml::Reader::from_str(&text[from..]);
    let (mut path, mut open): (Vec<String>, Option<Open>) = (Vec::new(), None);
    let mut ended = false;
    loop {
        let event = match reader.read_event() {
            Ok(event) => event,
            Err(why) => {
                let line = lines.to(from + reader.error_position() as usize);
                metrics.skip(line, "the XML", &format!("it is broken or cut off here: {why}"));
                return None;
            }
        };
        let line = lines.to(from + reader.buffer_position() as usize);
        match &event {
            Event::Start(start) | Event::Empty(start) => {
                let is_empty = matches!(event, Event::Empty(_));
                let found = attributes(start);
                match start.local_name().as_ref() {
                    b"Catch" | b"Catch2TestRun" => program(&found, metrics),
                    b"TestCase" | b"Section" if !is_empty => {
                        path.push(found.get("name").cloned().unwrap_or_default());
                    }
                    b"BenchmarkResults" => {
                        let own = found.get("name").cloned().unwrap_or_default();
                        let name = path.iter().chain([&own]).cloned().collect::<Vec<_>>().join("/");
                        open = Some(Open { name, attributes: found, mean: None, launch });
                    }
                    element => {
                        if let Some(open) = &mut open {
                            element_of(line, element, &found, open, metrics);
                        }
                    }
                }
            }
            Event::End(end) => match end.local_name().as_ref() {
                b"TestCase" | b"Section" => drop(path.pop()),
                b"BenchmarkResults" => open = None,
                b"Catch" | b"Catch2TestRun" => ended = true,
                _ => {}
            },
            Event::Eof => break,
            _ => {}
        }
        // What stands behind the document is no XML.
        if ended {
            return Some(from + reader.buffer_position() as usize);
        }
    }
    metrics.skip(lines.to(text.len()), "the end", crate::json::CUT_OFF);
    None
}

fn program(found: &HashMap<String, String>, metrics: &mut Metrics) {
    for (key, value) in found {
        metrics.set(key, value);
    }
}

/// An element in the results of a benchmark.
fn element_of(
    line: u64,
    element: &[u8],
    found: &HashMap<String, String>,
    open: &mut Open,
    metrics: &mut Metrics,
) {
    let kind = mean(&open.name);
    let value = |key: &str| found.get(key).and_then(|value| value.parse::<f64>().ok());
    match element {
        b"failed" => {
            let why = found.get("message").map_or("", String::as_str);
            metrics.skip(line, &open.name, &format!("the benchmark failed: {why}"));
        }
        b"mean" => {
            let Some(ns) = value("value") else {
                return metrics.skip(line, &open.name, "its mean is no number");
            };
            open.mean = Some(ns);
            metrics.sample(line, kind, at(ns / 1e9, open.launch));
            for (setting, value) in open.attributes.iter().filter(|(setting, _)| *setting != "name") {
                metrics.set_of(kind, setting, value);
            }
            // Without analysis both ends are the mean, and their level is 0.
            if value("ci").is_some_and(|level| level > 0.0) {
                for (key, bound) in [("lowerBound", value("lowerBound")), ("upperBound", value("upperBound"))]
                {
                    metrics.summary(kind, key, bound.unwrap_or(f64::NAN) / 1e9);
                }
            }
        }
        b"standardDeviation" if value("ci").is_some_and(|level| level > 0.0) => {
            metrics.summary(kind, "standardDeviation", value("value").unwrap_or(f64::NAN) / 1e9);
        }
        b"outliers" => {
            let Some(share) = value("variance") else { return };
            metrics.summary(kind, "outliers variance", share);
            if let Some(ns) = open.mean.filter(|_| share > 0.5) {
                outliers(&open.name, share, ns, metrics);
            }
        }
        _ => {}
    }
}

fn outliers(benchmark: &str, share: f64, ns: f64, metrics: &mut Metrics) {
    metrics.warn(
        "tool-mean-has-outliers",
        &format!(
            "{benchmark}: {:.0} % of the spread is of outliers, and they are in its mean of {ns} ns",
            share * 100.0
        ),
        "run it on a quiet machine, with more samples (--benchmark-samples), several times",
    );
}

/// Counts lines on the way through a text.
struct Lines<'a> {
    text: &'a str,
    at: usize,
    line: u64,
}

impl Lines<'_> {
    fn to(&mut self, at: usize) -> u64 {
        if let Some(between) = self.text.as_bytes().get(self.at..at) {
            self.line += between.iter().filter(|byte| **byte == b'\n').count() as u64;
            self.at = at;
        }
        self.line
    }
}

/// Where in the text of a console a line stands.
enum Part {
    Other,
    /// Between two lines of dashes: the test case and its sections.
    Path,
    /// Above the dashes over the results.
    Header,
    Results,
}

struct Console {
    part: Part,
    path: Vec<String>,
    /// Beginnings of a name that goes on in the next line.
    name: Vec<String>,
    /// Without analysis there is a mean in the first line already.
    has_analysis: bool,
    /// The benchmark whose mean and standard deviation follow.
    waiting: Option<(String, u8)>,
    runs: Runs,
}

fn console(text: &str, metrics: &mut Metrics) {
    let mut state = Console {
        part: Part::Other,
        path: Vec::new(),
        name: Vec::new(),
        has_analysis: true,
        waiting: None,
        runs: Runs::default(),
    };
    for (line, number) in text.lines().zip(1..) {
        state.read(number, line.trim_end(), metrics);
    }
    if let Some((name, _)) = &state.waiting {
        metrics.skip(text.lines().count() as u64, name, crate::json::CUT_OFF);
    }
}

impl Console {
    fn read(&mut self, number: u64, line: &str, metrics: &mut Metrics) {
        let is_rule = |c: char| line.len() > 20 && line.chars().all(|other| other == c);
        if is_header(line) {
            self.has_analysis = !line.contains(" mean");
            self.part = Part::Header;
        } else if is_rule('-') {
            if let Some((name, _)) = self.waiting.take() {
                metrics.skip(number, &name, "its mean or deviation is missing");
            }
            self.part = match self.part {
                Part::Header => Part::Results,
                Part::Path => Part::Other,
                Part::Other | Part::Results => {
                    self.path.clear();
                    Part::Path
                }
            };
            self.name.clear();
        } else if is_rule('=') || is_rule('.') {
            self.part = Part::Other;
        } else {
            match self.part {
                Part::Path => self.path.push(line.trim().to_owned()),
                Part::Results => self.result(number, line, metrics),
                Part::Other => {
                    if let Some((_, version)) = line.split_once(" is a Catch v") {
                        metrics.set("catch2-version", version.split(' ').next().unwrap_or_default());
                    } else if let Some((_, version)) = line.split_once(" is a Catch2 v") {
                        metrics.set("catch2-version", version.split(' ').next().unwrap_or_default());
                    } else if let Some(seed) = line.strip_prefix("Randomness seeded to: ") {
                        metrics.set("rng-seed", seed);
                    }
                }
                Part::Header => {}
            }
        }
    }

    fn result(&mut self, number: u64, line: &str, metrics: &mut Metrics) {
        let words: Vec<&str> = line.split_whitespace().take(500).collect();
        if let Some((name, seen)) = self.waiting.take() {
            return self.analysis(number, name, seen, &words, metrics);
        }
        if let Some((name, why)) = line.split_once(" Benchmark failed") {
            let name = self.named(name.trim());
            return metrics.skip(number, &name, &format!("the benchmark failed{why}"));
        }
        let counts = words.len().checked_sub(4).and_then(|at| words.get(at..));
        let Some(&[samples, iterations, value, unit]) = counts else {
            return self.part_of_name(line);
        };
        let is_result = samples.parse::<u64>().is_ok() && iterations.parse::<u64>().is_ok();
        let Some(seconds) = seconds(value, unit).filter(|_| is_result) else {
            return self.part_of_name(line);
        };
        let own = words.get(..words.len() - 4).unwrap_or_default().join(" ");
        let name = self.named(&own);
        let launch = self.runs.of(&name);
        if self.has_analysis {
            self.waiting = Some((name.clone(), 0));
        } else {
            metrics.sample(number, mean(&name), at(seconds, launch));
        }
        metrics.set_of(mean(&name), "samples", samples);
        metrics.set_of(mean(&name), "iterations", iterations);
    }

    fn part_of_name(&mut self, line: &str) {
        if !line.trim().is_empty() && self.name.len() < 20 {
            self.name.push(line.trim().to_owned());
        }
    }

    /// The test case, its sections and the benchmark.
    fn named(&mut self, own: &str) -> String {
        let mut name = std::mem::take(&mut self.name);
        name.extend((!own.is_empty()).then(|| own.to_owned()));
        self.path.iter().cloned().chain([name.join(" ")]).collect::<Vec<_>>().join("/")
    }

    /// The second line has the mean and its interval, the third the same of the deviation.
    fn analysis(&mut self, number: u64, name: String, seen: u8, words: &[&str], metrics: &mut Metrics) {
        let &[value, unit, low, low_unit, high, high_unit] = words else {
            return metrics.skip(number, &name, "its mean or deviation is missing");
        };
        let Some(seconds_of) = seconds(value, unit) else {
            return metrics.skip(number, &name, "its mean is no number");
        };
        let kind = mean(&name);
        if seen == 0 {
            metrics.sample(number, kind, at(seconds_of, self.runs.current()));
            metrics.summary(kind, "lowerBound", seconds(low, low_unit).unwrap_or(f64::NAN));
            metrics.summary(kind, "upperBound", seconds(high, high_unit).unwrap_or(f64::NAN));
            self.waiting = Some((name, 1));
        } else {
            metrics.summary(kind, "standardDeviation", seconds_of);
        }
    }
}

fn seconds(value: &str, unit: &str) -> Option<f64> {
    let (seconds, base) = in_base(value.parse().ok()?, unit);
    (base == "s").then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xml_that_is_cut_off_says_so() {
        let text = "log\n<Catch2TestRun name=\"t\" rng-seed=\"1\">\n<TestCase name=\"T\">\n<BenchmarkResults name=\"b\" samples=\"2\">\n<mean value=\"5\" lowerBound=\"4\" upperBound=\"6\" ci=\"0.95\"/>\n<standardDev";
        let read = READER.read(&Input::of_text(text));
        assert_eq!(
            (read.metrics[0].benchmark.as_str(), read.metrics[0].samples.as_slice()),
            ("T/b", &[5e-9][..])
        );
        assert_eq!(read.skipped.len(), 1);
        assert_eq!(read.skipped[0].line, 6);
    }
}
