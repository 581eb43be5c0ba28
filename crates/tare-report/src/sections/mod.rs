//! The parts of a report, one file each. A section turns the record and the outcome into blocks.

mod bottleneck;
mod ceiling;
mod commands;
mod cpus;
mod downstream;
mod execution;
mod figures;
mod findings;
mod flame;
mod footer;
mod latency;
mod layouts;
mod machine;
mod net;
mod origin;
mod queue;
mod results;
mod roofline;
mod scale;
mod source;
mod spikes;
mod stages;
mod steadiness;
mod stopping;
mod text;
mod threads;
mod timeline;
mod trials;
mod waits;
pub(crate) mod warnings;

use crate::block::Block;
pub(crate) use origin::{origin, utc};
use source::Section;
pub(crate) use source::{Medium, Part, Source};
pub(crate) use text::capital;

/// In the order in which they are read.
static SECTIONS: &[&Section] = &[
    &bottleneck::SECTION,
    &origin::SECTION,
    &results::SECTION,
    &stages::SECTION,
    &figures::SECTION,
    &commands::SECTION,
    &commands::COMPARISON,
    &commands::TABLE,
    &net::SECTION,
    &ceiling::SECTION,
    &stopping::SECTION,
    &findings::SECTION,
    &steadiness::SECTION,
    &latency::SECTION,
    &execution::SECTION,
    &roofline::SECTION,
    &spikes::SECTION,
    &timeline::SECTION,
    &threads::SECTION,
    &downstream::SECTION,
    &waits::SECTION,
    &queue::SECTION,
    &layouts::SECTION,
    &cpus::SECTION,
    &flame::SECTION,
    &warnings::SECTION,
    &results::WRONG,
    &trials::SECTION,
    &machine::SECTION,
    &footer::SECTION,
];

/// The bottleneck in its words.
pub(crate) fn bottleneck_of(source: &Source) -> Vec<Block> {
    (bottleneck::SECTION.build)(source)
}

/// What was found, and what to know before quoting it.
pub(crate) fn findings_and_warnings(source: &Source) -> Vec<Part> {
    [&findings::SECTION, &warnings::SECTION]
        .into_iter()
        .filter_map(|section| Part::of(source.counted(section.title), (section.build)(source)))
        .collect()
}

/// All parts for a medium.
pub(crate) fn build(source: &Source, medium: Medium) -> Vec<Part> {
    SECTIONS
        .iter()
        .filter(|section| section.media.contains(&medium))
        .filter_map(|section| Part::of(source.counted(section.title), (section.build)(source)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_is_shown_somewhere_and_titles_differ() {
        let mut titles = Vec::new();
        for section in SECTIONS {
            assert!(!section.media.is_empty());
            assert!(section.title.is_empty() || !titles.contains(&section.title), "{}", section.title);
            titles.push(section.title);
        }
    }
}
