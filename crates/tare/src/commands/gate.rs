//! `tare gate`: is what a branch does now worse than it was?

use super::builds::gate_of_builds;
use super::compare_results::{emit, held_against};
use super::judged::{differ, ended, measured};
use super::{results, worse};
use crate::cli::gate::GateArgs;
use crate::failure::{Ended, Failure};
use crate::terminal;
use anyhow::anyhow;
use std::path::Path;
use std::process::ExitCode;
use tare_explain::gate::{self, Asked};
use tare_formats::Choice;
use tare_model::comparison::Figure;
use tare_model::gate::{Gate, Run};
use tare_model::outcome::Warning;
use tare_report::{Style, gate as report};
use tare_store::history::{History, append};

/// A metric of results may become worse by so much, where nothing else is asked for.
const WORSE: f64 = 0.05;

/// Judges, prints and keeps.
pub fn gate(args: &GateArgs, style: Style) -> Ended {
    super::check_output(&args.exports)?;
    if let Some(new) = args.new.as_deref().filter(|new| args.sut.is_none() && results::is_of_a_tool(new)) {
        return gate_of_results(args, new, style);
    }
    if args.fail_if_worse.is_some() && args.command.is_none() {
        return Err(Failure::usage(anyhow!(
            "--fail-if-worse is for the results of benchmarks (hint: --fail-if 'net < -5%' for records and servers)"
        )));
    }
    if args.fail_if_worse.is_some() && args.strict {
        return Err(Failure::usage(anyhow!("--strict is for --fail-if (hint: leave it out)")));
    }
    let given = (!args.fail_if.is_empty()).then(|| args.fail_if.clone());
    let asked = Asked { margin: args.margin, conditions: given };
    let gate = match &args.against {
        Some(old) => gate_of_builds(args, old, &asked)?,
        None => Some(gate_of_records(args, &asked)?),
    };
    let Some(gate) = gate else { return Ok(ExitCode::SUCCESS) };
    let shown = report::report(&gate);
    let json = report::json(&gate).map_err(Failure::underway)?;
    super::emit_report(&shown, &shown, &json, &args.exports, style)?;
    let is_of_benchmarks = gate.judges_benchmarks() || args.fail_if_worse.is_some();
    if gate.valid && args.fail_if.is_empty() && is_of_benchmarks {
        if args.strict {
            terminal::say(
                "tare: --strict changes nothing for results of benchmarks: exit code 4 says already that one could not be judged",
            );
        }
        let bound = args.fail_if_worse.unwrap_or(WORSE);
        return Ok(worse::of_commands(&gate.benchmarks, &gate.warnings, bound));
    }
    Ok(ended(&gate, args.strict))
}

/// Results of another tool against those of an earlier run.
fn gate_of_results(args: &GateArgs, new: &Path, style: Style) -> Ended {
    let Some(base) = args.baseline.as_deref() else {
        return Err(Failure::usage(anyhow!(
            "{} is no record of tare; results of another tool are held against a file (hint: --baseline OLD; a history is of records)",
            new.display()
        )));
    };
    if args.label.is_some() || args.strict {
        return Err(Failure::usage(anyhow!("--label and --strict are for records (hint: leave them out)")));
    }
    if !args.fail_if.is_empty() {
        return Err(Failure::usage(anyhow!(
            "--fail-if names figures that files of results do not have (hint: --fail-if-worse 5% judges every metric)"
        )));
    }
    let compared = held_against(&[base], &[new], &Choice::default(), args.margin)?;
    emit(&compared, &args.exports, style)?;
    Ok(worse::of_results(&compared, args.fail_if_worse.unwrap_or(WORSE)))
}

/// A record against another one, or against a history.
fn gate_of_records(args: &GateArgs, asked: &Asked) -> Result<Gate, Failure> {
    // The arguments ask for one of each.
    let missing = |what: &str| Failure::usage(anyhow!("give {what} (hint: 'tare gate -h' has examples)"));
    if args.sut.is_some() || args.command.is_some() {
        return Err(missing("the old build with --against"));
    }
    let path = args.new.as_deref().ok_or_else(|| missing("the record to judge"))?;
    super::compare::check_figures(&args.fail_if, Figure::of_servers()).map_err(Failure::usage)?;
    let new = measured(path, args.label.as_deref())?;
    match (&args.baseline, &args.history) {
        (Some(base), _) => {
            differ(path, base)?;
            Ok(gate::against_baseline(new, measured(base, None)?, asked))
        }
        (None, Some(history)) => against_history(new, history, args.keep, asked),
        (None, None) => Err(missing("--baseline, --history or --against")),
    }
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
