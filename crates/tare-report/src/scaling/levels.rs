//! The levels as a table, as a drawing, and why efficiency is lost.

use super::verdict;
use crate::block::{
    Axis, Band, Block, Chart, Column, Field, Hue, Line, Panel, Point, Row, Rows, Table, Text, Tone,
};
use crate::format::{NONE, count, hertz, percent, ratio, seconds, spread, with_unit};
use crate::plot;
use tare_model::scaling::{CurvePoint, LevelAccounting, ScaleLevel, ScaleOutcome, Scaling};

/// Columns of the drawing beside the levels.
const DRAWN: usize = 40;

/// The table with a drawing beside it, where there is a law.
pub(super) fn with_drawing(outcome: &ScaleOutcome) -> Vec<Block> {
    let mut table = table(outcome);
    let Some(most) = highest(outcome) else { return vec![Block::Table(table)] };
    table.columns.push(Column::words(&format!("0 to {}", count(most)), 1));
    for (row, level) in table.rows.iter_mut().zip(&outcome.levels) {
        if let Row::Cells(cells) = row {
            cells.push(Text::plain(drawn(level, at(&outcome.scaling, level.n), most)));
        }
    }
    let key = "× measured, + the law, ─ its 95 % band";
    vec![Block::Table(table), Block::Line(Text::dim(key))]
}

/// The table alone.
pub(super) fn alone(outcome: &ScaleOutcome) -> Vec<Block> {
    vec![Block::Table(table(outcome))]
}

fn table(outcome: &ScaleOutcome) -> Table {
    let columns = vec![
        Column::figures(&outcome.factor, 0),
        Column::figures(unit(outcome), 0),
        Column::figures("95 %", 2),
        Column::figures("samples", 4),
        Column::figures("efficiency", 3),
        Column::figures("law", 2),
        Column::words("", 0),
    ];
    Table { columns, rows: outcome.levels.iter().map(|level| row(outcome, level)).collect() }
}

fn unit(outcome: &ScaleOutcome) -> &str {
    let first = outcome.levels.iter().find_map(|level| level.estimate.value());
    first.map_or("", |estimate| estimate.unit.as_str()).trim()
}

fn row(outcome: &ScaleOutcome, level: &ScaleLevel) -> Row {
    let (value, interval) = match level.estimate.value() {
        Some(estimate) => {
            let each = |value: f64| with_unit(value, bare(&estimate.unit));
            (each(estimate.value), spread(estimate.value, estimate.ci95, each))
        }
        None => (NONE.to_owned(), String::new()),
    };
    let mark = match (level.is_outlier, level.estimate.clone().ok()) {
        (true, _) => Text::new("outlier, left out", Tone::Warn),
        (_, Err(missing)) => Text::dim(missing.why),
        _ => Text::plain(level.bottlenecks.first().map_or(String::new(), |cause| cause.id())),
    };
    let efficiency = efficiency(outcome, level).map_or_else(|| NONE.to_owned(), percent);
    let fitted = at(&outcome.scaling, level.n).map_or_else(|| NONE.to_owned(), |point| count(point.value));
    let figures = [count(level.n), value, interval, level.samples.len().to_string(), efficiency, fitted];
    Row::Cells(figures.map(Text::plain).into_iter().chain([mark]).collect())
}

/// A unit that stands in the head of its column already is not said again.
fn bare(unit: &str) -> &str {
    if matches!(unit, "s" | "Hz" | "B" | "%") { unit } else { "" }
}

/// Share of what the lowest level does for each n.
fn efficiency(outcome: &ScaleOutcome, level: &ScaleLevel) -> Option<f64> {
    let each = |level: &ScaleLevel| level.estimate.value().map(|estimate| estimate.value / level.n);
    let first = outcome.levels.iter().find_map(each)?;
    Some(each(level)? / first).filter(|share| share.is_finite())
}

/// The law at an n, between the points of its curve in a straight line.
fn at(scaling: &Scaling, n: f64) -> Option<CurvePoint> {
    let curve = &scaling.curve;
    let next = curve.partition_point(|point| point.n < n);
    let (after, before) = (curve.get(next)?, curve.get(next.saturating_sub(1))?);
    let share = if after.n > before.n { (n - before.n) / (after.n - before.n) } else { 0.0 };
    let mix = |one: f64, other: f64| one + share * (other - one);
    let ci95 = before.ci95.zip(after.ci95);
    Some(CurvePoint {
        n,
        value: mix(before.value, after.value),
        ci95: ci95.map(|(one, other)| [mix(one[0], other[0]), mix(one[1], other[1])]),
    })
}

/// The highest figure that is drawn; none where there is no law.
fn highest(outcome: &ScaleOutcome) -> Option<f64> {
    let curve = outcome.scaling.curve.iter().map(|point| point.value);
    let samples = outcome.levels.iter().flat_map(|level| level.samples.iter().copied());
    let most = curve.chain(samples).filter(|value| value.is_finite()).fold(0.0, f64::max);
    (most > 0.0 && !outcome.scaling.curve.is_empty()).then_some(most)
}

/// One level on a line from 0 to the highest figure.
fn drawn(level: &ScaleLevel, law: Option<CurvePoint>, most: f64) -> String {
    let place = |value: f64| ((value / most).clamp(0.0, 1.0) * (DRAWN - 1) as f64).round() as usize;
    let mut line = vec!['\u{a0}'; DRAWN];
    if let Some(law) = law {
        if let Some([low, high]) = law.ci95 {
            line[place(low)..=place(high).max(place(low))].fill('─');
        }
        line[place(law.value)] = '+';
    }
    level.samples.iter().filter(|sample| sample.is_finite()).for_each(|sample| line[place(*sample)] = '×');
    line.into_iter().collect::<String>().trim_end_matches('\u{a0}').to_owned()
}

/// The samples, the law and its band.
pub(super) fn chart(outcome: &ScaleOutcome) -> Vec<Block> {
    let Some(most) = highest(outcome) else { return Vec::new() };
    let curve = &outcome.scaling.curve;
    let last = outcome.levels.last().map_or(1.0, |level| level.n);
    let label = unit(outcome);
    let words = |n: f64, value: f64| format!("{} at {}", with_unit(value, label), count(n));
    let point = |n: f64, y: f64, what: &str| Point { x: n, y, words: format!("{what}: {}", words(n, y)) };
    let law = curve.iter().map(|at| point(at.n, at.value, "law")).collect();
    let samples = outcome
        .levels
        .iter()
        .map(|level| level.samples.iter().map(|sample| point(level.n, *sample, "measured")).collect());
    let lines = vec![
        Line { name: "law".into(), hue: Hue::Net, joined: true, runs: vec![law] },
        Line { name: "measured".into(), hue: Hue::Server, joined: false, runs: samples.collect() },
    ];
    let edges = curve.iter().filter_map(|at| at.ci95.map(|[low, high]| [at.n, low, high])).collect();
    let band = Band { name: "95 % band of the law".into(), hue: Hue::Net, edges };
    let y: Axis = plot::from_zero(label, most, count);
    let mut x = plot::from_zero(&outcome.factor, last, count);
    x.ticks.retain(|(at, _)| *at <= last);
    x.ends[1] = last;
    let panel = Panel { y, lines, bands: vec![band] };
    vec![Block::Chart(Chart { caption: verdict::law(outcome.scaling.model).into(), x, panels: vec![panel] })]
}

/// Every law, the best first.
pub(super) fn laws(scaling: &Scaling) -> Vec<Block> {
    if scaling.alternatives.is_empty() {
        return Vec::new();
    }
    let columns = vec![
        Column::words("law", 0),
        Column::figures("AICc, above the best", 0),
        Column::figures("misses by", 1),
    ];
    let number = |value: Option<f64>, each: fn(f64) -> String| value.map_or_else(|| NONE.to_owned(), each);
    let row = |one: &tare_model::scaling::Alternative| {
        let text = if one.model == scaling.model { Text::strong } else { Text::plain };
        Row::Cells(vec![
            text(verdict::law(one.model).to_owned()),
            Text::plain(number(one.aicc_delta, |delta| format!("{delta:.1}"))),
            Text::plain(number(one.rms_share, percent)),
        ])
    };
    vec![Block::Table(Table { columns, rows: scaling.alternatives.iter().map(row).collect() })]
}

/// What took efficiency from each level.
pub(super) fn lost(outcome: &ScaleOutcome) -> Vec<Block> {
    let mut rows = Vec::new();
    for level in outcome.levels.iter().filter(|level| !level.lost.is_empty()) {
        let efficiency = efficiency(outcome, level).map_or_else(|| NONE.to_owned(), percent);
        rows.push(Row::Heading(Text::strong(format!(
            "{} {}: efficiency {efficiency}",
            count(level.n),
            outcome.factor
        ))));
        for part in &level.lost {
            let cells = [part.part.clone(), percent(part.share), part.evidence.clone()];
            rows.push(Row::Cells(cells.map(Text::plain).to_vec()));
        }
    }
    if rows.is_empty() {
        return Vec::new();
    }
    let columns = vec![
        Column::words("what took efficiency", 0),
        Column::figures("share", 0),
        Column::words("evidence", 1),
    ];
    vec![Block::Table(Table { columns, rows })]
}

/// Where time went at each level that was observed.
pub(super) fn accounting(outcome: &ScaleOutcome) -> Vec<Block> {
    type Cell = (&'static str, fn(&LevelAccounting) -> Option<f64>, fn(f64) -> String);
    let cells: [Cell; 10] = [
        ("CPUs entitled", |of| of.cpus_entitled, ratio),
        ("busy", |of| of.cpus_busy, ratio),
        ("CPU time each", |of| of.cpu_s_per_unit, seconds),
        ("waited for a CPU", |of| of.cpus_waited_for, ratio),
        ("throttled", |of| of.cpus_throttled, ratio),
        ("waited for locks", |of| of.lock_wait_s_per_s, ratio),
        ("IPC", |of| of.ipc, ratio),
        ("clock", |of| of.clock_hz, hertz),
        ("generator CPUs", |of| of.generator_cpus, ratio),
        ("mean latency", |of| of.latency_s, seconds),
    ];
    let seen: Vec<(f64, &LevelAccounting)> =
        outcome.levels.iter().filter_map(|level| Some((level.n, level.accounting.value()?))).collect();
    let known: Vec<&Cell> =
        cells.iter().filter(|cell| seen.iter().any(|(_, of)| (cell.1)(of).is_some())).collect();
    if known.is_empty() {
        return Vec::new();
    }
    let head = known.iter().enumerate().map(|(at, cell)| Column::figures(cell.0, at as u8));
    let columns = [Column::figures(&outcome.factor, 0)].into_iter().chain(head).collect();
    let row = |(n, of): &(f64, &LevelAccounting)| {
        let figures = known.iter().map(|cell| (cell.1)(of).map_or_else(|| NONE.to_owned(), cell.2));
        Row::Cells([count(*n)].into_iter().chain(figures).map(Text::plain).collect())
    };
    vec![Block::Table(Table { columns, rows: seen.iter().map(row).collect() })]
}

/// Which CPUs were added in which order.
pub(super) fn cpu_order(outcome: &ScaleOutcome) -> Vec<Block> {
    if outcome.cpu_order.is_empty() {
        return Vec::new();
    }
    let columns = vec![
        Column::figures("", 0),
        Column::figures("CPU", 0),
        Column::words("adds", 0),
        Column::figures("node", 1),
    ];
    let row = |(at, one): (usize, &tare_model::scaling::OrderedCpu)| {
        let node = one.node.map_or_else(|| NONE.to_owned(), |node| node.to_string());
        Row::Cells(
            [(at + 1).to_string(), one.cpu.to_string(), one.adds.clone(), node].map(Text::plain).to_vec(),
        )
    };
    vec![Block::Table(Table { columns, rows: outcome.cpu_order.iter().enumerate().map(row).collect() })]
}

/// A row for each level.
pub(super) fn rows(outcome: &ScaleOutcome) -> Rows {
    let header = &[
        "n",
        "value",
        "value_low",
        "value_high",
        "unit",
        "samples",
        "efficiency",
        "law",
        "law_low",
        "law_high",
        "is_outlier",
    ];
    let row = |level: &ScaleLevel| {
        let estimate = level.estimate.value();
        let law = at(&outcome.scaling, level.n);
        let [low, high] = Field::ends(estimate.and_then(|estimate| estimate.ci95));
        let [law_low, law_high] = Field::ends(law.and_then(|law| law.ci95));
        vec![
            level.n.into(),
            estimate.map(|estimate| estimate.value).into(),
            low,
            high,
            unit(outcome).into(),
            (level.samples.len() as f64).into(),
            efficiency(outcome, level).into(),
            law.map(|law| law.value).into(),
            law_low,
            law_high,
            if level.is_outlier { "true" } else { "false" }.into(),
        ]
    };
    Rows { header, rows: outcome.levels.iter().map(row).collect() }
}
