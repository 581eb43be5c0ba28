//! What a role's threads executed: hardware events of each thread, summed.
//!
//! A group of events that shared the PMU with others was counted for a part of the time only; its counts are stretched to
//! the whole of it, which holds as far as the thread did the same all along.

use crate::accounting::raw::readings::Readings;
use crate::accounting::reconcile::placement::PlacedThread;
use std::collections::BTreeMap;
use tare_model::metric::Descriptor;
use tare_model::metrics::pmu;
use tare_model::observation::Role;

/// Less of the run counted than this says too little about the rest.
pub(crate) const COUNTED_SHARE_MIN: f64 = 0.9;

/// Hardware events of a role in one window, or in several.
#[derive(Debug, Clone, Default)]
pub(crate) struct Events {
    /// By metric, stretched to the time for which they should have been counted.
    counts: BTreeMap<&'static str, f64>,
    /// By the group's time: seconds for which it should have been counted, and for which it was.
    times_s: BTreeMap<&'static str, (f64, f64)>,
    /// Run of the role's threads.
    run_s: f64,
}

/// What a role's threads did in the time for which they were counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Core {
    pub instructions: f64,
    pub cycles: f64,
    /// Run that was counted.
    pub counted_s: f64,
}

impl Events {
    /// `None` where nothing of the role was counted.
    pub fn read(readings: &Readings, threads: &[PlacedThread], role: Role) -> Option<Events> {
        let of_role = threads.iter().map(|thread| &thread.counted).filter(|counted| counted.id.role == role);
        let run_s = of_role.map(|counted| counted.run_s).sum();
        let mut events = Events { run_s, ..Events::default() };
        for (index, task) in readings.observation.tasks_of(role) {
            let grown = |metric: &Descriptor| readings.task_growth(metric, index, task);
            for group in pmu::GROUPS {
                let times = grown(group.enabled_ns).zip(grown(group.running_ns));
                let Some((enabled_ns, running_ns)) = times.filter(|times| times.1 > 0.0) else { continue };
                let sums = events.times_s.entry(group.enabled_ns.id).or_default();
                *sums = (sums.0 + enabled_ns / 1e9, sums.1 + running_ns / 1e9);
                for metric in group.events {
                    if let Some(count) = grown(metric) {
                        *events.counts.entry(metric.id).or_default() +=
                            count * (enabled_ns / running_ns).max(1.0);
                    }
                }
            }
        }
        (!events.counts.is_empty()).then_some(events)
    }

    /// Adds those of another window.
    pub fn absorb(&mut self, other: &Events) {
        self.run_s += other.run_s;
        for (metric, count) in &other.counts {
            *self.counts.entry(metric).or_default() += count;
        }
        for (group, (enabled_s, running_s)) in &other.times_s {
            let sums = self.times_s.entry(group).or_default();
            *sums = (sums.0 + enabled_s, sums.1 + running_s);
        }
    }

    pub fn count(&self, metric: &Descriptor) -> Option<f64> {
        self.counts.get(metric.id).copied()
    }

    /// How much of the role's run was counted, 0..=1.
    pub fn counted(&self) -> f64 {
        let (enabled_s, _) = self.times_s.get(pmu::CORE_ENABLED_NS.id).copied().unwrap_or_default();
        if self.run_s > 0.0 { (enabled_s / self.run_s).min(1.0) } else { 0.0 }
    }

    /// Instructions and cycles, where enough of the run was counted to stand for it.
    pub fn core(&self) -> Option<Core> {
        let (counted_s, _) = self.times_s.get(pmu::CORE_ENABLED_NS.id).copied()?;
        let (instructions, cycles) = (self.count(&pmu::INSTRUCTIONS)?, self.count(&pmu::CYCLES)?);
        let core = Core { instructions, cycles, counted_s };
        (self.counted() >= COUNTED_SHARE_MIN && instructions > 0.0 && cycles > 0.0).then_some(core)
    }

    /// Instructions per cycle.
    pub fn ipc(&self) -> Option<f64> {
        let (instructions, cycles) = (self.count(&pmu::INSTRUCTIONS)?, self.count(&pmu::CYCLES)?);
        (cycles > 0.0 && instructions > 0.0).then(|| instructions / cycles)
    }

    /// Every count that was made, by metric.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.counts.iter().map(|(metric, count)| (*metric, *count))
    }

    /// Smallest share of its time for which a group was on the PMU.
    pub fn on_pmu(&self) -> Option<f64> {
        let shares = self.times_s.values().filter(|times| times.0 > 0.0).map(|times| times.1 / times.0);
        shares.map(|share| share.min(1.0)).min_by(f64::total_cmp)
    }
}
