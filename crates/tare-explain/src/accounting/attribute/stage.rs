//! The third stage: each second gets its owner.

use crate::accounting::attribute::cpus::Cpu;
use crate::accounting::attribute::entitlement::Entitlement;
use crate::accounting::attribute::switches::{self, Switches, WakeUps};
use crate::accounting::attribute::taken::Taken;
use crate::accounting::attribute::thread::Thread;
use crate::accounting::attribute::wait_owners::{self, Throttling};
use crate::accounting::attribute::{waited, working};
use crate::accounting::raw::around::Around;
use crate::accounting::raw::downstream::Downstream;
use crate::accounting::raw::readings::Readings;
use crate::accounting::reconcile::stage::{Hardware, Reconciled};
use std::collections::{BTreeMap, BTreeSet};
use tare_model::Record;
use tare_model::metric::Subject;
use tare_model::metrics::{cpus, wakeups};
use tare_model::observation::Role;
use tare_model::plan::Workload;
use tare_model::trial::Trial;

/// One trial in which it is known of every thread what it waited and slept for, and of both sides where their entitlement went.
pub(crate) struct Attributed<'a> {
    pub(in crate::accounting) record: &'a Record,
    pub(in crate::accounting) trial: &'a Trial,
    pub(in crate::accounting) readings: Readings<'a>,
    pub(in crate::accounting) threads: Vec<Thread>,
    pub(in crate::accounting) cpus: BTreeMap<u32, Cpu>,
    pub(in crate::accounting) sut: Option<Entitlement>,
    pub(in crate::accounting) load: Option<Entitlement>,
    pub(in crate::accounting) around: Around,
    pub(in crate::accounting) downstream: Downstream,
    pub(in crate::accounting) hardware: Hardware,
    pub(in crate::accounting) throttling: Throttling,
    pub(in crate::accounting) switches: Switches,
}

impl<'a> Reconciled<'a> {
    /// Finds the owner of every wait and sleep.
    pub fn attribute(self) -> Attributed<'a> {
        let Reconciled {
            record,
            trial,
            runtimes,
            readings,
            threads,
            cpus: occupied,
            around,
            downstream,
            hardware,
        } = self;
        let (observation, wall_s) = (&trial.observation, readings.wall_s());
        let (waited, sources) = waited::follow(threads, &occupied, observation);
        let throttling = Throttling::read(&readings, &waited);
        let held_by_cpu = throttling.by_cpu(&waited, wall_s);
        let held_cpus_s = switches::held_cpus_s(observation);
        let waits =
            wait_owners::split(&waited, &occupied, throttling.throttled_s, &held_by_cpu, &held_cpus_s);
        let mut threads: Vec<Thread> = waited
            .into_iter()
            .zip(waits)
            .map(|(waited, wait)| {
                let blocked_s = waited.traced.map(|traced| traced.blocked_s);
                let taken = Taken::from(&waited.placed, waited.queue_s, blocked_s, &occupied);
                Thread::of(waited, wait, taken)
            })
            .collect();
        working::mark(&mut threads, runtimes);
        let known = working::limit(&threads, runtimes, wall_s);
        let at_once = observation.schedule.as_ref().map(|schedule| schedule.at_once.as_slice());
        let seen = known.zip(at_once).and_then(|(known, at_once)| {
            let limits = (known, runtimes);
            working::seen(&threads, at_once, limits, usable_cpus(&threads), in_flight(record, trial))
        });
        let limit = seen.or(known);
        let cpus: BTreeMap<u32, Cpu> = occupied
            .into_iter()
            .map(|(cpu, occupied)| (cpu, Cpu::of(occupied, held_by_cpu.get(&cpu).copied())))
            .collect();
        let entitlement = |role, planned, limit| {
            Entitlement::of(role, &threads, &cpus, &held_by_cpu, planned, limit, wall_s)
        };
        let sut = entitlement(Role::Sut, record.plan.sut_cpus.as_slice(), limit);
        let load = entitlement(Role::Load, record.plan.load_cpus.as_slice(), None);
        let idle_exits_of = |side: &Option<Entitlement>| idle_exits(&readings, &side.as_ref()?.usable);
        let wake_ups = WakeUps {
            by_sut: by_sut(&readings),
            load_idle_exits: idle_exits_of(&load),
            sut_idle_exits: idle_exits_of(&sut),
        };
        let switches = Switches::read(observation, sources, wake_ups);
        Attributed {
            record,
            trial,
            readings,
            threads,
            cpus,
            sut,
            load,
            around,
            downstream,
            hardware,
            throttling,
            switches,
        }
    }
}

/// CPUs that the SUT's working threads may use.
fn usable_cpus(threads: &[Thread]) -> usize {
    let working = threads.iter().filter(|thread| thread.id.role == Role::Sut && thread.serves());
    working.flat_map(|thread| &thread.id.allowed).collect::<BTreeSet<&u32>>().len()
}

/// Requests that are in flight as planned; `None` for a program that ends. Of a generator that is not tare's it is unknown: then there
/// may be one.
fn in_flight(record: &Record, trial: &Trial) -> Option<f64> {
    match &record.plan.workload {
        Workload::Command(_) => None,
        Workload::Http(http) => {
            let level = http.levels.get(trial.level as usize);
            let planned = level.and_then(|level| {
                let connections = http.connections_of(level)?;
                Some(f64::from(connections) * f64::from(level.pipeline.max(1)))
            });
            Some(planned.unwrap_or(1.0))
        }
    }
}

/// Over all CPUs that were counted on; one that was not read to the end leaves the sum unknown.
fn by_sut(readings: &Readings) -> Option<f64> {
    let columns = readings.observation.columns.iter().filter(|column| column.metric == wakeups::SUT.id);
    let of_cpus: Option<Vec<f64>> =
        columns.map(|column| readings.growth(&wakeups::SUT, &column.subject)).collect();
    of_cpus.filter(|counts| !counts.is_empty()).map(|counts| counts.iter().sum())
}

/// Over all of some CPUs; one that was not counted on leaves the sum unknown.
fn idle_exits(readings: &Readings, of: &BTreeSet<u32>) -> Option<f64> {
    let exits = |cpu: &u32| readings.growth(&cpus::IDLE_EXITS, &Subject::Cpu(*cpu));
    of.iter()
        .map(exits)
        .collect::<Option<Vec<f64>>>()
        .filter(|all| !all.is_empty())
        .map(|all| all.iter().sum())
}
