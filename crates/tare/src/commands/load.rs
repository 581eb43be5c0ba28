//! `tare load`: from arguments to load to its summary.

use crate::cli::load::LoadArgs;
use crate::failure::Ended;
use crate::failure::{Failure, NOT_VALID, SUT_FAILED};
use crate::{progress, terminal};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tare_load::{LoadSpec, Objective, Target};
use tare_model::load::{LoadOutcome, LoadRun};
use tare_model::threshold::Threshold;
use tare_report::Style;
use tare_run::generate::{self, Length};

/// Length of a run by default.
const LENGTH: Duration = Duration::from_secs(10);

/// Each line of an HdrHistogram log is so long.
const HDR_INTERVAL: Duration = Duration::from_secs(1);

/// What a rate must answer of its schedule, and without errors, besides holding its latency.
const SHARE_MIN: f64 = 0.99;

/// Makes load, prints what came back.
pub fn load(args: &LoadArgs, style: Style) -> Ended {
    if let Some(why) = not_here(args) {
        return Err(Failure::usage(anyhow::anyhow!(why)));
    }
    for path in [&args.hdr, &args.series].into_iter().flatten() {
        super::check_writable(path)?;
    }
    super::check_output(&args.exports)?;
    let target = Target::parse(&args.url).map_err(Failure::usage)?;
    let mut spec = super::traffic::spec(&args.traffic, target)?;
    spec.requests_max = args.requests;
    place(&mut spec, args);
    let length = length(args, &spec)?;
    let interrupt = super::interrupt_flag()?;
    let (spec, redirects) = generate::follow(spec, &interrupt)?;
    let mut progress = progress::display(args.quiet);
    let (mut run, end) = match &args.find {
        Some(goal) => {
            let latency_ns_max = u64::try_from(goal.latency.as_nanos()).unwrap_or(u64::MAX);
            let objective = Objective { quantile: goal.quantile, latency_ns_max, share_min: SHARE_MIN };
            generate::find(&spec, (objective, &goal.text), length, &interrupt, progress.as_mut())?
        }
        None => generate::load(&spec, length, &interrupt, progress.as_mut())?,
    };
    drop(progress);
    run.redirects = redirects;
    let outcome = tare_explain::load::explain(&run);
    emit(args, &run, &outcome, style)?;
    end?;
    judge(&args.fail_if, &outcome)
}

/// Why an option that another program or another command has is none of this one, and what does its work.
fn not_here(args: &LoadArgs) -> Option<&'static str> {
    let of_trials = args.precision.is_some() || args.budget.is_some();
    match args.script {
        Some(_) => Some(
            "there are no scripts (hint: --template, --csv and --capture vary requests, --mix and --request-file choose \
             them, --expect-body and its like look at the answers)",
        ),
        None if of_trials && args.traffic.volume.steps.is_some() => Some(
            "--precision and --budget are for one figure of several trials; tare load makes one run, and each stage of --steps \
             has figures of its own (hint: give each stage its time, as 1k:5s; 'tare run --steps' drives them --trials times)",
        ),
        None if of_trials => Some(
            "--precision and --budget are for one figure of several trials; tare load makes one run (hint: give its length with \
             --duration; 'tare run' makes trials until the figure is that precise, or the time is over)",
        ),
        None => None,
    }
}

/// What the user gave bounds for counts first: a load that is beyond them failed, valid or not.
fn judge(bounds: &[Threshold], outcome: &LoadOutcome) -> Ended {
    let has_failed = outcome.has_failed();
    let mut code = match outcome.valid {
        true => ExitCode::SUCCESS,
        false if has_failed => ExitCode::from(SUT_FAILED),
        false => ExitCode::from(NOT_VALID),
    };
    for bound in bounds {
        match bound.fails(outcome) {
            Some(false) => {}
            Some(true) => {
                terminal::say(&format!("tare: failed: {bound}"));
                return Ok(ExitCode::FAILURE);
            }
            None => {
                terminal::say(&format!(
                    "tare: there is no figure for '{bound}' (hint: --json shows which figures there are)"
                ));
                code = if has_failed { code } else { ExitCode::from(NOT_VALID) };
            }
        }
    }
    Ok(code)
}

/// One thread for each CPU that may be used, and none without a connection.
fn place(spec: &mut LoadSpec, args: &LoadArgs) {
    spec.workers.cpus = args.load_cpus.clone().map_or_else(Vec::new, |list| list.0);
    if args.traffic.volume.threads.is_none() {
        let cpus = match spec.workers.cpus.len() {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            given => given,
        };
        spec.workers.threads =
            u32::try_from(cpus).unwrap_or(u32::MAX).clamp(1, spec.connections.min(tare_load::THREADS_MAX));
    }
}

fn length(args: &LoadArgs, spec: &LoadSpec) -> Result<Length, Failure> {
    let whole = args.duration.unwrap_or(spec.pacing.stages_ns().map_or(LENGTH, Duration::from_nanos));
    if args.warmup >= whole {
        return Err(Failure::usage(anyhow::anyhow!(
            "nothing is left to count after a warm-up of {:?} in a run of {whole:?} (hint: a longer --duration, or a shorter --warmup)",
            args.warmup
        )));
    }
    Ok(Length { warmup: args.warmup, whole, every: args.hdr.as_ref().map(|_| HDR_INTERVAL) })
}

fn emit(args: &LoadArgs, run: &LoadRun, outcome: &LoadOutcome, style: Style) -> Result<(), Failure> {
    if let Some(path) = &args.hdr {
        super::write(path, &tare_report::load::hdr_log(run).map_err(Failure::underway)?)?;
    }
    if let Some(path) = &args.series {
        super::write(path, &tare_report::load::series_csv(outcome))?;
    }
    if [&args.hdr, &args.series].into_iter().flatten().any(|path| path == Path::new("-")) {
        return Ok(());
    }
    let [shown, page] = [args.latency, true].map(|all| tare_report::load::report(outcome, all));
    let json = tare_report::load::json(outcome).map_err(Failure::underway)?;
    super::emit_report(&shown, &page, &json, &args.exports, style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, FromArgMatches};

    #[test]
    fn options_of_others_say_what_does_their_work() {
        let why = |words: &[&str]| {
            let command = LoadArgs::augment_args(clap::Command::new("load").no_binary_name(true));
            let matches = command.try_get_matches_from([words, &["http://h/"]].concat()).unwrap();
            not_here(&LoadArgs::from_arg_matches(&matches).unwrap())
        };
        assert_eq!(why(&[]), None);
        for (words, named) in [
            (&["-s", "x.lua"][..], &["--template"][..]),
            (&["--precision", "1%"], &["one run", "--duration", "tare run"]),
            (
                &["--budget", "9s", "--steps", "1k:1s"],
                &["each stage of --steps has figures of its own", "--trials"],
            ),
        ] {
            let why = why(words).unwrap();
            assert!(named.iter().all(|word| why.contains(word)) && why.contains("hint: "), "{why}");
        }
    }
}
