//! Programs that end: several are run interleaved, in blocks of one run of each, whose order is drawn at random. What changes
//! meanwhile on the machine changes all of them alike.

use crate::blocks::shuffle;
use crate::bounds;
use crate::driven::keep;
use crate::error::LabError;
use crate::identity;
use crate::loads::load::Load;
use crate::loads::none::{Alone, Prints};
use crate::plan as plans;
use crate::request::CommandRequest;
use crate::running::Running;
use crate::start_up::{self, Empty};
use crate::subjects::fit;
use crate::subjects::program::programs;
use crate::subjects::sut::Sut;
use crate::timed::{Input, Runner};
use std::cell::Cell;
use std::time::{Duration, Instant};
use tare_machine::Root;
use tare_machine::placement::{self, Placement, Wanted};
use tare_model::ceiling::KnownBounds;
use tare_model::placement::Policy;
use tare_model::plan::{CommandWorkload, Plan, StartUp, Workload};
use tare_model::topology::Topology;
use tare_observe::{LoadWatch, Observers, Watch};
use tare_stats::SplitMix64;

/// Runs of a program when the user names no number: at least so many …
const RUNS_MIN: u32 = 10;
/// … for at least so long …
const RUNS_FOR: Duration = Duration::from_secs(3);
/// … and never more than this.
const RUNS_MAX: u32 = 1000;
const SAMPLE_HZ: f64 = 100.0;
/// A run shorter than this is made longer by what observers do at its edges: some 0.1 ms on a small virtual machine (`bench/programs`).
const SHORT_NS: u64 = 50_000_000;
/// Then every so many runs one is observed, the first among them, and the others are timed.
const OBSERVED_EVERY: u64 = 5;
/// Which of the two holds is known by the first so many runs.
const DECIDED_BY: u64 = 2;

/// Measures a program, or several.
pub(crate) fn measure(request: &CommandRequest, running: &mut Running<'_>) -> Result<(), LabError> {
    plans::check_cpus("--sut-cpus", request.place.sut_cpus.as_deref(), &running.facts)?;
    let programs = programs(request)?;
    let place = place_of_program(request, &running.topology)?;
    let cpus = request.place.sut_cpus.clone().unwrap_or_default();
    let environment = match request.place.fit_runtime {
        true => fit::environment(&cpus, &running.topology, running.progress),
        false => Vec::new(),
    };
    let taking_part = identity::of_commands(&programs.variants, request, &environment);
    let input = Input::of(request.input.as_deref())?;
    let runner = Runner::new()?;
    running.will_start(&request.command.join(" "))?;
    let empty = Empty::new();
    let start_up = start_up::measured(request, empty.as_ref(), &runner, running)?;
    let bounds = bounds::of_program(running);
    let plan = Plan { bounds, ..plan_of_program(request, &programs.variants, start_up) };
    running.open_record(plan, taking_part)?;
    let watch = Watch {
        sut_pids: Vec::new(),
        server_port: None,
        beside_pids: Vec::new(),
        load: LoadWatch::None,
        sut_cpus: request.place.sut_cpus.clone().unwrap_or_else(|| place.sut_cpus.clone()),
        load_cpus: Vec::new(),
        observer_cpus: place.observer_cpus,
        sample_hz: SAMPLE_HZ,
        clock: true,
        stacks: None,
        stacks_alone: false,
        trace: request.trace,
    };
    let observers =
        Observers::start(watch, &Root::live()).map_err(|error| LabError::Observe(error.to_string()))?;
    let names = programs.variants.iter().map(|words| words.join(" "));
    let alone = |(index, name): (usize, String)| Alone {
        request,
        environment: &environment,
        words: &programs.words[index],
        index: index as u32,
        name,
        input: &input,
        observers: &observers,
        runner: &runner,
        empty: empty.as_ref(),
        prints: Cell::new(Prints::Unknown),
    };
    let commands: Vec<Alone<'_>> = names.enumerate().map(alone).collect();
    all(commands, request, running)?;
    observers.stop();
    Ok(())
}

/// Whether several commands are run interleaved: not where something is set up for each of them, and taken down after it.
fn are_interleaved(request: &CommandRequest, commands: usize) -> bool {
    commands > 1 && request.around.setup.is_none() && request.around.cleanup.is_none()
}

/// Runs all of them until each has run often enough.
fn all(
    commands: Vec<Alone<'_>>,
    request: &CommandRequest,
    running: &mut Running<'_>,
) -> Result<(), LabError> {
    if are_interleaved(request, commands.len()) {
        return blocks(commands, request, running);
    }
    commands.into_iter().try_for_each(|command| blocks(vec![command], request, running))
}

/// Runs these interleaved.
fn blocks(
    mut commands: Vec<Alone<'_>>,
    request: &CommandRequest,
    running: &mut Running<'_>,
) -> Result<(), LabError> {
    // Its processes are others in each run.
    let mut sut = Sut::of_runs();
    commands.iter_mut().try_for_each(|command| command.warm_up(&mut sut, running).map(drop))?;
    running.begin_in_step()?;
    let began = Instant::now();
    let least = RUNS_FOR * commands.len() as u32;
    let mut random = SplitMix64::new(tare_sys::time::monotonic_ns());
    let mut order: Vec<usize> = (0..commands.len()).collect();
    // How often each was timed, and whether that is apart from where its time goes.
    let (mut timed, mut apart) = (0, false);
    let mut shortest_ns = u64::MAX;
    for block in 0_u64.. {
        order.retain(|at| !ran_enough(request, &commands[*at], timed, began.elapsed() >= least, running));
        if order.is_empty() {
            break;
        }
        shuffle(&mut order, &mut random);
        let unobserved = apart && block % OBSERVED_EVERY != 0;
        for &at in &order {
            let driven = match unobserved {
                true => vec![commands[at].drive_unobserved(timed, running)?],
                false => commands[at].drive(&vec![(at, timed)], &mut sut, running)?,
            };
            for driven in driven {
                shortest_ns = shortest_ns.min(driven.wall_ns().unwrap_or(u64::MAX));
                keep(driven, running)?;
            }
        }
        // The first run may take longer than any other.
        let begins = block < DECIDED_BY && !apart && are_timed_apart(request, &commands, shortest_ns);
        if begins {
            (apart, timed) = (true, 0);
        }
        timed += u32::from(unobserved || !apart);
    }
    commands.iter_mut().try_for_each(|command| command.end(running))
}

/// Whether the runs that are timed are others than those that are observed, since one of the programs is short. Not those of a
/// benchmark, whose results are what is measured; and who asks for few runs gets no others.
fn are_timed_apart(request: &CommandRequest, commands: &[Alone<'_>], shortest_ns: u64) -> bool {
    request.runs.count.is_none_or(|runs| runs >= RUNS_MIN)
        && shortest_ns < SHORT_NS
        && !commands.iter().any(Alone::has_results)
}

fn ran_enough(
    request: &CommandRequest,
    command: &Alone<'_>,
    run: u32,
    for_long: bool,
    running: &mut Running<'_>,
) -> bool {
    match request.runs.count {
        Some(runs) => run >= runs && (run >= RUNS_MAX || running.may_end()),
        None if request.runs.stopping.is_some() => running.is_enough(command.index) || run >= RUNS_MAX,
        // It repeats by itself what it measures: how often it is started is for the user to say.
        None if command.has_results() => run >= 1,
        None => run >= RUNS_MAX || (run >= RUNS_MIN && for_long),
    }
}

fn place_of_program(request: &CommandRequest, topology: &Topology) -> Result<Placement, LabError> {
    let wanted = Wanted {
        sut_allowed: &[],
        sut_threads: 1,
        load_threads: 1,
        given_sut: request.place.sut_cpus.as_deref().unwrap_or_default(),
        given_load: &[],
        policy: Policy::Auto,
        quota_cpus: None,
    };
    placement::choose(topology, &wanted).map_err(|error| LabError::usage(error.to_string(), ""))
}

fn plan_of_program(request: &CommandRequest, variants: &[Vec<String>], start_up: Option<StartUp>) -> Plan {
    let runs = &request.runs;
    Plan {
        argv: request.argv.clone(),
        started_unix_s: tare_sys::time::wall_s(),
        workload: Workload::Command(CommandWorkload {
            commands: variants.iter().map(|words| words.join(" ")).collect(),
            runs: runs.count.unwrap_or(if runs.stopping.is_some() { RUNS_MAX } else { RUNS_MIN }),
            warmup: runs.warmup,
            shell: request.shell.clone(),
            interleaved: are_interleaved(request, variants.len()),
            start_up,
        }),
        sut_cpus: request.place.sut_cpus.clone().unwrap_or_default(),
        load_cpus: Vec::new(),
        ref_clock_hz: request.ref_clock_hz,
        stopping: runs.stopping,
        bounds: KnownBounds::default(),
    }
}
