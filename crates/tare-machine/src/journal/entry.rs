//! The lines of a journal.

use super::id::Id;
use super::value_change::ValueChange;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A thread whose CPUs are changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pin {
    /// The thread.
    pub(super) id: Id,
    /// The process that it belongs to.
    pub(super) process: u32,
    /// Where it could run.
    pub(super) cpus_before: Vec<u32>,
    /// Where it can now.
    pub(super) cpus: Vec<u32>,
}

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "entry")]
pub(super) enum Entry {
    /// First line: whose journal this is.
    Owner {
        id: Id,
        boot_id: String,
        run: String,
        #[serde(default)]
        command: String,
        #[serde(default)]
        since_unix_ns: u64,
    },
    /// A process is about to be started; it will carry the run id.
    WillStart { command: String },
    /// It was started, as the leader of process group `pgid`.
    Started { id: Id, pgid: u32 },
    /// It was stopped and reaped by its owner.
    Stopped { pid: u32 },
    /// A thread's CPUs are about to be changed from these.
    WillPin(Pin),
    /// They were put back.
    Unpinned { id: Id },
    /// A control group is about to be made.
    WillMakeGroup { dir: PathBuf },
    /// It was removed.
    RemovedGroup { dir: PathBuf },
    /// A setting of the machine is about to be changed.
    WillApply(ValueChange),
    /// All that was to be applied is, and this is what the kernel made of it. A standing one outlives its process.
    Holding { standing: bool, values: Vec<(PathBuf, String)> },
    /// What stood is being put back: from here on it is anybody's to finish.
    Restoring,
    /// A setting was put back.
    PutBack { path: PathBuf },
}
