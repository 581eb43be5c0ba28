//! The run below the roof of one core: where ceilings were measured, and the PMU counted instructions and what the last cache missed.

use super::source::{Medium, Section, Source};
use crate::block::{Block, Text};
use crate::roofline::{Done, Roof, chart, no_point, sentence};
use tare_model::Missing;
use tare_model::outcome::Gross;

pub(crate) static SECTION: Section = Section { title: "Roofline", media: &[Medium::Page], build };

/// Bytes that a miss brings in.
const LINE_BYTES: f64 = 64.0;

fn build(source: &Source) -> Vec<Block> {
    let Some(known) = source.record.plan.bounds.ceilings.value() else { return Vec::new() };
    let Some(roof) = Roof::of(|name| known.find(name).map(|estimate| estimate.value)) else {
        return Vec::new();
    };
    match done(source) {
        Ok(done) => vec![
            Block::Line(Text::plain(sentence(roof, done))),
            chart(roof, Some(done)),
            Block::Line(Text::dim(
                "Bytes are loads that the last cache missed, 64 each. Lines that were fetched ahead and lines that were written are not \
                 among them. Operations of the roof are integer operations, one instruction each.",
            )),
        ],
        Err(missing) => vec![no_point(&missing.to_string()), chart(roof, None)],
    }
}

fn done(source: &Source) -> Result<Done, Missing> {
    let unseen = || Missing::new("what the server executed was not counted");
    let sut = source.outcome.accounting.sut.as_ref().ok_or_else(unseen)?;
    let execution = sut.execution.as_ref().ok_or_else(unseen)?;
    let instructions = execution.instructions_per_request.clone().ok()?;
    let misses = execution.events_per_request.get("llc_misses").copied().filter(|misses| *misses > 0.0);
    let misses = misses.ok_or_else(|| Missing::new("this PMU does not count what the last cache misses"))?;
    let rate_hz = match &source.outcome.figures.gross {
        Gross::Measured(gross) => gross.value,
        _ => return Err(Missing::new("there is no gross figure")),
    };
    // Of each second of CPU time, whatever share of the time it ran.
    let per_cpu_s = |per_request: f64| per_request * rate_hz / sut.busy_cpus;
    let done = Done { instructions_hz: per_cpu_s(instructions), bytes_hz: per_cpu_s(misses * LINE_BYTES) };
    let is_measured = [done.instructions_hz, done.bytes_hz].iter().all(|hz| hz.is_finite() && *hz > 0.0);
    is_measured.then_some(done).ok_or_else(unseen)
}
