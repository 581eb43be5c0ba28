//! The parts of a report, one file each. A section turns the record and the outcome into blocks.

mod bottleneck;
mod commands;
mod cpus;
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
mod scale;
mod spikes;
mod steadiness;
mod stopping;
mod threads;
mod timeline;
mod trials;
mod waits;
pub(crate) mod warnings;

use crate::block::Block;
pub(crate) use origin::{origin, utc};
use tare_model::Record;
use tare_model::outcome::{Outcome, ThreadRow};
use tare_model::plan::{HttpWorkload, Sut, Workload};

/// What sections work from.
pub(crate) struct Source<'a> {
    pub record: &'a Record,
    pub outcome: &'a Outcome,
}

/// What a report is shown on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Medium {
    Terminal,
    Markdown,
    Page,
}

/// A part of a report.
pub(crate) struct Section {
    /// Its heading; empty for parts that speak for themselves.
    pub title: &'static str,
    /// Where it is shown.
    pub media: &'static [Medium],
    /// Its blocks; none where there is nothing to say.
    pub build: fn(&Source) -> Vec<Block>,
}

/// A section that had something to say.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    pub title: &'static str,
    pub blocks: Vec<Block>,
}

/// In the order in which they are read.
static SECTIONS: &[&Section] = &[
    &bottleneck::SECTION,
    &origin::SECTION,
    &figures::SECTION,
    &commands::SECTION,
    &commands::COMPARISON,
    &commands::TABLE,
    &net::SECTION,
    &stopping::SECTION,
    &findings::SECTION,
    &steadiness::SECTION,
    &latency::SECTION,
    &execution::SECTION,
    &spikes::SECTION,
    &timeline::SECTION,
    &threads::SECTION,
    &waits::SECTION,
    &queue::SECTION,
    &layouts::SECTION,
    &cpus::SECTION,
    &flame::SECTION,
    &warnings::SECTION,
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
        .map(|section| Part { title: section.title, blocks: (section.build)(source) })
        .into_iter()
        .filter(|part| !part.blocks.is_empty())
        .collect()
}

/// All parts for a medium.
pub(crate) fn build(source: &Source, medium: Medium) -> Vec<Part> {
    SECTIONS
        .iter()
        .filter(|section| section.media.contains(&medium))
        .map(|section| Part { title: section.title, blocks: (section.build)(source) })
        .filter(|part| !part.blocks.is_empty())
        .collect()
}

impl Source<'_> {
    /// The HTTP workload of the plan.
    pub fn http(&self) -> Option<&HttpWorkload> {
        match &self.record.plan.workload {
            Workload::Http(http) => Some(http),
            Workload::Command(_) => None,
        }
    }

    /// What to call the SUT: its busiest thread's process name, or what was started.
    pub fn sut_name(&self) -> String {
        let threads = self.outcome.accounting.sut.as_ref().map_or(&[][..], |sut| &sut.threads);
        // The busiest process is called what its main thread is: others have names of their own.
        let busiest = threads.first();
        let is_main =
            |thread: &&ThreadRow| busiest.is_some_and(|one| [thread.pid, thread.tid] == [one.pid; 2]);
        let seen = threads.iter().find(is_main).or(busiest);
        match (self.http().map(|http| &http.sut), seen) {
            (Some(Sut::Embedded), _) => "the built-in server".into(),
            (_, Some(thread)) if !thread.name.is_empty() => thread.name.clone(),
            (Some(Sut::Started { command }), _) => program(command),
            (None, _) => "the program".into(),
            _ => "the server".into(),
        }
    }
}

/// Things told on one line, which breaks between them and not within.
fn join(reported: impl IntoIterator<Item = String>) -> String {
    let reported =
        reported.into_iter().filter(|text| !text.is_empty()).map(|text| text.replace(' ', "\u{a0}"));
    reported.collect::<Vec<_>>().join("\u{a0}· ")
}

/// The program's name in a command line.
fn program(command: &str) -> String {
    let path = command.split_whitespace().next().unwrap_or("the program");
    path.rsplit('/').next().unwrap_or(path).into()
}

/// A sentence starts with a capital letter, unless with a name.
fn capital(text: &str) -> String {
    match text.strip_prefix("the ") {
        Some(rest) => format!("The {rest}"),
        None => text.into(),
    }
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
