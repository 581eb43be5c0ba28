//! Who a process or thread is.

use crate::procs;
use crate::root::Root;
use serde::{Deserialize, Serialize};
use std::io;

/// Identity of a process or thread for as long as the machine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Id {
    /// Process or thread id.
    pub pid: u32,
    /// Its start, clock ticks since boot.
    pub start_ticks: u64,
}

/// Pid and start time of a process or thread that is there.
pub(super) fn identity(root: &Root, pid: u32) -> io::Result<Id> {
    match procs::stat(root, pid) {
        Ok(stat) => Ok(Id { pid, start_ticks: stat.start_ticks }),
        Err(missing) => Err(io::Error::other(missing)),
    }
}

/// A zombie is dead: it is only not reaped yet.
pub(super) fn is_alive(root: &Root, id: Id) -> bool {
    procs::stat(root, id.pid)
        .is_ok_and(|stat| stat.start_ticks == id.start_ticks && !matches!(stat.state, 'Z' | 'X'))
}
