//! `tare ceiling`: what this machine can do at most.

use crate::cli::ceiling::CeilingArgs;
use crate::failure::{Ended, Failure};
use crate::progress;
use anyhow::anyhow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tare_report::{Style, ceiling as report};
use tare_run::ceiling::{self, Request};

/// What a budget may be.
const BUDGET_MIN: Duration = Duration::from_secs(2);
const BUDGET_MAX: Duration = Duration::from_secs(600);

/// Measures, prints and keeps.
pub fn ceiling(args: &CeilingArgs, style: Style) -> Ended {
    super::check_output(&args.exports)?;
    if args.list {
        let list = ceiling::list();
        let (shown, json) = (report::list(&list), report::list_json(&list).map_err(Failure::underway)?);
        super::emit_report(&shown, &shown, &json, &args.exports, style)?;
        return Ok(ExitCode::SUCCESS);
    }
    if !(BUDGET_MIN..=BUDGET_MAX).contains(&args.budget) {
        return Err(Failure::usage(anyhow!("--budget is from 2s to 10m (hint: 45s is the default)")));
    }
    let dir = std::fs::canonicalize(&args.dir).ok().filter(|dir| dir.is_dir()).ok_or_else(|| {
        Failure::usage(anyhow!(
            "{} is no folder (hint: name one that is there, with --dir)",
            args.dir.display()
        ))
    })?;
    let request = Request {
        only: args.only.clone(),
        budget: args.budget,
        dir,
        program: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe")),
    };
    let session = super::session(None)?;
    let mut progress = progress::display(args.quiet);
    let measured = ceiling::measure(&request, &session, progress.as_mut());
    drop(progress);
    if let Some(found) = &measured.ceilings {
        let (shown, page) = (report::report(found), report::page(found));
        let json = report::json(found).map_err(Failure::underway)?;
        super::emit_report(&shown, &page, &json, &args.exports, style)?;
    }
    measured.end?;
    Ok(ExitCode::SUCCESS)
}
