//! Comma-separated values for other programs: full precision, base units, an empty field where there is no
//! figure (RFC 4180).

use crate::block::{Field, Rows};
use crate::words;
use tare_model::outcome::{CommandSummary, NetOrMissing, Outcome};

/// The whole file with its header line.
pub(crate) fn render(outcome: &Outcome) -> String {
    let mut text = String::new();
    if outcome.workload == "command" {
        commands(&mut text, outcome)
    } else {
        trials(&mut text, outcome)
    }
    text
}

/// A header and its rows.
pub(crate) fn rows(rows: &Rows) -> String {
    let mut text = String::new();
    line(&mut text, rows.header.iter().map(|name| (*name).to_owned()));
    for row in &rows.rows {
        line(
            &mut text,
            row.iter().map(|one| match one {
                Field::Text(text) => field(text),
                Field::Number(figure) => number(*figure),
            }),
        );
    }
    text
}

/// hyperfine's columns, in seconds.
fn commands(text: &mut String, outcome: &Outcome) {
    text.push_str("command,mean,stddev,median,user,system,min,max\n");
    for command in &outcome.answers.commands {
        let CommandSummary { gross, stdev_s, median_s, user_s, system_s, min_s, max_s, .. } = command;
        let figures = [
            Some(gross.value),
            *stdev_s,
            Some(*median_s),
            Some(*user_s),
            Some(*system_s),
            Some(*min_s),
            Some(*max_s),
        ];
        line(text, std::iter::once(field(&command.command)).chain(figures.map(number)));
    }
}

/// One row per trial, then gross and net.
fn trials(text: &mut String, outcome: &Outcome) {
    text.push_str(
        "row,seq,level,connections,elapsed_s,value,unit,ci95_low,ci95_high,sut_cpu_ns,clock_hz,residual_ratio,transfer_ns\n",
    );
    let unit = outcome.figures.gross.unit();
    for trial in &outcome.trials {
        let connections = trial.connections.map(|connections| connections.to_string()).unwrap_or_default();
        let head = ["trial".into(), trial.seq.to_string(), field(&words::level(trial)), connections];
        let value =
            [number(Some(trial.elapsed_s)), number(trial.value), field(unit), String::new(), String::new()];
        let tail = [trial.sut_cpu_ns, trial.clock_hz, trial.residual_ratio, trial.transfer_ns].map(number);
        line(text, head.into_iter().chain(value).chain(tail));
    }
    let (gross, residual) = (&outcome.figures.gross, outcome.accounting.residual_ratio);
    summary(text, "gross", (gross.value(), gross.unit(), gross.ci95()), None, residual);
    if let NetOrMissing::Net(net) = &outcome.figures.net {
        summary(text, "net", (Some(net.value), &net.unit, net.ci95), net.ref_clock_hz, residual);
    }
}

type Figure<'a> = (Option<f64>, &'a str, Option<[f64; 2]>);

fn summary(text: &mut String, row: &str, figure: Figure, clock_hz: Option<f64>, residual: Option<f64>) {
    let empty = || String::new();
    let (value, unit, ci95) = figure;
    let [low, high] = ci95.map_or([None, None], |ends| ends.map(Some));
    let head = [row.into(), empty(), empty(), empty(), empty()];
    let value = [number(value), field(unit), number(low), number(high), empty()];
    line(text, head.into_iter().chain(value).chain([number(clock_hz), number(residual), empty()]));
}

fn line(text: &mut String, fields: impl Iterator<Item = String>) {
    text.push_str(&fields.collect::<Vec<_>>().join(","));
    text.push('\n');
}

fn number(figure: Option<f64>) -> String {
    figure.filter(|figure| figure.is_finite()).map(|figure| figure.to_string()).unwrap_or_default()
}

/// Quoted where the separator, a quote or a line's end is in it.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into()
    }
}
