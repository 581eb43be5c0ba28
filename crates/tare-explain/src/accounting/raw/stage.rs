//! The first stage: what was counted in one trial.

use crate::accounting::raw::around::Around;
use crate::accounting::raw::cpus::CpuTimes;
use crate::accounting::raw::downstream::Downstream;
use crate::accounting::raw::ended;
use crate::accounting::raw::idle_periods::IdlePeriods;
use crate::accounting::raw::readings::Readings;
use crate::accounting::raw::runtimes::Runtimes;
use crate::accounting::raw::threads::CountedThread;
use std::collections::{BTreeMap, BTreeSet};
use tare_model::Record;
use tare_model::trial::Trial;

/// What every trial of a record needs from the whole of it.
pub(crate) struct Source<'a> {
    record: &'a Record,
    idle_periods: IdlePeriods,
    runtimes: Runtimes,
    /// Processes of programs that the SUT was found to call, in whichever trial.
    called: BTreeSet<u32>,
}

impl<'a> Source<'a> {
    pub fn new(record: &'a Record) -> Self {
        let seen = record.trials.iter().flat_map(|trial| &trial.observation.downstream);
        let called = seen.flat_map(|program| program.pids.iter().copied()).collect();
        Source { record, idle_periods: IdlePeriods::new(record), runtimes: Runtimes::read(record), called }
    }
}

/// The counters of one trial as differences, with their units; nothing is corrected.
pub(crate) struct Raw<'a> {
    pub(in crate::accounting) record: &'a Record,
    pub(in crate::accounting) trial: &'a Trial,
    pub(in crate::accounting) runtimes: &'a Runtimes,
    pub(in crate::accounting) readings: Readings<'a>,
    pub(in crate::accounting) threads: Vec<CountedThread>,
    pub(in crate::accounting) cpus: BTreeMap<u32, CpuTimes>,
    pub(in crate::accounting) around: Around,
    pub(in crate::accounting) downstream: Downstream,
}

impl<'a> Raw<'a> {
    /// Reads one trial of a record.
    pub fn read(source: &'a Source<'a>, trial: &'a Trial) -> Raw<'a> {
        let readings = Readings::new(&trial.observation);
        let mut threads = CountedThread::read_all(&readings, &source.called);
        let ended = ended::rows(&readings, &trial.sample, &threads);
        threads.extend(ended);
        let costs_ns = source.idle_periods.costs_ns(trial);
        let cpus = CpuTimes::read_all(&readings, &source.record.machine.regime, &costs_ns);
        let unreported = ended::unreported(&readings, &trial.sample, &threads, &cpus);
        threads.extend(unreported);
        Raw {
            record: source.record,
            trial,
            threads,
            runtimes: &source.runtimes,
            downstream: Downstream::of(&trial.observation),
            cpus,
            around: Around::read(&readings),
            readings,
        }
    }
}
