//! `tare compare` with two files of results of another tool: the second is held against the first.

use super::results;
use crate::cli::compare::CompareArgs;
use crate::failure::{Ended, Failure, NOT_VALID};
use crate::terminal;
use anyhow::anyhow;
use std::path::Path;
use std::process::ExitCode;
use tare_explain::tools;
use tare_model::Reading;
use tare_model::comparison::{Change, Verdict};
use tare_model::outcome::Better;
use tare_model::tool_comparison::{ToolComparison, ToolEffect};
use tare_report::{Style, tool_comparison as report};

/// Exit code where a metric was proven to be worse by more than is allowed.
const PROVEN: u8 = 1;

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
    if super::same_file(Path::new(before), Path::new(after)) {
        return Err(Failure::usage(anyhow!(
            "both are {after}: nothing can differ (hint: name another file)"
        )));
    }
    let [old, new] = [results::read(Path::new(before))?, results::read(Path::new(after))?];
    let compared = tools::compared((before, &old), (after, &new), args.design.margin);
    let shown = report::report(&compared);
    let json = report::json(&compared).map_err(Failure::underway)?;
    super::emit_report(&shown, &shown, &json, &args.exports, style)?;
    Ok(ended(&compared, args.design.fail_if_worse))
}

/// Fails where an interval is worse by more than `bound` from end to end, and cannot judge where there is none.
fn ended(compared: &ToolComparison, bound: Option<f64>) -> ExitCode {
    let Some(bound) = bound else { return ExitCode::SUCCESS };
    let directed: Vec<&ToolEffect> =
        compared.effects.iter().filter(|effect| effect.better.is_some()).collect();
    let (mut proven, mut unknown) = (false, directed.is_empty());
    if unknown {
        terminal::say(
            "tare: no metric of both files is known to be better on one side, so none could be judged",
        );
    }
    for effect in directed {
        let name = format!("{} {}", effect.benchmark, effect.name);
        match effect.change.value() {
            // From 0 there is no ratio, and it is worse all the same.
            None if effect.verdict == Verdict::Slower => {
                terminal::say(&format!("tare: {} is worse: {}", name.trim(), why_not(effect)));
                proven = true;
            }
            Some(change) if is_worse(effect, *change, bound) => {
                let (at_most, percent) = (100.0 * bound, 100.0 * change.value);
                terminal::say(&format!(
                    "tare: {} is worse by more than {at_most} %: {percent:+.1} %",
                    name.trim()
                ));
                proven = true;
            }
            Some(_) => {}
            None => {
                terminal::say(&format!("tare: {} could not be judged: {}", name.trim(), why_not(effect)));
                unknown = true;
            }
        }
    }
    for gone in compared.unpaired.iter().filter(|unpaired| !unpaired.is_new) {
        let name = format!("{} {}", gone.benchmark, gone.name);
        terminal::say(&format!("tare: {} could not be judged: it is not in {}", name.trim(), compared.after));
        unknown = true;
    }
    match (proven, unknown) {
        (true, _) => ExitCode::from(PROVEN),
        (false, true) => ExitCode::from(NOT_VALID),
        (false, false) => ExitCode::SUCCESS,
    }
}

fn why_not(effect: &ToolEffect) -> &str {
    match &effect.change {
        Reading::Missing(missing) => &missing.why,
        _ => "there is no interval",
    }
}

fn is_worse(effect: &ToolEffect, change: Change, bound: f64) -> bool {
    match effect.better {
        Some(Better::Lower) => change.interval[0] > bound,
        // As much worse as a time would be: half the rate is 100 % worse.
        Some(Better::Higher) => change.interval[1] < (1.0 + bound).recip() - 1.0,
        None => false,
    }
}
