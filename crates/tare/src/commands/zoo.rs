//! `tare calibrate --zoo`: real programs of which it is known what limits them.

use crate::cli::calibrate::CalibrateArgs;
use crate::failure::{Ended, Failure};
use crate::progress;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tare_report::{Style, zoo as report};
use tare_run::calibrate::zoo::{self, Request};

/// Exit code of an instrument that is wrong too often.
const WRONG: u8 = 1;
/// Records that nobody wants to keep, in the state directory.
const PASSING: &str = "zoo";

/// Measures, judges and prints.
pub fn zoo(args: &CalibrateArgs, style: Style) -> Ended {
    args.output.iter().try_for_each(|path| super::check_writable(path))?;
    let session = super::session(None)?;
    let passing = session.state_dir.join(format!("{PASSING}-{}", std::process::id()));
    let request = Request {
        argv: super::run::argv(),
        repeats: args.repeats,
        only: args.only.clone(),
        is_long: args.long,
        budget: if args.list { Some(Duration::ZERO) } else { args.budget },
        program: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe")),
        records: args.records.clone().unwrap_or_else(|| passing.clone()),
    };
    let mut progress = progress::display(args.quiet);
    let measured = zoo::measure(&request, &session, progress.as_mut());
    drop(progress);
    std::fs::remove_dir_all(&passing).ok();
    let Some(zoo) = measured.zoo else {
        measured.end?;
        return Ok(ExitCode::SUCCESS);
    };
    let json = report::json(&zoo).map_err(Failure::underway)?;
    if let Some(path) = &args.output {
        super::write(path, &json)?;
    }
    if args.output.as_deref() != Some(Path::new("-")) {
        let [shown, page] = [false, true].map(|is_page| report::report(&zoo, is_page));
        super::emit_report(&shown, &page, &json, &args.exports, style)?;
    }
    measured.end?;
    Ok(if zoo.runs.is_empty() || zoo.summary.is_good() { ExitCode::SUCCESS } else { ExitCode::from(WRONG) })
}
