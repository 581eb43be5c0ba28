//! What was found, by effect: cause, proof, what to do, what would confirm it.

use super::scale::Scale;
use super::source::{Medium, Section, Source};
use super::text::join;
use crate::block::{Block, Note, Text, Tone};
use crate::format::{joined, logarithm, percent, with_unit};
use crate::words;
use tare_model::Missing;
use tare_model::outcome::{Cause, Finding, Outcome, Tried};

pub(crate) static SECTION: Section =
    Section { title: "Findings", media: &[Medium::Terminal, Medium::Page], build };

/// Findings reported in full; the rest are a line each.
const FULL_MAX: usize = 5;
/// Below this share of ln a finding is a note, unless it is the bottleneck.
const NOTE_LN: f64 = 0.005;

fn build(source: &Source) -> Vec<Block> {
    let outcome = source.outcome;
    let scale = Scale::of(outcome);
    let mut notes = Vec::new();
    // The bottleneck first, the rest by what they take.
    let is_bottleneck = |finding: &&Finding| finding.cause == outcome.verdict.bottleneck;
    let (bottleneck, others): (Vec<&Finding>, Vec<&Finding>) =
        outcome.verdict.findings.iter().partition(is_bottleneck);
    for finding in bottleneck.into_iter().chain(others) {
        let is_bottleneck = finding.cause == outcome.verdict.bottleneck;
        let matters = is_bottleneck || finding.effect_ln.abs() >= NOTE_LN;
        let tried = tried(outcome, finding);
        notes.push(if matters && notes.len() < FULL_MAX || tried.is_some() {
            full(finding, is_bottleneck, &scale, tried)
        } else {
            short(finding)
        });
    }
    if notes.is_empty() { Vec::new() } else { vec![Block::Notes(notes)] }
}

fn full(finding: &Finding, is_bottleneck: bool, scale: &Scale, tried: Option<String>) -> Note {
    let mut lines = Vec::new();
    if !finding.evidence.is_empty() {
        let proof = |one: &tare_model::outcome::Evidence| {
            format!("{}: {}", one.name, with_unit(one.value, &one.unit))
        };
        lines.push(("proof", join(finding.evidence.iter().map(proof))));
    }
    for (label, text) in [("do", &finding.remedy), ("confirm", &finding.confirm)] {
        if !text.is_empty() {
            lines.push((label, joined(text)));
        }
    }
    lines.extend(tried.map(|tried| ("tried", tried)));
    lines.push(("more", format!("tare explain {}", words::id(finding.cause))));
    let effect = match finding.effect_ln {
        0.0 => "no part of the tare".into(),
        // From the first trials to the last: no part of what was lost.
        ln if finding.cause == Cause::NotSteady => {
            format!("moved by {} ({} ln)", percent(ln.exp_m1()), logarithm(ln))
        }
        ln => format!("takes {}{} ({} ln)", percent(scale.share(ln)), scale.whole(), logarithm(ln)),
    };
    let mark = if is_bottleneck { "the bottleneck · " } else { "" };
    Note {
        title: Text::new(words::id(finding.cause), if is_bottleneck { Tone::Strong } else { Tone::Warn }),
        aside: format!("{mark}{effect} · {}", sureness(finding, is_bottleneck)),
        body: joined(&finding.summary),
        lines,
    }
}

/// What came of trying it, where it was.
fn tried(outcome: &Outcome, finding: &Finding) -> Option<String> {
    let confirmation = outcome.verdict.confirmation.as_ref()?;
    if let Some(bottleneck) =
        confirmation.instead_of.as_ref().filter(|bottleneck| bottleneck.cause == finding.cause)
    {
        return Some(format!(
            "{}; {} was tried instead",
            not_possible(&bottleneck.why),
            confirmation.cause.id()
        ));
    }
    if confirmation.cause != finding.cause {
        return None;
    }
    Some(match confirmation.tried.clone().ok() {
        Ok(Tried { what, unit, before, changed, pairs, elasticity, ci95: [lo, hi], floor, verdict }) => {
            format!(
                "{}: {what} from {} to {} in {pairs} pairs of trials: elasticity {elasticity:.2} ({lo:.2} to {hi:.2}), the cause implies \
             above {floor}",
                verdict.word(),
                with_unit(before, &unit),
                with_unit(changed, &unit),
            )
        }
        Err(missing) => not_possible(&missing),
    })
}

fn not_possible(missing: &Missing) -> String {
    format!("not possible here: {}", words::then_remedy(missing))
}

/// How sure it is. Of what is not the bottleneck the confidence is that it takes enough to be one.
fn sureness(finding: &Finding, is_bottleneck: bool) -> String {
    let confidence = percent(finding.confidence);
    match is_bottleneck || finding.confidence >= 0.5 {
        true => format!("confidence {confidence}"),
        false => "too little to be the bottleneck".to_owned(),
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
