//! What the switches of the SUT's threads tell: sleeps and waits of each thread, and, pooled over windows, who ran
//! meanwhile, how long it took to get a CPU, who woke whom, and which locks of the kernel were contended for.

use crate::accounting::attribute::taken;
use crate::accounting::attribute::wait::Wait;
use crate::accounting::close::residual::NO_VERDICT;
use crate::accounting::reconcile::cpus::Cpu;
use crate::accounting::reconcile::threads::{Asleep, Thread};
use std::collections::BTreeMap;
use tare_model::Missing;
use tare_model::observation::{Observation, Role};
use tare_model::schedule::{
    KernelLock, LockShare, PeerShare, Preemptor, Quantiles, Schedule, ScheduleSource, Sleep,
    SwitchAccounting, ThreadSchedule, WakerRates,
};

/// Rows of each list in the outcome, at most.
const ROWS_MAX: usize = 16;
/// No wait is longer than 2^63 ns; counts beyond are nonsense.
const POWERS_MAX: usize = 63;

/// One thread's waits and sleeps by its switches, seconds.
#[derive(Default)]
pub(crate) struct Followed {
    pub wait: Wait,
    pub held_s: f64,
    /// What is missing in the kernel's own count of waits, which counts them when they are over.
    pub wait_edges_s: Option<f64>,
    pub sleeps: BTreeMap<Asleep, f64>,
    /// On a CPU, up to where each switch is stamped.
    pub run_s: f64,
    /// How often it went to sleep.
    pub slept: f64,
}

/// How much of the serving threads' lives is told by switches, and how much by looks, seconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reported {
    switches_s: f64,
    looks_s: f64,
}

/// Takes waits and sleeps of the SUT's threads from their switches, one by one where the accounting of that thread then
/// close. Where they do not (events were lost, it came and went, another namespace has other numbers) the looks stand:
/// a thread is never worse off for having been traced.
pub(crate) fn follow(
    threads: &mut [Thread],
    cpus: &BTreeMap<u32, Cpu>,
    observation: &Observation,
) -> Reported {
    let mut reported = Reported::default();
    let traced = observation.schedule.as_ref().filter(|one| one.source == ScheduleSource::Tracepoints);
    let Some(schedule) = traced else { return reported };
    for thread in threads.iter_mut().filter(|thread| thread.role == Role::Sut) {
        let mut followed = thread.clone();
        let found = of(schedule, thread.tid);
        let (run_s, slept) = found.as_ref().map_or((0.0, 0.0), |found| (found.run_s, found.slept));
        let is_there = found.is_some_and(|found| followed.follow(found));
        taken::attribute(std::slice::from_mut(&mut followed), cpus);
        followed.sleep_from_the_end_of_runs(run_s, slept);
        let closes = is_there && followed.gap_s().abs() <= NO_VERDICT * thread.wall_s;
        if thread.serves() {
            *(if closes { &mut reported.switches_s } else { &mut reported.looks_s }) += thread.wall_s;
        }
        if closes {
            *thread = followed;
        }
    }
    reported
}

fn of(schedule: &Schedule, tid: u32) -> Option<Followed> {
    let thread = schedule.threads.iter().find(|thread| thread.tid == tid)?;
    let seconds = |ns: u64| ns as f64 / 1e9;
    let mut wait = Wait { scheduler_s: seconds(thread.delay_ns), ..Wait::default() };
    for behind in &thread.behind {
        *wait.behind_s.of_mut(behind.role) += seconds(behind.ns);
    }
    let mut sleeps: BTreeMap<Asleep, f64> = BTreeMap::new();
    for blocked in &thread.blocked {
        *sleeps.entry(asleep(blocked.why)).or_default() += seconds(blocked.ns);
    }
    let wait_edges_s = thread.wait_edges_ns.map(|ns| ns as f64 / 1e9);
    Some(Followed {
        wait,
        held_s: seconds(thread.held_ns),
        wait_edges_s,
        sleeps,
        run_s: seconds(thread.run_ns),
        slept: thread.blocked.iter().map(|blocked| blocked.count as f64).sum(),
    })
}

fn asleep(why: Sleep) -> Asleep {
    match why {
        Sleep::Event => Asleep::Event,
        Sleep::Lock => Asleep::Lock,
        Sleep::Disk => Asleep::Disk,
        Sleep::Downstream => Asleep::Downstream,
        Sleep::Timer => Asleep::Timer,
        Sleep::Fault => Asleep::Fault,
        Sleep::Other => Asleep::Other,
    }
}

/// Seconds that threads were held on each CPU that nobody used.
pub(crate) fn held_cpus_s(observation: &Observation) -> Vec<f64> {
    let held = observation.schedule.iter().flat_map(|schedule| &schedule.held);
    held.map(|held| held.ns as f64 / 1e9).collect()
}

/// What is not a thread's own, of one window or several.
#[derive(Debug, Clone, Default)]
pub(crate) struct Switches {
    source: Option<ScheduleSource>,
    not_traced: Option<Missing>,
    locks_not_traced: Option<Missing>,
    reported: Reported,
    events_lost: u64,
    /// By role, name and thread.
    behind_s: BTreeMap<(u8, String, u32), (Option<Role>, f64)>,
    waits: Vec<f64>,
    wakes: Vec<f64>,
    migrations: f64,
    woken: WakerRates,
    locks: BTreeMap<(String, bool, bool), LockSum>,
    downstream: BTreeMap<String, f64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct LockSum {
    locks: u32,
    count: f64,
    seconds: f64,
}

impl Switches {
    pub fn read(observation: &Observation, reported: Reported) -> Switches {
        let Some(schedule) = &observation.schedule else { return Switches::default() };
        let mut switches = Switches {
            source: Some(schedule.source),
            not_traced: schedule.not_traced.clone(),
            locks_not_traced: schedule.locks_not_traced.clone(),
            reported,
            events_lost: schedule.events_lost,
            ..Switches::default()
        };
        schedule.threads.iter().for_each(|thread| switches.add_thread(thread));
        schedule.kernel_locks.iter().for_each(|lock| switches.add_lock(lock));
        for downstream in &schedule.downstream {
            let amount = if downstream.ns > 0 { downstream.ns as f64 } else { downstream.count as f64 };
            *switches.downstream.entry(downstream.peer.clone()).or_default() += amount;
        }
        switches
    }

    fn add_thread(&mut self, thread: &ThreadSchedule) {
        for behind in &thread.behind {
            let key = (behind.role as u8, behind.name.clone(), behind.tid);
            self.add_behind(key, Some(behind.role), behind.ns as f64 / 1e9);
        }
        add_counts(&mut self.waits, thread.waits.iter().map(|count| f64::from(*count)));
        add_counts(&mut self.wakes, thread.wakes.iter().map(|count| f64::from(*count)));
        self.migrations += f64::from(thread.migrations);
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
        let sum = &mut self.woken;
        sum.sut += woken.sut;
        sum.load += woken.load;
        sum.interrupt += woken.interrupt;
        sum.other += woken.other;
        sum.cross_cpu += woken.cross_cpu;
    }

    fn add_lock(&mut self, lock: &KernelLock) {
        let sum = self.locks.entry((lock.at.clone(), lock.spins, lock.in_interrupt)).or_default();
        sum.locks = sum.locks.max(lock.locks);
        sum.count += lock.count as f64;
        sum.seconds += lock.ns as f64 / 1e9;
    }

    pub fn absorb(&mut self, other: &Switches) {
        // What not all windows were measured by, all are no better than.
        if other.source == Some(ScheduleSource::Looks) || self.source.is_none() {
            (self.source, self.not_traced) = (other.source.or(self.source), other.not_traced.clone());
        }
        self.locks_not_traced = self.locks_not_traced.take().or_else(|| other.locks_not_traced.clone());
        self.reported.switches_s += other.reported.switches_s;
        self.reported.looks_s += other.reported.looks_s;
        self.events_lost += other.events_lost;
        for (key, (role, seconds)) in &other.behind_s {
            self.add_behind(key.clone(), *role, *seconds);
        }
        add_counts(&mut self.waits, other.waits.iter().copied());
        add_counts(&mut self.wakes, other.wakes.iter().copied());
        self.migrations += other.migrations;
        self.add_woken(&other.woken);
        for (key, lock) in &other.locks {
            let sum = self.locks.entry(key.clone()).or_default();
            sum.locks = sum.locks.max(lock.locks);
            sum.count += lock.count;
            sum.seconds += lock.seconds;
        }
        for (peer, amount) in &other.downstream {
            *self.downstream.entry(peer.clone()).or_default() += amount;
        }
    }

    /// Whether every window was traced.
    pub fn is_traced(&self) -> bool {
        self.source == Some(ScheduleSource::Tracepoints)
    }

    /// Why not every window was.
    pub fn why_not_traced(&self) -> Missing {
        self.not_traced.clone().unwrap_or_else(|| Missing::new("not every switch was traced"))
    }

    /// Whether contention for the kernel's locks would show, or why not.
    pub fn sees_locks(&self) -> Result<(), Missing> {
        match &self.locks_not_traced {
            _ if !self.is_traced() => Err(self.why_not_traced()),
            Some(missing) => Err(missing.clone()),
            None => Ok(()),
        }
    }

    pub fn events_lost(&self) -> u64 {
        self.events_lost
    }

    /// The share of the serving threads' lives that looks tell although they were traced: their switches left too much
    /// open.
    pub fn sampled_share(&self) -> f64 {
        crate::accounting::attribute::entitlement::ratio(
            self.reported.looks_s,
            self.reported.looks_s + self.reported.switches_s,
        )
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

    /// Wake-ups from another CPU than the one the thread is then put on.
    pub fn cross_cpu(&self) -> Option<f64> {
        self.is_traced().then_some(self.woken.cross_cpu)
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
        let woken = &self.woken;
        let waited_s: f64 = self.behind_s.values().map(|(_, seconds)| seconds).sum();
        let preemptor =
            |((_, name, pid), (role, wait_s)): (&(u8, String, u32), &(Option<Role>, f64))| Preemptor {
                name: if name.is_empty() { "(others)".to_owned() } else { name.clone() },
                pid: *pid,
                role: role.unwrap_or(Role::Other),
                share: crate::accounting::attribute::entitlement::ratio(*wait_s, waited_s),
                wait_s: *wait_s,
            };
        let lock = |((at, spins, in_interrupt), lock): (&(String, bool, bool), &LockSum)| LockShare {
            at: at.clone(),
            spins: *spins,
            in_interrupt: *in_interrupt,
            locks: lock.locks,
            contended_hz: crate::accounting::attribute::entitlement::ratio(lock.count, wall_s),
            share: crate::accounting::attribute::entitlement::ratio(lock.seconds, serving_s),
        };
        SwitchAccounting {
            blocked_source: self.source,
            not_traced: self.not_traced.clone(),
            sampled_share: self.sampled_share(),
            events_lost: self.events_lost,
            preempted_by: largest(self.behind_s.iter().map(preemptor), |one| one.wait_s),
            run_queue_ns: quantiles(&self.waits),
            wake_up_ns: quantiles(&self.wakes),
            migrations_hz: traced.then(|| rate(self.migrations)),
            woken_hz: traced.then(|| WakerRates {
                sut: rate(woken.sut),
                load: rate(woken.load),
                interrupt: rate(woken.interrupt),
                other: rate(woken.other),
                cross_cpu: rate(woken.cross_cpu),
            }),
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
