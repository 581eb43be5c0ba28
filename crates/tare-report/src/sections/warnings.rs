//! What a reader must know before quoting a number.

use super::source::{Medium, Part, Section, Source};
use crate::block::{Block, Note, Text, Tone};
use crate::format::joined;
use tare_model::outcome::Warning;

pub(crate) static SECTION: Section =
    Section { title: "Warnings", media: &[Medium::Terminal, Medium::Page], build };

fn build(source: &Source) -> Vec<Block> {
    let mut reported: Vec<&Warning> = Vec::new();
    // An explanation may hand the record's own notices on; each is reported once.
    for warning in source.outcome.verdict.warnings.iter().chain(&source.record.notices) {
        if !reported.contains(&warning) {
            reported.push(warning);
        }
    }
    notes(reported)
}

/// The warnings of a result that is no session's; `None` where there are none.
pub(crate) fn part(warnings: &[Warning]) -> Option<Part> {
    Part::of(SECTION.title, notes(warnings))
}

fn notes<'w>(warnings: impl IntoIterator<Item = &'w Warning>) -> Vec<Block> {
    let notes: Vec<Note> = warnings.into_iter().map(note).collect();
    if notes.is_empty() { Vec::new() } else { vec![Block::Notes(notes)] }
}

/// A warning as it is reported, of whatever result.
pub(crate) fn note(warning: &Warning) -> Note {
    let hint = (!warning.hint.is_empty()).then(|| ("hint", joined(&warning.hint)));
    Note {
        title: Text::new(&warning.id, Tone::Warn),
        aside: String::new(),
        body: joined(&warning.text),
        lines: hint.into_iter().collect(),
    }
}
