//! The checks of a machine on one screen: what is worst first, what is fine in a line.

use crate::block::{Block, Note, Text, Tone};
use crate::format::joined;
use crate::sections::Part;
use crate::{Style, render};
use serde::Serialize;
use tare_record::Reading;
use tare_record::check::{Check, Level};
use tare_record::probes::Probes;
use tare_record::survey::Survey;
use tare_record::topology::Topology;

/// Begins the finding of a check that could not be made.
const MISSING: &str = "missing: ";

/// The JSON object that scripts rely on.
#[derive(Serialize)]
struct Whole<'a> {
    checks: &'a [Check],
    topology: &'a Topology,
    survey: &'a Survey,
    probes: &'a Reading<Probes>,
}

/// The checks for a terminal.
pub fn terminal(checks: &[Check], style: Style) -> String {
    let at = |level: Level| checks.iter().filter(move |check| check.level == level);
    let (missing, noted): (Vec<&Check>, Vec<&Check>) =
        at(Level::Note).partition(|check| check.found.starts_with(MISSING) && check.effect.is_empty());
    let mut parts = vec![Part { title: "", blocks: vec![Block::Headline(headline(checks))] }];
    let mut part = |title, notes: Vec<Note>| {
        if !notes.is_empty() {
            parts.push(Part { title, blocks: vec![Block::Notes(notes)] });
        }
    };
    part("Bad: figures will not mean what they seem to", at(Level::Bad).map(whole).collect());
    part(
        "Warnings: figures will be worse or vary more than they need to",
        at(Level::Warn).map(whole).collect(),
    );
    part("Notes: to know before quoting a number", noted.into_iter().map(brief).collect());
    part("Could not be told", missing.into_iter().map(told).collect());
    part("Fine", at(Level::Ok).map(told).collect());
    render::terminal::render(&parts, style)
}

/// The result as one JSON object, indented.
///
/// # Errors
/// None that is known: every key is a string, and a number that is not finite becomes `null`.
pub fn json(
    checks: &[Check],
    topology: &Topology,
    survey: &Survey,
    probes: &Reading<Probes>,
) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&Whole { checks, topology, survey, probes }).map(|text| text + "\n")
}

fn headline(checks: &[Check]) -> Text {
    let count = |level: Level| checks.iter().filter(|check| check.level == level).count();
    let (bad, warn, note, ok) = (count(Level::Bad), count(Level::Warn), count(Level::Note), count(Level::Ok));
    let words = format!("{bad} bad, {warn} to mind, {note} to know, {ok} fine.");
    match (bad, warn) {
        (0, 0) => Text::new(format!("This machine can be measured on: {words}"), Tone::Good),
        (0, _) => Text::new(format!("Mind this machine: {words}"), Tone::Warn),
        _ => Text::new(format!("Do not trust figures of this machine yet: {words}"), Tone::Bad),
    }
}

/// With everything that is to be said.
fn whole(check: &Check) -> Note {
    let tone = if check.level == Level::Bad { Tone::Bad } else { Tone::Warn };
    let mut lines = Vec::new();
    if !check.effect.is_empty() {
        lines.push(("so", joined(&check.effect)));
    }
    if let Some(fix) = fix(check) {
        lines.push(("do", fix));
    }
    Note { title: Text::new(&check.id, tone), aside: String::new(), body: joined(&check.found), lines }
}

/// In a few lines.
fn brief(check: &Check) -> Note {
    let effect = if check.effect.is_empty() { String::new() } else { format!(": {}", check.effect) };
    let fix = fix(check).map_or_else(String::new, |fix| format!(" → {fix}"));
    let body = joined(&format!("{}{effect}{fix}", check.found));
    Note { title: Text::strong(&check.id), aside: String::new(), body, lines: Vec::new() }
}

/// The finding alone.
fn told(check: &Check) -> Note {
    let found = check.found.strip_prefix(MISSING).filter(|_| check.level == Level::Note);
    let fix =
        fix(check).filter(|_| check.level == Level::Note).map_or_else(String::new, |fix| format!(" → {fix}"));
    let body = joined(&format!("{}{fix}", found.unwrap_or(&check.found)));
    Note { title: Text::dim(&check.id), aside: String::new(), body, lines: Vec::new() }
}

fn fix(check: &Check) -> Option<String> {
    let knob = check.knob.as_ref().map(|knob| format!("tare tune, knob {knob}"));
    match (check.fix.is_empty(), knob) {
        (true, knob) => knob,
        (false, None) => Some(joined(&check.fix)),
        (false, Some(knob)) => Some(format!("{} ({knob})", joined(&check.fix))),
    }
}
