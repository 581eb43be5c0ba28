use crate::{CpuSet, Reading};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Control groups of the process that read them, each list from its own group to the highest that can be seen.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Groups {
    /// Groups of the `cpu` controller.
    pub cpu: Reading<Vec<CpuGroup>>,
    /// Groups of the `cpuset` controller.
    pub cpuset: Reading<Vec<CpusetGroup>>,
    /// Groups of the `memory` controller.
    pub memory: Reading<Vec<MemoryGroup>>,
    /// Whether the `cpu` list ends at the machine's root; inside of a container groups above may be hidden.
    pub sees_root: Reading<bool>,
    /// CPUs that the process may use, all limits taken together (`/proc/self/status`).
    pub allowed_cpus: Reading<CpuSet>,
    /// NUMA nodes that it may take memory of.
    pub allowed_nodes: Reading<CpuSet>,
}

/// What one group allows of CPU time.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CpuGroup {
    /// Path below the mount.
    pub path: String,
    /// CPU time allowed in each period; not applicable where the group has none.
    pub quota: Reading<Quota>,
    /// Weight against its neighbours relative to the default of 1.
    pub weight: Reading<f64>,
    /// Whether it runs only when no other group wants to (`cpu.idle`).
    #[serde(default)]
    pub idle: Reading<bool>,
    /// Least utilization that the clock is chosen for (`cpu.uclamp.min`), 0–1.
    #[serde(default)]
    pub uclamp_min_ratio: Reading<f64>,
    /// Highest utilization that the clock is chosen for (`cpu.uclamp.max`), 0–1; 1 is no bound.
    #[serde(default)]
    pub uclamp_max_ratio: Reading<f64>,
    /// How often the group's own quota ran out.
    pub throttling: Reading<Throttling>,
    /// Run-queue time held back by its own or an ancestor's quota, nanoseconds (`cpu.stat.local`).
    pub throttled_local_ns: Reading<u64>,
}

/// So much CPU time in each period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Quota {
    /// CPU time, nanoseconds.
    pub quota_ns: u64,
    /// Length of a period, nanoseconds; above 0.
    pub period_ns: u64,
}

impl Quota {
    /// CPUs' worth of time.
    pub fn cpus(&self) -> f64 {
        self.quota_ns as f64 / self.period_ns.max(1) as f64
    }
}

/// `cpu.stat`, since the group was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Throttling {
    /// Periods that passed with something to run.
    pub periods: u64,
    /// Of them, those in which the quota ran out.
    pub throttled_periods: u64,
    /// Time held back, nanoseconds, added up over CPUs.
    pub throttled_ns: u64,
}

/// Where one group may run.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CpusetGroup {
    /// Path below the mount.
    pub path: String,
    /// `member`, `root`, `isolated`, with the kernel's reason behind one that is `invalid`; not applicable to v1.
    #[serde(default)]
    pub partition: Reading<String>,
    /// CPUs in effect.
    pub cpus: Reading<CpuSet>,
    /// NUMA nodes in effect.
    pub nodes: Reading<CpuSet>,
}

/// What one group may keep in memory.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct MemoryGroup {
    /// Path below the mount.
    pub path: String,
    /// Hard limit, bytes; not applicable where the group has none.
    pub limit_bytes: Reading<u64>,
    /// Limit from which on it is slowed down (v2 `memory.high`), bytes; not applicable where there is none.
    pub high_bytes: Reading<u64>,
    /// In use, page cache included, bytes.
    pub used_bytes: Reading<u64>,
    /// Of it, page cache, which gives way where memory is short, bytes.
    #[serde(default)]
    pub page_cache_bytes: Reading<u64>,
}
