//! The interference of a window: what was taken from the servers' CPUs, by the hypervisor and by quotas, and how fast their cores and memory were.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;
use tare_machine::cpu_times::{self, TICK_NS};
use tare_machine::probes::speed::{self, Speed};
use tare_machine::{Root, cgroup};
use tare_model::comparison::{Disturbance, Interference};
use tare_stats::median;

/// More of the window than this taken by others disturbs.
const TAKEN_MAX: f64 = 0.01;

/// What others took enough of to disturb.
pub(crate) fn disturbances(interference: &Interference) -> Vec<Disturbance> {
    let taken = [
        (interference.steal_share, Disturbance::Steal),
        (interference.throttled_share, Disturbance::Throttled),
    ];
    let is_much = |(share, _): &(Option<f64>, _)| share.is_some_and(|share| share > TAKEN_MAX);
    taken.into_iter().filter(is_much).map(|(_, what)| what).collect()
}

/// A first sample.
pub(crate) struct HostWatch {
    cpus: Vec<u32>,
    at: Instant,
    steal_ticks: Option<u64>,
    /// Files that count throttled time, of our group and those above it, and what they said.
    groups: Vec<(PathBuf, u64)>,
    speeds: Vec<Speed>,
}

impl HostWatch {
    pub fn begin(cpus: &[u32]) -> HostWatch {
        HostWatch {
            cpus: cpus.to_vec(),
            at: Instant::now(),
            steal_ticks: steal_ticks(cpus),
            groups: throttled_of(std::process::id()),
            speeds: Vec::new(),
        }
    }

    /// How fast one of the CPUs is now, each in its turn. Nothing else should run there meanwhile.
    pub fn probe(&mut self) {
        let cpu = self.cpus.get(self.speeds.len() % self.cpus.len().max(1));
        self.speeds.extend(cpu.and_then(|cpu| speed::look(*cpu).ok()));
    }

    /// What was taken since.
    pub fn until_now(self) -> Interference {
        let window_s = self.at.elapsed().as_secs_f64().max(1e-3);
        let steal_share = self.steal_ticks.zip(steal_ticks(&self.cpus)).map(|(before, after)| {
            after.saturating_sub(before).saturating_mul(TICK_NS) as f64
                / 1e9
                / window_s
                / self.cpus.len().max(1) as f64
        });
        let throttled_ns = throttled_since(&self.groups);
        let seconds = |ns: &dyn Fn(&Speed) -> Option<f64>| {
            median(&self.speeds.iter().filter_map(ns).collect::<Vec<_>>()).map(|ns| ns / 1e9)
        };
        Interference {
            steal_share,
            throttled_share: throttled_ns.map(|ns| ns as f64 / 1e9 / window_s),
            compute_s: seconds(&|speed| Some(speed.compute_ns)),
            load_s: seconds(&|speed| speed.load_ns),
        }
    }
}

fn steal_ticks(cpus: &[u32]) -> Option<u64> {
    steal_in(&Root::live().text("/proc/stat").ok()?, cpus)
}

fn steal_in(text: &str, cpus: &[u32]) -> Option<u64> {
    let each: BTreeMap<u32, u64> = cpu_times::of_each(text).map(|(cpu, ticks)| (cpu, ticks.steal)).collect();
    cpus.iter().map(|cpu| each.get(cpu).copied()).sum()
}

/// Files that count the throttled time of a process's group and of those above it, and what they say.
pub(super) fn throttled_of(pid: u32) -> Vec<(PathBuf, u64)> {
    let levels = cgroup::of(&Root::live(), pid).unwrap_or_default();
    let counted = |level: &cgroup::Level| {
        // Before Linux 6.5 only a group's own quota is reported.
        [level.stat_local(), level.stat()].into_iter().find_map(|file| Some((throttled_ns(&file)?, file)))
    };
    levels.iter().filter_map(counted).map(|(ns, file)| (file, ns)).collect()
}

/// The longest that one of these groups was held back since; a group's count holds its ancestors' too: the largest, never the sum.
pub(super) fn throttled_since(groups: &[(PathBuf, u64)]) -> Option<u64> {
    let since = |(file, before): &(PathBuf, u64)| Some(throttled_ns(file)?.saturating_sub(*before));
    groups.iter().filter_map(since).max()
}

fn throttled_ns(file: &std::path::Path) -> Option<u64> {
    throttled_in(&Root::live().text(file).ok()?)
}

/// v1 counts nanoseconds, v2 microseconds.
fn throttled_in(text: &str) -> Option<u64> {
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().parse::<u64>().ok()
    };
    value("throttled_time ").or_else(|| value("throttled_usec ")?.checked_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_was_taken() {
        let stat = "cpu  9 9 9 9 9 9 9 99 0 0\ncpu1 1 2 3 4 5 6 7 8 0 0\ncpu10 1 2 3 4 5 6 7 70 0 0\n";
        assert_eq!(steal_in(stat, &[1, 10]), Some(78));
        assert_eq!(steal_in(stat, &[2]), None);
        assert_eq!(steal_in("cpu1 1 2 3\n", &[1]), None, "a kernel that does not tell");
        assert_eq!(throttled_in("nr_throttled 3\nthrottled_time 99\n"), Some(99));
        assert_eq!(throttled_in("usage_usec 5\nthrottled_usec 7\n"), Some(7000));
        assert_eq!(throttled_in("throttled_time\n"), None);
    }

    #[test]
    fn watching_this_machine_ends() {
        let cpu = tare_sys::affinity::get(0).unwrap()[0];
        let quiet = HostWatch::begin(&[cpu]).until_now();
        assert!(quiet.steal_share.is_none_or(|share| share >= 0.0) && quiet.compute_s.is_none());
        let mut watch_of_host = HostWatch::begin(&[cpu]);
        watch_of_host.probe();
        assert!(watch_of_host.until_now().compute_s.is_some_and(|step_s| (1e-10..1e-6).contains(&step_s)));
        let mut nowhere = HostWatch::begin(&[]);
        nowhere.probe();
        assert_eq!(nowhere.until_now().compute_s, None);
    }
}
