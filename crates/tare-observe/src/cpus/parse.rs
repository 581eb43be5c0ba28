//! Numbers of each CPU, from the text of `/proc/stat` and of the files that count run.

use crate::scene::USER_TICK_NS;
use std::collections::BTreeMap;

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

pub(super) fn parse_stat(text: &str) -> BTreeMap<u32, CpuTimes> {
    text.lines().filter_map(parse_stat_line).collect()
}

/// `cpu3 user nice system idle iowait irq softirq steal …`, clock ticks.
fn parse_stat_line(line: &str) -> Option<(u32, CpuTimes)> {
    let mut fields = line.strip_prefix("cpu")?.split_ascii_whitespace();
    let cpu = fields.next().filter(|_| !line.starts_with("cpu "))?.parse().ok()?;
    let mut next_ns = || fields.next()?.parse::<u64>().ok()?.checked_mul(USER_TICK_NS);
    let (user, nice, system) = (next_ns()?, next_ns()?, next_ns()?);
    let (idle, iowait, irq, softirq, steal) = (next_ns()?, next_ns()?, next_ns()?, next_ns()?, next_ns()?);
    let times = CpuTimes {
        user_ns: user.checked_add(nice)?,
        system_ns: system,
        idle_ns: idle.checked_add(iowait)?,
        irq_ns: irq,
        softirq_ns: softirq,
        steal_ns: steal,
    };
    Some((cpu, times))
}
