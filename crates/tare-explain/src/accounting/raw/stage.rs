//! The first stage: what was counted in one trial.

use crate::accounting::raw::around::Around;
use crate::accounting::raw::cpus::CpuTimes;
use crate::accounting::raw::ended;
use crate::accounting::raw::idle_periods::IdlePeriods;
use crate::accounting::raw::readings::Readings;
use crate::accounting::raw::threads::CountedThread;
use std::collections::BTreeMap;
use tare_model::Record;
use tare_model::trial::Trial;

/// What every trial of a record needs from the whole of it.
pub(crate) struct Source<'a> {
    record: &'a Record,
    idle_periods: IdlePeriods,
}

impl<'a> Source<'a> {
    pub fn new(record: &'a Record) -> Self {
        Source { record, idle_periods: IdlePeriods::new(record) }
    }
}

/// The counters of one trial as differences, with their units; nothing is corrected.
pub(crate) struct Raw<'a> {
    pub(in crate::accounting) record: &'a Record,
    pub(in crate::accounting) trial: &'a Trial,
    pub(in crate::accounting) readings: Readings<'a>,
    pub(in crate::accounting) threads: Vec<CountedThread>,
    pub(in crate::accounting) cpus: BTreeMap<u32, CpuTimes>,
    pub(in crate::accounting) around: Around,
}

impl<'a> Raw<'a> {
    /// Reads one trial of a record.
    pub fn read(source: &Source<'a>, trial: &'a Trial) -> Raw<'a> {
        let readings = Readings::new(&trial.observation);
        let mut threads = CountedThread::read_all(&readings);
        let ended = ended::rows(&readings, &trial.sample, &threads);
        threads.extend(ended);
        let costs_ns = source.idle_periods.costs_ns(trial);
        Raw {
            record: source.record,
            trial,
            threads,
            cpus: CpuTimes::read_all(&readings, &source.record.machine.regime, &costs_ns),
            around: Around::read(&readings),
            readings,
        }
    }
}
