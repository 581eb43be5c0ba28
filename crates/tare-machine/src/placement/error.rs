//! Why threads cannot be placed.

/// A CPU that cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// The machine has no such CPU, or it is offline.
    #[error("{option}: there is no CPU {cpu}; hint: this machine has CPUs {online}")]
    NoSuchCpu {
        /// The option that named it.
        option: &'static str,
        /// The CPU.
        cpu: u32,
        /// The CPUs that there are, as a list.
        online: String,
    },
    /// A fleet that does not fit.
    #[error("{wanted} CPUs are wanted and {have} can be given; hint: fewer services, or fewer CPUs for each")]
    TooMany {
        /// All services' CPUs together.
        wanted: u32,
        /// What there is.
        have: u32,
    },
    /// The list of online CPUs is empty: nothing can be placed.
    #[error("this machine's CPUs could not be listed; hint: is /sys mounted?")]
    NoCpus,
}
