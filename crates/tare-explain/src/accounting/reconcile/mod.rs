//! Sources that disagree are brought together: CPU times of threads and of CPUs, clocks of the PMU and of the probe.

pub(super) mod clocks;
pub(super) mod cpus;
pub(super) mod events;
pub(super) mod placement;
pub(super) mod stage;
