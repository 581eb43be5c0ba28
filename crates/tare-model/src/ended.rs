//! Tasks that ended within a window.

use crate::role::Role;
use serde::{Deserialize, Serialize};

/// Tasks of one name that ended within a window and that no sample had met: summed, as the kernel counted them at their ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// Their name (`comm`); empty for the rest of many names.
    pub name: String,
    /// Whose they were: of the tree that started them.
    pub role: Role,
    /// How many.
    pub count: u64,
    /// Time on a CPU.
    pub run_ns: u64,
    /// Time runnable without one.
    pub wait_ns: u64,
    /// From their starts to their ends, the part within the window.
    pub life_ns: u64,
    /// User part of their run, good for a share only.
    pub user_ns: u64,
    /// Kernel part of it.
    pub system_ns: u64,
}
