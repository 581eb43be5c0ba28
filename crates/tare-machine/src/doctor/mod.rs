//! What a machine will do to a measurement: a survey, its topology and its probes → checks.
//!
//! Pure: nothing here reads a file or asks the kernel. One file per topic; a topic looks at what it needs and says of
//! each thing that it is fine, what it does to a measurement, or why it is not known. What is missing is said, never
//! taken for fine.
//!
//! To add a check: its name in the `ids` of its topic and the judgement in the topic's function. To add a topic: its
//! file and one line in [`TOPICS`].

mod clock;
mod company;
mod draft;
mod energy;
mod groups;
mod host;
mod instrument;
mod limits;
mod memory;
mod network;
mod processor;
mod scheduler;
mod words;

pub use draft::Examined;

use draft::Topic;
use tare_model::check::{Area, Check};

/// In the order in which checks of one level are shown: what moves a figure most comes first.
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
