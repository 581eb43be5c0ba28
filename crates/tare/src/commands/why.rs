//! `tare why`: what holds one run where it is, or why two differ.

use super::{compare_results, results};
use crate::cli::why::WhyArgs;
use crate::failure::Ended;
use crate::failure::Failure;
use crate::terminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tare_formats::Choice;
use tare_model::{Missing, Record};
use tare_report::{Report, Style, tool, tool_comparison, why as report};

/// Differences of results up to this share do not matter.
const MARGIN: f64 = 0.02;

/// Explains one record, or the difference between two.
pub fn why(args: &WhyArgs, style: Style) -> Ended {
    super::check_output(&args.exports)?;
    let (shown, json) = match args.a.as_deref().filter(|path| results::is_of_a_tool(path)) {
        Some(path) => of_results(path, args.b.as_deref())?,
        None => of_records(args)?,
    };
    let Some(output) = &args.output else {
        super::emit_report(&shown, &shown, &json, &args.exports, style)?;
        return Ok(ExitCode::SUCCESS);
    };
    super::write(output, &shown.html())?;
    if output != Path::new("-") {
        terminal::say(&format!("tare: wrote {}", output.display()));
    }
    Ok(ExitCode::SUCCESS)
}

fn of_records(args: &WhyArgs) -> Result<(Report, String), Failure> {
    let (path, record) = super::read_record(args.a.as_deref())?;
    let Some(b) = &args.b else { return alone(&record) };
    if super::same_file(&path, b) {
        return Err(Failure::usage(anyhow::anyhow!(
            "both are {}: nothing can differ (hint: name two records, made with 'tare run -o FILE')",
            path.display()
        )));
    }
    let (_, other) = super::read_record(Some(b))?;
    difference((&path, &record), (b, &other))
}

/// Of another tool's results: what they are, or what differs.
fn of_results(a: &Path, b: Option<&Path>) -> Result<(Report, String), Failure> {
    let all = Choice::default();
    let shown = match b {
        None => {
            let read = results::read(a, &all)?;
            (tool::report(&read), tool::json(&read).map_err(Failure::underway)?)
        }
        Some(b) => {
            let compared = compare_results::held_against(&[a], &[b], &all, MARGIN)?;
            (tool_comparison::report(&compared), tool_comparison::json(&compared).map_err(Failure::underway)?)
        }
    };
    terminal::say(
        "tare: results of a tool say what differs and not why: they hold no time accounting (hint: 'tare run -o FILE -- BENCHMARK' \
         keeps both)",
    );
    Ok(shown)
}

fn alone(record: &Record) -> Result<(Report, String), Failure> {
    let outcome = tare_explain::explain(record);
    let json = tare_report::json(&outcome).map_err(Failure::underway)? + "\n";
    Ok((report::story(record, &outcome), json))
}

fn difference(a: (&Path, &Record), b: (&PathBuf, &Record)) -> Result<(Report, String), Failure> {
    let (name_a, name_b) = (a.0.display().to_string(), b.0.display().to_string());
    let why = tare_explain::why::why((&name_a, a.1), (&name_b, b.1)).map_err(not_comparable)?;
    Ok((report::report(&why), report::json(&why).map_err(Failure::underway)?))
}

fn not_comparable(missing: Missing) -> Failure {
    Failure::usage(anyhow::anyhow!("cannot compare: {} (hint: {})", missing.why, missing.remedy))
}
