//! Gross, tare and net at a glance.

use super::net;
use super::scale::Scale;
use super::source::{Medium, Section, Source};
use crate::block::{Block, Figure, Text, Tone};
use crate::format::{NONE, logarithm, percent, spread, with_unit};
use crate::words;
use tare_model::outcome::{NetOrMissing, TarePart};

pub(crate) static SECTION: Section = Section { title: "", media: &[Medium::Page], build };

fn build(source: &Source) -> Vec<Block> {
    let outcome = source.outcome;
    if outcome.trials.is_empty() || outcome.answers.commands.len() > 1 {
        return Vec::new();
    }
    let gross = &outcome.figures.gross;
    let reported = |end: f64| with_unit(end, gross.unit());
    let measured = match source.http() {
        Some(_) => words::gross_is(outcome.figures.gross_is),
        None => "measured, wall time per run",
    };
    let gross_figure = Figure {
        label: "gross",
        value: Text::strong(gross.value().map_or_else(|| NONE.into(), reported)),
        notes: vec![spread(gross.value().unwrap_or(f64::NAN), gross.ci95(), reported), measured.into()],
    };
    let (tare_figure, net_figure) = match &outcome.figures.net {
        NetOrMissing::Net(net) => {
            let total: f64 = outcome.figures.tare.iter().map(|part| part.ln_share).sum();
            // What a part is to a sum below 0 is how far it draws it down.
            let weight = |part: &TarePart| part.ln_share * total.signum();
            let largest = outcome.figures.tare.iter().max_by(|a, b| weight(a).total_cmp(&weight(b)));
            let mostly = largest.filter(|part| weight(part) > 0.0);
            let mostly = mostly.map(|part| format!("mostly {}", words::id(part.cause)));
            let tare = Figure {
                label: "tare",
                value: Text::new(percent(Scale::of(outcome).share(total)), Tone::Warn),
                notes: vec![format!("{} ln", logarithm(total)), mostly.unwrap_or_default()],
            };
            let net = Figure {
                label: "net",
                value: Text::new(reported(net.value), Tone::Good),
                notes: vec![spread(net.value, net.ci95, reported), net::conditions(net)],
            };
            (tare, net)
        }
        NetOrMissing::Missing(missing) => {
            let absent = |label, why: &str| Figure { label, value: Text::dim(NONE), notes: vec![why.into()] };
            (absent("tare", "not known without net"), absent("net", &missing.why))
        }
    };
    vec![Block::Figures(vec![gross_figure, tare_figure, net_figure])]
}
