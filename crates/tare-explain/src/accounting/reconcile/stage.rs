//! The second stage: sources that disagree are brought together.

use crate::accounting::raw::around::Around;
use crate::accounting::raw::downstream::Downstream;
use crate::accounting::raw::readings::Readings;
use crate::accounting::raw::runtimes::Runtimes;
use crate::accounting::raw::stage::Raw;
use crate::accounting::reconcile::clocks::clocks_hz;
use crate::accounting::reconcile::cpus::{self, OccupiedCpu};
use crate::accounting::reconcile::events::Events;
use crate::accounting::reconcile::placement::{self, PlacedThread};
use std::collections::BTreeMap;
use tare_model::metrics::pmu;
use tare_model::observation::Role;
use tare_model::trial::Trial;
use tare_model::{Missing, Record};

/// What the hardware counted of the two sides.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hardware {
    /// Effective clock samples of the SUT's CPUs (of all, where the SUT is unseen).
    pub clocks_hz: Vec<f64>,
    /// Events of the SUT's threads and of the generator's; `None` where they were not counted.
    pub sut: Option<Events>,
    pub load: Option<Events>,
    /// Why there are none.
    pub no_events: Option<Missing>,
}

impl Hardware {
    pub fn absorb(&mut self, other: &Hardware) {
        self.clocks_hz.extend(&other.clocks_hz);
        absorb_events(&mut self.sut, &other.sut);
        absorb_events(&mut self.load, &other.load);
    }
}

/// Requests are counted in every window, so events must be, too.
fn absorb_events(mine: &mut Option<Events>, other: &Option<Events>) {
    *mine = mine.take().zip(other.as_ref()).map(|(mut mine, other)| {
        mine.absorb(other);
        mine
    });
}

/// One trial in which threads and CPUs agree on who ran where.
pub(crate) struct Reconciled<'a> {
    pub(in crate::accounting) record: &'a Record,
    pub(in crate::accounting) trial: &'a Trial,
    pub(in crate::accounting) runtimes: &'a Runtimes,
    pub(in crate::accounting) readings: Readings<'a>,
    pub(in crate::accounting) threads: Vec<PlacedThread>,
    pub(in crate::accounting) cpus: BTreeMap<u32, OccupiedCpu>,
    pub(in crate::accounting) around: Around,
    pub(in crate::accounting) downstream: Downstream,
    pub(in crate::accounting) hardware: Hardware,
}

impl<'a> Raw<'a> {
    /// Brings threads, CPUs and clocks together.
    pub fn reconcile(self) -> Reconciled<'a> {
        let Raw { record, trial, runtimes, readings, threads, cpus, around, downstream } = self;
        let threads = placement::place(threads, &cpus, &readings);
        let cpus = cpus::occupy(cpus, &threads, readings.wall_s());
        let absences = &readings.observation.absences;
        let no_events = absences.iter().find(|absence| absence.metric == pmu::CYCLES.id);
        let hardware = Hardware {
            clocks_hz: clocks_hz(&readings, &record.plan.sut_cpus, &cpus),
            sut: Events::read(&readings, &threads, Role::Sut),
            load: Events::read(&readings, &threads, Role::Load),
            no_events: no_events.map(|absence| absence.reason.clone()),
        };
        Reconciled { record, trial, runtimes, readings, threads, cpus, around, downstream, hardware }
    }
}
