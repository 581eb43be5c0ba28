//! What the readers of `/sys` and of `/proc/cpuinfo` both tell.

use tare_model::{CpuSet, Missing};

/// What is known of one CPU.
pub(super) struct CpuTraits {
    pub package: Result<u32, Missing>,
    pub die: Result<u32, Missing>,
    pub cluster: Result<u32, Missing>,
    pub core: Result<u32, Missing>,
    pub node: Result<u32, Missing>,
    /// The threads that share its execution units, itself included.
    pub siblings: Result<CpuSet, Missing>,
    /// The CPUs of its package.
    pub package_cpus: Result<CpuSet, Missing>,
}
