//! `tare compare` with records: each is held against the first; nothing fails it but what is asked to.

use super::judged::{differ, ended, is_proven, measured};
use crate::cli::compare::CompareArgs;
use crate::failure::{Ended, Failure};
use anyhow::anyhow;
use std::path::Path;
use std::process::ExitCode;
use tare_explain::gate::{self, Asked};
use tare_model::gate::Gate;
use tare_report::{Report, Style, gate as report};

/// Judges and prints.
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
    let shown = Report::joined(gates.iter().map(report::report));
    let json = report::json(&gates).map_err(Failure::underway)?;
    super::emit_report(&shown, &shown, &json, &args.exports, style)?;
    // What is proven of one of them is proven.
    let (worst, rest): (Vec<&Gate>, Vec<&Gate>) =
        gates.iter().partition(|gate| gate.valid && is_proven(gate));
    let mut code = ExitCode::SUCCESS;
    for gate in rest.into_iter().chain(worst) {
        let ended = ended(gate, false);
        if ended != ExitCode::SUCCESS {
            code = ended;
        }
    }
    Ok(code)
}
