//! What a machine will do to a measurement: a survey, its topology and its probes → checks.
//!
//! Pure: nothing here reads a file or asks the kernel. One file per topic; a topic looks at what it needs and says of
//! each thing that it is fine, what it does to a measurement, or why it cannot be told. What is missing is said, never
//! taken for fine.
//!
//! To add a check: its name in the `ids` of its topic and the judgement in the topic's function. To add a topic: its
//! file and one line in [`TOPICS`].

mod clock;
mod company;
mod groups;
mod host;
mod instrument;
mod limits;
mod memory;
mod network;
mod processor;
mod scheduler;
mod words;

use tare_model::calibration::Calibration;
use tare_model::check::{Area, Check, Level};
use tare_model::probes::Probes;
use tare_model::survey::Survey;
use tare_model::topology::Topology;
use tare_model::{Missing, Reading};

/// What checks work from.
#[derive(Debug, Clone, Copy)]
pub struct Examined<'a> {
    /// What was read.
    pub survey: &'a Survey,
    /// The part of the machine that may be used.
    pub topology: &'a Topology,
    /// What was measured; `None` where it was not asked for.
    pub probes: Option<&'a Probes>,
    /// How often tare was right here, when it was last calibrated.
    pub calibration: &'a Reading<Calibration>,
    /// The time now, seconds since 1970.
    pub now_unix_s: u64,
}

/// Things that are looked at together.
struct Topic {
    area: Area,
    /// Every name that its checks can have.
    ids: &'static [&'static str],
    look: fn(&Examined) -> Vec<Draft>,
}

/// In the order in which checks of one level are told: what moves a figure most comes first.
static TOPICS: &[&Topic] = &[
    &groups::TOPIC,
    &company::TOPIC,
    &host::TOPIC,
    &clock::TOPIC,
    &scheduler::TOPIC,
    &processor::TOPIC,
    &memory::TOPIC,
    &network::TOPIC,
    &limits::TOPIC,
    &instrument::TOPIC,
];

/// All checks, by area in a fixed order.
pub fn examine(examined: &Examined) -> Vec<Check> {
    let finished = |topic: &&Topic| {
        let area = topic.area;
        (topic.look)(examined).into_iter().map(move |draft| draft.finish(area))
    };
    TOPICS.iter().flat_map(finished).collect()
}

/// Every name that a check can have, with its area: what a list of checks, or a test, goes through.
pub fn ids() -> impl Iterator<Item = (Area, &'static str)> {
    TOPICS.iter().flat_map(|topic| topic.ids.iter().map(|id| (topic.area, *id)))
}

/// A check whose area is not filled in yet.
struct Draft(Check);

fn draft(id: &str, level: Level, found: impl Into<String>) -> Draft {
    Draft(Check {
        id: id.to_owned(),
        area: Area::Host,
        level,
        found: found.into(),
        effect: String::new(),
        fix: String::new(),
        knob: None,
    })
}

fn ok(id: &str, found: impl Into<String>) -> Draft {
    draft(id, Level::Ok, found)
}

fn note(id: &str, found: impl Into<String>) -> Draft {
    draft(id, Level::Note, found)
}

fn warn(id: &str, found: impl Into<String>) -> Draft {
    draft(id, Level::Warn, found)
}

fn bad(id: &str, found: impl Into<String>) -> Draft {
    draft(id, Level::Bad, found)
}

/// It could not be looked at.
fn unknown(id: &str, missing: &Missing) -> Draft {
    note(id, missing.to_string()).fix(missing.remedy.as_str())
}

/// What `look` says of a value; that it is missing where it is, and nothing where it does not apply.
fn each<T>(id: &str, reading: &Reading<T>, look: impl FnOnce(&T) -> Draft) -> Vec<Draft> {
    several(id, reading, |value| vec![look(value)])
}

/// The same where there may be several things to say, or none.
fn several<T>(id: &str, reading: &Reading<T>, look: impl FnOnce(&T) -> Vec<Draft>) -> Vec<Draft> {
    match reading {
        Reading::Measured(value) => look(value),
        Reading::Missing(missing) => vec![unknown(id, missing)],
        Reading::NotApplicable { .. } => Vec::new(),
    }
}

impl Draft {
    /// What it does to a measurement.
    fn effect(mut self, effect: impl Into<String>) -> Draft {
        self.0.effect = effect.into();
        self
    }

    /// What to do about it.
    fn fix(mut self, fix: impl Into<String>) -> Draft {
        self.0.fix = fix.into();
        self
    }

    /// The knob of `tare tune` that does it.
    fn knob(mut self, knob: &str) -> Draft {
        self.0.knob = Some(knob.to_owned());
        self
    }

    fn finish(self, area: Area) -> Check {
        Check { area, ..self.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_name_is_there_once() {
        let names: BTreeSet<&str> = ids().map(|(_, id)| id).collect();
        assert_eq!(names.len(), ids().count());
        assert!(names.iter().all(|id| id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')));
        let areas: BTreeSet<Area> = ids().map(|(area, _)| area).collect();
        assert_eq!(areas.len(), TOPICS.len());
    }
}
