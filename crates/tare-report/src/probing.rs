//! Response times of probes under states of load: what is the cause, a row for each probe in each state.

use crate::block::{Block, Column, Field, Note, Row, Rows, Table, Text, Tone};
use crate::format::{self, between, percent, seconds};
use crate::sections::{Part, warnings};
use crate::words::{self, then_remedy, things};
use crate::{Report, words::id};
use tare_model::Reading;
use tare_model::probing::{Probe, ProbeFinding, ProbeRow, ProbeVerdict, ProbingOutcome};

/// Ends of an interval that are further apart say nothing.
const KNOWN_RATIO_MAX: f64 = 100.0;

/// The result, laid out.
pub fn report(outcome: &ProbingOutcome) -> Report {
    let mut parts =
        vec![Part { title: "", blocks: [headline(outcome)].into_iter().chain([table(outcome)]).collect() }];
    parts.extend(Part::of("Not measured", missing(outcome)));
    parts.extend(Part::of("Why", verdicts(outcome)));
    parts.extend(Part::of("Failed requests", failed(outcome)));
    parts.push(Part { title: "How it was measured", blocks: vec![Block::Pairs(how(outcome))] });
    parts.extend(warnings::part(&outcome.warnings));
    Report { parts, rows: rows(outcome) }
}

/// One JSON object.
///
/// # Errors
/// None that is known: every key is a string, and a number that is not finite becomes `null`.
pub fn json(outcome: &ProbingOutcome) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(outcome).map(|text| text + "\n")
}

fn headline(outcome: &ProbingOutcome) -> Block {
    let is_it = |verdict: &&ProbeVerdict| verdict.culprit == outcome.culprit;
    let (text, tone) = match (&outcome.culprit, outcome.verdicts.iter().find(is_it)) {
        (Reading::Measured(_), Some(verdict)) => (sentence(&verdict.text), Tone::Strong),
        (_, Some(verdict)) if verdict.finding == ProbeFinding::NothingSlowed => {
            (sentence(&verdict.text), Tone::Good)
        }
        (_, Some(verdict)) => (sentence(&verdict.text), Tone::Warn),
        (culprit, None) => {
            let why = culprit.clone().ok().unwrap_or_else(|missing| then_remedy(&missing));
            (sentence(&format!("no cause is named: {why}")), Tone::Warn)
        }
    };
    Block::Headline(Text::new(text, tone))
}

/// With a capital and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

fn table(outcome: &ProbingOutcome) -> Block {
    let columns = vec![
        Column::words("state", 0),
        Column::figures("median", 0),
        Column::figures("95 %", 2),
        Column::figures("p99", 3),
        Column::figures("ratio", 0),
        Column::figures("from…to", 0),
        Column::figures("added", 2),
        Column::figures("failed", 1),
        Column::figures("own lateness", 4),
    ];
    let heading = |row: &ProbeRow| {
        let probe = outcome.probes.iter().find(|probe| probe.name == row.probe);
        probe.map_or_else(|| row.probe.clone(), |probe| format!("{}  {}", probe.name, probe.target))
    };
    let mut rows = Vec::new();
    let mut last = String::new();
    for row in &outcome.table {
        if last != row.probe {
            rows.push(Row::Heading(Text::strong(heading(row))));
            last.clone_from(&row.probe);
        }
        rows.push(Row::Cells(cells(row)));
    }
    Block::Table(Table { columns, rows })
}

fn cells(row: &ProbeRow) -> Vec<Text> {
    let none = || format::NONE.to_owned();
    let median = row.median.value();
    let ratio = row.ratio.value();
    let spread = |found: &tare_model::outcome::Estimate| format::spread(found.value, found.ci95, seconds);
    // An interval that says nothing is not printed as figures.
    let known = |ends: &[f64; 2]| ends[1] < KNOWN_RATIO_MAX * ends[0];
    let ends = ratio.and_then(|ratio| ratio.ci95).map(|ends| match known(&ends) {
        true => between(ends, format::ratio),
        false => "not known".to_owned(),
    });
    let tone = match ratio.and_then(|ratio| ratio.ci95) {
        Some([low, _]) if low > 1.0 => Tone::Bad,
        _ => Tone::Plain,
    };
    let failures: u64 = row.failures.iter().map(|failure| failure.count).sum();
    let sent = failures + row.answers;
    let failed = if failures == 0 { "0".to_owned() } else { percent(failures as f64 / sent as f64) };
    let added =
        row.added.value().map(|added| format!("{}{}", format::sign(added.value), seconds(added.value.abs())));
    vec![
        Text::plain(&row.state),
        Text::plain(median.map_or_else(none, |median| seconds(median.value))),
        Text::plain(median.map_or_else(none, spread)),
        Text::plain(row.p99_s.value().map_or_else(none, |p99| seconds(*p99))),
        Text::new(ratio.map_or_else(none, |ratio| format::ratio(ratio.value)), tone),
        Text::plain(ends.unwrap_or_else(none)),
        Text::plain(added.unwrap_or_else(none)),
        Text::new(failed, if failures == 0 { Tone::Plain } else { Tone::Warn }),
        Text::dim(row.own_lateness_s.map_or_else(none, seconds)),
    ]
}

/// Why a figure is not there, each reason once.
fn missing(outcome: &ProbingOutcome) -> Vec<Block> {
    let of = |row: &ProbeRow, name: &str, missing: &tare_model::Missing| {
        format!("{name} of {} in '{}': {}", row.probe, row.state, then_remedy(missing))
    };
    let mut lines = Vec::new();
    for row in &outcome.table {
        if let Reading::Missing(why) = &row.median {
            lines.push(of(row, "median", why));
        }
    }
    let p99 = outcome.table.iter().find_map(|row| match &row.p99_s {
        Reading::Missing(why) if row.answers > 0 => Some(format!("p99: {}", then_remedy(why))),
        _ => None,
    });
    lines.into_iter().chain(p99).map(|line| Block::Line(Text::dim(line))).collect()
}

fn verdicts(outcome: &ProbingOutcome) -> Vec<Block> {
    let note = |verdict: &ProbeVerdict| {
        let title = match (&verdict.culprit, verdict.finding) {
            (Reading::Measured(name), ProbeFinding::ServiceOrNetwork | ProbeFinding::DownstreamOrNetwork) => {
                Text::strong(format!("{}: {name} or the way to it", verdict.state))
            }
            (Reading::Measured(name), _) => Text::strong(format!("{}: {name}", verdict.state)),
            (_, ProbeFinding::NothingSlowed) => {
                Text::new(format!("{}: nothing slower", verdict.state), Tone::Good)
            }
            _ => Text::new(format!("{}: undecided", verdict.state), Tone::Warn),
        };
        let hint = (!verdict.hint.is_empty()).then(|| ("do", verdict.hint.clone()));
        Note {
            title,
            aside: verdict.service.clone(),
            body: sentence(&verdict.text),
            lines: hint.into_iter().collect(),
        }
    };
    match outcome.verdicts.is_empty() {
        true => Vec::new(),
        false => vec![Block::Notes(outcome.verdicts.iter().map(note).collect())],
    }
}

fn failed(outcome: &ProbingOutcome) -> Vec<Block> {
    let of_row = |row: &ProbeRow| {
        let (probe, state) = (row.probe.clone(), row.state.clone());
        let words = |why: &str, count: u64| format!("{probe} in '{state}': {why} ({count})");
        row.failures
            .iter()
            .map(|failure| Block::Line(Text::plain(words(&failure.why, failure.count))))
            .collect()
    };
    outcome.table.iter().flat_map(|row| -> Vec<Block> { of_row(row) }).collect()
}

fn how(outcome: &ProbingOutcome) -> Vec<(String, String)> {
    let plan = &outcome.plan;
    let pair = |name: &str, value: String| (name.to_owned(), value);
    let calls = |probe: &Probe| {
        let calls = probe.calls.as_ref()?;
        let call = |call: &tare_model::probing::Call| match call.times {
            Some(times) => format!("{} × {times}", call.probe),
            None => call.probe.clone(),
        };
        let calls: Vec<String> = calls.iter().map(call).collect();
        let calls = if calls.is_empty() { "nothing".to_owned() } else { calls.join(", ") };
        Some(pair(&format!("{} calls", probe.name), calls))
    };
    let state = |state: &tare_model::probing::LoadState| {
        pair(&format!("state {}", state.name), state.command.clone().unwrap_or_else(|| "no load".into()))
    };
    let rounds = match outcome.rounds_done == plan.rounds {
        true => things(plan.rounds as usize, "round"),
        false => format!("{} of {}", outcome.rounds_done, things(plan.rounds as usize, "round")),
    };
    let windows = format!(
        "{rounds}, each state for {} in each, in an order drawn at random (--seed {})",
        seconds(plan.window_s),
        plan.seed
    );
    let requests = format!(
        "{} a second of each probe, {} at most for an answer",
        format::count(plan.rate_hz),
        seconds(plan.timeout_s)
    );
    [pair("rounds", windows), pair("requests", requests)]
        .into_iter()
        .chain(outcome.states.iter().map(state))
        .chain(outcome.probes.iter().filter_map(calls))
        .collect()
}

fn rows(outcome: &ProbingOutcome) -> Rows {
    let row = |row: &ProbeRow| {
        let probe = outcome.probes.iter().find(|probe| probe.name == row.probe);
        let estimate = |found: &Reading<tare_model::outcome::Estimate>| {
            let found = found.value();
            let [low, high] = Field::ends(found.and_then(|found| found.ci95));
            [Field::from(found.map(|found| found.value)), low, high]
        };
        let failures: u64 = row.failures.iter().map(|failure| failure.count).sum();
        let mut fields: Vec<Field> = vec![
            row.probe.as_str().into(),
            probe.map(|probe| words::id(probe.kind)).unwrap_or_default().into(),
            row.state.as_str().into(),
        ];
        fields.extend(estimate(&row.median));
        fields.push(row.p99_s.value().copied().into());
        fields.extend(estimate(&row.ratio));
        fields.extend(estimate(&row.added));
        fields.extend([row.answers as f64, failures as f64].map(Field::from));
        fields.push(row.own_lateness_s.into());
        let of_state = |verdict: &&ProbeVerdict| verdict.state == row.state && verdict.service == row.probe;
        let verdict = outcome.verdicts.iter().find(of_state);
        fields.push(verdict.map(|verdict| id(verdict.finding)).unwrap_or_default().into());
        let culprit = verdict.and_then(|verdict| verdict.culprit.value());
        fields.push(culprit.cloned().unwrap_or_default().into());
        fields
    };
    Rows { header: HEADER, rows: outcome.table.iter().map(row).collect() }
}

const HEADER: &[&str] = &[
    "probe",
    "kind",
    "state",
    "median_s",
    "median_low_s",
    "median_high_s",
    "p99_s",
    "ratio",
    "ratio_low",
    "ratio_high",
    "added_s",
    "added_low_s",
    "added_high_s",
    "answers",
    "failures",
    "own_lateness_s",
    "finding",
    "culprit",
];
