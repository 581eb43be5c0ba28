//! Locks of the kernel that threads of the SUT contended for, by who asked for them.

use super::reason;
use super::rings::{Contended, Contention};
use std::collections::{BTreeSet, HashMap};
use tare_machine::Root;
use tare_model::schedule::KernelLock;

/// Places that are distinguished, locks of one that are, and places that are reported, at most.
const PLACES_MAX: usize = 512;
const LOCKS_MAX: usize = 64;
const REPORTED_MAX: usize = 32;

/// Contention so far.
#[derive(Default)]
pub(super) struct Locks {
    /// Begun and not over yet, by thread and whether an interrupt is served.
    open: HashMap<(u32, bool), (u64, Contention)>,
    sums: HashMap<(u64, bool, bool), Sum>,
}

#[derive(Default)]
struct Sum {
    locks: BTreeSet<u64>,
    count: u64,
    ns: u64,
}

impl Locks {
    /// Takes the next event; they come in the order of time. Only what ends within the window counts.
    pub(super) fn take(&mut self, event: &Contended, window: (u64, u64)) {
        let key = (event.tid, event.in_interrupt);
        match event.begin {
            // A lock that first spins and then sleeps begins twice.
            Some(begin) => {
                let since = self.open.entry(key).or_insert((event.at_ns, begin));
                since.1 = Contention { spins: since.1.spins && begin.spins, ..begin };
            }
            None => {
                let Some((began_ns, begin)) = self.open.remove(&key) else { return };
                if event.at_ns < window.0 || event.at_ns >= window.1 {
                    return;
                }
                let place = (begin.asked_at, begin.spins, event.in_interrupt);
                if self.sums.len() >= PLACES_MAX && !self.sums.contains_key(&place) {
                    return;
                }
                let sum = self.sums.entry(place).or_default();
                sum.count += 1;
                sum.ns += event.at_ns.saturating_sub(began_ns.max(window.0));
                if sum.locks.len() < LOCKS_MAX {
                    sum.locks.insert(begin.lock);
                }
            }
        }
    }

    /// By function, those that took most time first.
    pub(super) fn report(&self, root: &Root) -> Vec<KernelLock> {
        if self.sums.is_empty() {
            return Vec::new();
        }
        let addresses: Vec<u64> = self.sums.keys().map(|(at, ..)| *at).collect();
        let names = reason::names(root, &addresses);
        let mut by_name: HashMap<(String, bool, bool), Sum> = HashMap::new();
        for ((at, spins, in_interrupt), sum) in &self.sums {
            let name = names.get(at).cloned().unwrap_or_else(|| format!("{at:#x}"));
            let place = by_name.entry((name, *spins, *in_interrupt)).or_default();
            place.locks.extend(&sum.locks);
            (place.count, place.ns) = (place.count + sum.count, place.ns + sum.ns);
        }
        let lock = |((at, spins, in_interrupt), sum): ((String, bool, bool), Sum)| KernelLock {
            at,
            spins,
            in_interrupt,
            locks: sum.locks.len() as u32,
            count: sum.count,
            ns: sum.ns,
        };
        let mut locks: Vec<KernelLock> = by_name.into_iter().map(lock).collect();
        locks.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.at.cmp(&b.at)));
        locks.truncate(REPORTED_MAX);
        locks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contention_is_summed_by_who_asked() {
        let contention = |spins| Some(Contention { asked_at: 16, lock: 1, spins });
        let event = |at_ns, begin| Contended { at_ns, tid: 7, in_interrupt: false, begin };
        let mut locks = Locks::default();
        let window = (100, 1000);
        for event in [
            event(90, contention(true)),
            event(110, None),
            event(120, None),
            // Spun first, slept then.
            event(200, contention(true)),
            event(210, contention(false)),
            event(250, None),
            event(990, contention(true)),
            event(1010, None),
        ] {
            locks.take(&event, window);
        }
        let found: Vec<(bool, u64, u64)> = locks
            .report(&Root::at("/nowhere"))
            .iter()
            .map(|lock| (lock.spins, lock.count, lock.ns))
            .collect();
        assert_eq!(found, [(false, 1, 50), (true, 1, 10)]);
    }
}
