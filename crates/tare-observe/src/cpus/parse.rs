//! Numbers of each CPU, from the text of `/proc/stat` and of the files that count run.

use super::idle_task::Idled;
use crate::scene::USER_TICK_NS;
use std::collections::BTreeMap;
use tare_machine::cpu_times::{self, CpuTicks};

/// Run of all tasks of a CPU: numbers in CPU order (`cpuacct.usage_percpu`), or `/proc/schedstat`, whose
/// `cpuN` lines hold it as the seventh number since version 15.
pub(super) fn run_ns(text: &str, cpu: u32) -> Option<u64> {
    if !text.starts_with("version") {
        return text.split_ascii_whitespace().nth(cpu as usize)?.parse().ok();
    }
    let mut lines = text.lines().map(str::split_ascii_whitespace);
    let name = format!("cpu{cpu}");
    lines.find_map(|mut fields| (fields.next()? == name).then(|| fields.nth(6)?.parse().ok())).flatten()
}

/// CPUs with what was found of their idle tasks, one a line.
pub(super) fn idle_task(text: &str) -> impl Iterator<Item = (u32, Idled)> {
    text.lines().filter_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let cpu = fields.next()?.parse().ok()?;
        let mut value = || fields.next()?.parse().ok();
        let (ran_ns, periods) = (value()?, value()?);
        Some((cpu, Idled { ran_ns, periods, unseen_ns: value()?, unseen_open_ns: value()? }))
    })
}

/// The columns of one CPU in `/proc/stat`, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CpuTimes {
    pub(super) user_ns: u64,
    pub(super) system_ns: u64,
    pub(super) idle_ns: u64,
    pub(super) irq_ns: u64,
    pub(super) softirq_ns: u64,
    pub(super) steal_ns: u64,
}

impl CpuTimes {
    fn of(ticks: CpuTicks) -> Option<CpuTimes> {
        let ns = |ticks: u64| ticks.checked_mul(USER_TICK_NS);
        Some(CpuTimes {
            user_ns: ns(ticks.user.checked_add(ticks.nice)?)?,
            system_ns: ns(ticks.system)?,
            idle_ns: ns(ticks.idle.checked_add(ticks.iowait)?)?,
            irq_ns: ns(ticks.irq)?,
            softirq_ns: ns(ticks.softirq)?,
            steal_ns: ns(ticks.steal)?,
        })
    }
}

pub(super) fn parse_stat(text: &str) -> BTreeMap<u32, CpuTimes> {
    cpu_times::of_each(text).filter_map(|(cpu, ticks)| Some((cpu, CpuTimes::of(ticks)?))).collect()
}
