//! Whom to watch.

use crate::stacks::StackWatch;
use tare_machine::Root;
use tare_sys::time::{boottime_ns, monotonic_ns};

/// Whom to watch, and from where; by default nobody, once a second.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    /// Processes of the SUT; their descendants are watched too. Empty: the SUT is not seen.
    pub sut_pids: Vec<u32>,
    /// Processes whose threads are read at both edges as the SUT's are: another server that is loaded interleaved with it.
    pub beside_pids: Vec<u32>,
    /// The load generator.
    pub load: LoadWatch,
    /// The port that the SUT answers on; `None` for one that is no server.
    pub server_port: Option<u16>,
    /// CPUs of the SUT.
    pub sut_cpus: Vec<u32>,
    /// CPUs of the generator.
    pub load_cpus: Vec<u32>,
    /// CPUs that observers run on; empty: anywhere.
    pub observer_cpus: Vec<u32>,
    /// Samples per second between the edges, 1 to 100.
    pub sample_hz: f64,
    /// Whether the effective clock is probed: twice a second, a thread of ours hops onto a CPU of the SUT.
    pub clock: bool,
    /// Whether call stacks are sampled, and which.
    pub stacks: Option<StackWatch>,
    /// Whether switches and wake-ups of the SUT's threads are traced: exact, but each sleep then costs it some
    /// microseconds.
    pub trace: bool,
}

/// The load generator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum LoadWatch {
    /// Threads of this process.
    Threads(Vec<u32>),
    /// Other processes, with their descendants.
    Process(Vec<u32>),
    /// None is to be seen.
    #[default]
    None,
}

/// The watch with what every observer needs beside it.
pub(crate) struct Scene {
    pub(crate) root: Root,
    pub(crate) watch: Watch,
    pub(crate) own_pid: u32,
    /// How far CLOCK_BOOTTIME, which start times are told in, is ahead of CLOCK_MONOTONIC.
    boot_ahead_ns: u64,
}

/// Length of the clock ticks that `/proc` counts in (`USER_HZ` is 100 everywhere).
pub(crate) const USER_TICK_NS: u64 = 10_000_000;

/// The next tick after `tick` of those that `every` divides.
pub(crate) fn next_multiple(every: u64, tick: u64) -> u64 {
    let every = every.max(1);
    (tick / every).saturating_add(1).saturating_mul(every)
}

impl Scene {
    pub(crate) fn new(watch: Watch, root: &Root) -> Scene {
        let boot_ahead_ns = boottime_ns().saturating_sub(monotonic_ns());
        Scene { root: root.clone(), watch, own_pid: std::process::id(), boot_ahead_ns }
    }

    /// A start time of `/proc/PID/stat` as a monotonic stamp, exact to 10 ms.
    pub(crate) fn started_ns(&self, start_ticks: u64) -> u64 {
        start_ticks.saturating_mul(USER_TICK_NS).saturating_sub(self.boot_ahead_ns)
    }

    /// Samples per second, within bounds.
    pub(crate) fn sample_hz(&self) -> f64 {
        if self.watch.sample_hz.is_finite() { self.watch.sample_hz.clamp(1.0, 100.0) } else { 1.0 }
    }

    /// Every how many ticks something is done that shall happen `hz` times a second.
    pub(crate) fn every(&self, hz: f64) -> u64 {
        (self.sample_hz() / hz).round().max(1.0) as u64
    }

    /// The next tick after `tick` at which that is done.
    pub(crate) fn next(&self, hz: f64, tick: u64) -> u64 {
        next_multiple(self.every(hz), tick)
    }

    /// CPUs of the SUT and the generator, ascending.
    pub(crate) fn busy_cpus(&self) -> Vec<u32> {
        let mut cpus: Vec<u32> = self.watch.sut_cpus.iter().chain(&self.watch.load_cpus).copied().collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }
}
