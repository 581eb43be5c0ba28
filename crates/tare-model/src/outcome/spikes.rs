//! Moments of high latency, and what moved in them.

use crate::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Slices of time (100 ms) in which the 99th percentile of latency stood out of its trial's.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Spikes {
    /// Slices that were examined.
    pub slices: u32,
    /// Those that stood out.
    pub spikes: u32,
    /// Median over the slices of their 99th percentile.
    pub p99_median_ns: Option<f64>,
    /// The highest first.
    pub largest: Vec<Spike>,
    /// Series that were compared with the spikes.
    pub series: u32,
    /// Further series that moved and were not compared, being the furthest from a cause.
    #[serde(default)]
    pub series_left_out: u32,
    /// Those that moved with them beyond chance, best match first; empty: nothing did.
    pub moved: Reading<Vec<Moved>>,
    /// Moments in which a quota held the server's groups back: 50 ms more, or 3 periods more, within 200 ms.
    pub throttle_bursts: Reading<ThrottleBursts>,
    /// The trial with the most spikes, for a drawing.
    pub timeline: Option<SpikeTimeline>,
}

impl Spikes {
    pub(super) fn not_looked_for() -> Reading<Spikes> {
        Reading::missing("spikes were not searched for")
    }
}

/// One slice that stood out.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Spike {
    /// [`super::TrialSummary::seq`].
    pub trial: u32,
    /// Since the trial began.
    pub at_s: f64,
    /// How long the slice was.
    pub length_s: f64,
    /// Its 99th percentile; `None`: nothing was answered.
    pub p99_ns: Option<f64>,
}

/// A series that moved when latency spiked.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Moved {
    /// Whose it is and what, in words.
    pub series: String,
    /// The metric that it is made of.
    pub metric: String,
    /// Unit of the two medians: a counter's growth per second, or a level.
    pub unit: String,
    /// Median over the spikes.
    pub in_spikes: f64,
    /// Median over the quiet slices: those that are not as high as a spike, nor near one that is.
    pub in_quiet: f64,
    /// Share of the spikes in which it was above the middle between the two medians.
    pub spikes_with: f64,
    /// The same share of the quiet slices.
    pub quiet_with: f64,
    /// Chance that one of all series would match so well if none had to do with the spikes.
    pub chance: f64,
}

/// How often a quota held back in bursts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct ThrottleBursts {
    /// Slices with such a burst.
    pub slices: u32,
    /// Those that were spikes, too.
    pub with_spike: u32,
}

/// The slices of one trial.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SpikeTimeline {
    /// [`super::TrialSummary::seq`].
    pub trial: u32,
    /// Where each slice ends, since the trial began.
    pub ends_s: Vec<f64>,
    /// 99th percentile of each.
    pub p99_ns: Vec<Option<f64>>,
    /// Whether it stood out.
    pub is_spike: Vec<bool>,
    /// The series that matches best, as [`Moved::series`]; `None` where nothing does.
    pub series: Option<String>,
    /// Its unit.
    pub unit: String,
    /// Its values.
    pub values: Vec<f64>,
}
