//! Compares servers, or commands, on a machine that cannot be trusted: launch by launch, until what they differ by is known well
//! enough.
//!
//! A launch starts every program afresh, the first one twice (the second time as a A/A control), and loads all of them interleaved of
//! milliseconds within the same window ([`launch`]). What differs from launch to launch (addresses, heap, ports) differs by more
//! than what a longer window would tell, so the launch is the unit: it gives one value a figure and program, and [`judge`] looks at
//! all of them after each. [`length`] finds how long a window is best, [`pace`] a turn, [`interference`] tells what disturbed one. [`commands`] runs commands interleaved instead.

mod commands;
pub(crate) mod interference;
mod judge;
mod launch;
mod length;
mod pace;
#[cfg(test)]
mod tests;

pub use commands::{CommandsRequest, compare_commands};
pub use judge::{is_valid, judge};

use crate::error::LabError;
use crate::levels::nanoseconds;
use crate::progress::{Event, Progress};
use crate::running::{Running, Session};
use crate::{place, plan};
use launch::Stage;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tare_load::{LoadSpec, Pacing};
use tare_machine::placement::{self, Placement, Wanted};
use tare_machine::{Root, cgroup};
use tare_model::comparison::{Change, Comparison, Figure, Launch, Program, SCHEMA};
use tare_model::topology::Topology;
use tare_stats::{LAUNCHES_MIN, PLANNED_MAX};

/// Stands for the port in a command and in a URL.
pub const PORT: &str = "{port}";
/// Stands for the built-in server where a command is wanted.
pub const EMBEDDED: &str = "embedded";
/// Connections for each CPU that servers have, unless told otherwise: enough to keep it busy, and few enough for short turns, as what is in flight
/// at the end of one is waited for.
pub const CONNECTIONS_EACH_CPU: u32 = 8;
/// Programs and the A/A control that are up at once: a turn of each in a round that should last no longer than a host's moods.
const ARMS_MAX: usize = 9;
/// Launches after which it is known how long one takes: the first finds the length of a turn, too.
const PACE_AFTER: usize = 3;
/// The last ones tell how long one takes.
const PACE_OF: usize = 2;

/// What is to be compared, parsed but not judged.
#[derive(Debug, Clone)]
pub struct Request {
    /// The command line, for the result.
    pub argv: Vec<String>,
    /// Commands, with `{port}`, or [`EMBEDDED`]; the first is what the others are held against.
    pub programs: Vec<Asked>,
    /// The load to make, but for its connections, where it goes and when.
    pub traffic: LoadSpec,
    /// Connections to each server; `None`: [`CONNECTIONS_EACH_CPU`] for each CPU of the servers.
    pub connections: Option<u32>,
    /// Threads of each generator; `None`: one for each of its CPUs.
    pub threads: Option<u32>,
    /// How long it may take.
    pub budget: Duration,
    /// How narrow the intervals of rate and cost must be to end before that, as a share.
    pub precision: f64,
    /// Differences up to this share do not matter.
    pub margin: f64,
    /// Seed of the orders; `None`: another one each time.
    pub seed: Option<u64>,
    /// Counted load in a launch, all programs together; `None`: as long as the first ones show to be best.
    pub window: Option<Duration>,
    /// Load before that.
    pub warmup: Duration,
    /// CPUs to hold the servers on.
    pub sut_cpus: Option<Vec<u32>>,
    /// CPUs to hold the generators on.
    pub load_cpus: Option<Vec<u32>>,
    /// The program that is the built-in server.
    pub embedded_program: PathBuf,
}

/// A program and what it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// What starts it.
    pub command: String,
    /// `http://127.0.0.1:{port}/path`.
    pub url: String,
}

/// How a comparison ended, and what there is of it.
#[derive(Debug)]
pub struct Compared {
    /// What came of the launches that were measured to their end; `None` where there is none.
    pub comparison: Option<Comparison>,
    /// Whether it went to its end.
    pub end: Result<(), LabError>,
}

/// Compares. What was measured before a failure or an interruption is kept and judged; [`Session::record`] is the file that all
/// launches so far are in after each.
pub fn compare(request: &Request, session: &Session, progress: &mut dyn Progress) -> Compared {
    sit(session, progress, |running, comparison| hold(request, running, comparison))
}

fn sit(
    session: &Session,
    progress: &mut dyn Progress,
    hold: impl FnOnce(&mut Running<'_>, &mut Option<Comparison>) -> Result<(), LabError>,
) -> Compared {
    let mut running = match Running::begin(session, progress) {
        Ok(running) => running,
        Err(error) => return Compared { comparison: None, end: Err(error) },
    };
    let mut comparison = None;
    let end = hold(&mut running, &mut comparison);
    let end = running.end(end).end;
    Compared { comparison: comparison.filter(|comparison| !comparison.launches.is_empty()), end }
}

fn hold(request: &Request, running: &mut Running<'_>, kept: &mut Option<Comparison>) -> Result<(), LabError> {
    check(request, running)?;
    let placement = place(request, &running.topology)?;
    for note in &placement.notes {
        running.progress.show(Event::Notice(note.clone()));
    }
    let seed = request.seed.unwrap_or_else(tare_sys::time::monotonic_ns);
    let mut stage = Stage::new(request, &placement, &running.topology, seed);
    let comparison = kept.insert(nothing_yet(request, &placement, seed));
    let mut alike = 0;
    go_on(comparison, running, |seq, begun, phase, running| {
        alike = if stage.is_learning() { 0 } else { alike + 1 };
        let launch = stage.launch(seq, begun, phase, running)?;
        Ok(Step { launch, turn: stage.turn(), alike })
    })
}

/// A launch that is over.
struct Step {
    launch: Launch,
    /// Length of its turns.
    turn: Duration,
    /// How many there are by now that take as long as all that are to come.
    alike: usize,
}

/// One launch after the other, until it is enough. Each is told its number, when the first began, and what to show.
fn go_on(
    comparison: &mut Comparison,
    running: &mut Running<'_>,
    mut launch: impl FnMut(usize, Instant, &str, &mut Running<'_>) -> Result<Step, LabError>,
) -> Result<(), LabError> {
    running.progress.show(Event::Expected { total_s: comparison.budget_s });
    let begun = Instant::now();
    while comparison.ended.is_none() {
        let seq = comparison.launches.len();
        let Step { launch, turn, alike } = launch(seq, begun, &phase(comparison), running)?;
        comparison.launches.push(launch);
        comparison.turn_ns = nanoseconds(turn);
        comparison.elapsed_s = begun.elapsed().as_secs_f64();
        if comparison.planned.is_none() && seq + 1 >= PACE_AFTER && alike >= PACE_OF {
            comparison.planned = Some(planned(comparison));
        }
        judge(comparison);
        if let Some(path) = running.record_path() {
            tare_store::comparison::keep(comparison, path)
                .map_err(|error| LabError::State(format!("{}: {error}", path.display())))?;
        }
    }
    Ok(())
}

fn nothing_yet(request: &Request, placement: &Placement, seed: u64) -> Comparison {
    let program = |(asked, name): (&Asked, char)| Program {
        name: name.to_string(),
        command: asked.command.clone(),
        url: Some(asked.url.clone()),
    };
    let programs = request.programs.iter().zip('A'..).map(program).collect();
    Comparison {
        argv: request.argv.clone(),
        budget_s: request.budget.as_secs_f64(),
        precision: request.precision,
        margin: request.margin,
        sut_cpus: placement.sut_cpus.clone(),
        load_cpus: placement.load_cpus.clone(),
        ..empty(programs, seed)
    }
}

/// A comparison of these with no terms and no launches yet.
fn empty(programs: Vec<Program>, seed: u64) -> Comparison {
    Comparison {
        schema: SCHEMA,
        argv: Vec::new(),
        programs,
        seed,
        budget_s: 0.0,
        precision: 0.0,
        margin: 0.0,
        planned: None,
        turn_ns: 0,
        sut_cpus: Vec::new(),
        load_cpus: Vec::new(),
        ended: None,
        elapsed_s: 0.0,
        launches: Vec::new(),
        effects: Vec::new(),
        not_known: Vec::new(),
        warnings: Vec::new(),
    }
}

/// Seconds that a launch takes, by the last ones: the first finds the length of a turn, the first few that of a window.
fn length_s(launches: &[Launch]) -> f64 {
    let last = launches.get(launches.len().saturating_sub(PACE_OF)..).unwrap_or(launches);
    last.iter().map(|launch| launch.took_s).sum::<f64>() / last.len().max(1) as f64
}

/// How many launches the budget has room for.
fn planned(comparison: &Comparison) -> usize {
    let left_s = comparison.budget_s - comparison.elapsed_s;
    let more = (left_s / length_s(&comparison.launches).max(1e-3)).max(0.0) as usize;
    (comparison.launches.len() + more).clamp(LAUNCHES_MIN, PLANNED_MAX)
}

/// What is being done, and what is known by now.
fn phase(comparison: &Comparison) -> String {
    let of = comparison.planned.map(|planned| format!("/{planned}")).unwrap_or_default();
    let mut text = format!("launch {}{of}", comparison.launches.len() + 1);
    for effect in &comparison.effects {
        let [before, behind] = match effect.figure {
            Figure::CpuPerRequest => ["costs ", " a request"],
            Figure::Time => ["takes ", ""],
            _ => continue,
        };
        if let Some(Change { value, interval: [low, high] }) = effect.change {
            let [value, half] = [value, (high - low) / 2.0].map(|share| share * 100.0);
            text += &format!(", {} {before}{value:+.1} % ±{half:.1}{behind}", effect.program);
        }
    }
    text
}

fn check_count(programs: usize) -> Result<(), LabError> {
    if programs + 1 > ARMS_MAX {
        return Err(LabError::usage(
            format!("{programs} programs are too many at once"),
            format!("compare at most {}", ARMS_MAX - 1),
        ));
    }
    Ok(())
}

fn check_file(running: &Running<'_>) -> Result<(), LabError> {
    let Some(path) = running.record_path() else { return Ok(()) };
    tare_store::comparison::may_replace(path)
        .map_err(|error| LabError::usage(error.to_string(), "give -o a new name, like result.json"))
}

/// What can be judged before anything is started.
fn check(request: &Request, running: &Running<'_>) -> Result<(), LabError> {
    if request.programs.len() < 2 {
        return Err(LabError::usage(
            "there is nothing to compare with",
            "give a second --sut, or a second URL",
        ));
    }
    check_count(request.programs.len())?;
    for Asked { command, url } in &request.programs {
        if command != EMBEDDED && !command.contains(PORT) {
            return Err(LabError::usage(
                format!("'{command}' does not say where it listens"),
                "write {port} where its port goes, as './server --port {port}': all programs are up at once, the first one twice",
            ));
        }
        if !url.contains(PORT) {
            return Err(LabError::usage(
                format!("{url} leads to one port, and every server has its own"),
                "write a path (/plaintext), or http://127.0.0.1:{port}/plaintext",
            ));
        }
        launch::target(url, 80)?;
    }
    if request.window.unwrap_or_default() + request.warmup > request.budget {
        return Err(LabError::usage(
            "a launch alone takes longer than the whole budget",
            "give a longer --budget, or a shorter --window",
        ));
    }
    check_file(running)?;
    if request.traffic.pacing != Pacing::Closed {
        return Err(LabError::usage(
            "servers are compared interleaved of milliseconds, in which no rate or pause can be kept",
            "leave out --rate, --steps and --think (a closed loop compares what servers cost)",
        ));
    }
    if request.traffic.route.unix_socket.is_some() {
        return Err(LabError::usage("--unix leads to one server, and there are several", "leave it out"));
    }
    let connections = request.connections.unwrap_or(request.traffic.connections);
    let traffic = LoadSpec { connections, ..request.traffic.clone() };
    traffic.validate().map_err(|error| LabError::usage(error.to_string(), ""))?;
    plan::check_cpus("--sut-cpus", request.sut_cpus.as_deref(), &running.facts)?;
    plan::check_cpus("--load-cpus", request.load_cpus.as_deref(), &running.facts)
}

/// All servers on the same CPUs, half of the cores unless told otherwise; the generators on others.
fn place(request: &Request, topology: &Topology) -> Result<Placement, LabError> {
    let cores = topology.cores.value().or(topology.threads.value()).copied().unwrap_or(1);
    let wanted = Wanted {
        sut_allowed: &[],
        sut_threads: (cores / 2).max(1),
        load_threads: request.threads.unwrap_or_else(|| place::load_threads(topology)),
        given_sut: request.sut_cpus.as_deref().unwrap_or_default(),
        given_load: request.load_cpus.as_deref().unwrap_or_default(),
        policy: Default::default(),
        quota_cpus: cgroup::quota_cpus(&Root::live(), std::process::id()),
    };
    placement::choose(topology, &wanted).map_err(|error| LabError::usage(error.to_string(), ""))
}
