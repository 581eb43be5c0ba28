//! The environment that fits a language runtime to the CPUs and the memory that it may really use. Runtimes see the
//! machine; what a control group's quota, or its limit, leaves of it, many do not.

use tare_model::Reading;
use tare_model::survey::Survey;

/// Share of the memory limit that the heap of a Go program may fill: the rest is for stacks, code and the kernel.
const HEAP_SHARE: f64 = 0.9;
const MIB: u64 = 1 << 20;

/// What a program has room for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// CPUs that it can use at once; at least 1.
    pub cpus: u32,
    /// Memory that its groups allow; `None` where that is all.
    pub memory_bytes: Option<u64>,
    /// Whether transparent huge pages are given to those who ask (`madvise`).
    pub huge_on_request: bool,
    /// Free bytes in pools of huge pages.
    pub huge_pool_bytes: u64,
}

impl Room {
    /// On so many CPUs of the surveyed machine, in the groups of the process that looked.
    pub fn of(survey: &Survey, cpus: u32) -> Room {
        let groups = &survey.groups;
        let least_quota =
            levels(&groups.cpu).filter_map(|group| group.quota.value()).map(|quota| quota.cpus());
        let quota = least_quota.reduce(f64::min).filter(|quota| quota.is_finite() && *quota > 0.0);
        let machine = survey.machine.memory_bytes.value().copied().unwrap_or(u64::MAX);
        let limits = levels(&groups.memory).filter_map(|group| group.limit_bytes.value().copied());
        let pools = survey.memory.huge_pages.value().map(Vec::as_slice).unwrap_or_default();
        let free = |pool: &tare_model::survey::HugePages| {
            pool.free.value().map_or(0, |free| free.saturating_mul(pool.size_bytes))
        };
        Room {
            cpus: quota.map_or(cpus, |quota| cpus.min(quota.ceil() as u32)).max(1),
            memory_bytes: limits.min().filter(|limit| *limit < machine),
            huge_on_request: survey.memory.thp.value().is_some_and(|mode| mode == "madvise"),
            huge_pool_bytes: pools.iter().map(free).fold(0, u64::saturating_add),
        }
    }

    /// Variables to start a program with: of Go, and of the Java virtual machine.
    ///
    /// A Go program gets as many processors as it can use at once, and a heap target when its memory is limited; a
    /// Java one the same count, and huge pages where they are given on request (`madvise`) or lie ready in a pool.
    /// The pool's size is not put into words: a machine that is asked for more than there is does not start.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let mut all = vec![("GOMAXPROCS", self.cpus.to_string())];
        if let Some(limit) = self.memory_bytes {
            let target = (limit as f64 * HEAP_SHARE) as u64 / MIB;
            all.push(("GOMEMLIMIT", format!("{}MiB", target.max(1))));
        }
        let mut java = format!("-XX:ActiveProcessorCount={}", self.cpus);
        if self.huge_pool_bytes > 0 {
            java.push_str(" -XX:+UseLargePages");
        } else if self.huge_on_request {
            java.push_str(" -XX:+UseTransparentHugePages");
        }
        all.push(("JAVA_TOOL_OPTIONS", java));
        all
    }
}

fn levels<T>(reading: &Reading<Vec<T>>) -> impl Iterator<Item = &T> {
    reading.value().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Root;
    use crate::facts::{Reach, survey};

    #[test]
    fn a_quota_a_limit_and_huge_pages_show_in_the_variables() {
        let room = Room { cpus: 2, memory_bytes: None, huge_on_request: false, huge_pool_bytes: 0 };
        assert_eq!(
            room.environment(),
            [
                ("GOMAXPROCS", "2".to_string()),
                ("JAVA_TOOL_OPTIONS", "-XX:ActiveProcessorCount=2".to_string())
            ]
        );
        let room = Room { memory_bytes: Some(1 << 30), huge_on_request: true, ..room };
        let words = |room: &Room| room.environment().into_iter().map(|(_, value)| value).collect::<Vec<_>>();
        assert_eq!(words(&room)[1..], ["921MiB", "-XX:ActiveProcessorCount=2 -XX:+UseTransparentHugePages"]);
        let room = Room { huge_pool_bytes: 2 << 20, ..room };
        assert_eq!(words(&room)[2], "-XX:ActiveProcessorCount=2 -XX:+UseLargePages");
        assert_eq!(words(&Room { memory_bytes: Some(0), ..room })[1], "1MiB");
    }

    #[test]
    fn the_tightest_quota_on_the_way_up_counts() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
        put("proc/self/cgroup", "0::/a/b\n");
        put("proc/meminfo", "MemTotal: 8388608 kB\n");
        put("sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
        put("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
        put("sys/fs/cgroup/a/b/cpu.max", "400000 100000\n");
        put("sys/fs/cgroup/a/memory.max", "1073741824\n");
        put("sys/fs/cgroup/a/b/memory.max", "max\n");
        let survey = survey(&Root::at(dir.path()), Reach { company: None, windows: false });
        let room = Room::of(&survey, 8);
        assert_eq!((room.cpus, room.memory_bytes), (2, Some(1 << 30)));
        assert_eq!(Room::of(&survey, 1).cpus, 1);
    }
}
