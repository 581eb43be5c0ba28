//! What was found, by effect: cause, proof, what to do, what would confirm it.

use super::scale::Scale;
use super::{Medium, Section, Source, join};
use crate::block::{Block, Note, Text, Tone};
use crate::format::{joined, logarithm, percent, with_unit};
use crate::words;
use tare_record::outcome::Finding;

pub(crate) static SECTION: Section =
    Section { title: "Findings", media: &[Medium::Terminal, Medium::Page], build };

/// Findings told in full; the rest are a line each.
const FULL_MAX: usize = 5;
/// Below this share of ln a finding is a note, unless it is the limit.
const NOTE_LN: f64 = 0.005;

fn build(source: &Source) -> Vec<Block> {
    let outcome = source.outcome;
    let scale = Scale::of(outcome);
    let mut notes = Vec::new();
    // The limit first, the rest by what they take.
    let is_limit = |finding: &&Finding| finding.cause == outcome.limit;
    let (limit, others): (Vec<&Finding>, Vec<&Finding>) = outcome.findings.iter().partition(is_limit);
    for finding in limit.into_iter().chain(others) {
        let is_limit = finding.cause == outcome.limit;
        let weighty = is_limit || finding.effect_ln.abs() >= NOTE_LN;
        notes.push(if weighty && notes.len() < FULL_MAX {
            full(finding, is_limit, &scale)
        } else {
            short(finding)
        });
    }
    if notes.is_empty() { Vec::new() } else { vec![Block::Notes(notes)] }
}

fn full(finding: &Finding, is_limit: bool, scale: &Scale) -> Note {
    let mut lines = Vec::new();
    if !finding.evidence.is_empty() {
        let proof = |one: &tare_record::outcome::Evidence| {
            format!("{}: {}", one.name, with_unit(one.value, &one.unit))
        };
        lines.push(("proof", join(finding.evidence.iter().map(proof))));
    }
    for (label, text) in [("do", &finding.remedy), ("confirm", &finding.confirm)] {
        if !text.is_empty() {
            lines.push((label, joined(text)));
        }
    }
    let effect = match finding.effect_ln {
        0.0 => "no effect on the weight".into(),
        ln => format!("takes {} ({} ln)", percent(scale.share(ln)), logarithm(ln)),
    };
    let mark = if is_limit { "the limit · " } else { "" };
    Note {
        title: Text::new(words::id(finding.cause), if is_limit { Tone::Strong } else { Tone::Warn }),
        aside: format!("{mark}{effect} · {}", sureness(finding, is_limit)),
        body: joined(&finding.summary),
        lines,
    }
}

/// How sure it is. Of what is not the limit the confidence is that it takes enough to be one.
fn sureness(finding: &Finding, is_limit: bool) -> String {
    let confidence = percent(finding.confidence);
    match is_limit || finding.confidence >= 0.5 {
        true => format!("confidence {confidence}"),
        false => "too little to be the limit".to_owned(),
    }
}

fn short(finding: &Finding) -> Note {
    Note {
        title: Text::new(words::id(finding.cause), Tone::Plain),
        aside: String::new(),
        body: joined(&finding.summary),
        lines: Vec::new(),
    }
}
