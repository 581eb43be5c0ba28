//! `tare run`: from arguments to a session to a result.

use crate::cli;
use crate::cli::run::{RunArgs, StackArgs, SutArgs, TrialArgs, UnwindChoice};
use crate::cli::values;
use crate::failure::Ended;
use crate::failure::{Failure, NOT_VALID};
use crate::progress;
use anyhow::anyhow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tare_load::Target;
use tare_model::Record;
use tare_model::plan::Stopping;
use tare_report::Style;
use tare_run::request::{
    AroundRequest, BesideRequest, CommandRequest, LoadRequest, Names, Parameter, PlaceRequest, Request,
    RunsRequest, ServerRequest, StackWatch, SutRequest, Unwind, Warmup, WatchRequest,
};
use tare_run::{Held, LabError};

/// Trials take no longer than this to become as precise as was asked, unless another budget is given.
const BUDGET: Duration = Duration::from_secs(60);
/// Stands for the built-in server until it is up and its port known.
const EMBEDDED_URL: &str = "http://127.0.0.1/";
/// A single argument with one of these is a command line, not the name of a program.
const SHELL_CHARACTERS: [char; 16] =
    [' ', '\t', '\n', '|', '&', ';', '<', '>', '(', ')', '$', '`', '"', '\'', '*', '?'];
/// Values that a parameter scan may take.
const SCAN_STEPS_MAX: usize = 10_000;

/// Measures, prints and keeps the record.
pub fn run(args: RunArgs, style: Style) -> Ended {
    super::check_output(&args.output)?;
    if args.command.is_empty() && std::env::args_os().next_back().is_some_and(|last| last == "--") {
        return Err(Failure::usage(anyhow!(
            "no program stands after '--' (hint: name one, or leave '--' out to measure a server)"
        )));
    }
    if args.command.is_empty() && args.program.chosen.is_given() {
        return Err(Failure::usage(anyhow!(
            "--benchmark and --metric choose among the results of a program (hint: put it behind '--', as 'tare run -- go test -bench=.')"
        )));
    }
    // Before Ctrl-C only sets a flag: a body that comes from a pipe is waited for.
    let request = match args.command.is_empty() {
        true => Request::Server(Box::new(server_request(&args)?)),
        false => Request::Program(Box::new(command_request(&args)?)),
    };
    let session = super::session(args.record.clone())?;
    let mut progress = progress::display(args.quiet);
    let held = tare_run::session::measure(request, &session, progress.as_mut());
    drop(progress);
    finish(held, &args, style)
}

/// Prints what there is, also when the session was interrupted after some trials, or the disk refused the rest of the record.
fn finish(held: Held, args: &RunArgs, style: Style) -> Ended {
    let mut code = ExitCode::SUCCESS;
    if let Some(record) = worth_showing(held.record, &held.end) {
        let mut outcome = tare_explain::explain(&record);
        super::results::choose(&mut outcome, &args.program.chosen);
        super::emit(&record, &outcome, &args.output, style)?;
        if !outcome.verdict.valid {
            code = ExitCode::from(NOT_VALID);
        }
    }
    held.end?;
    Ok(code)
}

fn worth_showing(record: Option<Record>, end: &Result<(), LabError>) -> Option<Record> {
    match end {
        Ok(()) => record,
        Err(LabError::Interrupted | LabError::Store(_)) => record.filter(|record| !record.trials.is_empty()),
        Err(_) => None,
    }
}

/// The command line, for records.
pub(super) fn argv() -> Vec<String> {
    std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect()
}

pub(super) fn server_request(args: &RunArgs) -> Result<ServerRequest, Failure> {
    let named = match &args.sut {
        SutArgs { start: Some(command), .. } => Some(SutRequest::Start(command.clone())),
        SutArgs { sut_pid: Some(pid), .. } => Some(SutRequest::Pid(*pid)),
        SutArgs { sut_group: Some(group), .. } => Some(SutRequest::Group(group.clone())),
        _ => None,
    };
    // Somebody else's generator shows whom it loads: by a URL in its command, or by its connections.
    let is_shown = args.url.is_some() || args.generator.load.is_some() || args.generator.load_pid.is_some();
    let sut = named.unwrap_or(if is_shown { SutRequest::Find } else { SutRequest::Embedded });
    if args.sut.fit_runtime && !matches!(sut, SutRequest::Start(_)) {
        return Err(Failure::usage(anyhow!(
            "--fit-runtime is for a SUT that tare starts (hint: give --sut COMMAND, or '-- PROGRAM')"
        )));
    }
    if args.sut.placement.is_some() && sut == SutRequest::Find {
        return Err(Failure::usage(anyhow!(
            "--placement is for a SUT that tare starts (hint: give --sut COMMAND, or --sut-cpus for one that runs)"
        )));
    }
    let load = match (&args.generator.load, args.generator.load_pid) {
        (Some(command), _) => LoadRequest::Start(command.clone()),
        (None, Some(pid)) => LoadRequest::Pid(pid),
        (None, None) => LoadRequest::Own { threads: args.traffic.volume.threads },
    };
    let target = Target::parse(args.url.as_deref().unwrap_or(EMBEDDED_URL)).map_err(Failure::usage)?;
    let traffic = super::traffic::spec(&args.traffic, target)?;
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe"));
    let mut request = ServerRequest::new(sut, load, traffic, program);
    request.argv = argv();
    request.url = args.url.clone();
    request.trials.length = args.trials.duration;
    request.trials.stopping = stopping(&args.trials);
    if let Some(count) = args.trials.trials {
        request.trials.count = count;
    }
    if let Some(text) = &args.trials.warmup {
        let length = values::duration(text);
        request.trials.warmup =
            Warmup::Fixed(length.map_err(|error| Failure::usage(anyhow!("--warmup: {error}")))?);
    }
    request.place = place(args);
    request.beside = BesideRequest {
        no_levels: args.generator.no_levels,
        no_reference: args.generator.no_reference,
        confirm: args.generator.confirm,
        find_layout: args.generator.find_layout,
    };
    let profile = args.stacks.stacks != Some(0);
    request.watch = WatchRequest { trace: args.trace, stacks: stacks(args), profile };
    request.ref_clock_hz = args.trials.ref_clock;
    Ok(request)
}

fn place(args: &RunArgs) -> PlaceRequest {
    PlaceRequest {
        sut_cpus: args.sut.sut_cpus.clone().map(|list| list.0),
        load_cpus: args.generator.load_cpus.clone().map(|list| list.0),
        policy: args.sut.placement,
        fit_runtime: args.sut.fit_runtime,
        start_timeout: args.sut.start_timeout,
    }
}

/// What `--precision` and `--budget` ask for.
fn stopping(args: &TrialArgs) -> Option<Stopping> {
    let asked = args.precision.is_some() || args.budget.is_some();
    asked.then(|| Stopping {
        precision: args.precision,
        budget_s: args.budget.unwrap_or(BUDGET).as_secs_f64(),
    })
}

/// What `--stacks` and `--stacks-off-cpu` ask for in every trial; the second alone means both.
fn stacks(args: &RunArgs) -> Option<StackWatch> {
    let StackArgs { stacks, stacks_unwind, stacks_off_cpu } = args.stacks;
    let unwind = match stacks_unwind {
        UnwindChoice::FramePointers => Unwind::FramePointers,
        UnwindChoice::Dwarf => Unwind::Dwarf,
    };
    let hz = stacks.filter(|hz| *hz > 0);
    (hz.is_some() || stacks_off_cpu).then(|| StackWatch {
        hz: hz.unwrap_or(cli::run::STACKS_HZ),
        unwind,
        off_cpu: stacks_off_cpu,
        names: Names::DebugFiles,
    })
}

pub(super) fn command_request(args: &RunArgs) -> Result<CommandRequest, Failure> {
    if args.url.is_some() {
        return Err(Failure::usage(anyhow!(
            "a URL and a program cannot be measured together (hint: give the URL, or '-- COMMAND', not both)"
        )));
    }
    let warmup = match &args.trials.warmup {
        Some(text) => text.parse::<u32>().map_err(|_| {
            Failure::usage(anyhow!(
                "--warmup: '{text}' is not a number of runs (hint: for a program, --warmup counts runs, as --warmup 3)"
            ))
        })?,
        None => 0,
    };
    // As typed: words are a program with its arguments; one string of several words is for a shell.
    let program = &args.program;
    let is_line = matches!(args.command.as_slice(), [line] if line.contains(SHELL_CHARACTERS));
    let shell = match &program.shell {
        Some(shell) => Some(shell.clone()),
        None => (is_line && !program.no_shell).then(|| "sh".to_string()),
    };
    Ok(CommandRequest {
        argv: argv(),
        trace: args.trace,
        command: args.command.clone(),
        shell,
        parameters: parameters(args)?,
        runs: RunsRequest {
            count: args.trials.trials,
            stopping: stopping(&args.trials),
            warmup,
            time_limit: program.time_limit,
        },
        around: AroundRequest {
            setup: program.setup.clone(),
            prepare: program.prepare.clone(),
            cleanup: program.cleanup.clone(),
        },
        ignore_failure: program.ignore_failure,
        show_output: program.show_output,
        input: program.input.clone(),
        pty: program.pty,
        place: place(args),
        groups: Vec::new(),
        ref_clock_hz: args.trials.ref_clock,
        chosen: program.chosen.choice(),
    })
}

fn parameters(args: &RunArgs) -> Result<Vec<Parameter>, Failure> {
    let mut parameters: Vec<Parameter> = Vec::new();
    if args.parameters.parameter_list.chunks_exact(2).any(|pair| pair[1].is_empty()) {
        return Err(Failure::usage(anyhow!(
            "--parameter-list: there is no value (hint: write them as a,b,c)"
        )));
    }
    for pair in args.parameters.parameter_list.chunks_exact(2) {
        let values = pair[1].split(',').map(str::to_string).collect();
        parameters.push(Parameter { name: pair[0].clone(), values });
    }
    if let [name, min, max] = args.parameters.parameter_scan.as_slice() {
        let values = scan(min, max, &args.parameters.parameter_step_size)
            .map_err(|error| Failure::usage(anyhow!(error)))?;
        parameters.push(Parameter { name: name.clone(), values });
    }
    Ok(parameters)
}

/// The numbers from `min` to `max`, written with as many decimals as the step.
fn scan(min: &str, max: &str, step: &str) -> Result<Vec<String>, String> {
    let number = |text: &str| {
        let parsed = text.parse::<f64>().ok().filter(|number| number.is_finite());
        parsed.ok_or_else(|| {
            format!("--parameter-scan: '{text}' is not a number (hint: as --parameter-scan threads 1 8)")
        })
    };
    let (low, high, width) = (number(min)?, number(max)?, number(step)?);
    if width <= 0.0 || low > high {
        return Err("--parameter-scan: MIN must not be above MAX, and the step must be above 0 (hint: as --parameter-scan threads 1 8)".into());
    }
    // Half a step of slack, so that 0 to 1 by 0.1 ends at 1.0 in spite of rounding.
    let steps = ((high - low) / width + 0.5).floor();
    if steps >= SCAN_STEPS_MAX as f64 {
        return Err(format!(
            "--parameter-scan: more than {SCAN_STEPS_MAX} values (hint: give a larger --parameter-step-size)"
        ));
    }
    let decimals =
        [min, step].iter().filter_map(|text| Some(text.split_once('.')?.1.len())).max().unwrap_or(0);
    Ok((0..=steps as u32)
        .map(|index| low + f64::from(index) * width)
        .filter(|value| *value <= high + width * 1e-9)
        .map(|value| format!("{value:.decimals$}"))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::{scan, worth_showing};
    use tare_run::LabError;
    use tare_store::StoreError;

    /// What was measured is there, whatever the disk says to the rest of it.
    #[test]
    fn a_result_is_shown_where_the_record_could_not_be_written() {
        let known = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/records/program-computes.tare");
        let record = || tare_store::read(known.as_ref()).ok();
        let full =
            || StoreError::Refused { path: known.into(), action: "cannot be written", detail: "full".into() };
        let shown = |end| worth_showing(record(), &end).is_some();
        assert!(shown(Ok(())) && shown(Err(LabError::Interrupted)) && shown(Err(full().into())));
        assert!(!shown(Err(LabError::Observe("no thread".into()))));
        let mut before_a_trial = record().unwrap();
        before_a_trial.trials.clear();
        assert!(worth_showing(Some(before_a_trial), &Err(full().into())).is_none());
    }

    #[test]
    fn scans() {
        assert_eq!(scan("1", "3", "1").unwrap(), ["1", "2", "3"]);
        assert_eq!(scan("0", "0.3", "0.1").unwrap(), ["0.0", "0.1", "0.2", "0.3"]);
        assert_eq!(scan("1", "2", "3").unwrap(), ["1"]);
        for (min, max, step) in
            [("a", "1", "1"), ("2", "1", "1"), ("1", "2", "0"), ("0", "1e9", "1"), ("nan", "1", "1")]
        {
            assert!(scan(min, max, step).is_err(), "{min} {max} {step}");
        }
    }
}
