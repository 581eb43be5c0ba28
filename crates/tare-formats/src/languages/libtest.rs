//! The benchmarks of Rust's own test crate (`#[bench]`): what `cargo bench` prints of them, as text or as JSON lines.

use super::fields::Launches;
use crate::metrics::{Kind, Metrics, Sample};
use crate::reader::{Input, Reader};
use crate::units::in_base;
use serde::Deserialize;
use std::borrow::Cow;
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "libtest-bench",
    gets_wrong: &[
        "what stands behind +/- is no error: it is the largest less the smallest of 50 samples of one process, outliers moved inside",
        "it prints one median for each run: the samples are lost",
        "outliers are moved to the 5th and 95th percentile before all else: slow calls are not seen",
    ],
    detect: |input| input.head().any(|line| bench(line).is_some() || message(line).is_some()),
    read,
};

/// A line of `--format json`.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    median: f64,
    #[serde(default)]
    deviation: f64,
    mib_per_second: Option<f64>,
}

/// One result.
struct Bench<'a> {
    name: Cow<'a, str>,
    /// Whether its unit is a known one.
    is_time: bool,
    time_s: f64,
    spread_s: f64,
    bytes_per_s: Option<f64>,
}

fn message(line: &str) -> Option<Bench<'_>> {
    if !line.starts_with('{') || !line.contains("\"bench\"") || !line.contains("\"deviation\"") {
        return None;
    }
    let message: Message<'_> = serde_json::from_str(line).ok()?;
    (message.kind == "bench").then(|| Bench {
        name: message.name,
        is_time: true,
        time_s: message.median / 1e9,
        spread_s: message.deviation / 1e9,
        // The word says MiB; what is printed is of 10⁶ bytes, as in the text.
        bytes_per_s: message.mib_per_second.map(|rate| rate * 1e6),
    })
}

/// `test NAME ... bench:  1,234.56 ns/iter (+/- 7) = 8 MB/s`.
fn bench(line: &str) -> Option<Bench<'_>> {
    let (name, rest) = line.strip_prefix("test ")?.split_once(" ... bench:")?;
    let mut words = rest.split_whitespace();
    let value = grouped(words.next()?)?;
    let unit = words.next()?.strip_suffix("/iter")?;
    let spread = match (words.next()?, words.next()?.strip_suffix(')')) {
        ("(+/-", Some(spread)) => grouped(spread)?,
        _ => return None,
    };
    let rate = match (words.next(), words.next(), words.next()) {
        (Some("="), Some(rate), Some("MB/s")) => grouped(rate).map(|rate| rate * 1e6),
        _ => None,
    };
    let (time_s, base) = in_base(value, unit);
    Some(Bench {
        name: Cow::Borrowed(name.trim()),
        is_time: base == "s",
        time_s,
        spread_s: in_base(spread, unit).0,
        bytes_per_s: rate,
    })
}

/// A number with a comma before each three digits.
fn grouped(word: &str) -> Option<f64> {
    word.replace(',', "").parse().ok()
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut launches = Launches::default();
    for (line, number) in input.text.lines().zip(1..) {
        let line = line.trim_end();
        if let Some(bench) = bench(line).or_else(|| message(line)) {
            if !bench.is_time {
                metrics.skip(number, line, "its unit is none of time that is known");
                continue;
            }
            // Each benchmark is once in a process.
            let launch = launches.next(&bench.name, 1);
            let sample = |value| Sample { value, launch, ..Sample::default() };
            let kind = |name, unit, better| Kind { benchmark: &bench.name, name, unit, better: Some(better) };
            let time = kind("bench", "s", Better::Lower);
            metrics.sample(number, time, sample(bench.time_s));
            metrics.summary(time, "+/-", bench.spread_s);
            if let Some(rate) = bench.bytes_per_s {
                metrics.sample(number, kind("throughput", "B/s", Better::Higher), sample(rate));
            }
        } else if line.starts_with("test ") && line.contains(" ... bench:") {
            metrics.skip(number, line, "the line is cut off, or has no number where the time should be");
        } else if is_failed(line) {
            metrics.skip(number, line, "the benchmark failed");
        }
    }
}

fn is_failed(line: &str) -> bool {
    line.starts_with("test ") && line.ends_with(" ... FAILED")
        || line.starts_with('{') && line.contains("\"event\": \"failed\"") && line.contains("\"test\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_new_lines_and_messages_are_read() {
        let text = "test a::b ... bench:       1,234 ns/iter (+/- 56) = 8 MB/s\n\
            { \"type\": \"bench\", \"name\": \"a::b\", \"median\": 12.5, \"deviation\": 2 }\n\
            test c ... bench:  1,00\n{ \"type\": \"test\", \"event\": \"failed\", \"name\": \"x\" }\ntest d ... FAILED\n";
        let read = READER.read(&Input::of_text(text));
        let found: Vec<_> =
            read.metrics.iter().map(|m| (m.name.as_str(), m.samples.clone(), m.launches.clone())).collect();
        assert_eq!(
            found,
            [("bench", vec![1234e-9, 12.5e-9], vec![0, 1]), ("throughput", vec![8e6], vec![0])]
        );
        assert_eq!(read.metrics[0].summary["+/-"], 2e-9);
        let lines: Vec<u64> = read.skipped.iter().map(|skipped| skipped.line).collect();
        assert_eq!(lines, [3, 4, 5]);
    }

    #[test]
    fn a_unit_that_is_no_time_is_not_taken_for_one() {
        let text = "test a ... bench:  12 cycles/iter (+/- 3)\ntest b ... bench:  1.5 ms/iter (+/- 0.5)\n";
        assert!(READER.detects(&Input::of_text(text)));
        let read = READER.read(&Input::of_text(text));
        assert_eq!((read.metrics.len(), read.metrics[0].benchmark.as_str()), (1, "b"));
        assert_eq!((read.skipped_count, read.skipped[0].line), (1, 1));
    }

    #[test]
    fn tests_alone_are_no_benchmarks() {
        assert!(!READER.detects(&Input::of_text("running 1 test\ntest a ... ok\ntest b ... FAILED\n")));
    }
}
