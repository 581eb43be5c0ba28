//! Whether what a branch does now is worse than it was: one sentence, a row for each figure, what the branch went through.

use crate::block::{Block, Column, Row, Rows, Table, Text, Tone};
use crate::figures::{self, signed};
use crate::format::{joined, percent};
use crate::metric_changes::{self, MetricChange};
use crate::sections::{self, Part, warnings};
use crate::{Report, words};
use serde::Serialize;
use tare_model::comparison::{Figure, Verdict};
use tare_model::gate::{Against, ChangePoint, Effect, Gate, Judged, Run, State};

/// The result, laid out.
pub fn report(gate: &Gate) -> Report {
    let parts = [
        Part::of("", vec![headline(gate)]),
        Part::of("Benchmarks", benchmarks(gate)),
        Part::of("Figures", vec![table(gate)]),
        Part::of("Not compared", figures::missing(&gate.effects)),
        Part::of("What the branch went through", change_points(&gate.change_points)),
        Part::of("Conditions", conditions(gate)),
        Part::of("How far to trust it", trust(gate)),
        warnings::part(&gate.warnings),
    ];
    Report { parts: parts.into_iter().flatten().collect(), rows: rows(gate) }
}

fn rows(gate: &Gate) -> Rows {
    let row = |effect: &Effect| {
        let Effect { figure, of_reference, baseline, value, change, .. } = effect;
        let said = (effect.verdict, f64::from(effect.runs), effect.detectable);
        figures::csv(
            (&gate.new.label, figure.name(), *of_reference),
            [*baseline, *value],
            change.value().copied(),
            said,
        )
    };
    let launches = gate.effects.iter().map(|effect| effect.runs as usize).max().unwrap_or_default();
    let metrics = gate.benchmarks.iter().map(|effect| metric_changes::csv(effect, launches));
    Rows { header: figures::HEADER, rows: gate.effects.iter().map(row).chain(metrics).collect() }
}

/// The result as one JSON object, or several as an array of such.
///
/// # Errors
/// None that is known: every key is a string, and a number that is not finite becomes `null`.
pub fn json(gates: &(impl Serialize + ?Sized)) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(gates).map(|text| text + "\n")
}

/// What a run is held against, in words.
fn held_against(gate: &Gate) -> String {
    match &gate.against {
        Against::Baseline(run) | Against::Interleaved(run) => run.label.clone(),
        Against::History { .. } => "the branch".to_owned(),
    }
}

fn changes(gate: &Gate) -> Vec<MetricChange<'_>> {
    gate.benchmarks.iter().map(MetricChange::of).collect()
}

/// What commands printed, in the columns of a comparison.
fn benchmarks(gate: &Gate) -> Vec<Block> {
    let changes = changes(gate);
    let table = || metric_changes::table(["was", "is", "A/A control"], &changes, gate.margin);
    if changes.is_empty() { Vec::new() } else { vec![table()] }
}

fn headline(gate: &Gate) -> Block {
    let (new, old) = (&gate.new.label, held_against(gate));
    let of_benchmarks = metric_changes::headline(new, &old, &changes(gate));
    if let Some(text) = of_benchmarks.filter(|_| gate.valid && gate.conditions.is_empty()) {
        return Block::Headline(text);
    }
    if !gate.valid {
        let text = format!("{new} cannot be judged: a result is not valid.");
        return Block::Headline(Text::new(text, Tone::Bad));
    }
    let decided = [Verdict::Faster, Verdict::Slower].map(|verdict| {
        let mine = gate.effects.iter().filter(|effect| effect.verdict == verdict);
        mine.map(|effect| figures::named(effect.figure, effect.change.value().copied())).collect()
    });
    let known = gate.effects.iter().any(|effect| effect.change.value().is_some());
    let text = figures::headline([new, &old], ["better", "worse"], decided);
    Block::Headline(text.unwrap_or_else(|| match known {
        true => Text::strong(format!("No figure of {new} is proven to differ from {old}.{}", shows(gate))),
        false => Text::new(unjudged(gate), Tone::Warn),
    }))
}

/// What would have been found, of the figures that it is to fail on.
fn shows(gate: &Gate) -> String {
    let mut figures: Vec<Figure> = gate.conditions.iter().map(|judged| judged.figure).collect();
    figures.dedup();
    let of = |figure: &Figure| {
        let effect = gate.effects.iter().find(|effect| effect.figure == *figure)?;
        Some(format!("{} {}", figure.title(), percent(effect.detectable?)))
    };
    match figures.iter().filter_map(of).collect::<Vec<_>>().as_slice() {
        [] => String::new(),
        known => format!(" Smallest loss that it finds: {}.", known.join(", ")),
    }
}

fn unjudged(gate: &Gate) -> String {
    let lacks = gate.effects.iter().map(|effect| effect.runs_missing).filter(|lacks| *lacks > 0).min();
    match lacks {
        Some(lacks) => format!(
            "{} cannot be judged yet: the history lacks {}.",
            gate.new.label,
            words::things(lacks as usize, "more run")
        ),
        None => format!("It is not known whether {} differs from {}.", gate.new.label, held_against(gate)),
    }
}

fn table(gate: &Gate) -> Block {
    let mut columns = figures::columns(["was", "is"]);
    if matches!(gate.against, Against::History { .. }) {
        columns.push(Column::words("from", 3));
    }
    let rows = gate.effects.iter().map(|effect| row(effect, gate)).collect();
    Block::Table(Table { columns, rows })
}

fn row(effect: &Effect, gate: &Gate) -> Row {
    let mut cells = figures::of_effect(effect, gate.margin);
    if matches!(gate.against, Against::History { .. }) {
        cells.push(Text::dim(words::things(effect.runs as usize, "run")));
    }
    Row::Cells(cells)
}

/// The last change point of each figure; earlier ones are counted.
fn change_points(change_points: &[ChangePoint]) -> Vec<Block> {
    let last = |figure: Figure| {
        let mine: Vec<&ChangePoint> = change_points.iter().filter(|point| point.figure == figure).collect();
        let point = *mine.last()?;
        let earlier = match mine.len() - 1 {
            0 => String::new(),
            more => format!("; {} before that", words::things(more, "change point")),
        };
        let text = format!(
            "{}\u{a0}% since {} ({}, {} since){earlier}",
            signed(point.change),
            point.since,
            sections::utc(point.time_unix_s),
            words::things(point.runs as usize, "run")
        );
        Some((figure.title().to_owned(), text))
    };
    let pairs: Vec<(String, String)> = Figure::all().filter_map(last).collect();
    if pairs.is_empty() { Vec::new() } else { vec![Block::Pairs(pairs)] }
}

fn conditions(gate: &Gate) -> Vec<Block> {
    let pair = |judged: &Judged| (judged.condition.clone(), state(judged.state).to_owned());
    let pairs: Vec<(String, String)> = gate.conditions.iter().map(pair).collect();
    if pairs.is_empty() { Vec::new() } else { vec![Block::Pairs(pairs)] }
}

/// What became of a condition, in words.
pub fn state(state: State) -> &'static str {
    match state {
        State::Proven => "proven: this fails the gate",
        State::NotProven => "not proven",
        State::TooFewRuns => "cannot be judged yet: the history is too short",
        State::CannotTell => "cannot be judged: there is no interval",
    }
}

fn trust(gate: &Gate) -> Vec<Block> {
    let run =
        |run: &Run| format!("{} · {} · kernel {}", sections::utc(run.time_unix_s), run.machine, run.kernel);
    let mut pairs = vec![
        ("intervals".to_owned(), joined(&gate.method)),
        ("no difference".to_owned(), format!("within {}", percent(gate.margin))),
        (gate.new.label.clone(), run(&gate.new)),
    ];
    match &gate.against {
        Against::Baseline(old) | Against::Interleaved(old) => pairs.push((old.label.clone(), run(old))),
        Against::History { runs, other_plans } => pairs.push((
            "history".to_owned(),
            format!(
                "{} of this plan, {other_plans} of others; since its last change point what the table says",
                words::things(*runs as usize, "run")
            ),
        )),
    }
    pairs.push(("plan".to_owned(), gate.new.plan.clone()));
    vec![Block::Pairs(pairs)]
}
