//! Sources that disagree are brought together: CPU times of threads and of CPUs, clocks of the PMU and of the probe.

pub(crate) mod cpus;
pub(crate) mod execution;
pub(crate) mod placement;
pub(crate) mod threads;
