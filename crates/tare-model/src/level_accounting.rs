//! Where time went at a level of a sweep.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where time went at a level: medians over the blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct LevelAccounting {
    /// CPUs that the SUT may use.
    pub cpus_entitled: Option<f64>,
    /// CPUs that it ran on, on average.
    pub cpus_busy: Option<f64>,
    /// CPU seconds of one request, operation or run.
    pub cpu_s_per_unit: Option<f64>,
    /// CPUs that its threads waited for while ready.
    pub cpus_waited_for: Option<f64>,
    /// CPUs of which a quota held it back.
    pub cpus_throttled: Option<f64>,
    /// Seconds per second that its working threads waited for locks, all together.
    pub lock_wait_s_per_s: Option<f64>,
    /// Instructions in each cycle.
    pub ipc: Option<f64>,
    /// Cycles per second of its CPUs.
    pub clock_hz: Option<f64>,
    /// CPUs that the generator ran on.
    pub generator_cpus: Option<f64>,
    /// Mean latency of a request, seconds: by Little's law n = X · latency.
    pub latency_s: Option<f64>,
}
