//! Latencies, summed up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Latency figures in nanoseconds; `None` where a foreign generator did not print them.
#[derive(Debug, Clone, Copy, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[allow(missing_docs)] // the names are the statistics
pub struct LatencySummary {
    pub p50: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p75: Option<f64>,
    pub p90: Option<f64>,
    pub p99: Option<f64>,
    pub p99_9: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_99: Option<f64>,
    pub max: Option<f64>,
    pub mean: Option<f64>,
    pub stdev: Option<f64>,
}

/// One of the statistics.
pub type LatencyOf = fn(&LatencySummary) -> Option<f64>;

impl LatencySummary {
    /// The statistics that people can ask for, by the names that they write.
    pub const NAMED: [(&str, LatencyOf); 8] = [
        ("mean", |of| of.mean),
        ("p50", |of| of.p50),
        ("p75", |of| of.p75),
        ("p90", |of| of.p90),
        ("p99", |of| of.p99),
        ("p99.9", |of| of.p99_9),
        ("p99.99", |of| of.p99_99),
        ("max", |of| of.max),
    ];

    /// The one of this name.
    pub fn named(name: &str) -> Option<LatencyOf> {
        LatencySummary::NAMED.iter().find(|(known, _)| *known == name).map(|(_, of)| *of)
    }
}
