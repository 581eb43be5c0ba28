//! `7z b`, the benchmark of [7-Zip](https://7-zip.org/): speed and rating of compressing and decompressing, for each size of the dictionary.

use super::common::{HIGHER, kind};
use crate::metrics::{Metrics, Sample};
use crate::reader::{Input, Reader};

pub(crate) const READER: Reader = Reader {
    name: "7z",
    gets_wrong: &[
        "a rating (MIPS) is not a count of instructions: it is made from the time and a formula of this version",
        "the total is a mean of compressing and decompressing, which load memory and branches in different ways",
        "usage is CPU time over time: it does not say that the CPU was waiting for memory",
    ],
    detect: |input| {
        let is_head = |line: &str| {
            line.contains("Compressing") && line.contains("| ") && line.contains("Decompressing")
        };
        input.head().any(is_head) && input.head().any(|line| line.starts_with("Dict "))
    },
    read,
};

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut is_table = false;
    let mut launch = 0;
    let mut has_end = true;
    for (line, number) in input.text.lines().map(str::trim_end).zip(1..) {
        let words: Vec<&str> = line.split_whitespace().take(20).collect();
        match words.as_slice() {
            ["7-Zip", rest @ ..] => {
                // `7-Zip (z) 22.01 (x64) : …`; each start of the program prints it.
                let version = rest.iter().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
                metrics.set("version", version.copied().unwrap_or_default());
            }
            ["Dict", ..] => (is_table, has_end) = (true, false),
            ["Avr:", ..] => {}
            ["Tot:", usage, per_usage, rating] => {
                for (name, unit, value) in
                    [("usage", "%", usage), ("R/U", "MIPS", per_usage), ("rating", "MIPS", rating)]
                {
                    figure(number, "total", name, unit, value, launch, metrics);
                }
                launch += 1;
                (is_table, has_end) = (false, true);
            }
            [dictionary, figures @ ..] if is_table && dictionary.ends_with(':') => {
                let dictionary = dictionary.trim_end_matches(':');
                row(number, dictionary, figures, launch, metrics);
            }
            ["CPU", "Freq", ..] | ["RAM", "usage:", ..] | ["RAM", "size:", ..] => {
                let (name, value) = line.split_once(':').unwrap_or((line, ""));
                metrics.set(name.trim(), value.trim());
            }
            _ => {}
        }
    }
    if !has_end {
        metrics.skip(
            input.text.lines().count().max(1) as u64,
            "Tot:",
            "there is no total: it is cut off, or was stopped",
        );
    }
}

/// `22: 3213 169 1849 3126 | 37385 172 1858 3190`.
fn row(number: u64, dictionary: &str, figures: &[&str], launch: u32, metrics: &mut Metrics) {
    let [speed, usage, per_usage, rating, rest @ ..] = figures else {
        return metrics.skip(number, dictionary, "the line is cut off");
    };
    let half = |what: &str, [speed, usage, per_usage, rating]: [&str; 4], metrics: &mut Metrics| {
        let benchmark = format!("{what}, dictionary 2^{dictionary}");
        for (name, unit, value) in [
            ("speed", "B/s", speed),
            ("usage", "%", usage),
            ("R/U", "MIPS", per_usage),
            ("rating", "MIPS", rating),
        ] {
            figure(number, &benchmark, name, unit, value, launch, metrics);
        }
    };
    half("compressing", [speed, usage, per_usage, rating], metrics);
    match rest {
        ["|", speed, usage, per_usage, rating] => {
            half("decompressing", [speed, usage, per_usage, rating], metrics)
        }
        _ => metrics.skip(number, dictionary, "the line is cut off: it says nothing of decompressing"),
    }
}

fn figure(
    number: u64,
    benchmark: &str,
    name: &str,
    unit: &str,
    value: &str,
    launch: u32,
    metrics: &mut Metrics,
) {
    let scale = if unit == "B/s" { 1024.0 } else { 1.0 };
    let value = value.parse().map_or(f64::NAN, |value: f64| value * scale);
    let better = HIGHER.filter(|_| name != "usage");
    metrics.sample(
        number,
        kind(benchmark, name, unit, better),
        Sample { value, launch, ..Sample::default() },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_off_is_said() {
        let text = "            Compressing  |                  Decompressing\nDict     Speed Usage\n22:  10 100 5 5 | 20 100 6 6\n23:  10 100 5 5 |\n24: 1\n";
        assert!(READER.detects(&Input::of_text(text)));
        let read = READER.read(&Input::of_text(text));
        let first = &read.metrics[0];
        assert_eq!((first.benchmark.as_str(), first.samples[0]), ("compressing, dictionary 2^22", 10240.0));
        assert_eq!(read.skipped.iter().map(|skipped| skipped.line).collect::<Vec<_>>(), [4, 5, 5]);
    }
}
