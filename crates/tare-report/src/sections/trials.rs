//! Every trial that ran, in order.

use super::source::{Medium, Section, Source};
use crate::block::{Block, Column, Row, Table, Text};
use crate::format::{NONE, hertz, percent, seconds, with_unit};
use crate::words;
use tare_model::outcome::TrialSummary;

pub(crate) static SECTION: Section =
    Section { title: "Trials", media: &[Medium::Markdown, Medium::Page], build };

fn build(source: &Source) -> Vec<Block> {
    let outcome = source.outcome;
    // A list of commands has a row for each command instead.
    if outcome.trials.is_empty() || !outcome.answers.commands.is_empty() {
        return Vec::new();
    }
    let columns = vec![
        Column::figures("trial", 0),
        Column::words("level", 0),
        Column::figures("connections", 0),
        Column::figures("length", 0),
        Column::figures("rate", 0),
        Column::figures("server CPU a request", 0),
        Column::figures("clock", 0),
        Column::figures("line to the generator", 0),
        Column::figures("residual", 0),
    ];
    let rows = outcome.trials.iter().map(|trial| row(trial, outcome.figures.gross.unit())).collect();
    vec![Block::Table(Table { columns, rows })]
}

fn row(trial: &TrialSummary, unit: &str) -> Row {
    let reported =
        |figure: Option<f64>, words: &dyn Fn(f64) -> String| Text::plain(figure.map_or(NONE.into(), words));
    Row::Cells(vec![
        Text::plain(trial.seq.to_string()),
        Text::plain(words::level(trial)),
        Text::plain(trial.connections.map_or(NONE.into(), |connections| connections.to_string())),
        Text::plain(seconds(trial.elapsed_s)),
        reported(trial.value, &|value| with_unit(value, unit)),
        reported(trial.sut_cpu_ns, &|ns| seconds(ns / 1e9)),
        reported(trial.clock_hz, &hertz),
        reported(trial.transfer_ns, &|ns| seconds(ns / 1e9)),
        reported(trial.residual_ratio, &percent),
    ])
}
