//! Servers are compared: all of them interleaved within each launch.

use super::apart::Apart;
use super::judge::judge;
use super::launch::{self, Stage};
use super::request::{Asked, Compared, EMBEDDED, PORT, Request};
use super::steps::{Step, check_count, check_file, empty, go_on, go_on_with, in_session};
use crate::error::{LOAD_HELP, LabError};
use crate::progress::{Event, Progress};
use crate::running::{Running, Session};
use crate::treatment::{self, Around, Switch};
use crate::{place, plan};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;
use tare_load::{LoadSpec, Pacing};
use tare_machine::placement::{self, Placement, Wanted};
use tare_machine::{Root, cgroup};
use tare_model::comparison::{Comparison, Program};
use tare_model::topology::Topology;

/// Compares. What was measured before a failure or an interruption is kept and judged; [`Session::record`] is the file that all
/// launches so far are in after each.
pub fn compare(request: &Request, session: &Session, progress: &mut dyn Progress) -> Compared {
    in_session(session, progress, |running, comparison| carry_out(request, running, comparison))
}

fn carry_out(
    request: &Request,
    running: &mut Running<'_>,
    kept: &mut Option<Comparison>,
) -> Result<(), LabError> {
    check(request, running)?;
    let switch = Switch::new(&request.treatments, running)?;
    let placements = placements(request, &switch, &running.topology)?;
    let notes: BTreeSet<&String> = placements.iter().flat_map(|placement| &placement.notes).collect();
    for note in notes {
        running.progress.show(Event::Notice(note.clone()));
    }
    let Some(placement) = placements.first() else { return Ok(()) };
    let seed = request.seed.unwrap_or_else(tare_sys::time::monotonic_ns);
    let mut stage = Stage::new(request, placement, &running.topology, seed);
    let comparison = kept.insert(nothing_yet(request, placement, seed));
    if switch.is_some() {
        return treated(stage, Apart::new(switch, &placements), comparison, running);
    }
    let mut alike = 0;
    go_on(comparison, running, |seq, begun, phase, running| {
        alike = if stage.is_learning() { 0 } else { alike + 1 };
        let launch = stage.launch(seq, begun, phase, running)?;
        Ok(Step { launch, turn: stage.turn(), alike })
    })
}

/// Each server on the machine as it is to be for it.
fn treated<'a>(
    stage: Stage<'a>,
    mut apart: Apart<'a>,
    comparison: &mut Comparison,
    running: &mut Running<'_>,
) -> Result<(), LabError> {
    let mut stage = stage.apart();
    if let Err(error) = apart.rehearse(&mut stage, comparison, running) {
        judge(comparison);
        // What the kernel did not do is a result.
        return if apart.switch.refused().is_some() { Ok(()) } else { Err(error) };
    }
    let apart = RefCell::new(apart);
    let keep = |comparison: &mut Comparison| apart.borrow().keep(comparison);
    go_on_with(comparison, running, keep, |seq, begun, phase, running| {
        let launch = apart.borrow_mut().launch(seq, (begun, phase), &mut stage, running)?;
        Ok(Step { launch, turn: stage.turn(), alike: seq + 1 })
    })
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
        treatments: treatment::begun(&request.treatments),
        ..empty(programs, seed)
    }
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
        if !url.contains(PORT) && !url.contains("://") {
            return Err(LabError::usage(
                format!("'{url}' is neither a path nor a URL"),
                "write a path (/plaintext), or --command 'A' --command 'B' where programs are to be compared",
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
    let warmup = request.warmup.map_or(Duration::ZERO, |warmup| warmup.at_least());
    if request.window.unwrap_or_default() + warmup > request.budget {
        return Err(LabError::usage(
            "a launch alone takes longer than the whole budget",
            "give a longer --budget, or a shorter --window",
        ));
    }
    check_file(running)?;
    if request.traffic.pacing != Pacing::Closed {
        return Err(LabError::usage(
            "servers are interleaved, a few milliseconds each, in which no rate or pause can be kept",
            "leave out --rate, --steps and --think (a closed loop compares what servers cost)",
        ));
    }
    if request.traffic.route.unix_socket.is_some() {
        return Err(LabError::usage(
            "--unix leads to one server, and there are several",
            "leave it out, and have each server listen on {port}",
        ));
    }
    if request.traffic.route.connect_to.is_some() {
        return Err(LabError::usage(
            "--connect-to leads to one server, and there are several",
            "leave it out, and have each server listen on {port}",
        ));
    }
    if request.traffic.route.follow {
        return Err(LabError::usage(
            "--follow is for one server: of several, each could lead elsewhere",
            "give the URLs that the redirects lead to",
        ));
    }
    let connections = request.connections.unwrap_or(request.traffic.connections);
    let traffic = LoadSpec { connections, ..request.traffic.clone() };
    traffic.validate().map_err(|error| LabError::usage(error.to_string(), LOAD_HELP))?;
    plan::check_cpus("--sut-cpus", request.sut_cpus.as_deref(), &running.facts)?;
    plan::check_cpus("--load-cpus", request.load_cpus.as_deref(), &running.facts)
}

/// Where each program and its generator are.
fn placements(request: &Request, switch: &Switch, topology: &Topology) -> Result<Vec<Placement>, LabError> {
    let around = Around {
        sut: request.sut_cpus.as_deref(),
        load: request.load_cpus.as_deref(),
        load_threads: request.threads.unwrap_or_else(|| place::load_threads(topology)).max(1),
    };
    let count = request.programs.len();
    match switch.places(count, around, topology)? {
        Some(placed) => Ok(placed),
        None => Ok(vec![place(request, topology)?; count]),
    }
}

/// All servers on the same CPUs, half of the cores unless others are asked for; the generators on others.
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
