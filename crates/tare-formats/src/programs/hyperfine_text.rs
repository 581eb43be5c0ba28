//! What hyperfine prints for people: figures over all runs of each command, from version 2 on one line for each metric.

use super::common::{LOWER, Names, kind};
use super::hyperfine_2::base;
use super::hyperfine_summaries::deviation;
use super::hyperfine_warnings::short;
use crate::metrics::Metrics;
use crate::units::in_base;
use std::collections::HashSet;

/// `Benchmark 1: sleep 0.1`, its number and command; before version 1.12 it is `Benchmark #1: …`.
fn head(line: &str) -> Option<(u32, &str)> {
    let rest = line.strip_prefix("Benchmark ")?;
    let (number, command) = rest.trim_start_matches('#').split_once(": ")?;
    number.parse::<u32>().ok().map(|number| (number, command))
}

/// Whether what is printed of a command begins here.
pub(super) fn is_head(line: &str) -> bool {
    head(line).is_some()
}

/// `Time (mean ± σ): …`, and of a single run `Time (abs ≡): …`.
fn time(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("Time (mean ± σ):").or_else(|| line.strip_prefix("Time (abs ≡):"))
}

/// Whether only hyperfine prints such a line.
pub(super) fn is_line(line: &str) -> bool {
    let is_of_one_run = head(line).is_some_and(|(_, command)| command.ends_with(" (1 run)"));
    time(line).is_some() || is_table_head(line) || is_of_one_run
}

/// From version 2 on: `mean     ±       σ          min     …     max`.
fn is_table_head(line: &str) -> bool {
    line.split_whitespace().take(7).eq(["mean", "±", "σ", "min", "…", "max"])
}

/// By what the JSON file calls a row of the table.
const ROWS: [(&str, &str); 10] = [
    ("Wall Time", "time_wall_clock"),
    ("CPU time", "time_cpu"),
    ("User time", "time_user"),
    ("System time", "time_system"),
    ("Memory", "memory_peak_resident"),
    ("CPU cycles", "cpu_cycles"),
    ("Instructions", "instructions"),
    ("Cache references", "cache_references"),
    ("Cache misses", "cache_misses"),
    ("Branch misses", "branch_misses"),
];

/// `Wall Time      4.9 ms  ±     5.3 ms       0.9 ms  …    10.9 ms           +34.1%  (1.3x slower)`; of one run only the first figure.
fn row(benchmark: &str, line: &str, number: u64, metrics: &mut Metrics) -> bool {
    let found = ROWS.iter().find_map(|(label, name)| Some((*name, line.trim_start().strip_prefix(*label)?)));
    let Some((metric, figures)) = found else { return false };
    let mut words = figures.split_whitespace().peekable();
    for what in ["mean", "stddev", "min", "max"] {
        let Some(value) = words.next() else { break };
        let Ok(value) = value.parse::<f64>() else {
            metrics.skip(number, benchmark, &format!("the {what} of {metric} is no number, or is cut off"));
            break;
        };
        let is_unit = |word: &&str| word.starts_with(char::is_alphabetic) || word.starts_with('µ');
        let unit = words.next_if(is_unit).unwrap_or("count");
        let (value, unit) = base(metric, value, unit);
        let of = format!("{metric} {what}");
        if what == "stddev" {
            deviation(kind(benchmark, &format!("{metric} mean"), unit, LOWER), value, metrics);
        } else {
            metrics.sample(number, kind(benchmark, &of, unit, LOWER), value);
        }
        if (metric, what) == ("time_wall_clock", "mean") {
            short(benchmark, "mean", Some(value), metrics);
        }
        // What follows is compared with the first command.
        if words.next_if(|word| matches!(*word, "±" | "…")).is_none() && what != "stddev" {
            break;
        }
    }
    true
}

/// Every command below its head, but for those that are known.
pub(super) fn read(text: &str, known: &HashSet<String>, metrics: &mut Metrics) {
    let mut begun: Option<(String, u64)> = None;
    let mut has_time = false;
    let (mut names, mut last) = (Names::default(), 0);
    for (line, number) in text.lines().map(str::trim_end).zip(1..) {
        if let Some((place, command)) = head(line) {
            end(&begun, has_time, metrics);
            has_time = false;
            // What another run of it printed was appended.
            if place <= last {
                names = Names::default();
                metrics.next_launch();
            }
            last = place;
            // Version 2 says behind the name how many runs there were.
            let runs =
                command.rsplit_once(" (").filter(|(_, runs)| runs.ends_with(" runs)") || *runs == "1 run)");
            let command = runs.map_or(command, |(name, _)| name).trim_end();
            begun = (!known.contains(command)).then(|| (names.unique(command.to_owned()), number));
            continue;
        }
        let Some((benchmark, _)) = &begun else { continue };
        if line.starts_with("  ") && row(benchmark, line, number, metrics) {
            has_time = true;
        } else if let Some(figures) = time(line) {
            has_time = true;
            times(benchmark, figures, number, metrics);
        } else if let Some(figures) = line.trim_start().strip_prefix("Range (min … max):") {
            range(benchmark, figures, number, metrics);
        } else if line.starts_with("Error: ") {
            has_time = true;
            metrics.skip(number, benchmark, &format!("hyperfine says: {line}"));
        } else if line.contains("Ignoring non-zero exit code") {
            metrics.warn(
                "tool-counts-failures",
                &format!("runs of `{benchmark}` failed, and their times are among the others"),
                "a failed run may end early: run the command alone and see why it fails; leave -i out",
            );
        }
    }
    end(&begun, has_time, metrics);
}

fn end(begun: &Option<(String, u64)>, has_time: bool, metrics: &mut Metrics) {
    if let Some((benchmark, number)) = begun.as_ref().filter(|_| !has_time) {
        metrics.skip(*number, benchmark, "no time stands below it: it failed, or the text is cut off");
    }
}

/// `101.2 ms ±   0.3 ms    [User: 0.9 ms, System: 0.5 ms]`.
fn times(benchmark: &str, text: &str, number: u64, metrics: &mut Metrics) {
    let (times, cpu) = text.split_once('[').unwrap_or((text, ""));
    let (mean, deviated) = times.split_once('±').unwrap_or((times, ""));
    let mean = seconds(mean);
    let of = kind(benchmark, "time mean", "s", LOWER);
    metrics.sample(number, of, mean.unwrap_or(f64::NAN));
    if let Some(value) = seconds(deviated) {
        deviation(of, value, metrics);
    }
    for part in cpu.trim_end_matches(']').split(", ") {
        let Some((name, value)) = part.split_once(": ") else { continue };
        let name = match name {
            "User" => "user mean",
            "System" => "system mean",
            _ => continue,
        };
        metrics.sample(number, kind(benchmark, name, "s", LOWER), seconds(value).unwrap_or(f64::NAN));
    }
    short(benchmark, "mean", mean, metrics);
}

/// `1.4 ms …   4.9 ms    3 runs`.
fn range(benchmark: &str, text: &str, number: u64, metrics: &mut Metrics) {
    let Some((least, rest)) = text.split_once('…') else {
        return metrics.skip(number, benchmark, "the range of its times is cut off");
    };
    let words: Vec<&str> = rest.split_whitespace().collect();
    for (name, value) in [("time min", least), ("time max", rest)] {
        metrics.sample(number, kind(benchmark, name, "s", LOWER), seconds(value).unwrap_or(f64::NAN));
    }
    if let [.., runs, "runs"] = words.as_slice() {
        metrics.set_of(kind(benchmark, "time mean", "s", LOWER), "runs", runs);
    }
}

/// The first value and its unit.
fn seconds(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let value = words.next()?.parse().ok()?;
    let (value, unit) = in_base(value, words.next()?);
    (unit == "s").then_some(value)
}

#[cfg(test)]
mod tests {
    use super::super::hyperfine::READER;
    use crate::reader::Input;

    #[test]
    fn one_run_of_version_2_has_values_alone() {
        let text = "Benchmark 1: seq 1 (1 run)\n               Value\n  Wall Time      1.5 ms\n  Memory         2.0 MiB\n";
        assert!(READER.detects(&Input::of_text(text)));
        let read = READER.read(&Input::of_text(text));
        let found: Vec<_> =
            read.metrics.iter().map(|m| (m.benchmark.as_str(), m.name.as_str(), m.samples[0])).collect();
        assert_eq!(
            found,
            [
                ("seq 1", "time_wall_clock mean", 0.0015),
                ("seq 1", "memory_peak_resident mean", 2.0 * 1024.0 * 1024.0)
            ]
        );
    }

    #[test]
    fn what_another_run_printed_is_of_another_launch() {
        let text = "Benchmark 1: a\n  Time (abs ≡):        1.003 s\nBenchmark 2: a\n  Time (abs ≡):        2.003 s\n";
        let read = READER.read(&Input::of_text(&text.repeat(2)));
        let found: Vec<_> =
            read.metrics.iter().map(|m| (m.benchmark.as_str(), m.launches.as_slice())).collect();
        assert_eq!(found, [("a", &[0, 1][..]), ("a #2", &[0, 1][..])]);
    }

    #[test]
    fn one_run_has_no_deviation_and_one_without_time_is_said() {
        let text = "Benchmark #1: a\n  Time (abs ≡):        1.003 s               [User: 1.0 ms, System: 2.0 ms]\n\nBenchmark #2: b\n";
        assert!(READER.detects(&Input::of_text(text)));
        let read = READER.read(&Input::of_text(text));
        let found: Vec<_> = read.metrics.iter().map(|m| (m.name.as_str(), m.samples[0])).collect();
        assert_eq!(found, [("time mean", 1.003), ("user mean", 0.001), ("system mean", 0.002)]);
        assert_eq!(read.skipped[0].line, 4);
    }
}
