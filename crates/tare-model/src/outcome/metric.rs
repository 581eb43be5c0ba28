//! One metric over the trials.

use crate::better::Better;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was measured in each trial, and what it comes to.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Metric {
    /// `throughput`, `cpu_per_request`, `p50`, `p99`; of commands `time` and `cpu_time`.
    pub name: String,
    /// `req/s` or `s`.
    pub unit: String,
    /// Which way is better.
    pub better: Better,
    /// The value of each trial that has one, in the order of the trials.
    pub samples: Vec<f64>,
    /// The value over all trials; `null` where a trial has none.
    pub estimate: Option<f64>,
    /// Lower and upper end of its 95 % interval; `null` where there are too few trials.
    pub interval: Option<[f64; 2]>,
}
