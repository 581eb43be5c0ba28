//! Ruby's [benchmark-ips](https://github.com/evanphx/benchmark-ips): its report, and the file of `x.json!`.

use super::shared::{Runs, at};
use crate::documents::{each_document, has};
use crate::json::number;
use crate::metrics::{Kind, Metrics};
use crate::reader::{Input, Reader};
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "benchmark-ips",
    gets_wrong: &[
        "a rate is of batches of about 100 ms: one slow call is not seen",
        "its deviation is of batches in one process: two runs differ by more",
        "the report has four digits of a rate",
    ],
    detect: |input| has(input, &[KEYS]) || input.head().any(|line| result(line).is_some()),
    read,
};

const KEYS: &[&str] = &["\"ips\"", "\"microseconds\"", "\"cycles\""];

fn rate(benchmark: &str) -> Kind<'_> {
    Kind { benchmark, name: "ips", unit: "i/s", better: Some(Better::Higher) }
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut found = false;
    let mut runs = Runs::default();
    each_document(input.text, &[KEYS], metrics, |metrics, line, document| {
        found = true;
        for one in document.as_array().into_iter().flatten() {
            let name = one["name"].as_str().unwrap_or_default();
            let launch = runs.of(name);
            let samples = one["samples"].as_array().filter(|samples| !samples.is_empty());
            for sample in samples.into_iter().flatten() {
                match number(sample) {
                    Some(value) => metrics.sample(line, rate(name), at(value, launch)),
                    None => metrics.skip(line, name, "a sample is no number"),
                }
            }
            match (samples, number(&one["ips"])) {
                (Some(_), Some(ips)) => metrics.summary(rate(name), "ips", ips),
                (None, Some(ips)) => metrics.sample(line, rate(name), at(ips, launch)),
                (_, None) => metrics.skip(line, name, "it has no ips"),
            }
            for key in ["stddev", "error"] {
                metrics.summary(rate(name), key, number(&one[key]).unwrap_or(f64::NAN));
            }
            for key in ["iterations", "cycles", "microseconds"] {
                if let Some(value) = number(&one[key]) {
                    metrics.set_of(rate(name), key, &value.to_string());
                }
            }
        }
    });
    if !found {
        report(input.text, metrics);
    }
}

fn report(text: &str, metrics: &mut Metrics) {
    let mut before = "";
    let mut runs = Runs::default();
    for (line, number) in text.lines().zip(1..) {
        if let Some((name, value, percent)) = result(line) {
            // A name that is too long stands alone in the line before.
            let name = if name.is_empty() { before.trim() } else { name };
            metrics.sample(number, rate(name), at(value, runs.of(name)));
            metrics.summary(rate(name), "deviation %", percent);
        } else if line.contains(") i/s ") && line.contains('±') {
            metrics.skip(number, line, "the line is cut off, or its rate is no number");
        } else if line.starts_with("ruby ") {
            metrics.set("ruby", line);
        }
        before = line;
    }
}

/// `addition  5.106M (±25.1%) i/s - 1.511M in 0.311150s`; newer versions have `(195.85 ns/i)` before the dash.
fn result(line: &str) -> Option<(&str, f64, f64)> {
    let (before, after) = line.split_once("%) i/s ")?;
    after.contains(" in ").then_some(())?;
    let (value, percent) = before.rsplit_once("(±")?;
    let value = value.trim_end();
    let at = value.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let (name, value) = (value.get(..at)?.trim(), value.get(at..)?);
    let scales = [('k', 1e3), ('M', 1e6), ('B', 1e9), ('T', 1e12), ('Q', 1e15)];
    let scale = scales.into_iter().find(|(letter, _)| value.ends_with(*letter));
    let digits: f64 = value.trim_end_matches(char::is_alphabetic).parse().ok()?;
    Some((name, digits * scale.map_or(1.0, |(_, scale)| scale), percent.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_new_lines_are_read() {
        let found = result("   slow  47.364  (± 6.3%) i/s -     16.000  in   0.339363s");
        assert_eq!(found, Some(("slow", 47.364, 6.3)));
        let found = result("  a b  5.106M (±25.1%) i/s  (195.85 ns/i) -  1.511M in   0.311150s");
        assert_eq!(found, Some(("a b", 5.106e6, 25.1)));
        assert_eq!(result("  a b  5.106M (±25.1%) i/s"), None);
    }

    #[test]
    fn samples_of_newer_versions_are_samples() {
        let read = READER.read(&Input::of_text(
            "[{\"name\": \"a\", \"ips\": 2.5, \"microseconds\": 1, \"cycles\": 1, \"samples\": [2, 3]}]",
        ));
        assert_eq!(
            (read.metrics[0].samples.as_slice(), read.metrics[0].summary["ips"]),
            (&[2.0, 3.0][..], 2.5)
        );
    }
}
