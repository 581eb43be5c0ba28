//! What was taken from the servers' CPUs in a window: by the hypervisor, and by quotas.

use std::path::PathBuf;
use std::time::Instant;
use tare_machine::{Root, cgroup};
use tare_record::comparison::Weather;

/// Clock ticks in a second, as `/proc/stat` counts them (USER_HZ, the same on every architecture that Linux has today).
const TICKS_PER_S: f64 = 100.0;

/// A first look.
pub(super) struct Sky {
    cpus: Vec<u32>,
    at: Instant,
    steal_ticks: Option<u64>,
    /// Files that count throttled time, of our group and those above it, and what they said.
    groups: Vec<(PathBuf, u64)>,
}

impl Sky {
    pub fn look(cpus: &[u32]) -> Sky {
        let levels = cgroup::of(&Root::live(), std::process::id()).unwrap_or_default();
        let counted = |level: &cgroup::Level| {
            // Before Linux 6.5 only a group's own quota is told.
            [level.stat_local(), level.stat()].into_iter().find_map(|file| Some((throttled_ns(&file)?, file)))
        };
        Sky {
            cpus: cpus.to_vec(),
            at: Instant::now(),
            steal_ticks: steal_ticks(cpus),
            groups: levels.iter().filter_map(counted).map(|(ns, file)| (file, ns)).collect(),
        }
    }

    /// What was taken since.
    pub fn until_now(self) -> Weather {
        let window_s = self.at.elapsed().as_secs_f64().max(1e-3);
        let steal_share = self.steal_ticks.zip(steal_ticks(&self.cpus)).map(|(before, after)| {
            after.saturating_sub(before) as f64 / TICKS_PER_S / window_s / self.cpus.len().max(1) as f64
        });
        let since = |(file, before): &(PathBuf, u64)| Some(throttled_ns(file)?.saturating_sub(*before));
        // A group's count holds its ancestors' too: the largest, never the sum.
        let throttled_ns = self.groups.iter().filter_map(since).max();
        Weather { steal_share, throttled_share: throttled_ns.map(|ns| ns as f64 / 1e9 / window_s) }
    }
}

fn steal_ticks(cpus: &[u32]) -> Option<u64> {
    steal_in(&Root::live().text("/proc/stat").ok()?, cpus)
}

/// Of lines as `cpu3 user nice system idle iowait irq softirq steal …`.
fn steal_in(text: &str, cpus: &[u32]) -> Option<u64> {
    let of = |cpu: &u32| {
        let name = format!("cpu{cpu}");
        let line = text.lines().find(|line| line.split_ascii_whitespace().next() == Some(name.as_str()))?;
        line.split_ascii_whitespace().nth(8)?.parse::<u64>().ok()
    };
    cpus.iter().map(of).sum()
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
    fn a_look_at_this_machine_ends() {
        let weather = Sky::look(&[0]).until_now();
        assert!(weather.steal_share.is_none_or(|share| share >= 0.0));
    }
}
