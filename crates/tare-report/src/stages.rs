//! The stages of a load whose rate changes, a line each: the same table for a load alone and for a watched one.

use crate::block::{Column, Row, Table, Text};
use crate::format::{NONE, seconds};
use tare_model::outcome::StageOutcome;

/// The table; `last` gives the words of a further column, where there is one.
pub(crate) fn table<'a>(stages: impl Iterator<Item = (&'a StageOutcome, Option<String>)>) -> Table {
    let stages: Vec<_> = stages.collect();
    let figures = ["asked/s", "offered/s", "answered/s", "errors", "p50", "p99", "p99.9", "max"];
    let rank = |title| if matches!(title, "p99.9" | "max") { 1 } else { 0 };
    let figures = figures.map(|title| Column::figures(title, rank(title))).into_iter();
    let last = stages.iter().any(|(_, last)| last.is_some()).then(|| Column::words("bottleneck", 0));
    Table {
        columns: figures.chain([Column::words("", 0)]).chain(last).collect(),
        rows: stages.into_iter().map(|(stage, last)| row(stage, last)).collect(),
    }
}

fn row(stage: &StageOutcome, last: Option<String>) -> Row {
    let rate = |hz: Option<f64>| hz.map_or_else(|| NONE.to_owned(), |hz| format!("{hz:.0}"));
    let of = &stage.latency_ns;
    let latencies = [of.p50, of.p99, of.p99_9, of.max];
    let latencies = latencies.map(|ns| ns.map_or_else(|| NONE.to_owned(), |ns| seconds(ns / 1e9)));
    let figures = [asked(stage), rate(stage.offered_hz), rate(stage.rate_hz), stage.errors.to_string()];
    let cells = figures.into_iter().chain(latencies).chain([verdict(stage).to_owned()]).chain(last);
    Row::Cells(cells.map(Text::plain).collect())
}

/// The rate that was asked for.
fn asked(stage: &StageOutcome) -> String {
    match is_ramp(stage) {
        false => format!("{:.0}", stage.to_hz),
        true => format!("{:.0}-{:.0}", stage.from_hz, stage.to_hz),
    }
}

/// Whether the rate changed in it.
pub(crate) fn is_ramp(stage: &StageOutcome) -> bool {
    stage.from_hz != stage.to_hz
}

/// Whether nothing was asked for in it.
pub(crate) fn is_pause(stage: &StageOutcome) -> bool {
    stage.from_hz == 0.0 && stage.to_hz == 0.0
}

fn verdict(stage: &StageOutcome) -> &'static str {
    match stage.followed {
        Some(false) => "not followed",
        _ if is_pause(stage) => "pause",
        _ if stage.warnings.iter().any(|warning| warning.id == "left-over") => "began with a backlog",
        _ if !stage.valid => "not valid",
        Some(true) => "followed",
        None => "unknown",
    }
}

/// The first one that was not followed.
pub(crate) fn missed<'a>(mut stages: impl Iterator<Item = &'a StageOutcome>) -> Option<&'a StageOutcome> {
    stages.find(|stage| stage.followed == Some(false))
}
