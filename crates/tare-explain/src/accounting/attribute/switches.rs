//! What the switches of the SUT's threads show beyond each thread's own times: who ran while they waited, how long it took to get
//! a CPU, who woke whom, and which locks of the kernel were contended for.

use crate::accounting::attribute::program_locks::ProgramLocks;
use crate::accounting::attribute::waited::Sources;
use crate::accounting::raw::ratio::{ratio, sum};
use std::collections::BTreeMap;
use tare_model::Missing;
use tare_model::observation::{Observation, Role};
use tare_model::schedule::{
    KernelLock, LockShare, PeerShare, Preemptor, Quantiles, Schedule, ScheduleSource, SwitchAccounting,
    ThreadSchedule, WakerRates,
};

/// Rows of each list in the outcome, at most.
const ROWS_MAX: usize = 16;
/// No wait is longer than 2^63 ns; counts beyond are nonsense.
const POWERS_MAX: usize = 63;

/// Seconds that threads were held on each CPU that nobody used.
pub(super) fn held_cpus_s(observation: &Observation) -> Vec<f64> {
    let held = observation.schedule.iter().flat_map(|schedule| &schedule.held);
    held.map(|held| held.ns as f64 / 1e9).collect()
}

/// What is not a thread's own, of one window or several.
#[derive(Debug, Clone, Default)]
pub(crate) struct Switches {
    tracing: Tracing,
    waits: Waits,
    pub program_locks: ProgramLocks,
    locks: BTreeMap<LockId, LockSum>,
    /// Servers that were slept on: time, or times where that is not known.
    downstream: BTreeMap<String, f64>,
    pub wake_ups: WakeUps,
}

/// Wake-ups that are counted whether switches are traced or not.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WakeUps {
    /// Of a thread of the SUT by another; `None` where they were not counted.
    pub by_sut: Option<f64>,
    /// Times that a CPU of the generator's left its idle loop; `None` where they were not counted on all of them.
    pub load_idle_exits: Option<f64>,
    /// The same of the SUT's CPUs.
    pub sut_idle_exits: Option<f64>,
}

/// How the windows were observed.
#[derive(Debug, Clone, Default)]
struct Tracing {
    source: Option<ScheduleSource>,
    not_traced: Option<Missing>,
    locks_not_traced: Option<Missing>,
    sources: Sources,
    events_lost: u64,
}

impl Tracing {
    fn absorb(&mut self, other: &Tracing) {
        // What not all windows were measured by, all are no better than.
        if other.source == Some(ScheduleSource::Samples) || self.source.is_none() {
            (self.source, self.not_traced) = (other.source.or(self.source), other.not_traced.clone());
        }
        self.locks_not_traced = self.locks_not_traced.take().or_else(|| other.locks_not_traced.clone());
        self.sources.switches_s += other.sources.switches_s;
        self.sources.samples_s += other.sources.samples_s;
        self.events_lost += other.events_lost;
    }
}

/// The waits of all threads together.
#[derive(Debug, Clone, Default)]
struct Waits {
    /// By role, name and thread of who ran.
    behind_s: BTreeMap<(u8, String, u32), (Option<Role>, f64)>,
    /// Waits for a CPU, and from wake-up to run, by the power of two of their length.
    queued: Vec<f64>,
    woken_to_run: Vec<f64>,
    migrations: f64,
    sleeps: f64,
    woken_by: WakerRates,
}

impl Waits {
    fn add_thread(&mut self, thread: &ThreadSchedule) {
        for behind in &thread.behind {
            let key = (behind.role as u8, behind.name.clone(), behind.tid);
            self.add_behind(key, Some(behind.role), behind.ns as f64 / 1e9);
        }
        add_counts(&mut self.queued, thread.waits.iter().map(|count| f64::from(*count)));
        add_counts(&mut self.woken_to_run, thread.wakes.iter().map(|count| f64::from(*count)));
        self.migrations += f64::from(thread.migrations);
        self.sleeps += thread.blocked.iter().map(|blocked| blocked.count as f64).sum::<f64>();
        let woken = &thread.woken_by;
        let of = |count: u64| count as f64;
        self.add_woken(&WakerRates {
            sut: of(woken.sut),
            load: of(woken.load),
            interrupt: of(woken.interrupt),
            other: of(woken.other),
            cross_cpu: of(woken.cross_cpu),
        });
    }

    fn add_behind(&mut self, key: (u8, String, u32), role: Option<Role>, seconds: f64) {
        let sum = self.behind_s.entry(key).or_insert((role, 0.0));
        sum.1 += seconds;
    }

    fn add_woken(&mut self, woken: &WakerRates) {
        let sum = &mut self.woken_by;
        sum.sut += woken.sut;
        sum.load += woken.load;
        sum.interrupt += woken.interrupt;
        sum.other += woken.other;
        sum.cross_cpu += woken.cross_cpu;
    }

    fn absorb(&mut self, other: &Waits) {
        for (key, (role, seconds)) in &other.behind_s {
            self.add_behind(key.clone(), *role, *seconds);
        }
        add_counts(&mut self.queued, other.queued.iter().copied());
        add_counts(&mut self.woken_to_run, other.woken_to_run.iter().copied());
        self.migrations += other.migrations;
        self.sleeps += other.sleeps;
        self.add_woken(&other.woken_by);
    }

    /// The share of the sleeps that ended without a wake-up that was seen; `None` where nobody slept. A sleep that goes on at the
    /// end of a window has none yet, so a few in a thousand say nothing.
    fn unseen_share(&self) -> Option<f64> {
        let WakerRates { sut, load, interrupt, other, .. } = self.woken_by;
        let seen = sut + load + interrupt + other;
        (self.sleeps > 0.0).then(|| (1.0 - seen / self.sleeps).clamp(0.0, 1.0))
    }

    /// Who ran while threads waited, with the share of each.
    fn preempted_by(&self) -> Vec<Preemptor> {
        let waited_s: f64 = self.behind_s.values().map(|(_, seconds)| seconds).sum();
        let preemptor =
            |((_, name, pid), (role, wait_s)): (&(u8, String, u32), &(Option<Role>, f64))| Preemptor {
                name: if name.is_empty() { "(others)".to_owned() } else { name.clone() },
                pid: *pid,
                role: role.unwrap_or(Role::Other),
                share: ratio(*wait_s, waited_s),
                wait_s: *wait_s,
            };
        largest(self.behind_s.iter().map(preemptor), |one| one.wait_s)
    }
}

/// A lock of the kernel: the function that takes it, whether it spins, whether in an interrupt.
type LockId = (String, bool, bool);

#[derive(Debug, Clone, Copy, Default)]
struct LockSum {
    locks: u32,
    count: f64,
    seconds: f64,
}

impl LockSum {
    fn add(&mut self, other: LockSum) {
        self.locks = self.locks.max(other.locks);
        self.count += other.count;
        self.seconds += other.seconds;
    }
}

impl Switches {
    pub(super) fn read(observation: &Observation, sources: Sources, wake_ups: WakeUps) -> Switches {
        let Some(schedule) = &observation.schedule else {
            return Switches { wake_ups, ..Switches::default() };
        };
        let mut switches = Switches {
            tracing: Tracing {
                source: Some(schedule.source),
                not_traced: schedule.not_traced.clone(),
                locks_not_traced: schedule.locks_not_traced.clone(),
                sources,
                events_lost: schedule.events_lost,
            },
            wake_ups,
            ..Switches::default()
        };
        schedule.threads.iter().for_each(|thread| switches.waits.add_thread(thread));
        switches.program_locks = ProgramLocks::read(&schedule.locks);
        schedule.kernel_locks.iter().for_each(|lock| switches.add_lock(lock));
        switches.add_downstream(schedule);
        switches
    }

    fn add_lock(&mut self, lock: &KernelLock) {
        let one = LockSum { locks: lock.locks, count: lock.count as f64, seconds: lock.ns as f64 / 1e9 };
        self.locks.entry((lock.at.clone(), lock.spins, lock.in_interrupt)).or_default().add(one);
    }

    fn add_downstream(&mut self, schedule: &Schedule) {
        for downstream in &schedule.downstream {
            let amount = if downstream.ns > 0 { downstream.ns as f64 } else { downstream.count as f64 };
            *self.downstream.entry(downstream.peer.clone()).or_default() += amount;
        }
    }

    pub fn absorb(&mut self, other: &Switches) {
        self.tracing.absorb(&other.tracing);
        self.waits.absorb(&other.waits);
        self.program_locks.absorb(&other.program_locks);
        for (key, lock) in &other.locks {
            self.locks.entry(key.clone()).or_default().add(*lock);
        }
        for (peer, amount) in &other.downstream {
            *self.downstream.entry(peer.clone()).or_default() += amount;
        }
        self.wake_ups = WakeUps {
            by_sut: sum(self.wake_ups.by_sut, other.wake_ups.by_sut),
            load_idle_exits: sum(self.wake_ups.load_idle_exits, other.wake_ups.load_idle_exits),
            sut_idle_exits: sum(self.wake_ups.sut_idle_exits, other.wake_ups.sut_idle_exits),
        };
    }

    /// Whether every window was traced.
    pub fn is_traced(&self) -> bool {
        self.tracing.source == Some(ScheduleSource::Tracepoints)
    }

    /// Why not every window was.
    pub fn why_not_traced(&self) -> Missing {
        self.tracing.not_traced.clone().unwrap_or_else(|| Missing::new("not every switch was traced"))
    }

    /// Whether contention for the kernel's locks would show, or why not.
    pub fn sees_locks(&self) -> Result<(), Missing> {
        match &self.tracing.locks_not_traced {
            _ if !self.is_traced() => Err(self.why_not_traced()),
            Some(missing) => Err(missing.clone()),
            None => Ok(()),
        }
    }

    pub fn events_lost(&self) -> u64 {
        self.tracing.events_lost
    }

    /// The share of the serving threads' lives of which samples are the source although they were traced: their switches left too
    /// much open.
    pub fn sampled_share(&self) -> f64 {
        let Sources { switches_s, samples_s } = self.tracing.sources;
        ratio(samples_s, samples_s + switches_s)
    }

    /// Seconds of contention where `of` (function, spinning, in an interrupt) holds.
    pub fn contended_s(&self, of: impl Fn(&str, bool, bool) -> bool) -> f64 {
        let locks = self.locks.iter().filter(|((at, spins, interrupt), _)| of(at, *spins, *interrupt));
        locks.map(|(_, lock)| lock.seconds).sum()
    }

    /// The place that took most time, and how many locks it was for.
    pub fn most_contended(&self) -> Option<(&str, u32)> {
        let longest = self.locks.iter().max_by(|a, b| a.1.seconds.total_cmp(&b.1.seconds));
        longest.map(|((at, ..), lock)| (at.as_str(), lock.locks))
    }

    /// The share of the sleeps whose wake-up the kernel did not report; `None` where that is not known.
    pub fn unseen_wake_share(&self) -> Option<f64> {
        self.waits.unseen_share().filter(|_| self.is_traced())
    }

    /// Wake-ups from another CPU than the one the thread is then put on.
    pub fn cross_cpu(&self) -> Option<f64> {
        self.is_traced().then_some(self.waits.woken_by.cross_cpu)
    }

    /// The servers that were slept on, with the share of each, largest first.
    pub fn peers(&self) -> Vec<PeerShare> {
        let all: f64 = self.downstream.values().sum();
        let share = |amount: f64| if all > 0.0 { amount / all } else { 0.0 };
        let peers = self
            .downstream
            .iter()
            .map(|(peer, amount)| PeerShare { peer: peer.clone(), share: share(*amount) });
        largest(peers, |peer| peer.share)
    }

    /// For the outcome; `wall_s` is the length of the windows, `serving_s` the lives of the serving threads.
    pub fn accounting(&self, wall_s: f64, serving_s: f64) -> SwitchAccounting {
        let traced = self.is_traced() && wall_s > 0.0;
        let rate = |count: f64| count / wall_s;
        let woken = &self.waits.woken_by;
        let lock = |((at, spins, in_interrupt), lock): (&LockId, &LockSum)| LockShare {
            at: at.clone(),
            spins: *spins,
            in_interrupt: *in_interrupt,
            locks: lock.locks,
            contended_hz: ratio(lock.count, wall_s),
            share: ratio(lock.seconds, serving_s),
        };
        SwitchAccounting {
            blocked_source: self.tracing.source,
            not_traced: self.tracing.not_traced.clone(),
            sampled_share: self.sampled_share(),
            events_lost: self.tracing.events_lost,
            preempted_by: self.waits.preempted_by(),
            run_queue_ns: quantiles(&self.waits.queued),
            wake_up_ns: quantiles(&self.waits.woken_to_run),
            unseen_wake_share: self.unseen_wake_share(),
            migrations_hz: traced.then(|| rate(self.waits.migrations)),
            woken_hz: traced.then(|| WakerRates {
                sut: rate(woken.sut),
                load: rate(woken.load),
                interrupt: rate(woken.interrupt),
                other: rate(woken.other),
                cross_cpu: rate(woken.cross_cpu),
            }),
            locks: self.program_locks.shares(wall_s, serving_s),
            kernel_locks: largest(self.locks.iter().map(lock), |lock| lock.share),
            downstream: self.peers(),
            hypotheses: Vec::new(),
        }
    }
}

fn largest<T>(all: impl Iterator<Item = T>, size: fn(&T) -> f64) -> Vec<T> {
    let mut all: Vec<T> = all.collect();
    all.sort_by(|a, b| size(b).total_cmp(&size(a)));
    all.truncate(ROWS_MAX);
    all
}

fn add_counts(sum: &mut Vec<f64>, counts: impl Iterator<Item = f64>) {
    for (at, count) in counts.take(POWERS_MAX).enumerate() {
        if sum.len() <= at {
            sum.resize(at + 1, 0.0);
        }
        sum[at] += count;
    }
}

fn quantiles(counts: &[f64]) -> Option<Quantiles> {
    let all: f64 = counts.iter().sum();
    let at = |share: f64| {
        let mut seen = 0.0;
        let reached = counts.iter().position(|count| {
            seen += count;
            seen >= share * all && seen > 0.0
        });
        2f64.powi(reached.unwrap_or(0) as i32 + 1)
    };
    (all > 0.0).then(|| Quantiles {
        count: all,
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        max: at(1.0),
        powers: counts.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_upper_ends_of_powers_of_two() {
        let quantiles = quantiles(&[0.0, 0.0, 50.0, 49.0, 1.0]).unwrap();
        assert_eq!((quantiles.p50, quantiles.p90, quantiles.p99, quantiles.max), (8.0, 16.0, 16.0, 32.0));
        assert!(super::quantiles(&[]).is_none());
    }
}
