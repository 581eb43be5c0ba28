//! From the response times of several servers under several states of load to which of them is the cause.

mod judge;
mod measured;
mod rows;
#[cfg(test)]
mod tests;
mod verdicts;
mod warnings;

use measured::Measured;
use tare_model::format::SCHEMA;
use tare_model::probing::{ProbingOutcome, ProbingRun};

/// Explains what was measured.
pub fn explain(run: &ProbingRun) -> ProbingOutcome {
    let measured = Measured::of(run);
    let (verdicts, culprit) = verdicts::all(&measured);
    ProbingOutcome {
        schema: SCHEMA,
        started_unix_s: run.started_unix_s,
        plan: run.plan,
        rounds_done: measured.rounds_done(),
        probes: run.probes.clone(),
        states: run.states.clone(),
        table: rows::all(&measured),
        culprit,
        verdicts,
        warnings: warnings::all(&measured),
    }
}
