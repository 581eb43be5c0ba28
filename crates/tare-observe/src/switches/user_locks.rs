//! Locks of the program that its threads slept for: each by the address of its word, who had it, and for how long.
//!
//! Whoever wakes a thread that sleeps for a lock has just let go of it. When it took the lock is known where it had slept for it itself: then
//! it had it from when it ran again.

use super::follow::{Event, Waker, What};
use std::collections::HashMap;
use tare_model::schedule::Sleep;

/// Locks that are distinguished, and those who had one, at most.
const LOCKS_MAX: usize = 512;
const HOLDERS_MAX: usize = 64;

/// A lock: the process and the address of its word.
pub(super) type LockKey = (u32, u64);

/// What was seen of one lock.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct LockSum {
    /// Sleeps for it, and how long in sum.
    pub(super) count: u64,
    pub(super) ns: u64,
    /// Times that it was held, of which the beginning is known, and how long in sum.
    pub(super) holds: u64,
    pub(super) held_ns: u64,
    /// By thread, how often it let go of the lock and woke somebody.
    pub(super) holders: HashMap<u32, u64>,
}

/// Locks so far.
#[derive(Debug, Default)]
pub(super) struct UserLocks {
    /// Threads that are about to sleep for a lock, or do, and since when.
    about_to: HashMap<u32, LockKey>,
    asleep: HashMap<u32, (LockKey, u64)>,
    /// Threads that were called, and those that had the lock since they ran.
    called: HashMap<u32, LockKey>,
    holding: HashMap<u32, (LockKey, u64)>,
    pub(super) sums: HashMap<LockKey, LockSum>,
}

impl UserLocks {
    /// Takes the next event; they come in the order of time. `pid_of` tells a thread's process. Only what lies within the window counts.
    pub(super) fn take(&mut self, event: &Event, window: (u64, u64), pid_of: impl Fn(u32) -> u32) {
        let at_ns = event.at_ns;
        match event.what {
            What::Futex { tid, futex } if futex.sleep == Sleep::Lock => {
                self.about_to.insert(tid, (pid_of(tid), futex.address));
            }
            What::Futex { .. } | What::Woken { .. } => {}
            What::Switch { prev, asleep, next } => {
                if let Some(lock) = self.about_to.remove(&prev).filter(|_| asleep.is_some()) {
                    // It slept for this one, ran, and did not get it.
                    if self.holding.get(&prev).is_some_and(|(had, _)| *had == lock) {
                        self.holding.remove(&prev);
                    }
                    self.asleep.insert(prev, (lock, at_ns));
                }
                if let Some(lock) = self.called.remove(&next) {
                    self.holding.insert(next, (lock, at_ns));
                }
            }
            What::Waking { tid, by, .. } => {
                let Some((lock, since_ns)) = self.asleep.remove(&tid) else { return };
                self.slept(lock, since_ns, at_ns, window);
                self.called.insert(tid, lock);
                if let Waker::Thread(by) = by {
                    self.let_go(by, lock, at_ns, window);
                }
            }
            What::Lost => {
                let sums = std::mem::take(&mut self.sums);
                *self = UserLocks { sums, ..UserLocks::default() };
            }
        }
    }

    /// The window ends: those that sleep have slept until then.
    pub(super) fn end(&mut self, window: (u64, u64)) {
        for (lock, since_ns) in std::mem::take(&mut self.asleep).into_values() {
            self.slept(lock, since_ns, window.1, window);
        }
    }

    fn slept(&mut self, lock: LockKey, since_ns: u64, until_ns: u64, window: (u64, u64)) {
        let ns = until_ns.min(window.1).saturating_sub(since_ns.max(window.0));
        if let Some(sum) = self.sum(lock).filter(|_| ns > 0) {
            (sum.count, sum.ns) = (sum.count + 1, sum.ns + ns);
        }
    }

    fn let_go(&mut self, by: u32, lock: LockKey, at_ns: u64, window: (u64, u64)) {
        let held = self.holding.remove(&by).filter(|(had, _)| *had == lock);
        if !(window.0..window.1).contains(&at_ns) {
            return;
        }
        let Some(sum) = self.sum(lock) else { return };
        if sum.holders.len() < HOLDERS_MAX || sum.holders.contains_key(&by) {
            *sum.holders.entry(by).or_default() += 1;
        }
        if let Some((_, since_ns)) = held.filter(|(_, since_ns)| *since_ns >= window.0) {
            (sum.holds, sum.held_ns) = (sum.holds + 1, sum.held_ns + (at_ns - since_ns));
        }
    }

    fn sum(&mut self, lock: LockKey) -> Option<&mut LockSum> {
        let has_room = self.sums.len() < LOCKS_MAX || self.sums.contains_key(&lock);
        has_room.then(|| self.sums.entry(lock).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sleep::{FutexWait, Why};

    fn futex(at_ns: u64, tid: u32, sleep: Sleep) -> [Event; 2] {
        let futex = FutexWait { address: 0x7000, sleep, is_timed: false };
        let asleep = Some(Why::from(sleep));
        [What::Futex { tid, futex }, What::Switch { prev: tid, asleep, next: 0 }]
            .map(|what| event(at_ns, what))
    }

    fn event(at_ns: u64, what: What) -> Event {
        Event { at_ns, cpu: 0, what }
    }

    fn waking(at_ns: u64, tid: u32, by: u32) -> Event {
        event(at_ns, What::Waking { tid, by: Waker::Thread(by), to_cpu: 0 })
    }

    fn runs(at_ns: u64, tid: u32) -> Event {
        event(at_ns, What::Switch { prev: 0, asleep: None, next: tid })
    }

    fn sums(events: &[Event]) -> HashMap<LockKey, LockSum> {
        let mut locks = UserLocks::default();
        events.iter().for_each(|event| locks.take(event, (100, 1000), |_| 5));
        locks.end((100, 1000));
        locks.sums
    }

    #[test]
    fn who_wakes_a_sleeper_had_the_lock_since_it_ran_again() {
        let events = [
            futex(50, 8, Sleep::Lock).as_slice(),
            // Nobody knows when 7 took it.
            &[waking(200, 8, 7), runs(210, 8)],
            &futex(220, 7, Sleep::Lock),
            &[waking(260, 7, 8), runs(270, 7)],
            // It is let go of outside of the window.
            &futex(280, 8, Sleep::Lock),
            &[waking(1100, 8, 7)],
        ]
        .concat();
        let holders = HashMap::from([(7, 1), (8, 1)]);
        let sum = LockSum { count: 3, ns: 100 + 40 + 720, holds: 1, held_ns: 50, holders };
        assert_eq!(sums(&events), HashMap::from([((5, 0x7000), sum)]));
    }

    #[test]
    fn parked_threads_and_those_who_did_not_get_it_hold_nothing() {
        assert!(sums(&[futex(150, 8, Sleep::Parked).as_slice(), &[waking(200, 8, 7)]].concat()).is_empty());
        let events = [
            futex(150, 8, Sleep::Lock).as_slice(),
            &[waking(200, 8, 7), runs(210, 8)],
            // Somebody was quicker.
            &futex(220, 8, Sleep::Lock),
            &[waking(300, 9, 8)],
        ]
        .concat();
        assert_eq!(sums(&events)[&(5, 0x7000)].holds, 0);
        // What was lost may have been the end of anything.
        let lost =
            [futex(150, 8, Sleep::Lock).as_slice(), &[event(160, What::Lost), waking(200, 8, 7)]].concat();
        assert!(sums(&lost).is_empty());
    }
}
