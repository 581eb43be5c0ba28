use crate::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How threads take turns. Ticks and base slice stand in the machine's facts.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Scheduler {
    /// Which fair scheduler.
    pub discipline: Reading<Discipline>,
    /// Name of the scheduler that was loaded as a BPF program (sched_ext) and has taken over; not applicable where none
    /// has.
    #[serde(default)]
    pub sched_ext: Reading<String>,
    /// CFS's latency target (debugfs `sched/latency_ns`), nanoseconds; not applicable to EEVDF.
    pub latency_ns: Reading<u64>,
    /// `none`, `voluntary`, `full`, `lazy` or `rt`.
    pub preemption: Reading<String>,
    /// Whether sessions share the CPU instead of tasks (`sched_autogroup_enabled`).
    pub autogroup: Reading<bool>,
    /// Whether the kernel keeps run and wait of each task (`/proc/PID/schedstat`).
    pub schedstats: Reading<bool>,
    /// Share of CPU time that real-time tasks may take: runtime over period; 1 is no bound.
    pub realtime_share: Reading<f64>,
}

/// The scheduler of ordinary tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Discipline {
    /// Completely fair (before Linux 6.6).
    Cfs,
    /// Earliest eligible virtual deadline first (from 6.6 on).
    Eevdf,
}
