//! Metrics as a reader finds them, within bounds.

use crate::result::short;
use std::collections::{BTreeMap, HashMap};
use tare_model::format::SCHEMA;
use tare_model::outcome::Better;
use tare_model::tool::{Skipped, ToolMetric, ToolMetrics};
use tare_model::warning::Warning;

/// Most metrics that are kept of one file.
pub const METRICS_MAX: usize = 10_000;
/// Most samples that are kept of one file, over all metrics.
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

/// What a reader fills.
#[derive(Debug)]
pub(crate) struct Metrics {
    result: ToolMetrics,
    /// Where a metric stands, by benchmark, name and unit.
    places: HashMap<(String, String, String), usize>,
    samples: usize,
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
        Metrics { result, places: HashMap::new(), samples: 0, launch: 0, samples_before: 0, lines_before: 0 }
    }

    /// The metric, made where it is not there yet; `None` where there is no room for another.
    pub fn metric(&mut self, kind: Kind<'_>) -> Option<&mut ToolMetric> {
        let key = (long(kind.benchmark), long(kind.name), short(kind.unit));
        let at = match self.places.get(&key) {
            Some(at) => *at,
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
                    configuration: BTreeMap::new(),
                    summary: BTreeMap::new(),
                    estimate: None,
                });
                self.places.insert(key, at);
                at
            }
            None => return None,
        };
        self.result.metrics.get_mut(at)
    }

    /// Adds a sample. One that is no finite number is skipped, and said to be; so is one too many.
    pub fn sample(&mut self, line: u64, kind: Kind<'_>, sample: impl Into<Sample>) {
        let sample = sample.into();
        if !sample.value.is_finite() {
            let what = format!("{} {}", kind.benchmark, kind.name);
            return self.skip(line, &what, "the tool printed no finite number");
        }
        if self.samples >= SAMPLES_MAX {
            return self.skip(line, kind.name, "more samples than are kept");
        }
        let launch = self.launch.saturating_add(sample.launch);
        let Some(metric) = self.metric(kind) else {
            return self.skip(line, kind.name, "more metrics than are kept");
        };
        metric.samples.push(sample.value);
        metric.launches.push(launch);
        metric.workers.extend(sample.worker);
        metric.at_s.extend(sample.at_s);
        self.samples += 1;
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

    /// All of it; a list that is not of all samples is of none.
    pub fn finish(mut self, gets_wrong: &[&str]) -> ToolMetrics {
        self.result.gets_wrong = gets_wrong.iter().map(|text| (*text).to_owned()).collect();
        for metric in &mut self.result.metrics {
            let count = metric.samples.len();
            if metric.workers.len() != count {
                metric.workers.clear();
            }
            if metric.at_s.len() != count {
                metric.at_s.clear();
            }
        }
        // A metric that only a setting was noted for was not measured.
        self.result.metrics.retain(|metric| !metric.samples.is_empty() || !metric.summary.is_empty());
        self.result
    }
}

/// A name no longer than is kept.
fn long(name: &str) -> String {
    name.chars().take(NAME_CHARS_MAX).collect()
}
