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
