//! What a tool reports, whatever it measures.

use std::collections::BTreeMap;
use tare_model::trial::ErrorKind;
use tare_model::{Missing, Reading};

/// Most results that are kept of one output.
pub const RESULTS_MAX: usize = 1000;
/// Most quantiles that are kept of one result.
pub const QUANTILES_MAX: usize = 1000;
/// Most settings that are kept of one result.
pub const SETTINGS_MAX: usize = 64;
/// Longest name, setting or complaint that is kept, in characters.
pub const TEXT_CHARS_MAX: usize = 200;

/// All that one tool printed, as far as it could be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOutput {
    /// In the order in which they were printed, at most [`RESULTS_MAX`].
    pub results: Vec<ToolResult>,
    /// The first thing that went wrong in the tool's own words.
    pub complaint: Option<String>,
}

/// One result: of the whole run, or of one benchmark, command or kind of request in it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// What it is of; `None` where the tool has only one.
    pub name: Option<String>,
    /// Operations (requests, transactions, iterations) that were completed.
    pub operations: Reading<u64>,
    /// The time in which they were, as the tool measured it.
    pub window_ns: Reading<u64>,
    /// Operations per second, as the tool printed it.
    pub rate_hz: Reading<f64>,
    /// Failures by kind; a kind that did not occur is not in the map.
    pub errors: Reading<BTreeMap<ErrorKind, u64>>,
    /// How long operations took.
    pub latency: Reading<LatencySummary>,
    /// Bytes received.
    pub bytes_in: Reading<u64>,
    /// Connections that carried the operations.
    pub connections: Reading<u32>,
    /// How the tool was set, in its own words, at most [`SETTINGS_MAX`].
    pub settings: Vec<(String, String)>,
}

/// Latencies as a tool summarises them.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencySummary {
    /// Arithmetic mean.
    pub mean_ns: Reading<u64>,
    /// (quantile, nanoseconds), ascending, each quantile once; 0 is the least and 1 the greatest. At most [`QUANTILES_MAX`].
    pub quantiles_ns: Vec<(f64, u64)>,
}

impl ToolResult {
    /// A result of which `tool` has said nothing yet.
    pub(crate) fn unsaid(tool: &str) -> Self {
        fn silent<T>(tool: &str, what: &str) -> Reading<T> {
            Reading::Missing(Missing::new(format!("{tool} has not printed {what}")))
        }
        ToolResult {
            name: None,
            operations: silent(tool, "how many operations were completed"),
            window_ns: silent(tool, "how long it measured"),
            rate_hz: silent(tool, "a rate"),
            errors: silent(tool, "how many operations failed"),
            latency: silent(tool, "latencies"),
            bytes_in: silent(tool, "how many bytes were received"),
            connections: silent(tool, "how many connections there were"),
            settings: Vec::new(),
        }
    }

    /// Notes how the tool was set, as long as there is room.
    pub(crate) fn set(&mut self, setting: &str, value: &str) {
        if self.settings.len() < SETTINGS_MAX {
            self.settings.push((short(setting), short(value)));
        }
    }
}

impl LatencySummary {
    /// `None` where nothing is known.
    pub(crate) fn of(mean_ns: Reading<u64>, quantiles: Quantiles) -> Option<LatencySummary> {
        let any = !quantiles.0.is_empty() || mean_ns.value().is_some();
        any.then_some(LatencySummary { mean_ns, quantiles_ns: quantiles.0 })
    }
}

/// Quantiles as they are read: sorted, each once (of several with the same rank the last one), at most [`QUANTILES_MAX`].
#[derive(Debug, Default)]
pub(crate) struct Quantiles(Vec<(f64, u64)>);

impl Quantiles {
    /// Keeps one, if it is from 0 to 1 and there is room for it.
    pub(crate) fn note(&mut self, quantile: f64, ns: u64) {
        if !(0.0..=1.0).contains(&quantile) {
            return;
        }
        match self.0.binary_search_by(|(known, _)| known.total_cmp(&quantile)) {
            Ok(at) => self.0[at].1 = ns,
            Err(at) if self.0.len() < QUANTILES_MAX => self.0.insert(at, (quantile, ns)),
            Err(_) => {}
        }
    }
}

/// What was read, or what is said where it was not.
pub(crate) fn measured<T>(value: Option<T>, otherwise: Reading<T>) -> Reading<T> {
    value.map_or(otherwise, Reading::Measured)
}

/// Adds failures of a kind; of none there is no entry.
pub(crate) fn add_errors(errors: &mut BTreeMap<ErrorKind, u64>, kind: ErrorKind, count: u64) {
    if count > 0 {
        let sum = errors.entry(kind).or_insert(0);
        *sum = sum.saturating_add(count);
    }
}

/// A text no longer than is kept.
pub(crate) fn short(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}
