//! The machine's interference, by the reference server that is loaded interleaved with the SUT: half-minutes in which everything
//! takes a third more CPU show in it as they do in the SUT.

use crate::accounting::Closed;
use std::collections::BTreeMap;
use tare_model::Record;
use tare_model::reference_level::ReferenceLevel;

/// A factor outside of this is no interference but something else that happened to the reference.
const FACTOR_MAX: f64 = 3.0;

/// CPU seconds of a request of the reference at the times it was measured, in order of time.
pub(crate) struct Interference {
    costs: BTreeMap<u64, f64>,
    /// What factors are over: the level that is known of this machine, else the middle of the session.
    level_s: f64,
}

impl Interference {
    /// `is_reference` says which levels are the reference's; `None` where none of their trials has a service demand, or just one and
    /// no `level` is known.
    pub fn of(
        record: &Record,
        windows: &[Closed],
        is_reference: impl Fn(u32) -> bool,
        level: Option<&ReferenceLevel>,
    ) -> Option<Interference> {
        let costs: BTreeMap<u64, f64> = record
            .trials
            .iter()
            .zip(windows)
            .filter(|(trial, _)| is_reference(trial.level))
            .filter_map(|(trial, window)| Some((middle_ns(trial), cost_s(window)?)))
            .collect();
        let all: Vec<f64> = costs.values().copied().collect();
        let middle_s = tare_stats::median(&all).filter(|_| all.len() > 1 || level.is_some())?;
        Some(Interference { costs, level_s: level.map_or(middle_s, |level| level.cost_s) })
    }

    /// How much more CPU everything took at an instant than at the level: what the reference took in the window with
    /// this middle, else on the straight line between those before and after it.
    pub fn factor(&self, at_ns: u64) -> f64 {
        let before = self.costs.range(..=at_ns).next_back();
        let after = self.costs.range(at_ns..).next();
        let cost_s = match (before, after) {
            (Some((from, one)), Some((to, other))) if to > from => {
                let share = (at_ns - from) as f64 / (to - from) as f64;
                one * (1.0 - share) + other * share
            }
            (Some((_, cost_s)), _) | (None, Some((_, cost_s))) => *cost_s,
            (None, None) => self.level_s,
        };
        (cost_s / self.level_s).clamp(1.0 / FACTOR_MAX, FACTOR_MAX)
    }
}

/// The middle of a trial's window.
pub(crate) fn middle_ns(trial: &tare_model::trial::Trial) -> u64 {
    trial.observation.begin_ns / 2 + trial.observation.end_ns / 2
}

/// CPU seconds of a request; `None` unless above zero.
pub(crate) fn cost_s(window: &Closed) -> Option<f64> {
    let run_s = window.sut.as_ref()?.run_s;
    window.per_request(run_s).filter(|cost_s| cost_s.is_finite() && *cost_s > 0.0)
}
