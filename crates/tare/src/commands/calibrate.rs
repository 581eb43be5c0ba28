//! `tare calibrate`: from arguments to injections to this machine's calibration report.

use crate::cli::calibrate::CalibrateArgs;
use crate::failure::{Ended, Failure};
use crate::progress;
use std::path::PathBuf;
use std::process::ExitCode;
use tare_machine::Root;
use tare_model::calibration::Calibration;
use tare_model::{Missing, Reading};
use tare_report::{Style, calibration as report};
use tare_run::calibrate::{self, Request};

/// Exit code of an instrument that is wrong too often.
const WRONG: u8 = 1;
/// Comparisons of the built-in server with itself, unless causes are named.
const COMPARISONS: u32 = 3;
/// The calibration report's name.
const FILE: &str = "calibration.json";

/// Injects, measures, prints and keeps.
pub fn calibrate(args: &CalibrateArgs, style: Style) -> Ended {
    super::check_output(&args.exports)?;
    if args.zoo {
        return super::zoo::zoo(args, style);
    }
    if args.list {
        let list = calibrate::list()?;
        let (shown, json) = (report::list(&list), report::list_json(&list).map_err(Failure::underway)?);
        super::emit_report(&shown, &shown, &json, &args.exports, style)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(path) = &args.output {
        super::check_writable(path)?;
    }
    let request = Request {
        argv: super::run::argv(),
        repeats: args.repeats,
        only: args.only.clone(),
        comparisons: args.comparisons.unwrap_or(if args.only.is_empty() { COMPARISONS } else { 0 }),
        seed: args.seed,
        embedded_program: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe")),
        records: args.records.clone(),
    };
    let session = super::session(None)?;
    let mut progress = progress::display(args.quiet);
    let calibrated = calibrate::calibrate(&request, &session, progress.as_mut());
    drop(progress);
    let Some(calibration) = calibrated.calibration.filter(|calibration| !calibration.runs.is_empty()) else {
        calibrated.end?;
        return Ok(ExitCode::SUCCESS);
    };
    let json = report::json(&calibration).map_err(Failure::underway)?;
    if let Some(path) = &args.output {
        super::write(path, &json)?;
    }
    if args.output.as_deref() != Some(std::path::Path::new("-")) {
        let shown = report::report(&calibration);
        super::emit_report(&shown, &shown, &json, &args.exports, style)?;
    }
    keep(&calibration)?;
    calibrated.end?;
    Ok(if calibration.summary.is_good() { ExitCode::SUCCESS } else { ExitCode::from(WRONG) })
}

/// The calibration report outlives a reboot, as records do.
fn report_path() -> Result<PathBuf, Failure> {
    let records = super::records_dir()?;
    Ok(records.parent().map_or_else(|| PathBuf::from(FILE), |folder| folder.join(FILE)))
}

/// Keeps the calibration report; a part of one only where there is no whole one.
fn keep(calibration: &Calibration) -> Result<(), Failure> {
    let path = report_path()?;
    let whole = |kept: &Calibration| kept.complete && kept.machine == calibration.machine;
    if !calibration.complete
        && tare_store::calibration::read(&path).ok().flatten().is_some_and(|kept| whole(&kept))
    {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(Failure::underway)?;
    }
    tare_store::calibration::keep(calibration, &path).map_err(Failure::underway)
}

/// This machine's calibration report, for `tare doctor`.
pub fn calibration_report(root: &Root) -> Reading<Calibration> {
    if !root.is_live() {
        return Reading::NotApplicable {
            not_applicable: "a captured machine has no calibration report".into(),
        };
    }
    let Ok(path) = report_path() else { return Reading::missing("there is no folder for it") };
    match tare_store::calibration::read(&path) {
        Ok(Some(calibration)) => Reading::Measured(calibration),
        Ok(None) => Reading::Missing(Missing::with_remedy(
            "this machine was never calibrated",
            "tare calibrate (about 12 minutes)",
        )),
        Err(error) => Reading::Missing(Missing::with_remedy(
            format!("{} cannot be read: {error}", path.display()),
            "tare calibrate makes a new one",
        )),
    }
}
