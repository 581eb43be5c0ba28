//! `tare show`: the same result again, from the file alone.

use crate::cli::ShowArgs;
use crate::failure::Ended;
use crate::failure::NOT_VALID;
use crate::terminal;
use std::process::ExitCode;
use tare_report::Style;

/// Explains a record again and prints the result.
pub fn show(args: &ShowArgs, style: Style) -> Ended {
    let (_, record) = super::read_record(args.file.as_deref())?;
    if args.file.is_some() {
        terminal::say(&format!("tare: {}", tare_report::origin(&record)));
    }
    let outcome = tare_explain::explain(&record);
    super::emit(&record, &outcome, &args.output, style)?;
    Ok(if outcome.verdict.valid { ExitCode::SUCCESS } else { ExitCode::from(NOT_VALID) })
}
