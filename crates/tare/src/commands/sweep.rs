//! `tare scale` where it measures: from arguments to a sweep.

use crate::cli::output::OutputArgs;
use crate::cli::run::{GeneratorArgs, ParameterArgs, RunArgs, StackArgs, TrialArgs, UnwindChoice};
use crate::cli::sweep::{DesignArgs, FactorArgs, KeptArgs, SweepArgs};
use crate::cli::traffic::{TrafficArgs, VolumeArgs};
use crate::failure::{Ended, Failure};
use crate::progress;
use anyhow::anyhow;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use tare_run::request::{Request, ServerRequest};
use tare_run::scale::{self, Factor, InstancesAsked, Levels, Metering, Setting, Setup, Sweep, Swept};
use tare_run::{InStep, Session};

/// The name of the command among what was typed.
const COMMAND: &str = "scale";
/// What may stand in a URL for a number that is not known before a launch.
const PLACES: [&str; 3] = ["{port}", "{i}", "{n}"];

/// Measures one instance, in step with the process that started this one.
pub fn instance(mut args: SweepArgs) -> Ended {
    let Some(part) = args.factors.instance.take() else { return Ok(ExitCode::SUCCESS) };
    let sweep = sweep(args)?;
    let session = super::session(None)?;
    let in_step = InStep::new(std::io::stdin(), std::io::stdout(), session.interrupt.clone())?;
    scale::instance(&sweep, &part, &Session { in_step: Some(in_step), ..session })?;
    Ok(ExitCode::SUCCESS)
}

/// This program and the words that it was called with, with room for the option of an instance behind the command's name.
fn instances(cpus_each: Option<u32>) -> InstancesAsked {
    let mut before: Vec<OsString> = std::env::args_os().skip(1).collect();
    let name = before.iter().position(|word| word == COMMAND).map_or(0, |at| at + 1);
    let after = before.split_off(name);
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe"));
    InstancesAsked { cpus_each: cpus_each.unwrap_or(1) as usize, program, before, after }
}

/// Measures what was asked for.
pub fn measure(args: SweepArgs, kept: &KeptArgs) -> Result<(Factor, Swept), Failure> {
    let sweep = sweep(args)?;
    let setup = Setup { session: super::session(None)?, records: kept.records.clone() };
    let mut progress = progress::display(kept.quiet);
    let swept = scale::run(&sweep, &setup, progress.as_mut());
    drop(progress);
    Ok((sweep.factor, swept))
}

fn sweep(args: SweepArgs) -> Result<Sweep, Failure> {
    let (factor, levels, fixed) = varied(&args.factors)?;
    let DesignArgs { budget, blocks, duration, seed, work, .. } = args.design;
    let metering = Metering { choice: args.program.chosen.choice(), work };
    let instances = instances(args.factors.cpus_each);
    let is_program = !args.command.is_empty();
    let mut run = as_run(args);
    // A port that is chosen for each instance is none yet.
    let url = run.url.clone();
    run.url = run.url.map(|url| PLACES.iter().fold(url, |url, place| url.replace(place, "1")));
    let request = match is_program {
        true => Request::Program(Box::new(super::run::command_request(&run)?)),
        false if run.program.chosen.is_given() => {
            return Err(Failure::usage(anyhow!(
                "--benchmark and --metric choose among the results of a program (hint: put it behind '--')"
            )));
        }
        false => Request::Server(Box::new(ServerRequest { url, ..super::run::server_request(&run)? })),
    };
    Ok(Sweep { request, factor, levels, fixed, metering, budget, blocks, trial: duration, seed, instances })
}

/// The factor that has several levels, and those that have one value.
fn varied(args: &FactorArgs) -> Result<(Factor, Levels, Vec<Setting>), Failure> {
    let all = [
        (Factor::Connections, &args.connections),
        (Factor::Rate, &args.rate),
        (Factor::LoadThreads, &args.threads),
        (Factor::Cpus, &args.cpus),
        (Factor::N, &args.n),
        (Factor::Instances, &args.instances),
    ];
    let given = || all.into_iter().filter_map(|(factor, levels)| Some((factor, levels.as_ref()?)));
    // Instances are measured alone in any case: one number of them is a level beside 1.
    let single = |factor: Factor, levels: &Levels| levels.single().filter(|_| factor != Factor::Instances);
    let setting =
        |(factor, levels): (Factor, &Levels)| single(factor, levels).map(|value| Setting { factor, value });
    let fixed: Vec<Setting> = given().filter_map(setting).collect();
    let mut varied = given().filter(|(factor, levels)| single(*factor, levels).is_none());
    let Some((factor, levels)) = varied.next() else {
        let options = all.map(|(factor, _)| factor.option());
        return Err(Failure::usage(anyhow!(
            "nothing is varied (hint: give one of {} several levels, as --connections 1..64, or fit figures that you have with --from)",
            options.join(", ")
        )));
    };
    if let Some((other, _)) = varied.next() {
        return Err(Failure::usage(anyhow!(
            "{} and {} both have several levels, and one factor is varied at a time (hint: give one of them one value; 'tare plan' \
             measures every combination)",
            factor.option(),
            other.option()
        )));
    }
    Ok((factor, levels.clone(), fixed))
}

/// As `tare run` would be asked for it; what is set or varied is set afterwards.
fn as_run(args: SweepArgs) -> RunArgs {
    let rate = args.factors.rate.as_ref().map(|levels| match levels {
        Levels::List(values) => values.first().copied().unwrap_or(1.0),
        Levels::Range(min, _) => *min,
    });
    RunArgs {
        url: args.url,
        command: args.command,
        sut: args.sut,
        // A rate is needed for --poisson to have something to spread.
        traffic: TrafficArgs { volume: VolumeArgs { rate, ..VolumeArgs::default() }, shape: args.shape },
        generator: GeneratorArgs {
            load_cpus: args.load.load_cpus,
            load: args.load.load,
            load_pid: None,
            no_levels: true,
            no_reference: true,
            confirm: false,
            find_layout: false,
        },
        program: args.program,
        parameters: ParameterArgs::default(),
        trials: TrialArgs {
            duration: args.design.duration,
            trials: None,
            precision: None,
            budget: None,
            warmup: args.design.warmup,
            ref_clock: None,
        },
        stacks: StackArgs { stacks: None, stacks_unwind: UnwindChoice::FramePointers, stacks_off_cpu: false },
        output: OutputArgs::default(),
        trace: false,
        record: None,
        quiet: false,
    }
}
