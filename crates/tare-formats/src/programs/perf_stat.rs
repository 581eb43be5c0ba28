//! `perf stat`: CSV (`-x`), JSON lines (`-j`) and its text, of all, of intervals (`-I`), of CPUs (`-A`), of sockets, cores, threads and control groups.

use super::common::{Counts, LOWER, kind};
use super::perf_stat_count::Count;
use super::perf_stat_csv as csv;
use super::perf_stat_text::{self as text, Text};
use crate::metrics::{Metrics, Sample};
use crate::reader::{Input, Reader};
use crate::units::in_base;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "perf-stat",
    gets_wrong: &[
        "where more events are counted than the CPU has counters, each is counted for a part of the time and the count is scaled up: a guess",
        "with -r only the mean of the runs is printed, not the runs",
        "the counts of a program leave out what the kernel does for it in other processes (interrupts, kernel threads)",
    ],
    detect: |input| {
        input
            .head()
            .any(|line| csv::Line::of(line).is_some() || Event::of(line).is_some() || text::is_head(line))
    },
    read,
};

/// A line of `-j`. Numbers that may be words are strings there.
#[derive(Debug, Deserialize)]
struct Event<'a> {
    #[serde(default)]
    interval: Option<f64>,
    #[serde(default, borrow)]
    cpu: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    core: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    socket: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    die: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    cluster: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    cache: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    node: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    thread: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    cgroup: Option<&'a str>,
    #[serde(rename = "counter-value", borrow)]
    value: Cow<'a, str>,
    #[serde(default, borrow)]
    unit: Cow<'a, str>,
    #[serde(borrow)]
    event: Cow<'a, str>,
    #[serde(default)]
    variance: Option<f64>,
    #[serde(default, rename = "pcnt-running")]
    running: Option<f64>,
    #[serde(default, rename = "metric-value")]
    metric_value: Option<Word<'a>>,
    #[serde(default, rename = "metric-unit", borrow)]
    metric_unit: Option<Cow<'a, str>>,
}

/// Version 6.1 prints a number, later ones the number in quotation marks.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Word<'a> {
    Number(f64),
    Text(#[serde(borrow)] Cow<'a, str>),
}

impl<'a> Event<'a> {
    fn of(line: &'a str) -> Option<Count<'a>> {
        let line = line.trim();
        if !line.starts_with('{') || !line.contains("\"counter-value\"") {
            return None;
        }
        let event: Event<'a> = serde_json::from_str(line).ok()?;
        let value = match event.metric_value {
            Some(Word::Number(value)) => Some(value),
            Some(Word::Text(text)) => text.parse().ok(),
            None => None,
        };
        let unit = event.metric_unit.filter(|unit| !unit.is_empty());
        let cpu = event.cpu.map(|cpu| match cpu.parse::<u32>() {
            Ok(number) => Cow::Owned(format!("CPU{number}")),
            Err(_) => cpu,
        });
        let places =
            [event.core, event.die, event.cluster, event.cache, event.socket, event.node, event.thread];
        Some(Count {
            at_s: event.interval,
            is_total: false,
            command: None,
            place: cpu.or_else(|| places.into_iter().flatten().next()),
            cgroup: event.cgroup,
            value: event.value,
            unit: event.unit,
            event: event.event,
            variance: event.variance,
            running: event.running,
            derived: value.zip(unit),
        })
    }
}

/// What holds from one line to the next.
#[derive(Default)]
struct State {
    launches: Counts,
    /// Event -> least share of the time in which it was counted.
    scaled: BTreeMap<String, f64>,
    /// End of the last interval of each metric, and its launch.
    last_at_s: HashMap<String, (f64, u32)>,
    /// Room for one key.
    key: String,
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let (mut state, mut text) = (State::default(), Text::default());
    for (line, number) in input.text.lines().zip(1..) {
        let count = if line.trim_start().starts_with('{') {
            Event::of(line)
        } else {
            csv::Line::of(line).or_else(|| csv::derived(line)).or_else(|| text.line(line))
        };
        match count {
            Some(count) => state.count(number, &count, metrics),
            None if line.contains("\"counter-value\"") => {
                metrics.skip(number, line, "the line is no JSON: cut off, or others wrote into it");
            }
            None if csv::is_broken(line) => {
                metrics.skip(number, line, "the line is cut off, or has a comma for a point")
            }
            None => {}
        }
    }
    let worst = state.scaled.iter().min_by(|a, b| a.1.total_cmp(b.1));
    if let Some((event, percent)) = worst {
        metrics.warn(
            "tool-scales-counts",
            &format!(
                "{} events were counted for a part of the time and scaled up, `{event}` for {percent} % of it",
                state.scaled.len()
            ),
            "count fewer events at once, or group those that are compared: -e '{a,b}'",
        );
    }
}

impl State {
    fn count(&mut self, line: u64, count: &Count<'_>, metrics: &mut Metrics) {
        let cpu = count.place.as_deref().and_then(|place| place.strip_prefix("CPU")?.parse::<u32>().ok());
        let place = count.place.as_deref().filter(|_| cpu.is_none());
        let benchmark =
            [count.command, place, count.cgroup].into_iter().flatten().collect::<Vec<_>>().join(" ");
        if count.event.is_empty() {
            // A line of its own for a second figure of the event before.
            return self.derived(line, count, &benchmark, cpu, 0, metrics);
        }
        let event: &str = &count.event;
        let value = match count.value.trim() {
            "<not supported>" => {
                return metrics.skip(
                    line,
                    event,
                    "perf says <not supported>: this machine does not count it",
                );
            }
            "<not counted>" => {
                return metrics.skip(
                    line,
                    event,
                    "perf says <not counted>: nothing ran, or no counter was free",
                );
            }
            text::UNCLEAR => {
                return metrics.skip(
                    line,
                    event,
                    "a count with decimals, or with groups that are not of three digits: nothing says its unit",
                );
            }
            value => value.parse().unwrap_or(f64::NAN),
        };
        let (value, unit) = in_base(value, &count.unit);
        let unit = if unit.is_empty() { "1" } else { unit };
        let of = kind(&benchmark, event, unit, better(event));
        if count.is_total {
            return metrics.summary(of, "total", value);
        }
        let launch = self.launch(&benchmark, event, cpu, count.at_s);
        metrics.sample(line, of, Sample { value, launch, worker: cpu, at_s: count.at_s });
        if let Some(percent) = count.variance {
            metrics.summary(of, "variance %", percent);
        }
        if let Some(percent) = count.running.filter(|percent| *percent < 100.0) {
            metrics.summary(of, "running %", percent);
            let least = self.scaled.entry(event.to_owned()).or_insert(percent);
            *least = least.min(percent);
        }
        self.derived(line, count, &benchmark, cpu, launch, metrics);
    }

    /// A new one begins where the clock of the intervals begins again, and without intervals where the event comes again.
    fn launch(&mut self, benchmark: &str, event: &str, cpu: Option<u32>, at_s: Option<f64>) -> u32 {
        self.key.clear();
        let written = write!(self.key, "{benchmark}\n{event}\n{cpu:?}");
        debug_assert!(written.is_ok(), "a string takes everything");
        let Some(at_s) = at_s else { return self.launches.next(&self.key) };
        if !self.last_at_s.contains_key(&self.key) {
            self.last_at_s.insert(self.key.clone(), (at_s, 0));
        }
        let Some(last) = self.last_at_s.get_mut(&self.key) else { return 0 };
        if at_s < last.0 {
            last.1 += 1;
        }
        last.0 = at_s;
        last.1
    }

    /// `78.4 K/sec`, `0.5 CPUs utilized`: a metric of its own.
    fn derived(
        &self,
        line: u64,
        count: &Count<'_>,
        benchmark: &str,
        cpu: Option<u32>,
        launch: u32,
        metrics: &mut Metrics,
    ) {
        let Some((value, what)) = &count.derived else { return };
        let what = what.trim();
        if what.is_empty() || count.is_total || !value.is_finite() {
            return;
        }
        let rates = [("/sec", 1.0), ("K/sec", 1e3), ("M/sec", 1e6), ("G/sec", 1e9)];
        let rate = rates.into_iter().find(|(name, _)| *name == what);
        let (name, unit, value) = match (rate, count.event.trim()) {
            (Some((_, scale)), event) => (format!("{event} per second"), "1/s", value * scale),
            (None, "") => (what.to_owned(), unit_of(what), *value),
            (None, event) => (format!("{event}, {what}"), unit_of(what), *value),
        };
        let sample = Sample { value, launch, worker: cpu, at_s: count.at_s };
        metrics.sample(line, kind(benchmark, &name, unit, None), sample);
    }
}

/// Times, work and misses are costs; of other events perf does not say which way is better.
fn better(event: &str) -> Option<Better> {
    let event = event.split(':').next().unwrap_or_default();
    let is_cost = matches!(
        event,
        "elapsed"
            | "user"
            | "sys"
            | "task-clock"
            | "cpu-clock"
            | "cycles"
            | "instructions"
            | "context-switches"
            | "cpu-migrations"
            | "page-faults"
    );
    if is_cost || event.ends_with("-misses") { LOWER } else { None }
}

fn unit_of(what: &str) -> &'static str {
    if what.starts_with('%') || what.starts_with("of all ") {
        "%"
    } else if what == "GHz" {
        "GHz"
    } else {
        "1"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> tare_model::tool::ToolMetrics {
        assert!(READER.detects(&Input::of_text(text)), "{text}");
        READER.read(&Input::of_text(text))
    }

    fn values(read: &tare_model::tool::ToolMetrics) -> Vec<(&str, &str, f64)> {
        read.metrics.iter().map(|m| (m.benchmark.as_str(), m.name.as_str(), m.samples[0])).collect()
    }

    #[test]
    fn columns_are_found_by_their_shape() {
        let read = of("1234,,cycles,5.67%,831875,100.00,,\n");
        assert_eq!(values(&read), [("", "cycles", 1234.0)]);
        assert_eq!(read.metrics[0].summary["variance %"], 5.67);
        let read = of("     1.000192,S0-D0-C0,2,7,,instructions,831875,99.00,1.50,insn per cycle\n");
        let expected = [("S0-D0-C0", "instructions", 7.0), ("S0-D0-C0", "instructions, insn per cycle", 1.5)];
        assert_eq!(values(&read), expected);
        assert_eq!(read.metrics[0].at_s, [1.000192]);
        assert!(read.warnings[0].text.contains("99 %"));
        let read = of("7,,cycles,/sys/group,831875,100.00,,\n8,,cpu/event=0x3c,umask=0x0/,831875,100.00,,\n");
        assert_eq!(values(&read), [("/sys/group", "cycles", 7.0), ("", "cpu/event=0x3c,umask=0x0/", 8.0)]);
    }

    #[test]
    fn a_comma_for_a_point_is_read_where_another_sign_parts_the_fields() {
        let read = of("0,75;msec;task-clock;745125;100,00;0,280;CPUs utilized\n");
        assert_eq!(values(&read), [("", "task-clock", 0.75e-3), ("", "task-clock, CPUs utilized", 0.28)]);
        let read = of("1,,x,1,100.00,,\n0,75,msec,task-clock,745125,100,00,0,280,CPUs utilized\n");
        assert_eq!((read.metrics.len(), read.skipped[0].line), (1, 2));
    }

    #[test]
    fn runs_that_were_appended_are_launches() {
        let read = of("1,,x,1,100.00,,\n# started on Sat\n2,,x,1,100.00,,\n<not counted>,,x,0,100.00,,\n");
        assert_eq!((read.metrics[0].launches.clone(), read.skipped_count), (vec![0, 1], 1));
        let read = of("1.0,1,,x,1,100.00,,\n2.0,1,,x,1,100.00,,\n1.0,1,,x,1,100.00,,\n");
        assert_eq!(read.metrics[0].launches, [0, 0, 1]);
    }

    #[test]
    fn costs_are_better_lower() {
        let read = of("1,,cycles:u,1,100.00,,\n1,,cache-misses,1,100.00,,\n1,,branches,1,100.00,,\n");
        assert_eq!(read.metrics.iter().map(|m| m.better).collect::<Vec<_>>(), [LOWER, LOWER, None]);
    }

    #[test]
    fn later_versions_have_figures_in_quotation_marks() {
        let read = of(
            "{\"thread\" : \"a-1\", \"counter-value\" : \"2.0\", \"unit\" : \"msec\", \"event\" : \"task-clock\", \
            \"event-runtime\" : 1, \"pcnt-running\" : 100.00, \"metric-value\" : \"0.5\", \"metric-unit\" : \"CPUs utilized\", \"new\" : 1}\n{\"counter-value\" : \"2.0\n",
        );
        assert_eq!(values(&read), [("a-1", "task-clock", 2e-3), ("a-1", "task-clock, CPUs utilized", 0.5)]);
        assert_eq!(read.skipped[0].line, 2);
    }
}
