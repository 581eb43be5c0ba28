//! How the machine is put together: packages, cores, threads, caches, memory.
//!
//! Counts are of the part of the machine that the process may use (its cpuset and its node mask), as `hwloc`
//! counts.

use crate::{CpuSet, Reading};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The part of the machine that the process may use. Its first eight fields are a contract that scripts use.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Topology {
    /// Physical packages (sockets) with an allowed CPU.
    pub packages: Reading<u32>,
    /// Allowed NUMA nodes, those without CPUs included; 1 on a machine that is not divided.
    pub numa_nodes: Reading<u32>,
    /// Physical cores with an allowed CPU.
    pub cores: Reading<u32>,
    /// Allowed CPUs that are online (SMT threads each count).
    pub threads: Reading<u32>,
    /// CPUs that are online, allowed or not.
    pub online: Reading<CpuSet>,
    /// CPUs that are online and allowed.
    pub allowed: Reading<CpuSet>,
    /// Caches of allowed CPUs, by level, kind and lowest CPU.
    pub caches: Reading<Vec<Cache>>,
    /// Allowed NUMA nodes, ascending.
    pub numa: Reading<Vec<NumaNode>>,
    /// CPUs that are there and offline.
    pub offline: Reading<CpuSet>,
    /// CPUs that the scheduler does not balance (`isolcpus=`, isolated cpusets).
    pub isolated: Reading<CpuSet>,
    /// CPUs without a scheduler tick while one task runs (`nohz_full=`).
    pub nohz_full: Reading<CpuSet>,
    /// Kinds of core, slowest first; one where all are alike.
    pub kinds: Reading<Vec<CoreKind>>,
    /// Each allowed CPU and its place, ascending.
    pub cpus: Vec<CpuPlace>,
}

/// One cache.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Cache {
    /// 1 is next to the core.
    pub level: u32,
    /// What it holds.
    pub kind: CacheKind,
    /// Its size.
    pub size_bytes: Reading<u64>,
    /// Allowed CPUs that share it.
    pub cpus: CpuSet,
}

/// What a cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheKind {
    /// Data.
    Data,
    /// Instructions.
    Instruction,
    /// Both.
    Unified,
}

/// One NUMA node.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct NumaNode {
    /// The kernel's number.
    pub id: u32,
    /// Its allowed CPUs; empty for a node of memory alone.
    pub cpus: CpuSet,
    /// Its memory.
    pub memory_bytes: Reading<u64>,
    /// The kernel's distances to each node in [`Topology::numa`], in that order; 10 is local.
    pub distances: Reading<Vec<u32>>,
}

/// CPUs whose cores are alike.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CoreKind {
    /// The kernel's name (`core`, `atom`) or that of the design (`Cortex-A76`), else `cores`; two kinds of one design differ
    /// in capacity or frequency.
    pub name: String,
    /// Its allowed CPUs.
    pub cpus: CpuSet,
    /// The kernel's estimate of their speed, 1024 for the fastest.
    pub capacity: Reading<u32>,
    /// The highest frequency that its driver knows.
    pub frequency_max_hz: Reading<u64>,
}

/// Where one CPU stands.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CpuPlace {
    /// The kernel's number.
    pub cpu: u32,
    /// Physical package.
    pub package: Reading<u32>,
    /// Die in the package.
    pub die: Reading<u32>,
    /// Cluster of cores (those that share an L2 or a bus).
    pub cluster: Reading<u32>,
    /// Physical core: the same number may stand for another core in another package.
    pub core: Reading<u32>,
    /// NUMA node.
    pub node: Reading<u32>,
    /// Allowed CPUs on the same physical core, this one included.
    pub siblings: CpuSet,
}

impl Topology {
    /// The allowed CPUs; empty where they are not known.
    pub fn allowed_cpus(&self) -> CpuSet {
        self.allowed.value().cloned().unwrap_or_default()
    }

    /// The allowed CPUs of the physical core that holds `cpu`.
    pub fn core_of(&self, cpu: u32) -> CpuSet {
        let place = self.cpus.iter().find(|place| place.cpu == cpu);
        place.map_or_else(|| [cpu].into_iter().collect(), |place| place.siblings.clone())
    }
}
