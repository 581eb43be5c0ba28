//! The checks of a machine on one screen: what is worst first, what is fine in a line.

use crate::block::{Block, Note, Rows, Text, Tone};
use crate::format::joined;
use crate::sections::Part;
use crate::words::things;
use crate::{Report, words};
use tare_model::check::{Check, Examination, Level};

/// Begins the finding of a check that could not be made.
const MISSING: &str = "missing: ";

/// The checks, laid out: what is bad and what to mind in full, the rest short, so that it fits on a screen; in full
/// with `everything`.
pub fn report(checks: &[Check], everything: bool) -> Report {
    let at = |level: Level| checks.iter().filter(move |check| check.level == level);
    let (missing, noted): (Vec<&Check>, Vec<&Check>) = at(Level::Note).partition(|check| is_missing(check));
    let mut parts = vec![Part { title: "", blocks: vec![Block::Headline(headline(checks))] }];
    let mut part = |title, notes: Vec<Note>| {
        if !notes.is_empty() {
            parts.push(Part { title, blocks: vec![Block::Notes(notes)] });
        }
    };
    part("Bad: figures do not mean what they seem to", at(Level::Bad).map(whole).collect());
    part("To mind: figures are worse, or vary more, than they need to", at(Level::Warn).map(whole).collect());
    if everything {
        part("To know before quoting a figure", noted.into_iter().map(whole).collect());
        part("Could not be determined", missing.into_iter().map(whole).collect());
        part("Fine", at(Level::Ok).map(reported).collect());
    } else {
        part("To know before quoting a figure", noted.into_iter().map(reported).collect());
        part("Could not be determined", missing.into_iter().map(reported).collect());
        part("Fine", names(at(Level::Ok)).into_iter().collect());
        let more = Text::dim("What each does to a measurement, and what to do: tare doctor --all");
        parts.push(Part { title: "", blocks: vec![Block::Line(more)] });
    }
    Report { parts, rows: rows(checks) }
}

fn rows(checks: &[Check]) -> Rows {
    let row = |check: &Check| {
        let texts = [&check.id, &check.found, &check.effect, &check.fix].map(|text| text.as_str().into());
        let [id, found, effect, fix] = texts;
        vec![id, words::id(check.level).into(), found, effect, fix]
    };
    let header = &["check", "level", "found", "effect", "fix"];
    Rows { header, rows: checks.iter().map(row).collect() }
}

/// The result as one JSON object, indented.
///
/// # Errors
/// None that is known: every key is a string, and a number that is not finite becomes `null`.
pub fn json(examination: &Examination) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(examination).map(|text| text + "\n")
}

/// What a measurement stands or falls with: a quota, the clock, others on the CPUs. The names of its checks.
const DECISIVE: [&[&str]; 3] = [&["cpu-quota"], &["governor", "effective-clock"], &["others"]];

fn headline(checks: &[Check]) -> Text {
    let count = |level: Level| checks.iter().filter(|check| check.level == level).count();
    let (bad, warn, ok) = (count(Level::Bad), count(Level::Warn), count(Level::Ok));
    let missing = checks.iter().filter(|check| is_missing(check)).count();
    let note = count(Level::Note) - missing;
    let not_known = if missing > 0 { format!(", {missing} could not be determined") } else { String::new() };
    let words = format!("{bad} bad, {warn} to mind, {note} to know, {ok} fine{not_known}");
    let reported =
        |ids: &&[&str]| checks.iter().any(|check| ids.contains(&check.id.as_str()) && !is_missing(check));
    match (bad, warn) {
        (0, _) if !DECISIVE.iter().any(reported) => {
            Text::new(format!("Too little could be read to judge: {words}."), Tone::Warn)
        }
        (0, 0) => Text::new(format!("Measure here: {words}."), Tone::Good),
        (0, _) => Text::new(format!("Measure here with care: {words}."), Tone::Warn),
        _ => Text::new(format!("Do not measure here yet: {words}."), Tone::Bad),
    }
}

/// With everything that is to be said.
fn whole(check: &Check) -> Note {
    let mut lines = Vec::new();
    if !check.effect.is_empty() {
        lines.push(("so", joined(&check.effect)));
    }
    if let Some(fix) = fix(check) {
        lines.push(("do", fix));
    }
    // The title has a line of its own where lines follow.
    let body = joined(found(check));
    Note { title: Text::new(&check.id, tone(check.level)), aside: String::new(), body, lines }
}

/// The finding alone.
fn reported(check: &Check) -> Note {
    let body = joined(found(check));
    Note { title: Text::new(&check.id, tone(check.level)), aside: String::new(), body, lines: Vec::new() }
}

/// Names alone, each once.
fn names<'a>(checks: impl Iterator<Item = &'a Check>) -> Option<Note> {
    let mut names: Vec<&str> = Vec::new();
    for check in checks {
        if !names.contains(&check.id.as_str()) {
            names.push(&check.id);
        }
    }
    let title = Text::new(things(names.len(), "check"), Tone::Good);
    let note = Note { title, aside: String::new(), body: names.join(", "), lines: Vec::new() };
    (!names.is_empty()).then_some(note)
}

/// It could not be made, and nothing else tells that something is bad there.
fn is_missing(check: &Check) -> bool {
    check.level == Level::Note && check.found.starts_with(MISSING)
}

/// Without the word that the heading says already.
fn found(check: &Check) -> &str {
    check.found.strip_prefix(MISSING).unwrap_or(&check.found)
}

fn tone(level: Level) -> Tone {
    match level {
        Level::Bad => Tone::Bad,
        Level::Warn => Tone::Warn,
        Level::Note => Tone::Strong,
        Level::Ok => Tone::Good,
    }
}

fn fix(check: &Check) -> Option<String> {
    let setting = check.setting.as_ref().map(|setting| format!("tare tune: {setting}"));
    match (check.fix.is_empty(), setting) {
        (true, setting) => setting,
        (false, None) => Some(joined(&check.fix)),
        (false, Some(setting)) => Some(format!("{} ({setting})", joined(&check.fix))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::check::Area;

    fn check(id: &str, level: Level, found: &str) -> Check {
        let (id, found) = (id.to_owned(), found.to_owned());
        Check { id, area: Area::Host, level, found, effect: String::new(), fix: String::new(), setting: None }
    }

    #[test]
    fn what_is_not_known_is_never_good() {
        let mut checks: Vec<Check> = ["cpu-quota", "governor", "others", "ports"]
            .map(|id| check(id, Level::Note, "missing: it is not there"))
            .to_vec();
        let line = headline(&checks);
        assert_eq!(
            (line.text.as_str(), line.tone),
            (
                "Too little could be read to judge: 0 bad, 0 to mind, 0 to know, 0 fine, 4 could not be determined.",
                Tone::Warn
            )
        );
        checks[0] = check("cpu-quota", Level::Ok, "none");
        let line = headline(&checks);
        assert!(
            line.text.starts_with("Measure here: ") && line.text.contains("3 could not"),
            "{}",
            line.text
        );
        checks[1] = check("governor", Level::Bad, "missing: but it does harm");
        assert!(
            headline(&checks)
                .text
                .ends_with("1 bad, 0 to mind, 0 to know, 1 fine, 2 could not be determined.")
        );
    }

    #[test]
    fn nothing_that_was_read_moves_the_cursor() {
        let style = crate::Style { color: false, width: 80, unicode: true };
        let shown = report(&[check("a\x1b[2J", Level::Warn, "\x07b\r\n\u{9b}c")], true).terminal(style);
        assert!(shown.chars().all(|c| c == '\n' || !c.is_control()), "{shown:?}");
    }
}
