//! Locks of the program that its threads slept for, by traced switches: how long, and who had them.

use crate::accounting::raw::ratio::ratio;
use std::collections::BTreeMap;
use tare_model::schedule::{HolderShare, LockHolder, ProgramLock, ProgramLockShare};

/// Rows of each list in the outcome, at most.
const ROWS_MAX: usize = 16;

/// By what lies at the lock's address: names hold in all windows of a run, and in other launches of the same program too.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProgramLocks(BTreeMap<String, Sum>);

#[derive(Debug, Clone, Default)]
struct Sum {
    count: f64,
    seconds: f64,
    holds: f64,
    held_ns: f64,
    /// By thread and its name.
    holders: BTreeMap<(u32, String), f64>,
}

impl ProgramLocks {
    pub(super) fn read(locks: &[ProgramLock]) -> ProgramLocks {
        let mut all = ProgramLocks::default();
        for lock in locks {
            let holder = |holder: &LockHolder| ((holder.tid, holder.name.clone()), holder.count as f64);
            let one = Sum {
                count: lock.count as f64,
                seconds: lock.ns as f64 / 1e9,
                holds: lock.holds as f64,
                held_ns: lock.held_ns as f64,
                holders: lock.holders.iter().map(holder).collect(),
            };
            all.0.entry(lock.at.clone()).or_default().add(&one);
        }
        all
    }

    pub(super) fn absorb(&mut self, other: &ProgramLocks) {
        for (at, lock) in &other.0 {
            self.0.entry(at.clone()).or_default().add(lock);
        }
    }

    /// Those that took most time first; `wall_s` is the length of the windows, `serving_s` the lives of the serving threads.
    pub fn shares(&self, wall_s: f64, serving_s: f64) -> Vec<ProgramLockShare> {
        let lock = |(at, lock): (&String, &Sum)| ProgramLockShare {
            at: at.clone(),
            contended_hz: ratio(lock.count, wall_s),
            share: ratio(lock.seconds, serving_s),
            held_ns: (lock.holds > 0.0).then(|| lock.held_ns / lock.holds),
            holders: lock.holders(),
        };
        let mut locks: Vec<ProgramLockShare> = self.0.iter().map(lock).collect();
        locks.sort_by(|a, b| b.share.total_cmp(&a.share));
        locks.truncate(ROWS_MAX);
        locks
    }
}

impl Sum {
    fn add(&mut self, other: &Sum) {
        self.count += other.count;
        self.seconds += other.seconds;
        self.holds += other.holds;
        self.held_ns += other.held_ns;
        for (holder, count) in &other.holders {
            *self.holders.entry(holder.clone()).or_default() += count;
        }
    }

    fn holders(&self) -> Vec<HolderShare> {
        let all: f64 = self.holders.values().sum();
        let holder = |((tid, name), count): (&(u32, String), &f64)| HolderShare {
            name: name.clone(),
            tid: *tid,
            share: ratio(*count, all),
        };
        let mut holders: Vec<HolderShare> = self.holders.iter().map(holder).collect();
        holders.sort_by(|a, b| b.share.total_cmp(&a.share));
        holders.truncate(ROWS_MAX);
        holders
    }
}
