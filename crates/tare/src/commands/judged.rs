//! Runs that are held against others: the records read, the gates' exit codes.

use crate::failure::{Failure, NOT_VALID};
use crate::terminal;
use anyhow::anyhow;
use std::path::Path;
use std::process::ExitCode;
use tare_explain::gate;
use tare_model::gate::{BLIND, Gate, Run, State};
use tare_report::gate as report;

/// Exit code where a condition was proven.
const PROVEN: u8 = 1;

/// The figures of a record.
pub(super) fn measured(path: &Path, label: Option<&str>) -> Result<Run, Failure> {
    let (path, record) = super::read_record(Some(path))?;
    let label = label.map_or_else(|| path.display().to_string(), str::to_owned);
    gate::run(&record, &label).map_err(|missing| {
        Failure::usage(anyhow!("cannot judge {}: {} (hint: {})", path.display(), missing.why, missing.remedy))
    })
}

/// Two names of one record are refused.
pub(super) fn differ(one: &Path, other: &Path) -> Result<(), Failure> {
    if !super::same_file(one, other) {
        return Ok(());
    }
    let path = other.display();
    Err(Failure::usage(anyhow!("both are {path}: nothing can differ (hint: name another record)")))
}

/// Whether one of its conditions was proven.
pub(super) fn is_proven(gate: &Gate) -> bool {
    gate.conditions.iter().any(|judged| judged.state == State::Proven)
}

/// What the conditions come to, each said that is not simply unproven. `strict`: one that could not have been shown counts as one that
/// could not be judged.
pub(super) fn ended(gate: &Gate, strict: bool) -> ExitCode {
    if !gate.valid {
        return ExitCode::from(NOT_VALID);
    }
    for judged in gate.conditions.iter().filter(|judged| judged.state != State::NotProven) {
        terminal::say(&format!("tare: {}: {}", judged.condition, report::state(judged.state)));
    }
    let unknown = gate.conditions.iter().any(|judged| judged.state == State::CannotTell);
    let blind = strict && gate.warnings.iter().any(|warning| warning.id == BLIND);
    match is_proven(gate) {
        true => ExitCode::from(PROVEN),
        false if unknown || blind => ExitCode::from(NOT_VALID),
        false => ExitCode::SUCCESS,
    }
}
