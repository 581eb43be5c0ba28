//! Typed access to the raw counters of one window. Whatever is not a plausible counter is treated as not read:
//! nothing behind this module sees a NaN, an infinity or a counter that ran backwards.

use std::collections::HashMap;
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics::tasks;
use tare_model::observation::{Observation, Sample, Task};

const NS_PER_S: f64 = 1e9;

/// Above this no counter is real: 2^63 nanoseconds are 292 years.
const VALUE_MAX: f64 = 9.3e18;

/// The value at a stamp: between two readings in a straight line, beyond the first and the last as those; `None` without any.
pub(crate) fn value_at(samples: &[Sample], at_ns: u64) -> Option<f64> {
    let next = samples.partition_point(|sample| sample.at_ns <= at_ns);
    let before = next.checked_sub(1).and_then(|before| samples.get(before));
    match (before, samples.get(next)) {
        (Some(before), Some(after)) => {
            let share = (at_ns - before.at_ns) as f64 / (after.at_ns - before.at_ns) as f64;
            Some(before.value + share * (after.value - before.value))
        }
        (Some(only), None) | (None, Some(only)) => Some(only.value),
        (None, None) => None,
    }
}

/// A window's columns by metric and subject; built once, since a window of a thousand threads has many columns.
pub(crate) struct Readings<'a> {
    pub observation: &'a Observation,
    columns: HashMap<(&'a str, &'a Subject), &'a [Sample]>,
}

impl<'a> Readings<'a> {
    pub fn new(observation: &'a Observation) -> Self {
        let columns = observation
            .columns
            .iter()
            .map(|column| ((column.metric.as_str(), &column.subject), column.samples.as_slice()))
            .collect();
        Readings { observation, columns }
    }

    /// Length of the window in seconds; 0 for a window that never opened.
    pub fn wall_s(&self) -> f64 {
        self.observation.wall_ns() as f64 / NS_PER_S
    }

    /// The believable samples of a metric.
    pub fn samples(&self, metric: &Descriptor, subject: &Subject) -> Vec<Sample> {
        let samples = self.columns.get(&(metric.id, subject)).copied().unwrap_or_default();
        samples.iter().copied().filter(|sample| (0.0..=VALUE_MAX).contains(&sample.value)).collect()
    }

    /// The last value of a gauge.
    pub fn level(&self, metric: &Descriptor, subject: &Subject) -> Option<f64> {
        self.samples(metric, subject).last().map(|sample| sample.value)
    }

    /// Growth of a counter over the window, in its own unit.
    ///
    /// Each counter's own stamps count: files are read one after another, and a share of the time between its
    /// own two readings is exact where a share of the window would be off by the time the scan took. Less than
    /// half of the window covered is not the window's growth.
    pub fn growth(&self, metric: &Descriptor, subject: &Subject) -> Option<f64> {
        let samples = self.samples(metric, subject);
        let (first, last) = (samples.first()?, samples.last()?);
        let span_s = last.at_ns.checked_sub(first.at_ns)? as f64 / NS_PER_S;
        let grown = last.value - first.value;
        let wall_s = self.wall_s();
        (grown >= 0.0 && span_s > 0.0 && span_s >= 0.5 * wall_s).then(|| grown * (wall_s / span_s))
    }

    /// As [`Readings::growth`], for a counter of nanoseconds, in seconds.
    pub fn growth_s(&self, metric: &Descriptor, subject: &Subject) -> Option<f64> {
        self.growth(metric, subject).map(|grown_ns| grown_ns / NS_PER_S)
    }

    /// Growth of a thread's counter over the part of the window in which the thread lived.
    ///
    /// A thread that was born in the window counts from zero: what it did before it was first seen is in its
    /// counters.
    pub fn task_growth(&self, metric: &Descriptor, index: u32, task: &Task) -> Option<f64> {
        let subject = Subject::Task(index);
        if task.present_at_begin && task.present_at_end {
            return self.growth(metric, &subject);
        }
        let samples = self.samples(metric, &subject);
        let last = samples.last()?;
        match (task.present_at_begin, samples.as_slice()) {
            (true, [first, .., _]) => {
                let grown = last.value - first.value;
                let scale = self.unseen_end(&subject, first.at_ns, last.at_ns);
                (grown >= 0.0).then_some(grown * scale)
            }
            (true, _) => None,
            (false, _) => Some(last.value),
        }
    }

    /// Counters that are read less often than run were last seen earlier before a thread's end: by how much the
    /// thread's seen life is longer than theirs. Less than half of it covered says nothing about the rest.
    fn unseen_end(&self, subject: &Subject, first_ns: u64, last_ns: u64) -> f64 {
        let run = self.samples(&tasks::RUN_NS, subject);
        let (Some(born), Some(end)) = (run.first(), run.last()) else { return 1.0 };
        let lived_ns = end.at_ns.saturating_sub(born.at_ns) as f64;
        let covered_ns = last_ns.saturating_sub(first_ns) as f64;
        if covered_ns >= 0.5 * lived_ns && covered_ns > 0.0 { (lived_ns / covered_ns).max(1.0) } else { 1.0 }
    }
}
