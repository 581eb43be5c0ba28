use crate::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits on a process that is started from here.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Limits {
    /// Open files.
    pub open_files: Reading<Limit>,
    /// Processes and threads of this user.
    pub processes: Reading<Limit>,
    /// Locked memory, bytes.
    pub locked_bytes: Reading<Limit>,
    /// Core dumps, bytes.
    pub core_bytes: Reading<Limit>,
    /// Highest number of open files that a process may ask for (`fs.nr_open`).
    pub open_files_max: Reading<u64>,
    /// Threads of the whole system (`kernel.threads-max`).
    pub threads_max: Reading<u64>,
    /// Memory maps of one process (`vm.max_map_count`).
    pub maps_max: Reading<u64>,
}

/// A limit as `ulimit` shows it; `null` is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Limit {
    /// In force.
    pub soft: Option<u64>,
    /// How far the process may raise it by itself.
    pub hard: Option<u64>,
}
