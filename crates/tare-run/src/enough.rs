//! Whether the trials so far make the figure known well enough, where their number is not fixed.

use std::collections::BTreeMap;
use tare_explain::stopping::{self, Interim};
use tare_model::Record;
use tare_model::outcome::{Stopped, Target};
use tare_model::plan::{Level, Plan, Purpose};

#[derive(Default)]
pub(crate) struct Enough {
    /// By command; of a server there is one.
    interim: BTreeMap<u32, Option<Interim>>,
    known: Option<Stopped>,
}

impl Enough {
    /// Whether no further trial of the asked level, or of a command, is needed or fits.
    pub(crate) fn is_reached(&mut self, record: &Record, command: u32) -> bool {
        let interim = self.interim.entry(command).or_insert_with(|| Interim::of(&record.plan, command));
        self.known = interim.as_mut().map(|interim| interim.evaluate(record));
        self.known.is_some_and(|known| known.ended.is_some())
    }

    /// How well the figure is known by now, as a part of a line of progress; empty where nobody asked, or it is not yet.
    pub(crate) fn known(&self) -> String {
        let known = self.known.and_then(|known| Some((figure(known.target), known.reached?)));
        known.map_or_else(String::new, |(figure, reached)| format!(", {figure} to ±{:.1} %", 100.0 * reached))
    }

    /// Which trial of a level it is, and of how many as far as that is known.
    pub(crate) fn nth(&self, trial: u32, level: &Level, plan: Option<&Plan>) -> String {
        let stops = plan.is_some_and(|plan| plan.stopping.is_some());
        match self.known.and_then(|known| known.planned) {
            Some(planned) if self.counts(level) => format!("{}/{planned}", trial + 1),
            _ if stops => (trial + 1).to_string(),
            _ => format!("{}/{}", trial + 1, level.trials),
        }
    }

    /// Whether the trials of a level are those that become planned.
    fn counts(&self, level: &Level) -> bool {
        match self.known.map(|known| known.target) {
            Some(Target::Net) => level.arms > 1,
            _ => level.purpose == Purpose::Asked,
        }
    }
}

/// The figure that the trials of a plan are to make known.
pub(crate) fn target(plan: Option<&Plan>) -> &'static str {
    figure(plan.map_or(Target::Gross, stopping::target))
}

fn figure(target: Target) -> &'static str {
    match target {
        Target::Gross => "gross",
        Target::Net => "net",
        Target::Results => "results",
    }
}
