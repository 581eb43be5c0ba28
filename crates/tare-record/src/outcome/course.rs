//! How the rate came to its level, and kept it.

use serde::{Deserialize, Serialize};

/// The rate of the asked level over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// The load before the first trial; `None` where tare's generator made none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUpCourse>,
    /// Slices of the trials that the rates below are of.
    pub slices: u32,
    /// 5th percentile of their rates: what can be promised.
    pub floor: Stage,
    /// Median.
    pub typical: Stage,
    /// 95th percentile: what it can do for a moment.
    pub burst: Stage,
}

/// A rate, and how the machine was in the trials with such slices.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Requests per second.
    pub rate_hz: f64,
    /// Mean effective clock of the trials of the tenth of the slices about there; `None` where it was not measured.
    pub clock_hz: Option<f64>,
    /// What a request cost the reference server in those trials, over its median of the sitting; `None` without a reference.
    pub weather: Option<f64>,
}

/// The load before the first trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WarmUpCourse {
    /// How long it was.
    pub length_s: f64,
    /// When the rate had come to its last level; `None`: it had not.
    pub steady_from_s: Option<f64>,
    /// Rate of that level over the rate before it, as far as there was one.
    pub growth: Option<f64>,
}
