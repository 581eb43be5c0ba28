//! What came of the zoo: the verdicts on real programs against what is true of them.

use crate::block::{Block, Column, Note, Row, Rows, Table, Text, Tone};
use crate::format::percent;
use crate::sections::Part;
use crate::words::things;
use crate::{Report, words};
use std::collections::BTreeMap;
use tare_model::outcome::Cause;
use tare_model::zoo::{Found, Judgement, Run, RunResult, Subject, Truth, Zoo};

/// The result, laid out; `is_page`: there is room for what is true against what was found as a matrix.
pub fn report(zoo: &Zoo, is_page: bool) -> Report {
    let matrix = if is_page { confusion(zoo) } else { found_by_truth(zoo) };
    Report { parts: parts(zoo, matrix), rows: rows(zoo) }
}

fn rows(zoo: &Zoo) -> Rows {
    let row = |run: &Run| {
        let (found, judgement) = match &run.result {
            RunResult::Measured(found) => (words::id(found.bottleneck), words::id(found.judgement)),
            RunResult::Failed { .. } => ("failed".to_owned(), "failed".to_owned()),
        };
        let names = [run.subject.as_str().into(), run.truth.as_str().into(), f64::from(run.repeat).into()];
        names.into_iter().chain([found.into(), judgement.into()]).collect()
    };
    Rows {
        header: &["subject", "truth", "repeat", "found", "judgement"],
        rows: zoo.runs.iter().map(row).collect(),
    }
}

/// The result as one JSON object.
///
/// # Errors
/// None that is known: every key is a string.
pub fn json(zoo: &Zoo) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(zoo).map(|text| text + "\n")
}

/// `matrix`: true against found, as wide as the medium allows.
fn parts(zoo: &Zoo, matrix: Block) -> Vec<Part> {
    if zoo.runs.is_empty() {
        return vec![Part {
            title: "",
            blocks: vec![Block::Notes(zoo.subjects.iter().map(subject).collect())],
        }];
    }
    let mut parts = vec![
        Part { title: "", blocks: vec![Block::Headline(headline(zoo)), figures(zoo)] },
        Part { title: "True and found", blocks: vec![matrix] },
        Part { title: "Each subject with each truth", blocks: vec![pairs(zoo)] },
    ];
    let wrong: Vec<Block> = zoo.runs.iter().filter_map(wrong).map(Block::Line).collect();
    if !wrong.is_empty() {
        parts.push(Part { title: "Not right", blocks: wrong });
    }
    let missing: Vec<Note> = zoo.subjects.iter().filter(|one| one.missing.is_some()).map(subject).collect();
    if !missing.is_empty() {
        parts.push(Part { title: "Not installed, and not measured", blocks: vec![Block::Notes(missing)] });
    }
    parts.push(Part { title: "What is true, and which names are right", blocks: vec![truths(zoo)] });
    parts
}

fn headline(zoo: &Zoo) -> Text {
    let summary = &zoo.summary;
    let share = summary.right as f64 / summary.runs.max(1) as f64;
    let text = format!(
        "{} of {} name what is true ({}), {} say that it is not known, {} wrong, {} failed: {} of subject and truth.",
        summary.right,
        things(summary.runs, "run"),
        percent(share),
        summary.not_known,
        summary.wrong,
        summary.failed,
        things(summary.pairs, "pair"),
    );
    Text::new(text, if summary.is_good() { Tone::Good } else { Tone::Bad })
}

fn figures(zoo: &Zoo) -> Block {
    let summary = &zoo.summary;
    let measured = summary.runs - summary.failed;
    let residual = summary.residual_max.map_or("not known".into(), percent);
    let held = match summary.intervals {
        0 => String::new(),
        intervals => format!(
            "; {} of {} hold the median of the pair's other runs (of three exact ones 89 % do)",
            summary.intervals_hold,
            things(intervals, "interval")
        ),
    };
    let pairs = [
        (
            "accounting",
            format!("less than 1 % open in {} of {measured} runs; most {residual}", summary.closed),
        ),
        (
            "net",
            format!(
                "repeats within 5 % in {} of {} with two or more{held}",
                summary.nets_repeat,
                things(summary.nets, "pair")
            ),
        ),
        (
            "undisturbed",
            format!(
                "{} of {} with a finding above a note beside the bottleneck",
                summary.alarmed,
                things(summary.undisturbed, "run")
            ),
        ),
        ("machine", format!("{} CPUs, {}", zoo.machine.cpus, zoo.machine.kernel)),
    ];
    Block::Pairs(pairs.into_iter().map(|(label, text)| (label.to_owned(), text)).collect())
}

/// A row for each truth, a column for each name that was given.
fn confusion(zoo: &Zoo) -> Block {
    let mut named: Vec<Cause> =
        zoo.summary.confusion.values().flat_map(|named| named.keys().copied()).collect();
    named.sort_unstable();
    named.dedup();
    let columns = std::iter::once(Column::words("true", 0))
        .chain(named.iter().map(|cause| Column::figures(&cause.id(), 0)))
        .collect();
    let row = |truth: &Truth| {
        let counts = zoo.summary.confusion.get(&truth.name)?;
        let cell = |cause: &Cause| match counts.get(cause) {
            Some(count) => {
                let right = truth.accepts.contains(&cause.id());
                Text::new(count.to_string(), if right { Tone::Good } else { Tone::Bad })
            }
            None => Text::plain(""),
        };
        Some(Row::Cells(std::iter::once(Text::plain(&truth.name)).chain(named.iter().map(cell)).collect()))
    };
    Block::Table(Table { columns, rows: zoo.truths.iter().filter_map(row).collect() })
}

/// The same where there is no room for so many columns.
fn found_by_truth(zoo: &Zoo) -> Block {
    let row = |truth: &Truth| {
        let counts = zoo.summary.confusion.get(&truth.name)?;
        let right = counts.keys().all(|cause| truth.accepts.contains(&cause.id()));
        let tone = if right { Tone::Good } else { Tone::Bad };
        Some(Row::Cells(vec![Text::plain(&truth.name), Text::new(times(counts), tone)]))
    };
    let columns = vec![Column::words("true", 0), Column::words("found", 0)];
    Block::Table(Table { columns, rows: zoo.truths.iter().filter_map(row).collect() })
}

/// `3 × cpu-quota-throttled, 1 × unknown`.
fn times(counts: &BTreeMap<Cause, usize>) -> String {
    let names: Vec<String> =
        counts.iter().map(|(cause, count)| format!("{count} × {}", cause.id())).collect();
    names.join(", ")
}

fn measured(run: &Run) -> Option<&Found> {
    match &run.result {
        RunResult::Measured(found) => Some(found),
        RunResult::Failed { .. } => None,
    }
}

/// A row for each pair that was measured.
fn pairs(zoo: &Zoo) -> Block {
    let columns = vec![
        Column::words("subject", 0),
        Column::words("true", 0),
        Column::figures("right", 0),
        Column::words("found", 0),
        Column::figures("residual", 2),
        Column::figures("nets apart", 2),
    ];
    let mut by_pair: BTreeMap<(&str, &str), Vec<&Run>> = BTreeMap::new();
    for run in &zoo.runs {
        by_pair.entry((&run.subject, &run.truth)).or_default().push(run);
    }
    let rows = by_pair.into_iter().map(|((subject, truth), runs)| {
        let found: Vec<&Found> = runs.iter().filter_map(|run| measured(run)).collect();
        let right = found.iter().filter(|found| found.judgement == Judgement::Right).count();
        let mut counts: BTreeMap<Cause, usize> = BTreeMap::new();
        found.iter().for_each(|found| *counts.entry(found.bottleneck).or_default() += 1);
        let residual = found.iter().filter_map(|found| found.residual_ratio).reduce(f64::max);
        let nets: Vec<f64> = found.iter().filter_map(|found| found.net).collect();
        let most = nets.iter().copied().reduce(f64::max);
        let apart = most.zip(nets.iter().copied().reduce(f64::min)).map(|(most, least)| most / least - 1.0);
        let none = || "–".to_owned();
        Row::Cells(vec![
            Text::plain(subject),
            Text::plain(truth),
            Text::new(
                format!("{right}/{}", runs.len()),
                if right == runs.len() { Tone::Good } else { Tone::Bad },
            ),
            Text::plain(times(&counts)),
            Text::plain(residual.map_or_else(none, percent)),
            Text::plain(apart.filter(|_| nets.len() > 1).map_or_else(none, percent)),
        ])
    });
    Block::Table(Table { columns, rows: rows.collect() })
}

fn wrong(run: &Run) -> Option<Text> {
    let of = format!("{}/{} {}", run.subject, run.truth, run.repeat);
    let found = match &run.result {
        RunResult::Failed { why } => {
            return Some(Text::new(format!("{of}: could not be measured: {why}"), Tone::Bad));
        }
        RunResult::Measured(found) => found,
    };
    let alarms: Vec<String> = found.alarms.iter().map(|alarm| alarm.id()).collect();
    let sure = found.confidence.map_or(String::new(), |sure| format!(", confidence {}", percent(sure)));
    let named = format!("{}{sure}", found.bottleneck.id());
    let text = match (found.judgement, alarms.is_empty()) {
        (Judgement::Right, true) => return None,
        (Judgement::Right, false) => format!("{of}: also found {}", alarms.join(", ")),
        (Judgement::NotKnown, _) => format!("{of}: not known ({})", found.bottleneck.id()),
        (Judgement::Wrong, _) => format!("{of}: {named}{}", if found.valid { "" } else { ", not valid" }),
    };
    Some(Text::new(text, Tone::Bad))
}

fn subject(subject: &Subject) -> Note {
    Note {
        title: Text::strong(&subject.name),
        aside: subject.truths.join(", "),
        body: subject.about.clone(),
        lines: subject.missing.iter().map(|missing| ("missing", missing.clone())).collect(),
    }
}

fn truths(zoo: &Zoo) -> Block {
    let is_used = |truth: &&Truth| zoo.runs.iter().any(|run| run.truth == truth.name);
    let note = |truth: &Truth| Note {
        title: Text::strong(&truth.name),
        aside: truth.accepts.join(" or "),
        body: truth.about.clone(),
        lines: vec![("because", truth.because.clone())],
    };
    Block::Notes(zoo.truths.iter().filter(is_used).map(note).collect())
}
