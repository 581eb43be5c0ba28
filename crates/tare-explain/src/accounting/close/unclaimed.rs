//! Run of tasks that is in no row: of processes that ended between two samples and whose end nobody reported. To call it somebody
//! else's would close the accounting and hide that it may be the SUT's own.

use crate::accounting::attribute::cpus::Cpu;
use crate::accounting::attribute::thread::Thread;
use crate::accounting::raw::bounds::{NO_VERDICT, UNCLAIMED_CPUS};
use crate::accounting::raw::ended::{left_s, slices_of_strangers_s};
use crate::accounting::raw::readings::Readings;
use std::collections::BTreeMap;

/// Run of all tasks less that of all threads that were seen or whose end was reported, and less what strangers that ended ran since their
/// last tick.
pub(super) fn unclaimed_s(readings: &Readings, threads: &[Thread], cpus: &BTreeMap<u32, Cpu>) -> Option<f64> {
    let all_s: Option<f64> = cpus.values().map(|cpu| cpu.times.task_run_s).sum();
    let left_s = left_s(readings, all_s, threads.iter().map(|thread| thread.run_s).sum())?;
    Some(left_s - slices_of_strangers_s(readings).min(left_s.max(0.0)))
}

/// Whether it is too much for a verdict beside `run_s`, the SUT's own run.
pub(super) fn is_much(unclaimed_s: f64, run_s: f64, wall_s: f64) -> bool {
    unclaimed_s > NO_VERDICT * run_s && unclaimed_s > UNCLAIMED_CPUS * wall_s
}
