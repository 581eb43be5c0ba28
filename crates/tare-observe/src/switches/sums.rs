//! What a thread did in a window, summed.

use crate::sleep::Why;
use std::collections::{BTreeMap, HashMap};
use tare_model::schedule::{Blocked, Sleep};

/// All others.
pub(super) const THE_REST: u32 = u32::MAX;
/// Those a thread waited behind that are kept by name, at most.
pub(super) const BEHIND_MAX: usize = 256;
/// The idle task.
pub(super) const IDLE: u32 = 0;

/// How long a thread was in each state.
#[derive(Debug)]
pub(super) struct Times {
    pub(super) run_ns: u64,
    pub(super) unknown_ns: u64,
    pub(super) blocked: BTreeMap<Why, (u64, u64)>,
    pub(super) behind: HashMap<u32, u64>,
    pub(super) held_ns: u64,
    pub(super) delay_ns: u64,
    /// See [`tare_model::schedule::ThreadSchedule::wait_edges_ns`].
    pub(super) wait_edges_ns: Option<i64>,
}

impl Default for Times {
    fn default() -> Times {
        Times {
            run_ns: 0,
            unknown_ns: 0,
            blocked: BTreeMap::new(),
            behind: HashMap::new(),
            held_ns: 0,
            delay_ns: 0,
            wait_edges_ns: Some(0),
        }
    }
}

impl Times {
    pub(super) fn correct_wait(&mut self, ns: i64) {
        self.wait_edges_ns = self.wait_edges_ns.map(|sum| sum.saturating_add(ns));
    }

    pub(super) fn waited(&mut self, behind: u32, ns: u64, is_held: bool) {
        if ns == 0 {
            return;
        }
        if behind == IDLE {
            *(if is_held { &mut self.held_ns } else { &mut self.delay_ns }) += ns;
        } else {
            let known = self.behind.len() < BEHIND_MAX || self.behind.contains_key(&behind);
            *self.behind.entry(if known { behind } else { THE_REST }).or_default() += ns;
        }
    }

    /// Sleep by reason.
    pub(super) fn sleeps(&self) -> Vec<Blocked> {
        let mut sums: BTreeMap<Sleep, (u64, u64)> = BTreeMap::new();
        for (why, (ns, count)) in &self.blocked {
            let sum = sums.entry(why.sleep).or_default();
            *sum = (sum.0 + ns, sum.1 + count);
        }
        sums.into_iter().map(|(why, (ns, count))| Blocked { why, ns, count }).collect()
    }
}

/// Lengths of time by powers of two, nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Lengths(Vec<u32>);

impl Lengths {
    pub(super) fn add(&mut self, ns: u64) {
        let at = ns.max(1).ilog2() as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] = self.0[at].saturating_add(1);
    }

    pub(super) fn counts(&self) -> Vec<u32> {
        self.0.clone()
    }
}
