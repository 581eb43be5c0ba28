//! Two files of results of another tool: the second is held against the first.

use super::{results, worse};
use crate::cli::compare::{CompareArgs, files_of};
use crate::cli::output::OutputArgs;
use crate::failure::{Ended, Failure};
use anyhow::anyhow;
use std::path::Path;
use std::process::ExitCode;
use tare_explain::tools;
use tare_formats::Choice;
use tare_model::tool_comparison::ToolComparison;
use tare_report::{Style, tool_comparison as report};

/// Reads, judges and prints.
pub fn compare_results(args: &CompareArgs, style: Style) -> Ended {
    if args.output.is_some() {
        return Err(Failure::usage(anyhow!(
            "-o keeps what is measured, and results are measured already (hint: leave it out; --json prints the result)"
        )));
    }
    let [before, after] = args.urls.as_slice() else {
        return Err(Failure::usage(anyhow!(
            "results are compared two at a time (hint: give the old file and the new one; several a side with commas between them)"
        )));
    };
    let [before, after] = [files_of(before), files_of(after)];
    let compared = held_against(&before, &after, &args.chosen.choice(), args.design.margin)?;
    emit(&compared, &args.exports, style)?;
    Ok(args.design.fail_if_worse.map_or(ExitCode::SUCCESS, |bound| worse::of_results(&compared, bound)))
}

/// The results in the second files held against those in the first.
pub fn held_against(
    before: &[&Path],
    after: &[&Path],
    choice: &Choice,
    margin: f64,
) -> Result<ToolComparison, Failure> {
    let is_twice = |path: &Path, among: &[&Path]| among.iter().any(|other| super::same_file(other, path));
    if let Some(same) = after.iter().find(|path| is_twice(path, before)) {
        return Err(Failure::usage(anyhow!(
            "{} is on both sides: nothing can differ (hint: name another file)",
            same.display()
        )));
    }
    for side in [before, after] {
        if let Some(at) = (1..side.len()).find(|at| is_twice(side[*at], &side[..*at])) {
            return Err(Failure::usage(anyhow!(
                "{} is named twice: it would count as two launches (hint: name it once)",
                side[at].display()
            )));
        }
    }
    let [old, new] = [results::read_side(before, choice)?, results::read_side(after, choice)?];
    let named = |paths: &[&Path]| {
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        names.join(",")
    };
    let [before, after] = [before, after].map(named);
    Ok(tools::compared((&before, &old), (&after, &new), margin))
}

/// Prints and exports it.
pub fn emit(compared: &ToolComparison, exports: &OutputArgs, style: Style) -> Result<(), Failure> {
    let shown = report::report(compared);
    let json = report::json(compared).map_err(Failure::underway)?;
    super::emit_report(&shown, &shown, &json, exports, style)
}
