//! Fitting the runtime of a SUT that is started: which variables it gets.

use crate::progress::{Event, Progress};
use tare_machine::Root;
use tare_machine::facts::{Reach, survey};
use tare_machine::fit::Room;
use tare_model::topology::Topology;

/// The variables for a program that is held on `cpus` (none: on all that tare may use), said to the user. What the
/// user has set stays as it is.
pub fn environment(cpus: &[u32], topology: &Topology, progress: &mut dyn Progress) -> Vec<(String, String)> {
    let survey = survey(&Root::live(), Reach { company: None, windows: false });
    let count = if cpus.is_empty() { topology.cpus.len() } else { cpus.len() };
    let all = Room::of(&survey, count as u32).environment().into_iter();
    let all = all.map(|(name, value)| (name.to_owned(), value));
    let (kept, set): (Vec<_>, Vec<_>) = all.partition(|(name, _)| std::env::var_os(name).is_some());
    for (name, value) in &set {
        progress.show(Event::Notice(format!("the SUT is started with {name}={value}")));
    }
    for (name, value) in kept {
        progress.show(Event::Notice(format!("{name} stays as you set it (would be {value})")));
    }
    set
}
