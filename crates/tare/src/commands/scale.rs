//! `tare scale`: how a figure grows with one factor.

mod from;
mod table;

use crate::cli::output::OutputArgs;
use crate::cli::scale::ScaleArgs;
use crate::failure::{Ended, Failure, NOT_VALID};
use crate::terminal;
use anyhow::anyhow;
use from::Sweep;
use std::process::ExitCode;
use tare_explain::scaling::Wanted;
use tare_explain::smt_worth;
use tare_model::Reading;
use tare_model::scaling::ScaleOutcome;
use tare_model::warning::Warning;
use tare_report::Style;
use tare_report::scaling as report;
use tare_run::LabError;
use tare_run::scale::{Factor, Swept};

/// Why what needs more than figures is not known.
const FROM_A_FILE: &str = "the figures are from a file: which CPUs were added is not known";

/// Measures or reads, fits and prints. What was measured before a failure or an interruption is shown.
pub fn scale(args: ScaleArgs, style: Style) -> Ended {
    if args.sweep.factors.instance.is_some() {
        return super::sweep::instance(args.sweep);
    }
    super::check_output(&args.exports)?;
    if let Some(file) = &args.from {
        let outcome = fitted(from::read(file, &args)?, &args)?;
        emit(&outcome, &args.exports, style)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.invert {
        return Err(Failure::usage(anyhow!(
            "--invert is for the figures of a file (hint: leave it out; a time that a program prints is inverted by itself)"
        )));
    }
    let wanted = args.wanted();
    let (factor, mut swept) = super::sweep::measure(args.sweep, &args.kept)?;
    let end = std::mem::replace(&mut swept.end, Ok(()));
    let measured = swept.levels.iter().filter(|level| !level.samples.is_empty()).count();
    match measured {
        // A failure of the first launches says more than that there is no curve.
        0 | 1 if end.is_err() => {}
        0 | 1 => {
            let not_valid = swept.warnings.iter().find(|warning| warning.id == "launches-not-valid");
            let why = not_valid.map_or_else(String::new, |warning| format!(": {}", warning.text));
            terminal::say(&format!(
                "tare: {measured} levels are valid, and a law needs two{why} (hint: 'tare run' at one level says more)"
            ));
            return Ok(ExitCode::from(NOT_VALID));
        }
        _ => emit(&of_sweep(factor, swept, wanted)?, &args.exports, style)?,
    }
    // A program that fails at a later level has been started before.
    end.map_err(|error| match error {
        LabError::Usage { .. } if measured > 0 => Failure::underway(error),
        error => error.into(),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn emit(outcome: &ScaleOutcome, exports: &OutputArgs, style: Style) -> Result<(), Failure> {
    let (shown, page) = (report::report(outcome), report::page(outcome));
    let json = report::json(outcome).map_err(Failure::underway)?;
    super::emit_report(&shown, &page, &json, exports, style)
}

/// The law through the levels that were measured.
fn of_sweep(factor: Factor, swept: Swept, wanted: Wanted) -> Result<ScaleOutcome, Failure> {
    let Swept { mut levels, cpu_order, instances, fairness, blocks, seed, mut warnings, .. } = swept;
    let smt_worth = smt_worth::of_sweep(&levels, &cpu_order, &warnings);
    let unit = levels.iter().find_map(|level| Some(level.estimate.value()?.unit.clone())).unwrap_or_default();
    let scaling = tare_explain::scaling::scaling(&mut levels, &unit, wanted)
        .map_err(|missing| Failure::underway(anyhow!("{} (hint: {})", missing.why, missing.remedy)))?;
    warnings.extend(tare_explain::scaling::warnings(&scaling, &levels));
    Ok(ScaleOutcome {
        schema: tare_model::format::SCHEMA,
        factor: factor.name().to_owned(),
        source: "measured".to_owned(),
        scaling,
        levels,
        cpu_order,
        smt_worth,
        instances,
        fairness,
        blocks,
        seed,
        warnings,
    })
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
        smt_worth: Reading::NotApplicable { not_applicable: FROM_A_FILE.to_owned() },
        instances: Vec::new(),
        fairness: Vec::new(),
        blocks: 0,
        seed: 0,
        warnings,
    })
}
