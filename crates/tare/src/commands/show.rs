//! `tare show`: the same result again, from the file alone.

use crate::cli::ShowArgs;
use crate::commands::results;
use crate::failure::{Ended, Failure, NOT_VALID};
use crate::terminal;
use std::process::ExitCode;
use tare_model::tool::ToolMetrics;
use tare_report::{Style, tool};

/// Explains a record again and prints the result; of another tool's results, what they come to.
pub fn show(args: &ShowArgs, style: Style) -> Ended {
    if let (Some(path), Some(pattern)) = (&args.file, &args.meter_regex) {
        return show_results(&results::read_by_regex(path, pattern, &args.chosen.choice())?, args, style);
    }
    if let Some(path) = args.file.as_deref().filter(|path| results::is_of_a_tool(path)) {
        return show_results(&results::read(path, &args.chosen.choice())?, args, style);
    }
    let (_, record) = super::read_record(args.file.as_deref())?;
    if args.file.is_some() {
        terminal::say(&format!("tare: {}", tare_report::origin(&record)));
    }
    let mut outcome = tare_explain::explain(&record);
    results::choose(&mut outcome, &args.chosen);
    super::emit(&record, &outcome, &args.output, style)?;
    Ok(if outcome.verdict.valid { ExitCode::SUCCESS } else { ExitCode::from(NOT_VALID) })
}

fn show_results(read: &ToolMetrics, args: &ShowArgs, style: Style) -> Ended {
    let report = tool::report(read);
    let json = tool::json(read).map_err(Failure::underway)?;
    super::emit_report(&report, &report, &json, &args.output, style)?;
    Ok(ExitCode::SUCCESS)
}
