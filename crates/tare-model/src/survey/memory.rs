use crate::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Memory; its size stands in the machine's facts.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Memory {
    /// What new programs could have without swapping, bytes.
    pub available_bytes: Reading<u64>,
    /// Page cache, bytes.
    pub cached_bytes: Reading<u64>,
    /// Swap space, bytes.
    pub swap_bytes: Reading<u64>,
    /// Of it, in use.
    pub swap_used_bytes: Reading<u64>,
    /// Swap devices and files.
    #[serde(default)]
    pub swaps: Reading<Vec<Swap>>,
    /// Whether the kernel looks for equal pages and makes them one (KSM).
    #[serde(default)]
    pub same_page_merging: Reading<bool>,
    /// `vm.swappiness`.
    pub swappiness: Reading<u32>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub thp: Reading<String>,
    /// When the kernel stops a program to make room for them: `always`, `defer`, `madvise` …
    pub thp_defrag: Reading<String>,
    /// Memory in transparent huge pages, bytes.
    pub thp_bytes: Reading<u64>,
    /// Pools of huge pages, by size.
    pub huge_pages: Reading<Vec<HugePages>>,
    /// Whether the kernel moves pages between NUMA nodes while programs run.
    pub numa_balancing: Reading<bool>,
    /// Stalls for want of CPU, memory or disk.
    pub pressure: Reading<Vec<Pressure>>,
}

/// A device or file that pages are moved to.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Swap {
    /// `/dev/zram0`, `/swapfile` …
    pub path: String,
    /// Its size, bytes.
    pub size_bytes: u64,
    /// In use, bytes.
    pub used_bytes: u64,
    /// Whether it is compressed memory (zram): pages come back by computing, not from a disk.
    pub compressed: bool,
}

/// A pool of huge pages.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct HugePages {
    /// Size of one, bytes.
    pub size_bytes: u64,
    /// Pages in the pool.
    pub total: Reading<u64>,
    /// Of them, nobody's yet.
    pub free: Reading<u64>,
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PressureKind {
    /// A CPU.
    Cpu,
    /// Memory.
    Memory,
    /// A disk.
    Io,
}

/// Pressure stall information of the whole system.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Pressure {
    /// What is waited for.
    pub kind: PressureKind,
    /// Share of the last ten seconds in which some task waited for it.
    pub some_10s: Reading<f64>,
    /// Share of the last minute.
    pub some_60s: Reading<f64>,
}
