//! `tare scale`: how a figure grows with one factor.

mod from;
mod table;

use crate::cli::scale::ScaleArgs;
use crate::failure::{Ended, Failure};
use anyhow::anyhow;
use from::Sweep;
use std::process::ExitCode;
use tare_model::scaling::ScaleOutcome;
use tare_model::warning::Warning;
use tare_report::Style;
use tare_report::scaling as report;

/// Reads, fits and prints.
pub fn scale(args: &ScaleArgs, style: Style) -> Ended {
    super::check_output(&args.exports)?;
    let Some(file) = &args.from else {
        return Err(Failure::usage(anyhow!(
            "nothing to fit (hint: --from FILE, a table with the header n,x)"
        )));
    };
    let sweep = from::read(file, args)?;
    let outcome = fitted(sweep, args)?;
    let (shown, page) = (report::report(&outcome), report::page(&outcome));
    let json = report::json(&outcome).map_err(Failure::underway)?;
    super::emit_report(&shown, &page, &json, &args.exports, style)?;
    Ok(ExitCode::SUCCESS)
}

/// The law through the levels of a file.
fn fitted(sweep: Sweep, args: &ScaleArgs) -> Result<ScaleOutcome, Failure> {
    let unit = sweep.unit.as_str();
    let each = |(n, samples): (f64, Vec<f64>)| tare_explain::scaling::level(n, samples, unit);
    let mut levels: Vec<_> = sweep.levels.into_iter().map(each).collect();
    let scaling = tare_explain::scaling::scaling(&mut levels, unit, args.wanted()).map_err(|missing| {
        Failure::usage(anyhow!("{}: {} (hint: {})", sweep.source, missing.why, missing.remedy))
    })?;
    let warnings: Vec<Warning> = tare_explain::scaling::warnings(&scaling, &levels);
    Ok(ScaleOutcome {
        schema: tare_model::format::SCHEMA,
        factor: sweep.factor,
        source: sweep.source,
        scaling,
        levels,
        cpu_order: Vec::new(),
        blocks: 0,
        seed: 0,
        warnings,
    })
}
