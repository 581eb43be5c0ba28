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

use crate::accounting::raw::readings::Readings;
use crate::accounting::reconcile::cpus::{ByRole, Cpu, ROLES};
use crate::accounting::reconcile::threads::Thread;
use std::collections::BTreeMap;
use tare_model::metric::Subject;
use tare_model::metrics::groups;
use tare_model::observation::Role;

/// The parts of a thread's wait, in seconds; they sum to it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Wait {
    pub throttled_s: f64,
    /// By who ran; the thread's own role among them.
    pub behind_s: ByRole,
    pub scheduler_s: f64,
}

impl Wait {
    pub fn sum(&self) -> f64 {
        self.throttled_s + self.behind_s.sum() + self.scheduler_s
    }

    /// The same parts of a share of it.
    pub fn scaled(&self, share: f64) -> Wait {
        let mut behind_s = self.behind_s;
        for role in ROLES {
            *behind_s.of_mut(role) *= share;
        }
        Wait { throttled_s: self.throttled_s * share, behind_s, scheduler_s: self.scheduler_s * share }
    }

    pub fn absorb(&mut self, other: &Wait) {
        self.throttled_s += other.throttled_s;
        self.behind_s.absorb(&other.behind_s);
        self.scheduler_s += other.scheduler_s;
    }
}

/// How long the SUT's run queues were held back by a quota: its own group's figure (which shows an ancestor's
/// quota too), else the largest among its ancestors that have any; never a sum, since nested groups are held
/// back by the same quota. `None` when no group could be read.
pub(crate) fn throttled_s(readings: &Readings) -> Option<f64> {
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
pub(crate) fn throttled_edges_s(threads: &[Thread]) -> f64 {
    let mut queues: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for thread in threads.iter().filter(|thread| thread.role == Role::Sut && thread.serves()) {
        for cpu in thread.cpu_run_s.keys() {
            let ((edges_s, shares), share) = (queues.entry(*cpu).or_default(), thread.share_on(*cpu));
            *edges_s += thread.edges_s * share;
            *shares += share;
        }
    }
    queues.values().filter(|(_, shares)| *shares > 0.0).map(|(edges_s, shares)| edges_s / shares).sum()
}

/// Splits the SUT's throttled time over CPUs by where its threads waited, at most the window for each.
fn throttled_by_cpu(threads: &[Thread], throttled_s: f64, wall_s: f64) -> BTreeMap<u32, f64> {
    let mut waited_s: BTreeMap<u32, f64> = BTreeMap::new();
    for thread in threads.iter().filter(|thread| thread.role == Role::Sut) {
        for cpu in thread.cpu_run_s.keys() {
            *waited_s.entry(*cpu).or_default() += thread.queue_s.unwrap_or(0.0) * thread.share_on(*cpu);
        }
    }
    let all_s: f64 = waited_s.values().sum();
    if all_s <= 0.0 {
        return BTreeMap::new();
    }
    waited_s.into_iter().map(|(cpu, waited)| (cpu, (throttled_s * waited / all_s).min(wall_s))).collect()
}

/// Splits every thread's wait, and marks the idle time of CPUs that was a quota's doing.
pub(crate) fn split(
    threads: &mut [Thread],
    cpus: &mut BTreeMap<u32, Cpu>,
    throttled_s: Option<f64>,
    held_cpus_s: &[f64],
    wall_s: f64,
) -> BTreeMap<u32, f64> {
    let throttled = throttled_by_cpu(threads, throttled_s.unwrap_or(0.0), wall_s);
    for (cpu, held_s) in &throttled {
        if let Some(accounting) = cpus.get_mut(cpu) {
            accounting.throttled_s = held_s.min(accounting.idle_s.unwrap_or(*held_s));
        }
    }
    let measured = Measured::of(threads, held_cpus_s, throttled_s.unwrap_or(0.0));
    for thread in threads {
        thread.wait = match thread.blocked_s {
            Some(_) => measured.wait(thread),
            None => split_one(thread, cpus, &throttled),
        };
    }
    throttled
}

/// How a quota's time is set against what the switches tell.
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
    fn of(threads: &[Thread], held_cpus_s: &[f64], throttled_s: f64) -> Measured {
        let held_s: f64 = held_cpus_s.iter().sum();
        let most_s = throttled_s + throttled_s.min(OPEN_S * held_cpus_s.len() as f64);
        let held_share = if held_s > 0.0 { (most_s / held_s).min(1.0) } else { 0.0 };
        let followed = threads.iter().filter(|thread| thread.blocked_s.is_some());
        let behind_s = longest_s(followed.map(|thread| thread.wait.behind_s.sum()), held_cpus_s.len());
        let excess_s = (throttled_s - held_s).max(0.0);
        let behind_share = if behind_s > 0.0 { (excess_s / behind_s).min(1.0) } else { 0.0 };
        Measured { held_share, behind_share }
    }

    fn wait(&self, thread: &Thread) -> Wait {
        let throttled_s = thread.held_s * self.held_share + thread.wait.behind_s.sum() * self.behind_share;
        let mut wait = thread.wait;
        for role in ROLES {
            *wait.behind_s.of_mut(role) *= 1.0 - self.behind_share;
        }
        wait.scheduler_s += thread.held_s * (1.0 - self.held_share);
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

fn split_one(thread: &Thread, cpus: &BTreeMap<u32, Cpu>, throttled: &BTreeMap<u32, f64>) -> Wait {
    let waited_s = thread.queue_s.unwrap_or(0.0);
    let mut held_s = 0.0;
    let mut ran_s = ByRole::default();
    for (cpu, own_run_s) in &thread.cpu_run_s {
        let share = thread.share_on(*cpu);
        if thread.role == Role::Sut {
            // Of a run queue's throttled time every thread in it may have waited all.
            let queue_s = throttled.get(cpu).copied().unwrap_or(0.0);
            held_s += queue_s * if thread.cpu_run_s.len() == 1 { 1.0 } else { share };
        }
        let Some(accounting) = cpus.get(cpu) else { continue };
        for role in ROLES {
            let other_s = accounting.ran_s.of(role) - if role == thread.role { *own_run_s } else { 0.0 };
            *ran_s.of_mut(role) += share * other_s.max(0.0);
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
