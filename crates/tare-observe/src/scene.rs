//! The watch, with what every observer needs beside it.

use crate::census::Census;
use crate::downstream::called::CalledPrograms;
use crate::watch::Watch;
use std::cell::RefCell;
use tare_machine::Root;
use tare_sys::time::{boottime_ns, monotonic_ns};

/// The watch with what every observer needs beside it.
pub(crate) struct Scene {
    pub(crate) root: Root,
    pub(crate) watch: Watch,
    pub(crate) own_pid: u32,
    /// Who is on the machine.
    pub(crate) census: RefCell<Census>,
    /// Programs that the SUT calls, as `downstream` finds them.
    pub(crate) called: RefCell<CalledPrograms>,
    /// How far CLOCK_BOOTTIME, which start times are given in, is ahead of CLOCK_MONOTONIC.
    boot_ahead_ns: u64,
}

/// Length of the clock ticks that `/proc` counts in.
pub(crate) const USER_TICK_NS: u64 = tare_machine::cpu_times::TICK_NS;

/// The next tick after `tick` of those that `every` divides.
pub(crate) fn next_multiple(every: u64, tick: u64) -> u64 {
    let every = every.max(1);
    (tick / every).saturating_add(1).saturating_mul(every)
}

impl Scene {
    pub(crate) fn new(watch: Watch, root: &Root) -> Scene {
        let boot_ahead_ns = boottime_ns().saturating_sub(monotonic_ns());
        let (root, own_pid) = (root.clone(), std::process::id());
        Scene { root, watch, own_pid, census: RefCell::default(), called: RefCell::default(), boot_ahead_ns }
    }

    /// These processes and all that descend from them, zombies left out.
    pub(crate) fn family(&self, pids: &[u32]) -> Vec<u32> {
        self.census.borrow_mut().family(&self.root, pids)
    }

    /// Does something for which everybody who asks who is there shall get the same answer.
    pub(crate) fn with_census<T>(&self, act: impl FnOnce() -> T) -> T {
        self.census.borrow_mut().hold(&self.root);
        let outcome = act();
        self.census.borrow_mut().let_go();
        outcome
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
