//! [Vitest](https://vitest.dev/guide/features.html#benchmarking)'s `vitest bench`: what it prints, and `--outputJson`.

use super::shared::{Runs, at, grouped};
use super::tinybench;
use crate::documents::{each_document, has};
use crate::json::number;
use crate::metrics::{Kind, Metrics};
use crate::reader::{Input, Reader};
use std::collections::HashSet;
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "vitest",
    gets_wrong: &[
        "it prints times in milliseconds with four decimals: those of less than a microsecond have two digits or none",
        "each call is timed alone: of short ones a good part is the clock's own time and its steps",
        "its margin (rme) is of calls in one process: between two runs they differ by more",
    ],
    detect: |input| has(input, &[KEYS]) || input.head().any(is_header),
    read,
};

const KEYS: &[&str] = &["\"filepath\"", "\"groups\"", "\"fullName\"", "\"benchmarks\""];

const COLUMNS: [&str; 11] =
    ["name", "hz", "min", "max", "mean", "p75", "p99", "p995", "p999", "rme", "samples"];

fn is_header(line: &str) -> bool {
    line.trim_start().starts_with("name ") && line.split_whitespace().eq(COLUMNS)
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut found = false;
    let mut runs = Runs::default();
    each_document(input.text, &[KEYS], metrics, |metrics, line, document| {
        found = true;
        for file in document["files"].as_array().into_iter().flatten() {
            for group in file["groups"].as_array().into_iter().flatten() {
                let path = group["fullName"].as_str().unwrap_or_default();
                for one in group["benchmarks"].as_array().into_iter().flatten() {
                    let name = format!("{path} > {}", one["name"].as_str().unwrap_or_default());
                    match number(&one["mean"]) {
                        Some(_) => tinybench::statistics((line, runs.of(&name)), &name, "", one, metrics),
                        None => metrics.skip(line, &name, "the benchmark failed, or did not run"),
                    }
                }
            }
        }
    });
    if !found {
        printed(input.text, metrics);
    }
}

fn printed(text: &str, metrics: &mut Metrics) {
    let mut path = "";
    // Reporters that print a block again when it is done print the same lines.
    let mut seen = HashSet::new();
    let mut runs = Runs::default();
    for (line, number) in text.lines().zip(1..) {
        let trimmed = line.trim();
        let first = trimmed.chars().next().unwrap_or_default();
        let rest = trimmed.get(first.len_utf8()..).unwrap_or_default();
        match first {
            '✓' | '×' | '❯' if rest.starts_with(' ') => path = without_duration(rest.trim()),
            '·' => {
                let benchmark = |name: &str| format!("{path} > {name}");
                if let Some((name, values)) = row(rest) {
                    if seen.insert((path, trimmed)) {
                        let name = benchmark(&name);
                        result((number, runs.of(&name)), &name, values, metrics);
                    }
                } else {
                    metrics.skip(
                        number,
                        &benchmark(rest.trim()),
                        "there are no figures: it failed, or the line is cut off",
                    );
                }
            }
            '↓' if rest.contains("[skipped]") => {
                metrics.skip(number, rest.trim(), "the benchmark was skipped");
            }
            _ => {
                if let Some(version) = trimmed.strip_prefix("RUN  v").and_then(|rest| rest.split(' ').next())
                {
                    metrics.set("vitest", version);
                    runs.next();
                    seen.clear();
                }
            }
        }
    }
}

/// `x.bench.js > sort 407ms` without its last word, if that is a time.
fn without_duration(text: &str) -> &str {
    let is_time = |word: &str| {
        let digits = word.trim_end_matches(char::is_alphabetic);
        digits.len() < word.len() && digits.parse::<f64>().is_ok()
    };
    match text.rsplit_once(' ') {
        Some((path, word)) if is_time(word) => path.trim_end(),
        _ => text,
    }
}

/// The name, and the values from `hz` to `p999`, the margin and the number of samples.
fn row(text: &str) -> Option<(String, Vec<f64>)> {
    let words: Vec<&str> = text.split_whitespace().take(200).collect();
    let margin = words.iter().rposition(|word| word.starts_with('±') && word.ends_with('%'))?;
    let first = margin.checked_sub(8)?;
    let mut values: Vec<f64> =
        words.get(first..margin)?.iter().map(|word| grouped(word)).collect::<Option<_>>()?;
    values.push(words.get(margin)?.trim_start_matches('±').trim_end_matches('%').parse().ok()?);
    values.push(words.get(margin + 1).and_then(|word| grouped(word))?);
    Some((words.get(..first)?.join(" "), values))
}

fn result(place: (u64, u32), benchmark: &str, values: Vec<f64>, metrics: &mut Metrics) {
    let (line, launch) = place;
    if values.last() == Some(&0.0) {
        return metrics.skip(line, benchmark, "the benchmark failed: it has no samples");
    }
    let names = COLUMNS.iter().skip(1);
    for (name, value) in names.zip(&values).take(8) {
        let is_rate = *name == "hz";
        let better = Some(if is_rate { Better::Higher } else { Better::Lower });
        let unit = if is_rate { "op/s" } else { "s" };
        let value = if is_rate { *value } else { value / 1e3 };
        if value != 0.0 {
            metrics.sample(line, Kind { benchmark, name, unit, better }, at(value, launch));
        } else {
            let what = format!("{benchmark} {name}");
            metrics.skip(line, &what, "it is printed as 0.0000 ms: it is less than 50 ns, and not nothing");
            metrics.warn(
                "tool-rounds-times",
                &format!(
                    "{benchmark}: its {name} is printed as 0.0000 ms: it is less than 50 ns, and not nothing"
                ),
                "read the file of --outputJson, which has all digits; or let one call do more work",
            );
        }
    }
    let mean = Kind { benchmark, name: "mean", unit: "s", better: Some(Better::Lower) };
    if let &[.., margin, samples] = values.as_slice() {
        metrics.summary(mean, "rme %", margin);
        metrics.set_of(mean, "samples", &samples.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_have_blanks_and_numbers() {
        let (name, values) =
            row(" sort 10 items  1,234.50  0.0002  0.0100  0.0008  0.0010  0.0012  0.0040  0.0090  ±1.50%  12  [1.50x] ⇑").unwrap();
        assert_eq!((name.as_str(), values[0], values[8], values[9]), ("sort 10 items", 1234.5, 1.5, 12.0));
        assert_eq!(row(" cut 1,234.50  0.0002"), None);
        assert_eq!(without_duration("a.bench.ts > b 12ms"), "a.bench.ts > b");
    }
}
