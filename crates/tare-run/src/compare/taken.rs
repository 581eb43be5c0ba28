//! What kept a server off its CPUs, quotas of its group and others that ran while it was ready; and what it spent in the kernel.

use super::interference::{throttled_of, throttled_since};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use tare_machine::cgroup::Quota;
use tare_machine::cpu_times::TICK_NS;
use tare_machine::{Root, cgroup, procs};
use tare_model::comparison::Modes;

/// More threads than this are not read: what they waited is not known then.
const THREADS_MAX: usize = 256;
/// Threads that ran less than this share of the run of all do not stand in each other's way.
const RAN_SHARE: f64 = 0.01;

/// What was counted of a server so far.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// Nanoseconds that each thread ran, and that it waited for a CPU; `None`: they are too many.
    threads: Option<BTreeMap<u32, [u64; 2]>>,
    /// Files that count throttled time, and what they said.
    groups: Vec<(PathBuf, u64)>,
    quota_cpus: Option<f64>,
    /// Ticks in its own code and in the kernel; `None`: a process is gone.
    ticks: Option<[u64; 2]>,
}

/// What came in a window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Lost {
    pub waited_ns: Option<u64>,
    pub throttled_ns: Option<u64>,
    pub quota_cpus: Option<f64>,
    pub modes: Option<Modes>,
}

impl Taken {
    pub fn read(pids: &[u32]) -> Taken {
        let root = Root::live();
        Taken {
            threads: threads(&root, pids),
            groups: pids.first().map(|pid| throttled_of(*pid)).unwrap_or_default(),
            quota_cpus: pids.first().and_then(|pid| cgroup::quota_cpus(&root, *pid)),
            ticks: ticks(&root, pids),
        }
    }

    /// What came since, of a server that may use so many CPUs.
    pub fn until_now(&self, pids: &[u32], cpus: usize) -> Lost {
        let root = Root::live();
        let now = threads(&root, pids);
        Lost {
            waited_ns: self.threads.as_ref().zip(now).and_then(|(before, now)| waited_ns(before, &now, cpus)),
            throttled_ns: throttled_since(&self.groups),
            quota_cpus: self.quota_cpus,
            modes: self.ticks.zip(ticks(&root, pids)).and_then(|(before, now)| modes(before, now)),
        }
    }
}

/// The longest period of the quotas that some of these have and others have not, of those that leave a server less than so many CPUs.
pub(super) fn period_of_some(pids: impl Iterator<Item = u32>, cpus: usize) -> Option<Duration> {
    let root = Root::live();
    let tight = |pid: u32| cgroup::tightest(&root, pid).filter(|quota| quota.cpus() < Some(cpus as f64));
    unlike(&pids.map(tight).collect::<Vec<_>>())
}

fn unlike(quotas: &[Option<Quota>]) -> Option<Duration> {
    let cpus = |quota: &Option<Quota>| quota.and_then(Quota::cpus);
    let first = quotas.first().map(cpus)?;
    let period_ns = quotas.iter().flatten().map(|quota| quota.period_ns).max();
    period_ns.filter(|_| quotas.iter().any(|quota| cpus(quota) != first)).map(Duration::from_nanos)
}

fn ticks(root: &Root, pids: &[u32]) -> Option<[u64; 2]> {
    let of = |pid: &u32| procs::stat(root, *pid).ok().map(|stat| [stat.user_ticks, stat.system_ticks]);
    let all: Option<Vec<[u64; 2]>> = pids.iter().map(of).collect();
    all.filter(|all| !all.is_empty()).map(|all| [0, 1].map(|side| all.iter().map(|ticks| ticks[side]).sum()))
}

fn modes(before: [u64; 2], now: [u64; 2]) -> Option<Modes> {
    let [user_ns, kernel_ns] = [0, 1].map(|side: usize| Some(now[side].checked_sub(before[side])? * TICK_NS));
    Some(Modes { user_ns: user_ns?, kernel_ns: kernel_ns? })
}

fn threads(root: &Root, pids: &[u32]) -> Option<BTreeMap<u32, [u64; 2]>> {
    let all = pids.iter().flat_map(|pid| procs::tasks_of(root, *pid).into_iter().map(move |tid| (*pid, tid)));
    let all: Vec<(u32, u32)> = all.take(THREADS_MAX + 1).collect();
    let read = |(pid, tid): (u32, u32)| Some((tid, procs::schedstat(root, pid, tid)?));
    (!all.is_empty() && all.len() <= THREADS_MAX).then(|| all.into_iter().filter_map(read).collect())
}

/// What the threads waited; `None` where more of them ran than there are CPUs for: they waited for each other then, and who for whom nobody
/// counted.
fn waited_ns(before: &BTreeMap<u32, [u64; 2]>, now: &BTreeMap<u32, [u64; 2]>, cpus: usize) -> Option<u64> {
    let grown: Vec<[u64; 2]> = now
        .iter()
        .map(|(tid, now)| {
            let before = before.get(tid).copied().unwrap_or_default();
            [0, 1].map(|at: usize| now[at].saturating_sub(before[at]))
        })
        .collect();
    let all_ns: u64 = grown.iter().map(|[run_ns, _]| run_ns).sum();
    let at_work = grown.iter().filter(|[run_ns, _]| *run_ns as f64 > RAN_SHARE * all_ns as f64).count();
    (at_work <= cpus.max(1)).then(|| grown.iter().map(|[_, waited_ns]| waited_ns).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_wait_for_each_other_are_no_sign_of_others() {
        let of = |all: &[[u64; 2]]| (0u32..).zip(all.iter().copied()).collect::<BTreeMap<u32, [u64; 2]>>();
        let before = of(&[[100, 10], [0, 0]]);
        let one = of(&[[1100, 60], [5, 1]]);
        assert_eq!(waited_ns(&before, &one, 1), Some(51), "a helper that hardly ran counts for nothing");
        let two = of(&[[1100, 600], [900, 700]]);
        assert_eq!((waited_ns(&before, &two, 1), waited_ns(&before, &two, 2)), (None, Some(1290)));
    }

    #[test]
    fn only_a_quota_that_not_all_have_makes_longer_turns() {
        let of = |quota_ns: Option<u64>| Some(Quota { quota_ns, period_ns: 100_000_000 });
        let half = of(Some(50_000_000));
        assert_eq!(unlike(&[None, None, half]), Some(Duration::from_millis(100)));
        assert_eq!(unlike(&[half, half, of(Some(30_000_000))]), Some(Duration::from_millis(100)));
        assert_eq!(unlike(&[half, half, half]), None);
        assert_eq!(unlike(&[None, None, None]), None);
        assert_eq!(unlike(&[]), None);
    }

    #[test]
    fn ticks_are_nanoseconds_and_never_fewer() {
        let modes_of = |user_ns, kernel_ns| Some(Modes { user_ns, kernel_ns });
        assert_eq!(modes([10, 10], [12, 13]), modes_of(20_000_000, 30_000_000));
        assert_eq!(modes([10, 10], [9, 30]), None);
    }

    #[test]
    fn this_process_is_read_and_nobody_is_nothing() {
        let own = [std::process::id()];
        let taken = Taken::read(&own);
        assert!(taken.until_now(&own, usize::MAX).waited_ns.is_some());
        assert_eq!(Taken::read(&[]).until_now(&[], 1), Lost::default());
    }
}
