//! Text of which nobody knows the form but the person who gives a regular expression for it.

use super::figures::{decimal, scaled, usual};
use crate::metrics::{Kind, Metrics, Sample};
use crate::reader::Input;
use regex::RegexBuilder;
use tare_model::tool::ToolMetrics;

/// What is said of results that were read by a pattern.
const FORMAT: &str = "regex";
/// What is wrong with all such results.
const GETS_WRONG: &[&str] = &[
    "what the pattern does not match is not read, and nothing says how much that is",
    "without a group launch all samples count as those of one process, and an interval between launches needs several",
];
/// Largest compiled pattern.
const SIZE_MAX: usize = 1 << 20;
/// Groups that have a meaning.
const GROUPS: [&str; 5] = ["value", "unit", "benchmark", "name", "launch"];

/// A sample of every match of `pattern`: its group `value`, and where there are such groups its `unit`, `benchmark`, `name` (of the metric) and
/// `launch`.
///
/// # Errors
/// What is wrong with the pattern, and how it would be right.
pub fn read_by_regex(pattern: &str, input: &Input<'_>) -> Result<ToolMetrics, String> {
    let hint = "write it like 'took (?<value>[0-9.]+) (?<unit>ms|s)'";
    let regex = RegexBuilder::new(pattern)
        .multi_line(true)
        .size_limit(SIZE_MAX)
        .dfa_size_limit(4 * SIZE_MAX)
        .build()
        .map_err(|why| format!("the pattern is no regular expression: {why}; {hint}"))?;
    let names: Vec<&str> = regex.capture_names().flatten().collect();
    if !names.contains(&"value") {
        return Err(format!("the pattern has no group named value; {hint}"));
    }
    if let Some(other) = names.iter().find(|name| !GROUPS.contains(name)) {
        return Err(format!(
            "the pattern has a group named {other}: groups are {}; {hint}",
            GROUPS.join(", ")
        ));
    }
    let mut metrics = Metrics::new(FORMAT);
    let (mut line, mut counted, mut found) = (1_u64, 0, false);
    for captures in regex.captures_iter(input.text) {
        let Some(value) = captures.name("value") else { continue };
        found = true;
        let between = input.text.get(counted..value.start()).unwrap_or_default();
        line += between.bytes().filter(|byte| *byte == b'\n').count() as u64;
        counted = value.start();
        let group = |name: &str| captures.name(name).map_or("", |group| group.as_str().trim());
        let number = match decimal(value.as_str()) {
            Ok(number) => number,
            Err(why) => {
                metrics.skip(line, value.as_str(), why);
                continue;
            }
        };
        let launch = match group("launch") {
            "" => 0,
            launch => launch.parse().unwrap_or_else(|_| {
                metrics.skip(
                    line,
                    launch,
                    "the launch is no whole number: the sample is counted to launch 0",
                );
                0
            }),
        };
        let (scaled, unit) = scaled(number, group("unit"));
        let name = if group("name").is_empty() { "value" } else { group("name") };
        let kind = Kind { benchmark: group("benchmark"), name, unit: &unit, better: usual(&unit) };
        metrics.sample(line, kind, Sample { value: scaled, launch, ..Sample::default() });
    }
    if !found {
        metrics.skip(1, pattern, "the pattern matches nothing");
    }
    Ok(metrics.finish(GETS_WRONG))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_match_is_a_sample() {
        let pattern = r"^(?<benchmark>\w+) run (?<launch>\d+): (?<value>\S+) (?<unit>\w+)$";
        let text = "log\nsort run 0: 12.5 ms\nsort run 1: x ms\nsort run 2: 14 ms\n";
        let read = read_by_regex(pattern, &Input::of_text(text)).unwrap();
        let metric = &read.metrics[0];
        assert_eq!((metric.benchmark.as_str(), metric.unit.as_str()), ("sort", "s"));
        assert_eq!(
            (metric.samples.as_slice(), metric.launches.as_slice()),
            (&[12.5e-3, 14e-3][..], &[0, 2][..])
        );
        assert_eq!((read.skipped[0].line, read.format.as_str()), (3, "regex"));
    }

    #[test]
    fn what_is_wrong_with_a_pattern_is_said() {
        let wrong = |pattern| read_by_regex(pattern, &Input::of_text("1")).unwrap_err();
        assert!(wrong("([0-9]+)").contains("no group named value"));
        assert!(wrong("(?<value>").contains("no regular expression"));
        assert!(wrong("(?<value>x)(?<units>y)").contains("named units"));
        assert!(wrong("(?<value>(\\w{1000}){1000})").contains("no regular expression"));
        let nothing = read_by_regex("z(?<value>1)", &Input::of_text("1")).unwrap();
        assert_eq!(nothing.skipped[0].why, "the pattern matches nothing");
    }
}
