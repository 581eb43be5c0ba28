//! What kept a server off its CPUs in its own turns: a quota of its own, and others that ran while it was ready.

use super::interference::throttled_ns;
use std::collections::BTreeSet;
use std::path::PathBuf;
use tare_machine::{Root, cgroup, procs};

/// More threads are not read in a break.
const THREADS_MAX: usize = 256;

/// What was counted of a server so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// Its threads waited for a CPU; `None` where that cannot be read.
    pub waited_ns: Option<u64>,
    /// A quota held its group back; `None` where no quota counts.
    pub throttled_ns: Option<u64>,
}

impl Taken {
    pub fn read(pids: &[u32]) -> Taken {
        let root = Root::live();
        let threads: Vec<(u32, u32)> = pids
            .iter()
            .flat_map(|pid| procs::tasks_of(&root, *pid).into_iter().map(move |tid| (*pid, tid)))
            .take(THREADS_MAX + 1)
            .collect();
        let is_whole = !threads.is_empty() && threads.len() <= THREADS_MAX;
        let wait = |(pid, tid): &(u32, u32)| {
            let text = root.text(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
            text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()
        };
        // A thread that ended meanwhile takes its wait along: it waits no more.
        let waited_ns = is_whole.then(|| threads.iter().filter_map(wait).sum());
        // A group's count holds its ancestors' too: the largest, never the sum.
        let groups: BTreeSet<PathBuf> = pids
            .iter()
            .filter_map(|pid| cgroup::of(&root, *pid).ok())
            .flatten()
            .filter_map(|level| {
                // Before Linux 6.5 only a group's own quota is reported.
                [level.stat_local(), level.stat()].into_iter().find(|file| throttled_ns(file).is_some())
            })
            .collect();
        Taken { waited_ns, throttled_ns: groups.iter().filter_map(|file| throttled_ns(file)).max() }
    }

    /// What came since.
    pub fn since(&self, before: &Taken) -> Taken {
        let grown = |after: Option<u64>, before: Option<u64>| Some(after?.saturating_sub(before?));
        Taken {
            waited_ns: grown(self.waited_ns, before.waited_ns),
            throttled_ns: grown(self.throttled_ns, before.throttled_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grew_is_known_of_both_edges() {
        let edge = |waited_ns, throttled_ns| Taken { waited_ns, throttled_ns };
        assert_eq!(edge(Some(9), Some(5)).since(&edge(Some(4), Some(5))), edge(Some(5), Some(0)));
        assert_eq!(edge(None, Some(5)).since(&edge(Some(4), None)), edge(None, None));
        assert!(Taken::read(&[std::process::id()]).waited_ns.is_some());
        assert_eq!(Taken::read(&[]).waited_ns, None);
    }
}
