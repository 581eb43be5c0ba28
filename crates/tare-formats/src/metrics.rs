//! Metrics as a reader finds them, within bounds.

use crate::result::short;
use std::collections::{BTreeMap, HashMap};
use tare_model::format::SCHEMA;
use tare_model::outcome::Better;
use tare_model::tool::{Skipped, ToolMetric, ToolMetrics};
use tare_model::warning::Warning;

/// Most metrics that are kept of one file.
pub const METRICS_MAX: usize = 10_000;
/// Most samples that are kept of one file, over all metrics. Of more an even part is kept.
pub const SAMPLES_MAX: usize = 2_000_000;
/// Most things that were not understood of which the text is kept.
pub const SKIPPED_MAX: usize = 100;
/// Longest name that is kept, in characters: command lines and parameters tell benchmarks from each other at their ends.
const NAME_CHARS_MAX: usize = 4000;
/// Most settings that are kept of one file or metric.
const CONFIGURATION_MAX: usize = 200;

/// One value, and where it comes from as far as the tool says.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Sample {
    pub value: f64,
    /// Which launch (process, fork), from 0 on; tools that never start another process leave it 0.
    pub launch: u32,
    pub worker: Option<u32>,
    pub at_s: Option<f64>,
}

impl From<f64> for Sample {
    fn from(value: f64) -> Sample {
        Sample { value, ..Sample::default() }
    }
}

/// Of which metric a sample is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind<'a> {
    /// The benchmark; empty where the tool has only one.
    pub benchmark: &'a str,
    /// In the tool's own word.
    pub name: &'a str,
    /// After the reader has scaled values to base units where it can.
    pub unit: &'a str,
    pub better: Option<Better>,
}

/// Which samples of a metric are kept: one of each so many in a row, so that the end of a long log counts as much as its beginning.
#[derive(Debug, Clone, Copy)]
struct Share {
    seen: u64,
    row: u64,
}

impl Share {
    /// Whether the next sample is kept, of a metric that has so many.
    fn takes(&mut self, kept: usize) -> bool {
        let (row, place) = (self.seen / self.row, self.seen % self.row);
        self.seen += 1;
        kept as u64 <= row && place >= place_in(row, self.row)
    }
}

/// Which of so many in a row is kept. It differs from row to row without a period: clients may take turns, and all of them are to be there.
fn place_in(row: u64, length: u64) -> u64 {
    // Multiples of the golden ratio, as fractions of 2⁶⁴.
    let fraction = row.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((u128::from(fraction) * u128::from(length)) >> 64) as u64
}

/// What a reader fills.
#[derive(Debug)]
pub(crate) struct Metrics {
    result: ToolMetrics,
    /// Where a metric stands, by benchmark, name and unit.
    places: HashMap<(String, String, String), usize>,
    /// Of each metric, as they stand.
    shares: Vec<Share>,
    /// Samples that were found, those that are not kept included.
    samples: usize,
    kept: usize,
    kept_max: usize,
    /// Launches that ended in this file, and samples until the last of them.
    launch: u32,
    samples_before: usize,
    /// Lines of the file before the document whose lines are counted.
    lines_before: u64,
}

impl Metrics {
    pub fn new(format: &str) -> Metrics {
        let result = ToolMetrics {
            schema: SCHEMA,
            format: format.to_owned(),
            metrics: Vec::new(),
            configuration: BTreeMap::new(),
            skipped: Vec::new(),
            skipped_count: 0,
            warnings: Vec::new(),
            gets_wrong: Vec::new(),
        };
        Metrics {
            result,
            places: HashMap::new(),
            shares: Vec::new(),
            samples: 0,
            kept: 0,
            kept_max: SAMPLES_MAX,
            launch: 0,
            samples_before: 0,
            lines_before: 0,
        }
    }

    /// The metric, made where it is not there yet; `None` where there is no room for another.
    pub fn metric(&mut self, kind: Kind<'_>) -> Option<&mut ToolMetric> {
        let at = self.place(kind)?;
        self.result.metrics.get_mut(at)
    }

    fn place(&mut self, kind: Kind<'_>) -> Option<usize> {
        let key = (long(kind.benchmark), long(kind.name), short(kind.unit));
        match self.places.get(&key) {
            Some(at) => Some(*at),
            None if self.result.metrics.len() < METRICS_MAX => {
                let at = self.result.metrics.len();
                self.result.metrics.push(ToolMetric {
                    benchmark: key.0.clone(),
                    name: key.1.clone(),
                    unit: key.2.clone(),
                    better: kind.better,
                    samples: Vec::new(),
                    launches: Vec::new(),
                    workers: Vec::new(),
                    at_s: Vec::new(),
                    lines: Vec::new(),
                    is_target: false,
                    windows: Vec::new(),
                    configuration: BTreeMap::new(),
                    summary: BTreeMap::new(),
                    estimate: None,
                });
                self.places.insert(key, at);
                self.shares.push(Share { seen: 0, row: 1 });
                Some(at)
            }
            None => None,
        }
    }

    /// Adds a sample, which stands in this line; 0: the reader does not know. One that is no finite number is skipped, and said to be. Where there are too many, an even part of them stays.
    pub fn sample(&mut self, line: u64, kind: Kind<'_>, sample: impl Into<Sample>) {
        let sample = sample.into();
        if !sample.value.is_finite() {
            let what = format!("{} {}", kind.benchmark, kind.name);
            return self.skip(line.max(1), &what, "the tool printed no finite number");
        }
        let launch = self.launch.saturating_add(sample.launch);
        let Some(at) = self.place(kind) else {
            return self.skip(line.max(1), kind.name, "more metrics than are kept");
        };
        self.samples += 1;
        if self.kept >= self.kept_max {
            self.halve();
        }
        let Some((metric, share)) = self.result.metrics.get_mut(at).zip(self.shares.get_mut(at)) else {
            return;
        };
        if share.takes(metric.samples.len()) {
            metric.samples.push(sample.value);
            metric.launches.push(launch);
            metric.workers.extend(sample.worker);
            metric.at_s.extend(sample.at_s.filter(|at_s| at_s.is_finite()));
            let in_file = if line == 0 { 0 } else { line.saturating_add(self.lines_before) };
            metric.lines.push(u32::try_from(in_file).unwrap_or(u32::MAX));
            self.kept += 1;
        }
    }

    /// Makes room: half of the samples of the metric that has the most of them.
    fn halve(&mut self) {
        let all = self.result.metrics.iter_mut().zip(&mut self.shares);
        let Some((metric, share)) = all.max_by_key(|(metric, _)| metric.samples.len()) else { return };
        let before = metric.samples.len();
        share.row = share.row.saturating_mul(2);
        leave_whole_lists(metric);
        halve(&mut metric.samples);
        halve(&mut metric.launches);
        halve(&mut metric.workers);
        halve(&mut metric.at_s);
        halve(&mut metric.lines);
        self.kept = self.kept.saturating_sub(before - metric.samples.len());
    }

    /// What follows is of another launch: the outputs of several runs may stand in one file. Without a sample since the last call it is
    /// the same launch.
    pub fn next_launch(&mut self) {
        if self.samples > self.samples_before {
            self.launch = self.launch.saturating_add(1);
            self.samples_before = self.samples;
        }
    }

    /// What follows is of a run of its own, whose lines are counted from `line` of the file on, until [`Metrics::end_run`].
    pub fn begin_run(&mut self, line: u64) {
        self.next_launch();
        self.lines_before = line.saturating_sub(1);
    }

    /// Lines are those of the file again.
    pub fn end_run(&mut self) {
        self.lines_before = 0;
    }

    /// What follows counts its launches by itself, from 0 on.
    pub fn first_launch(&mut self) {
        self.launch = 0;
    }

    /// Notes what the tool itself says of a metric beyond its samples (`p99`, `mean`, `stddev`).
    pub fn summary(&mut self, kind: Kind<'_>, what: &str, value: f64) {
        if let Some(metric) = self.metric(kind).filter(|_| value.is_finite()) {
            metric.summary.insert(short(what), value);
        }
    }

    /// Whether nothing was found yet.
    pub fn is_empty(&self) -> bool {
        self.samples == 0
    }

    /// Notes how the tool was set.
    pub fn set(&mut self, setting: &str, value: &str) {
        if self.result.configuration.len() < CONFIGURATION_MAX {
            self.result.configuration.insert(short(setting), short(value));
        }
    }

    /// The same of one metric.
    pub fn set_of(&mut self, kind: Kind<'_>, setting: &str, value: &str) {
        let metric = self.metric(kind).filter(|metric| metric.configuration.len() < CONFIGURATION_MAX);
        if let Some(metric) = metric {
            metric.configuration.insert(short(setting), short(value));
        }
    }

    /// Notes something that was not understood; `line` from 1 on.
    pub fn skip(&mut self, line: u64, what: &str, why: &str) {
        self.result.skipped_count = self.result.skipped_count.saturating_add(1);
        if self.result.skipped.len() < SKIPPED_MAX {
            let line = line.saturating_add(self.lines_before);
            self.result.skipped.push(Skipped { what: short(what), line, why: why.to_owned() });
        }
    }

    /// Warns of something that this output shows; each id once.
    pub fn warn(&mut self, id: &str, text: &str, hint: &str) {
        if self.result.warnings.iter().all(|warning| warning.id != id) {
            self.result.warnings.push(Warning { id: id.into(), text: text.into(), hint: hint.into() });
        }
    }

    /// Says which samples are not there.
    fn warn_of_left_out(&mut self) {
        let left_out = self.samples - self.kept;
        if left_out == 0 {
            return;
        }
        let longest = self.shares.iter().map(|share| share.row).max().unwrap_or(1);
        let text = format!(
            "{left_out} of {} samples were left out, evenly from the beginning to the end: of the metric with the most, one of each {longest} in a row is kept",
            self.samples
        );
        let hint = "the greatest values may be among those left out: for them give a part of the file";
        self.warn("tool-samples-left-out", &text, hint);
    }

    /// All of it; a list that is not of all samples is of none.
    pub fn finish(mut self, gets_wrong: &[&str]) -> ToolMetrics {
        self.result.gets_wrong = gets_wrong.iter().map(|text| (*text).to_owned()).collect();
        self.result.metrics.iter_mut().for_each(leave_whole_lists);
        self.warn_of_left_out();
        // A metric that only a setting was noted for was not measured.
        self.result.metrics.retain(|metric| !metric.samples.is_empty() || !metric.summary.is_empty());
        self.result
    }
}

/// A list that is not of all samples is of none.
fn leave_whole_lists(metric: &mut ToolMetric) {
    let count = metric.samples.len();
    if metric.workers.len() != count {
        metric.workers.clear();
    }
    if metric.at_s.len() != count {
        metric.at_s.clear();
    }
}

/// Leaves one of each two; the last stays where it is alone.
fn halve<T>(list: &mut Vec<T>) {
    let (count, mut at) = (list.len() as u64, 0);
    list.retain(|_| {
        let is_kept = at % 2 == place_in(at / 2, 2) || at % 2 == 0 && at + 1 == count;
        at += 1;
        is_kept
    });
}

/// A name no longer than is kept.
fn long(name: &str) -> String {
    name.chars().take(NAME_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATENCY: Kind<'static> = Kind { benchmark: "", name: "latency", unit: "s", better: None };

    /// So many samples of two workers that take turns, with room for 100.
    fn of_samples(count: u32) -> Metrics {
        let mut metrics = Metrics { kept_max: 100, ..Metrics::new("test") };
        for at in 0..count {
            let value = f64::from(at);
            let sample = Sample { value, launch: 0, worker: Some(at % 2), at_s: Some(value) };
            metrics.sample(1, LATENCY, sample);
        }
        metrics
    }

    #[test]
    fn a_time_that_is_no_number_is_not_kept() {
        let mut metrics = Metrics::new("f");
        for at_s in [1.0, f64::INFINITY] {
            metrics.sample(1, LATENCY, Sample { value: 1.0, at_s: Some(at_s), ..Sample::default() });
        }
        let read = metrics.finish(&[]);
        assert_eq!((read.metrics[0].samples.len(), read.metrics[0].at_s.len()), (2, 0));
    }

    #[test]
    fn what_has_room_is_kept_whole() {
        let read = of_samples(100).finish(&[]);
        assert_eq!((read.metrics[0].samples.len(), read.warnings.len()), (100, 0));
    }

    #[test]
    fn of_too_many_samples_an_even_part_is_kept_and_said() {
        for count in [101_u32, 150, 1050, 9999] {
            let read = of_samples(count).finish(&[]);
            let metric = &read.metrics[0];
            let kept = metric.samples.len();
            assert!((45..=100).contains(&kept), "{kept} of {count}");
            assert_eq!((&metric.at_s, metric.launches.len()), (&metric.samples, kept));
            // The greatest distance is that from the beginning of one row to the end of the next.
            let row = f64::from(count) / kept as f64 * 2.0;
            let ends = [-1.0].into_iter().chain(metric.samples.iter().copied()).chain([f64::from(count)]);
            let ends: Vec<f64> = ends.collect();
            assert!(
                ends.windows(2).all(|pair| pair[0] < pair[1] && pair[1] - pair[0] <= 2.0 * row),
                "{ends:?}"
            );
            let of_first = metric.workers.iter().filter(|worker| **worker == 0).count();
            assert!((kept / 3..=kept - kept / 3).contains(&of_first), "{of_first} of {kept}");
            let left_out = format!("{} of {count} samples were left out", count as usize - kept);
            assert!(read.warnings[0].text.starts_with(&left_out), "{}", read.warnings[0].text);
            assert_eq!(read.skipped_count, 0);
        }
    }

    #[test]
    fn a_metric_of_few_samples_is_kept_beside_one_of_many() {
        let mut metrics = of_samples(1000);
        for _ in 0..3 {
            metrics.next_launch();
            metrics.sample(1, Kind { name: "rate", ..LATENCY }, 5.0);
        }
        let read = metrics.finish(&[]);
        assert_eq!(read.metrics[1].launches, [1, 2, 3]);
        assert!(read.metrics.iter().map(|metric| metric.samples.len()).sum::<usize>() <= 100);
    }
}
