//! [stress-ng](https://github.com/ColinIanKing/stress-ng): the file of `--yaml`, and the lines of `--metrics` and `--metrics-brief`.

use super::common::{Counts, HIGHER, LOWER, kind};
use crate::metrics::{Metrics, Sample};
use crate::reader::{Input, Reader};
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "stress-ng",
    gets_wrong: &[
        "a bogo op is whatever a version of a stressor does in one turn: figures of two versions, or of two stressors, cannot be compared",
        "bogo ops by user and system time leave out how long a stressor waited: they stay high on a machine that is overloaded",
        "figures are sums or means over all instances of a stressor: how they differ is not said",
    ],
    detect: |input| {
        input.head().any(|line| {
            line.trim_start().starts_with("stress-ng-version:")
                || line
                    .strip_prefix("stress-ng: ")
                    .is_some_and(|rest| rest.contains(": ") && rest.contains('[') && rest.contains("] "))
        })
    },
    read,
};

/// Rates by CPU time that are so much higher than by the clock are of a stressor that waited.
const WAITED: f64 = 1.2;
/// What of the machine is kept.
const SETTINGS: &[&str] = &[
    "stress-ng-version",
    "sysname",
    "release",
    "version",
    "machine",
    "compiler",
    "cpus",
    "cpus-online",
    "totalram",
    "pagesize",
];
/// As stress-ng has it.
const MB: f64 = 1024.0 * 1024.0;

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut state = State::default();
    for (line, number) in input.text.lines().map(str::trim_end).zip(1..) {
        match line.strip_prefix("stress-ng: ") {
            Some(rest) => state.printed(rest, number, metrics),
            None => state.yaml(line, number, metrics),
        }
    }
    if let Some(number) = state.begun_at {
        metrics.skip(number, "metrics", "the file has no end (`...`): it is cut off");
    }
    if state.has_bogo {
        let version = state.version.as_deref().map_or(String::new(), |version| format!(" {version}"));
        metrics.warn(
            "tool-unit-differs-by-version",
            &format!("bogo ops of stress-ng{version} are of this version and this stressor alone"),
            "compare them only with figures of the same version, stressor and options",
        );
    }
}

#[derive(Default)]
struct State {
    version: Option<String>,
    has_bogo: bool,
    /// Where a YAML file begins that has no end yet.
    begun_at: Option<u64>,
    /// The section of the YAML file.
    section: String,
    stressor: String,
    launches: Counts,
    launch: u32,
    by_clock: Option<f64>,
    by_cpu: Option<f64>,
}

impl State {
    /// `metrc: [23341] cpu 286 1.01 …`; before version 0.15 it is `info:`.
    fn printed(&mut self, rest: &str, number: u64, metrics: &mut Metrics) {
        let Some((level, text)) =
            rest.split_once(": ").map(|(level, text)| (level.trim(), text.trim_start()))
        else {
            return;
        };
        let text = text.split_once("] ").map_or(text, |(_, text)| text);
        match level {
            "fail" | "error" => return metrics.skip(number, text, "stress-ng says that this failed"),
            "metrc" | "info" => {}
            _ => return,
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let figures: Option<Vec<f64>> = words.iter().skip(1).map(|word| word.parse().ok()).collect();
        let stressor = words.first().copied().unwrap_or_default();
        match figures {
            Some(figures) if figures.len() >= 6 => self.row(stressor, &figures, number, metrics),
            _ if level == "metrc" && text.contains(" mean of ") => self.more(stressor, text, number, metrics),
            _ if words.starts_with(&["unsuccessful", "run"]) => {
                metrics.skip(number, text, "stress-ng says that the run failed");
            }
            _ if level == "metrc"
                && words.len() > 2
                && words.get(1).is_some_and(|word| word.parse::<u64>().is_ok()) =>
            {
                metrics.skip(number, stressor, "the line is cut off");
            }
            _ => {}
        }
    }

    /// `cpu 286 1.01 0.16 0.00 283.03 1739.63`, and from 0.15 on, where asked for, share of the CPU and resident size.
    fn row(&mut self, stressor: &str, figures: &[f64], number: u64, metrics: &mut Metrics) {
        self.begin(stressor);
        const COLUMNS: [&str; 8] = [
            "bogo-ops",
            "wall-clock-time",
            "user-time",
            "system-time",
            "bogo-ops-per-second-real-time",
            "bogo-ops-per-second-usr-sys-time",
            "cpu-usage-per-instance",
            "max-rss",
        ];
        for (name, value) in COLUMNS.into_iter().zip(figures) {
            self.figure(name, *value, number, metrics);
        }
    }

    /// `fault 2984.04 minor page faults per sec (geometic mean of 1 instances)`.
    fn more(&mut self, stressor: &str, text: &str, number: u64, metrics: &mut Metrics) {
        let what = text.rsplit_once(" (").map_or(text, |(what, _)| what).trim();
        let rest = what.strip_prefix(stressor).unwrap_or_default().trim_start();
        let Some((value, name)) = rest.split_once(' ') else { return };
        match value.parse() {
            Ok(value) => {
                stressor.clone_into(&mut self.stressor);
                self.launch = self.launches.of(stressor).saturating_sub(1);
                self.figure(name.trim(), value, number, metrics);
            }
            Err(_) => metrics.skip(number, text, "its value is no number"),
        }
    }

    fn begin(&mut self, stressor: &str) {
        stressor.clone_into(&mut self.stressor);
        self.launch = self.launches.next(stressor);
        (self.by_clock, self.by_cpu) = (None, None);
    }

    /// A line of the YAML file, which has no more than lists of `key: value` in sections.
    fn yaml(&mut self, line: &str, number: u64, metrics: &mut Metrics) {
        match line {
            "---" => self.begun_at = Some(number),
            "..." => self.begun_at = None,
            _ => {}
        }
        let Some((key, value)) = line.split_once(':') else { return };
        let value = value.trim().trim_matches('\'');
        if !line.starts_with([' ', '-']) {
            key.clone_into(&mut self.section);
            self.stressor.clear();
            return;
        }
        let key = key.trim();
        match (self.section.as_str(), key.strip_prefix("- ")) {
            ("metrics", Some("stressor")) => self.begin(value),
            ("perfstats", Some("stressor")) => value.clone_into(&mut self.stressor),
            ("metrics" | "perfstats", None) if !self.stressor.is_empty() => match value.parse() {
                Ok(value) => self.figure(key, value, number, metrics),
                Err(_) => metrics.skip(number, key, "its value is no number, or the file is cut off"),
            },
            ("system-info", None) => {
                if key == "stress-ng-version" {
                    self.version = Some(value.to_owned());
                }
                if SETTINGS.contains(&key) {
                    metrics.set(key, value);
                }
            }
            ("times", None) => metrics.set(&format!("times: {key}"), value),
            _ => {}
        }
    }

    fn figure(&mut self, name: &str, value: f64, number: u64, metrics: &mut Metrics) {
        match name {
            "bogo-ops-per-second-real-time" => self.by_clock = Some(value),
            "bogo-ops-per-second-usr-sys-time" => self.by_cpu = Some(value),
            _ => {}
        }
        self.has_bogo |= name.starts_with("bogo-ops");
        let (unit, scale, better) = unit(name);
        // Divided, so that nanoseconds stay exact.
        let value = if scale < 1.0 { value / (1.0 / scale) } else { value * scale };
        let sample = Sample { value, launch: self.launch, ..Sample::default() };
        metrics.sample(number, kind(&self.stressor, name, unit, better), sample);
        let waited =
            self.by_clock.zip(self.by_cpu).filter(|(clock, cpu)| *clock > 0.0 && *cpu > clock * WAITED);
        if let Some((clock, cpu)) = waited {
            metrics.warn(
                "tool-divides-by-cpu-time",
                &format!(
                    "`{}` did {clock:.1} bogo ops a second by the clock and {cpu:.1} by its CPU time: it waited for the rest",
                    self.stressor
                ),
                "quote bogo-ops-per-second-real-time: what the stressor waited for is in it",
            );
        }
    }
}

/// Unit, by what a value is multiplied to have it in this one, and which way is better.
fn unit(name: &str) -> (&'static str, f64, Option<Better>) {
    match name {
        "bogo-ops" => ("bogo-op", 1.0, None),
        "bogo-ops-per-second-real-time" | "bogo-ops-per-second-usr-sys-time" => ("bogo-op/s", 1.0, HIGHER),
        "wall-clock-time" | "user-time" | "system-time" | "duration" => ("s", 1.0, None),
        "cpu-usage-per-instance" => ("%", 1.0, None),
        "max-rss" => ("B", 1024.0, LOWER),
        _ if name.starts_with("MB/sec") || name.starts_with("mbsec-") => ("B/s", MB, HIGHER),
        _ if name.starts_with("MB per sec") || name.starts_with("mb-per-sec") => ("B/s", MB, HIGHER),
        _ if name.starts_with("nanosecs ") || name.starts_with("nanosecs-") => ("s", 1e-9, LOWER),
        _ if name.starts_with("nanoseconds ") || name.starts_with("nanoseconds-") => ("s", 1e-9, LOWER),
        "cpu_clock_total" | "task_clock_total" => ("s", 1e-9, None),
        "cpu_clock_per_second" | "task_clock_per_second" => ("s/s", 1e-9, None),
        _ if name.ends_with("_per_second") => ("1/s", 1.0, None),
        // More faults in a second are better for a stressor of faults, and worse for another.
        _ if name.contains("faults") && (name.ends_with("per sec") || name.ends_with("per-sec")) => {
            ("1/s", 1.0, None)
        }
        _ if name.ends_with("per sec") || name.ends_with("per-sec") => ("1/s", 1.0, HIGHER),
        _ => ("1", 1.0, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> tare_model::tool::ToolMetrics {
        assert!(READER.detects(&Input::of_text(text)));
        READER.read(&Input::of_text(text))
    }

    #[test]
    fn older_versions_print_the_same_as_information() {
        let line = "stress-ng: info:  [1] cpu 286 1.01 0.16 0.00 283.03 284.63\n";
        let read = of(&line.repeat(2));
        assert_eq!(read.metrics.len(), 6);
        let rate = read.metrics.iter().find(|m| m.name == "bogo-ops-per-second-real-time").unwrap();
        assert_eq!((rate.samples.clone(), rate.launches.clone()), (vec![283.03, 283.03], vec![0, 1]));
        assert_eq!(read.warnings.len(), 1);
    }

    #[test]
    fn waits_failures_and_what_is_cut_off_are_said() {
        let read = of(
            "stress-ng: fail:  [1] cpu: wrong result\nstress-ng: metrc: [1] cpu 286 1.01 0.16 0.00 283.03 1739.63\n\
            stress-ng: metrc: [1] vm 286 1.01\nstress-ng: metrc: [1] cpu 2.5 MB/sec read rate (geometic mean of 1 instances)\n",
        );
        let lines: Vec<u64> = read.skipped.iter().map(|skipped| skipped.line).collect();
        assert_eq!(lines, [1, 3]);
        assert!(
            read.warnings
                .iter()
                .any(|warning| warning.text.contains("283.0 bogo ops a second by the clock and 1739.6"))
        );
        let last = read.metrics.last().unwrap();
        assert_eq!(
            (last.name.as_str(), last.unit.as_str(), last.samples[0]),
            ("MB/sec read rate", "B/s", 2.5 * MB)
        );
    }
}
