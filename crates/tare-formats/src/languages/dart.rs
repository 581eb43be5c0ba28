//! Dart's [benchmark_harness](https://pub.dev/packages/benchmark_harness): `Name(RunTime): 123.4 us.`

use super::shared::{Runs, at};
use crate::metrics::{Kind, Metrics};
use crate::reader::{Input, Reader};
use crate::units::in_base;
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "dart",
    gets_wrong: &[
        "a figure is a mean over about two seconds of one process: it says nothing of how much runs differ",
        "by default one run is ten of the method (exercise): RunTime is of run, or of exercise where a benchmark calls that itself",
    ],
    detect: |input| input.head().any(|line| result(line).is_some_and(|found| found.1 == "RunTime")),
    read,
};

/// Name, metric, value and unit.
fn result(line: &str) -> Option<(&str, &str, f64, &str)> {
    let (before, after) = line.trim_end().rsplit_once("): ")?;
    let (name, metric) = before.rsplit_once('(')?;
    let is_word = !metric.is_empty() && metric.chars().all(|c| c.is_ascii_alphanumeric());
    let after = after.strip_suffix('.').unwrap_or(after);
    let (value, unit) = after.split_once(' ').unwrap_or((after, ""));
    let is_unit = unit.chars().all(|c| c.is_alphabetic());
    (is_word && is_unit && (metric != "RunTime" || unit == "us")).then_some((
        name.trim(),
        metric,
        value.parse().ok()?,
        unit,
    ))
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut runs = Runs::default();
    for (line, number) in input.text.lines().zip(1..) {
        if let Some((benchmark, name, value, unit)) = result(line) {
            let (value, unit) = in_base(value, unit);
            let better = Some(Better::Lower).filter(|_| name == "RunTime");
            let launch = runs.of(&format!("{benchmark} {name}"));
            metrics.sample(number, Kind { benchmark, name, unit, better }, at(value, launch));
        } else if line.contains("(RunTime)") {
            metrics.skip(number, line, "the line is cut off, or its time is no number");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_with_and_without_its_point() {
        assert_eq!(result("A(RunTime): 12.5 us."), Some(("A", "RunTime", 12.5, "us")));
        assert_eq!(result("A b(x)(CpuCycles): 7"), Some(("A b(x)", "CpuCycles", 7.0, "")));
        assert_eq!(result("A(RunTime): "), None);
        assert_eq!(result("A(RunTime): 12."), None);
    }
}
