//! What one idle period takes that no counter has.
//!
//! Around each lie an interrupt, the idle loop and a switch, which are neither idle time nor any task's run. And
//! a task that was woken from another CPU is charged from that moment, while its own CPU is still waking
//! up and counts as idle or in an interrupt (`wakeup_preempt` lets the next `schedule` use the old clock): that
//! is in two counters. The difference depends on the machine and the load, and is a few microseconds on a virtual
//! machine: with ten thousand idle periods a second, some percent of a CPU.
//!
//! It is found between windows, under the load that runs then and with the observers at work as in a window (whose timers
//! keep a CPU's tick going, and whose turns lengthen queues), and what it explains in a window is a prediction that can fail.

use super::parse::{CpuTimes, parse_stat, run_ns};
use super::sources::{RUN, STAT, Sources, TIMERS, read};
use crate::idle::parse_timer_list;
use crate::observed::refused;
use crate::scene::USER_TICK_NS;
use crate::tape::Tape;
use std::collections::BTreeMap;
use tare_model::Missing;
use tare_sys::affinity;
use tare_sys::time::{monotonic_ns, thread_cpu_ns};

/// What may have been stolen where none of them is free of it: one step that it is counted in.
const STEAL_NS_MAX: u64 = USER_TICK_NS;
/// Idle periods below which a CPU's own figure would be noise (the edges are good to a millisecond or two):
/// then that of all CPUs together is taken, and below the second number none.
const IDLE_EXITS_MIN: u64 = 1000;
const IDLE_EXITS_MIN_TOGETHER: u64 = 500;
/// More than this either way is something else that happened.
const COST_NS_MAX: f64 = 15_000.0;

/// The counters of one CPU, read from that very CPU: all are up to date then, and it is not idle.
#[derive(Debug, Clone, Copy)]
struct Visit {
    at_ns: u64,
    run_ns: u64,
    idle_ns: u64,
    steal_ns: u64,
    idle_exits: u64,
}

/// What a stretch between two visits showed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Found {
    beside_ns: i64,
    idle_exits: u64,
}

/// What the idle periods of a CPU cost in one stretch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cost {
    /// Nanoseconds beside the counters per idle period.
    pub(super) each_ns: f64,
    /// Its idle periods in the stretch.
    pub(super) idle_exits: u64,
}

/// The costs of each CPU in one stretch, at the instant of its end (CLOCK_MONOTONIC, nanoseconds).
pub(super) type Costs = (u64, BTreeMap<u32, Cost>);

/// What a stretch showed of each CPU, at the instant of its end.
type Stretch = (u64, BTreeMap<u32, Found>);

/// The stretches that lie between visits to each CPU.
pub(super) struct Calibration {
    last: BTreeMap<u32, Visit>,
    all: Vec<Stretch>,
    /// The last stretch of each CPU, time stolen from it or not.
    second_best: BTreeMap<u32, Found>,
}

impl Calibration {
    /// The first visit.
    pub(super) fn begin(sources: &mut Sources, cpus: &[u32]) -> Result<Calibration, Missing> {
        Ok(Calibration { last: visit_all(sources, cpus)?, all: Vec::new(), second_best: BTreeMap::new() })
    }

    /// The next visit, at the end of a stretch.
    pub(super) fn visit(&mut self, sources: &mut Sources, cpus: &[u32]) -> Result<(), Missing> {
        let visits = visit_all(sources, cpus)?;
        let mut found = BTreeMap::new();
        for (&cpu, end) in &visits {
            let Some(begin) = self.last.get(&cpu) else { continue };
            found.extend(compare(begin, end, 0).map(|stretch| (cpu, stretch)));
            self.second_best.extend(compare(begin, end, STEAL_NS_MAX).map(|stretch| (cpu, stretch)));
        }
        self.all.push((monotonic_ns(), found));
        self.last = visits;
        Ok(())
    }

    /// Nanoseconds beside the counters per idle period in each stretch, of those CPUs that had enough of them. The
    /// stretches differ by a quarter, and some by far more, so that one says little and many of them together are needed.
    pub(super) fn costs(mut self) -> Vec<Costs> {
        for (cpu, stretch) in self.second_best {
            let seen = self.all.iter().any(|(_, found)| found.contains_key(&cpu));
            if let (false, Some((_, last))) = (seen, self.all.last_mut()) {
                last.insert(cpu, stretch);
            }
        }
        self.all.into_iter().map(|(at_ns, found)| (at_ns, costs(&found))).collect()
    }
}

fn costs(found: &BTreeMap<u32, Found>) -> BTreeMap<u32, Cost> {
    let together = found.values().fold(Found::default(), |sum, cpu| Found {
        beside_ns: sum.beside_ns.saturating_add(cpu.beside_ns),
        idle_exits: sum.idle_exits.saturating_add(cpu.idle_exits),
    });
    let each_ns = |found: &Found, least: u64| {
        let each_ns = found.beside_ns as f64 / found.idle_exits as f64;
        (found.idle_exits >= least && each_ns.abs() <= COST_NS_MAX).then_some(each_ns)
    };
    let of_cpu = |(&cpu, found): (&u32, &Found)| {
        let own = each_ns(found, IDLE_EXITS_MIN);
        let each_ns = own.or_else(|| each_ns(&together, IDLE_EXITS_MIN_TOGETHER))?;
        Some((cpu, Cost { each_ns, idle_exits: found.idle_exits }))
    };
    found.iter().filter_map(of_cpu).collect()
}

fn visit_all(sources: &mut Sources, cpus: &[u32]) -> Result<BTreeMap<u32, Visit>, Missing> {
    let home = affinity::get(0).map_err(|error| refused("the affinity of tare", &error))?;
    let mut tape = Tape::default();
    let mut visit_one = |&cpu: &u32| {
        affinity::set(0, &[cpu]).map_err(|error| refused(&format!("visiting CPU {cpu}"), &error))?;
        Ok((cpu, visit(sources, &mut tape, cpu)?))
    };
    let visits = cpus.iter().map(&mut visit_one).collect();
    affinity::set(0, &home).map_err(|error| refused("the affinity of tare", &error))?;
    visits
}

/// Stolen time is counted in steps of 10 ms, and what was stolen while idle is in two counters: with more of it than
/// `steal_ns_max`, a stretch says nothing.
fn compare(before: &Visit, after: &Visit, steal_ns_max: u64) -> Option<Found> {
    let grown = |value: fn(&Visit) -> u64| value(after).checked_sub(value(before));
    let steal_ns = grown(|visit| visit.steal_ns)?;
    if steal_ns > steal_ns_max {
        return None;
    }
    let used_ns = grown(|visit| visit.run_ns)?.checked_add(grown(|visit| visit.idle_ns)?)?;
    let counted_ns = used_ns.checked_add(steal_ns)?;
    let wall_ns = grown(|visit| visit.at_ns)?;
    let beside_ns = i64::try_from(wall_ns).ok()?.checked_sub(i64::try_from(counted_ns).ok()?)?;
    Some(Found { beside_ns, idle_exits: grown(|visit| visit.idle_exits)? })
}

fn visit(sources: &mut Sources, tape: &mut Tape, cpu: u32) -> Result<Visit, Missing> {
    tape.clear();
    let counters = sources.counters.as_ref().map_err(Missing::clone)?;
    let counter = counters.iter().find(|counters| counters.cpu == cpu);
    let counter = counter.ok_or_else(|| Missing::new(format!("CPU {cpu} is not counted")))?;
    thread_cpu_ns();
    let at_ns = monotonic_ns();
    read(tape, RUN, &mut sources.run);
    let idle_exits = counter.idle_exits.as_ref();
    let idle_exits = idle_exits.ok_or_else(|| Missing::new("idle periods are not counted on their own"))?;
    let idle_exits = idle_exits.read().map_err(|error| refused("counting context switches", &error))?;
    sources.read_timers(tape);
    read(tape, STAT, &mut sources.stat);
    for file in [&sources.run, &sources.timers, &sources.stat] {
        file.as_ref().map_err(Missing::clone)?;
    }
    let text = |source| {
        let reading = tape.readings().find(|reading| reading.source == source);
        reading.map(|reading| reading.text()).unwrap_or_default()
    };
    let times: Option<CpuTimes> = parse_stat(text(STAT)).get(&cpu).copied();
    let state = parse_timer_list(text(TIMERS)).into_iter().find(|state| state.cpu == cpu);
    let reading = || {
        let (times, state) = (times?, state?);
        let idle_ns = state.idle_ns(Some(times.idle_ns), USER_TICK_NS);
        let run_ns = run_ns(text(RUN), cpu)?;
        Some(Visit { at_ns, run_ns, idle_ns, steal_ns: times.steal_ns, idle_exits })
    };
    reading()
        .ok_or_else(|| Missing::new(format!("the idle time of CPU {cpu} is not known to the nanosecond")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_was_hardly_idle_takes_the_figure_of_all() {
        let found = |beside_ns, idle_exits| Found { beside_ns, idle_exits };
        let cost = |each_ns, idle_exits| Cost { each_ns, idle_exits };
        let two = BTreeMap::from([(0, found(4_000_000, 1000)), (1, found(500_000, 500))]);
        assert_eq!(costs(&two), BTreeMap::from([(0, cost(4000.0, 1000)), (1, cost(3000.0, 500))]));
        assert_eq!(costs(&BTreeMap::from([(0, found(1_000_000, 400))])), BTreeMap::new());
        assert_eq!(costs(&BTreeMap::from([(0, found(0, 0))])), BTreeMap::new());
        assert_eq!(costs(&BTreeMap::from([(0, found(90_000_000, 2000))])), BTreeMap::new());
    }

    #[test]
    fn what_is_in_no_counter_or_in_two() {
        let before = Visit { at_ns: 1000, run_ns: 5, idle_ns: 7, steal_ns: 0, idle_exits: 3 };
        let after = Visit { at_ns: 2000, run_ns: 405, idle_ns: 557, steal_ns: 0, idle_exits: 13 };
        assert_eq!(compare(&before, &after, 0), Some(Found { beside_ns: 50, idle_exits: 10 }));
        let twice = Visit { run_ns: 505, ..after };
        assert_eq!(compare(&before, &twice, 0), Some(Found { beside_ns: -50, idle_exits: 10 }));
        assert_eq!(compare(&before, &Visit { steal_ns: 1, ..after }, 0), None);
        let stolen = compare(&before, &Visit { steal_ns: 20, ..after }, 20);
        assert_eq!(stolen, Some(Found { beside_ns: 30, idle_exits: 10 }));
        assert_eq!(compare(&after, &before, 0), None);
    }
}
