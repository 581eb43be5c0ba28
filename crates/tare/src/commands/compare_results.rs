//! Two files of results of another tool: the second is held against the first.

use super::{results, worse};
use crate::cli::compare::CompareArgs;
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
            "results are compared two at a time (hint: give the old file and the new one)"
        )));
    };
    let compared =
        held_against(Path::new(before), Path::new(after), &args.chosen.choice(), args.design.margin)?;
    emit(&compared, &args.exports, style)?;
    Ok(args.design.fail_if_worse.map_or(ExitCode::SUCCESS, |bound| worse::of_results(&compared, bound)))
}

/// The second file of results held against the first.
pub fn held_against(
    before: &Path,
    after: &Path,
    choice: &Choice,
    margin: f64,
) -> Result<ToolComparison, Failure> {
    if super::same_file(before, after) {
        return Err(Failure::usage(anyhow!(
            "both are {}: nothing can differ (hint: name another file)",
            after.display()
        )));
    }
    let [old, new] = [results::read(before, choice)?, results::read(after, choice)?];
    let [before, after] = [before, after].map(|path| path.display().to_string());
    Ok(tools::compared((&before, &old), (&after, &new), margin))
}

/// Prints and exports it.
pub fn emit(compared: &ToolComparison, exports: &OutputArgs, style: Style) -> Result<(), Failure> {
    let shown = report::report(compared);
    let json = report::json(compared).map_err(Failure::underway)?;
    super::emit_report(&shown, &shown, &json, exports, style)
}
