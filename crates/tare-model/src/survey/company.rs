use crate::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who used CPU between two readings.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Company {
    /// Time between the two readings, nanoseconds.
    pub window_ns: u64,
    /// CPUs' worth of time that all tasks but tare's own used.
    pub busy_cpus: Reading<f64>,
    /// Share of the window that the hypervisor gave to somebody else.
    pub steal_share: Reading<f64>,
    /// Tasks that ran or were ready to at the second reading, tare's own left out.
    pub runnable: Reading<u64>,
    /// Load average over a minute.
    pub load_1min: Reading<f64>,
    /// Processes by the CPU time that they used, busiest first; at most ten.
    pub processes: Vec<Busy>,
}

/// A process that used CPU time.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Busy {
    /// Its number.
    pub pid: u32,
    /// Its name (never its arguments).
    pub name: String,
    /// CPUs' worth of time.
    pub cpus: f64,
}
