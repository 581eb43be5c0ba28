//! Why a thread that was ready had no CPU: a quota, somebody else on the CPU, one of its own kind, or nobody.
//!
//! With scheduler tracepoints it is measured: who ran while a thread waited, and how long it was ready on a CPU that
//! nobody used, which is a quota's doing as far as the group was throttled at all. Throttled time beyond that is taken
//! from what was waited behind others, who ran in its place.
//!
//! Without scheduler tracepoints this is a bound, not a measurement. A quota's time is known for a CPU's run
//! queue, not for a thread: with one thread on a CPU it is exact, with several each thread's part is an upper
//! bound. Who else ran is known as a sum over the window, not moment by moment: a wait is put down to others in
//! proportion to their run on the CPUs the thread used, never to more than they ran, and what nobody's run
//! explains is the scheduler's delay.

use crate::accounting::attribute::wait::Wait;
use crate::accounting::attribute::waited::{Traced, Waited};
use crate::accounting::raw::by_role::{ByRole, ROLES};
use crate::accounting::raw::quota::Quota;
use crate::accounting::raw::ratio::sum;
use crate::accounting::raw::readings::Readings;
use crate::accounting::reconcile::cpus::OccupiedCpu;
use std::collections::BTreeMap;
use tare_model::metric::Subject;
use tare_model::metrics::groups;
use tare_model::observation::Role;

/// How long the SUT's run queues were held back by a quota.
#[derive(Debug, Clone, Default)]
pub(crate) struct Throttling {
    pub quota: Option<Quota>,
    /// `None` where no group's throttled time could be read.
    pub throttled_s: Option<f64>,
}

impl Throttling {
    pub(super) fn read(readings: &Readings, threads: &[Waited]) -> Throttling {
        let quota = Quota::read(readings);
        let edges_s = if quota.is_some() { edges_s(threads) } else { 0.0 };
        let throttled_s = counted_s(readings).map(|counted_s| (counted_s + edges_s).max(0.0));
        Throttling { quota, throttled_s }
    }

    /// The SUT's throttled time over CPUs by where its threads waited, at most the window for each.
    pub(super) fn by_cpu(&self, threads: &[Waited], wall_s: f64) -> BTreeMap<u32, f64> {
        let throttled_s = self.throttled_s.unwrap_or(0.0);
        let mut waited_s: BTreeMap<u32, f64> = BTreeMap::new();
        for thread in threads.iter().filter(|thread| thread.placed.counted.id.role == Role::Sut) {
            for cpu in thread.placed.cpu_run_s.keys() {
                *waited_s.entry(*cpu).or_default() +=
                    thread.queue_s.unwrap_or(0.0) * thread.placed.share_on(*cpu);
            }
        }
        let all_s: f64 = waited_s.values().sum();
        if all_s <= 0.0 {
            return BTreeMap::new();
        }
        waited_s.into_iter().map(|(cpu, waited)| (cpu, (throttled_s * waited / all_s).min(wall_s))).collect()
    }

    pub fn absorb(&mut self, other: &Throttling) {
        self.quota = Quota::pooled(self.quota.take(), other.quota.as_ref());
        self.throttled_s = sum(self.throttled_s, other.throttled_s);
    }
}

/// The SUT's own group's figure (which shows an ancestor's quota too), else the largest among its ancestors that have any; never
/// a sum, since nested groups are held back by the same quota. `None` when no group could be read.
fn counted_s(readings: &Readings) -> Option<f64> {
    let of = |path: &String| readings.growth_s(&groups::THROTTLED_NS, &Subject::Group(path.clone()));
    let mut paths = readings.observation.sut_groups.iter();
    let own = paths.next().and_then(of);
    if own.is_some_and(|own| own > 0.0) {
        return own;
    }
    paths.filter_map(of).chain(own).max_by(f64::total_cmp)
}

/// What of that lay before the window, less what was going on at its end. The kernel counts it when it ends, as it does waits, and
/// the waits of a run queue's threads begin and end with it: what those had open at the edges, in the mean of a queue, it had, too.
fn edges_s(threads: &[Waited]) -> f64 {
    let mut queues: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    let serves =
        |thread: &&Waited| thread.placed.counted.id.role == Role::Sut && thread.placed.counted.was_active();
    for thread in threads.iter().filter(serves) {
        for cpu in thread.placed.cpu_run_s.keys() {
            let ((edges_s, shares), share) = (queues.entry(*cpu).or_default(), thread.placed.share_on(*cpu));
            *edges_s += thread.edges_s * share;
            *shares += share;
        }
    }
    queues.values().filter(|(_, shares)| *shares > 0.0).map(|(edges_s, shares)| edges_s / shares).sum()
}

/// Splits the wait of every thread, in their order. `held_by_cpu`: how long the SUT's run queue on each CPU was throttled;
/// `held_cpus_s`: how long threads were held on each CPU that nobody used.
pub(super) fn split(
    threads: &[Waited],
    cpus: &BTreeMap<u32, OccupiedCpu>,
    throttled_s: Option<f64>,
    held_by_cpu: &BTreeMap<u32, f64>,
    held_cpus_s: &[f64],
) -> Vec<Wait> {
    let measured = Measured::of(threads, held_cpus_s, throttled_s.unwrap_or(0.0));
    let of = |thread: &Waited| match &thread.traced {
        Some(traced) => measured.wait(traced),
        None => bounded(thread, cpus, held_by_cpu),
    };
    threads.iter().map(of).collect()
}

/// How a quota's time is set against what the switches measured.
struct Measured {
    /// Share of the time on an unused CPU that was the quota's.
    held_share: f64,
    /// Share of the waits behind others that was.
    behind_share: f64,
}

/// Throttled time is counted when it ends: up to a period of it on each CPU may be in the next window, and no more than was
/// counted in this one, so that a moment of throttling does not take what a scheduler's delay was.
const OPEN_S: f64 = 0.1;

impl Measured {
    fn of(threads: &[Waited], held_cpus_s: &[f64], throttled_s: f64) -> Measured {
        let held_s: f64 = held_cpus_s.iter().sum();
        let most_s = throttled_s + throttled_s.min(OPEN_S * held_cpus_s.len() as f64);
        let held_share = if held_s > 0.0 { (most_s / held_s).min(1.0) } else { 0.0 };
        let traced = threads.iter().filter_map(|thread| thread.traced.as_ref());
        let behind_s = longest_s(traced.map(|traced| traced.wait.behind_s.sum()), held_cpus_s.len());
        let excess_s = (throttled_s - held_s).max(0.0);
        let behind_share = if behind_s > 0.0 { (excess_s / behind_s).min(1.0) } else { 0.0 };
        Measured { held_share, behind_share }
    }

    fn wait(&self, traced: &Traced) -> Wait {
        let throttled_s = traced.held_s * self.held_share + traced.wait.behind_s.sum() * self.behind_share;
        let mut wait = traced.wait;
        for role in ROLES {
            *wait.behind_s.of_mut(role) *= 1.0 - self.behind_share;
        }
        wait.scheduler_s += traced.held_s * (1.0 - self.held_share);
        Wait { throttled_s, ..wait }
    }
}

/// Of waits behind others, how long run queues had somebody who waited so: throttled time is a run queue's, and every thread in it may
/// have waited all of it. In each it is at least as long as its longest.
fn longest_s(waits_s: impl Iterator<Item = f64>, queues: usize) -> f64 {
    let mut waits_s: Vec<f64> = waits_s.collect();
    waits_s.sort_by(|one, other| other.total_cmp(one));
    waits_s.iter().take(queues.max(1)).sum()
}

/// Without switches: an upper bound of what was throttled, and the rest by who ran on the thread's CPUs.
fn bounded(thread: &Waited, cpus: &BTreeMap<u32, OccupiedCpu>, held_by_cpu: &BTreeMap<u32, f64>) -> Wait {
    let (placed, role) = (&thread.placed, thread.placed.counted.id.role);
    let waited_s = thread.queue_s.unwrap_or(0.0);
    let mut held_s = 0.0;
    let mut ran_s = ByRole::default();
    for (cpu, own_run_s) in &placed.cpu_run_s {
        let share = placed.share_on(*cpu);
        if role == Role::Sut {
            // Of a run queue's throttled time every thread in it may have waited all.
            let queue_s = held_by_cpu.get(cpu).copied().unwrap_or(0.0);
            held_s += queue_s * if placed.cpu_run_s.len() == 1 { 1.0 } else { share };
        }
        let Some(cpu) = cpus.get(cpu) else { continue };
        for other in ROLES {
            let other_s = cpu.ran_s.of(other) - if other == role { *own_run_s } else { 0.0 };
            *ran_s.of_mut(other) += share * other_s.max(0.0);
        }
    }
    let throttled_s = held_s.min(waited_s);
    let rest_s = waited_s - throttled_s;
    let candidates_s = ran_s.sum();
    let part = if candidates_s > 0.0 { (rest_s / candidates_s).min(1.0) } else { 0.0 };
    for role in ROLES {
        *ran_s.of_mut(role) *= part;
    }
    let scheduler_s = (rest_s - ran_s.sum()).max(0.0);
    Wait { throttled_s, behind_s: ran_s, scheduler_s }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_of_throttling_takes_no_more_than_twice_that_of_what_a_scheduler_did() {
        let share = |held_cpus_s: &[f64], throttled_s| Measured::of(&[], held_cpus_s, throttled_s).held_share;
        assert!((share(&[0.5, 0.5], 0.001) - 0.002).abs() < 1e-12);
        assert_eq!(share(&[0.5, 0.5], 0.0), 0.0);
        // A period's worth on each CPU may be counted in the next window.
        assert!((share(&[1.0, 0.6], 1.4) - 1.0).abs() < 1e-12);
        assert!((share(&[1.0, 1.0], 1.4) - 0.8).abs() < 1e-12);
    }

    /// Four threads on a CPU that a quota held back for most of a second, while a neighbour ran there: each of them waited all of it.
    #[test]
    fn what_a_queue_waited_is_not_what_its_threads_waited_together() {
        assert!((longest_s([0.7, 0.69, 0.7, 0.68].into_iter(), 1) - 0.7).abs() < 1e-12);
        assert!((longest_s([0.7, 0.1, 0.6].into_iter(), 2) - 1.3).abs() < 1e-12);
        assert_eq!((longest_s(std::iter::empty(), 4), longest_s([0.5].into_iter(), 0)), (0.0, 0.5));
    }
}
