//! `tare gate`: is what a branch does now worse than it was?

use crate::cli::compare::CompareArgs;
use crate::cli::gate::GateArgs;
use crate::failure::{Ended, Failure, NOT_VALID};
use crate::terminal;
use anyhow::anyhow;
use std::path::Path;
use std::process::ExitCode;
use tare_explain::gate::{self, Asked};
use tare_model::gate::{Gate, Run, State};
use tare_model::outcome::Warning;
use tare_report::{Style, gate as report};
use tare_store::history::{History, append};

/// Exit code where a condition was proven.
const PROVEN: u8 = 1;

/// Judges, prints and keeps.
pub fn gate(args: &GateArgs, style: Style) -> Ended {
    let new = measured(&args.new, args.label.as_deref())?;
    let given = (!args.fail_if.is_empty()).then(|| args.fail_if.clone());
    let asked = Asked { margin: args.margin, conditions: given };
    let gate = match (&args.baseline, &args.history) {
        (Some(path), _) => {
            differ(&args.new, path)?;
            gate::against_baseline(new, measured(path, None)?, &asked)
        }
        (None, Some(path)) => against_history(new, path, args.keep, &asked)?,
        // The arguments ask for one of them.
        (None, None) => return Err(Failure::usage(anyhow!("give --baseline or --history"))),
    };
    let text = match args.json {
        true => report::json(&gate).map_err(Failure::underway)?,
        false => report::terminal(&gate, style),
    };
    terminal::print(&text).map_err(Failure::underway)?;
    Ok(ended(&gate))
}

/// Two names of one record are refused.
fn differ(one: &Path, other: &Path) -> Result<(), Failure> {
    if !super::same_file(one, other) {
        return Ok(());
    }
    let path = other.display();
    Err(Failure::usage(anyhow!("both are {path}: nothing can differ (hint: name another record)")))
}

/// `tare compare` with records: each is held against the first; nothing fails it but what is asked to.
pub fn compare_records(args: &CompareArgs, style: Style) -> Ended {
    if args.output.is_some() {
        return Err(Failure::usage(anyhow!(
            "-o keeps what is measured, and records are measured already (hint: leave it out; --json prints the result)"
        )));
    }
    let paths: Vec<&Path> = args.urls.iter().map(Path::new).collect();
    let asked = Asked { margin: args.design.margin, conditions: Some(args.design.fail_if.clone()) };
    let [first, others @ ..] = paths.as_slice() else { return Ok(ExitCode::SUCCESS) };
    let mut gates = Vec::with_capacity(others.len());
    for other in others {
        differ(first, other)?;
        gates.push(gate::against_baseline(measured(other, None)?, measured(first, None)?, &asked));
    }
    let text = match args.json {
        true => report::json(&gates).map_err(Failure::underway)?,
        false => gates.iter().map(|gate| report::terminal(gate, style)).collect::<Vec<_>>().join("\n"),
    };
    terminal::print(&text).map_err(Failure::underway)?;
    let proven = |gate: &Gate| gate.conditions.iter().any(|judged| judged.state == State::Proven);
    // What is proven of one of them is proven.
    let (worst, rest): (Vec<&Gate>, Vec<&Gate>) = gates.iter().partition(|gate| gate.valid && proven(gate));
    let mut code = ExitCode::SUCCESS;
    for gate in rest.into_iter().chain(worst) {
        let ended = ended(gate);
        if ended != ExitCode::SUCCESS {
            code = ended;
        }
    }
    Ok(code)
}

/// The figures of a record.
fn measured(path: &Path, label: Option<&str>) -> Result<Run, Failure> {
    let (path, record) = super::read_record(Some(path))?;
    let label = label.map_or_else(|| path.display().to_string(), str::to_owned);
    gate::run(&record, &label).map_err(|missing| {
        Failure::usage(anyhow!("cannot judge {}: {} (hint: {})", path.display(), missing.why, missing.remedy))
    })
}

fn against_history(new: Run, path: &Path, keep: bool, asked: &Asked) -> Result<Gate, Failure> {
    let History { runs, mut warnings } = History::read(path).map_err(Failure::usage)?;
    if keep {
        super::check_writable(path)?;
    }
    let mut gate = gate::against_history(new, &runs, asked);
    if keep && !gate.valid {
        warnings.push(Warning {
            id: "not-kept".into(),
            text: "the run is not added to the history: it is not valid".into(),
            hint: "measure it again".into(),
        });
    } else if keep && gate::is_kept(&gate.new, &runs) {
        warnings.push(Warning {
            id: "not-kept".into(),
            text: "the history has this record already: it is not added again".into(),
            hint: "nothing is to be done".into(),
        });
    } else if keep {
        append(path, &gate.new).map_err(Failure::underway)?;
    }
    gate.warnings.extend(warnings);
    Ok(gate)
}

/// What the conditions come to, each said that is not simply unproven.
fn ended(gate: &Gate) -> ExitCode {
    if !gate.valid {
        return ExitCode::from(NOT_VALID);
    }
    let any = |state: State| gate.conditions.iter().any(|judged| judged.state == state);
    for judged in gate.conditions.iter().filter(|judged| judged.state != State::NotProven) {
        terminal::say(&format!("tare: {}: {}", judged.condition, report::state(judged.state)));
    }
    match (any(State::Proven), any(State::CannotTell)) {
        (true, _) => ExitCode::from(PROVEN),
        (false, true) => ExitCode::from(NOT_VALID),
        (false, false) => ExitCode::SUCCESS,
    }
}
