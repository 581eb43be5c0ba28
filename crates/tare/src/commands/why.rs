//! `tare why`: what holds one run where it is, or why two differ.

use crate::cli::why::WhyArgs;
use crate::failure::Ended;
use crate::failure::Failure;
use crate::terminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tare_model::{Missing, Record};
use tare_report::{Style, why as report};

/// Explains one record, or the difference between two.
pub fn why(args: &WhyArgs, style: Style) -> Ended {
    let (path, record) = super::read_record(args.a.as_deref())?;
    let text = match &args.b {
        None => alone(args, &record, style)?,
        Some(b) => {
            if super::same_file(&path, b) {
                return Err(Failure::usage(anyhow::anyhow!(
                    "both are {}: nothing can differ (name two records, made with 'tare run -o FILE')",
                    path.display()
                )));
            }
            let (_, other) = super::read_record(Some(b))?;
            difference(args, (&path, &record), (b, &other), style)?
        }
    };
    let Some(output) = &args.output else {
        terminal::print(&text).map_err(Failure::underway)?;
        return Ok(ExitCode::SUCCESS);
    };
    super::write(output, &text)?;
    if output != Path::new("-") {
        terminal::say(&format!("tare: wrote {}", output.display()));
    }
    Ok(ExitCode::SUCCESS)
}

fn alone(args: &WhyArgs, record: &Record, style: Style) -> Result<String, Failure> {
    let outcome = tare_explain::explain(record);
    Ok(match (args.json, &args.output) {
        (true, _) => tare_report::json(&outcome).map_err(Failure::underway)? + "\n",
        (false, Some(_)) => report::story_html(record, &outcome),
        (false, None) => report::story(record, &outcome, style),
    })
}

fn difference(
    args: &WhyArgs,
    a: (&Path, &Record),
    b: (&PathBuf, &Record),
    style: Style,
) -> Result<String, Failure> {
    let (name_a, name_b) = (a.0.display().to_string(), b.0.display().to_string());
    let why = tare_explain::why::why((&name_a, a.1), (&name_b, b.1)).map_err(not_comparable)?;
    Ok(match (args.json, &args.output) {
        (true, _) => report::json(&why).map_err(Failure::underway)?,
        (false, Some(_)) => report::html(&why),
        (false, None) => report::terminal(&why, style),
    })
}

fn not_comparable(missing: Missing) -> Failure {
    Failure::usage(anyhow::anyhow!("cannot compare: {} ({})", missing.why, missing.remedy))
}
