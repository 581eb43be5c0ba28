//! Calibrates: puts a cause up for real around the built-in server, holds an ordinary session, and compares what its verdict says
//! with what was injected.
//!
//! An [`injection`] is a file in `injections/` and a line in its registry: it changes a scene that is undisturbed otherwise. The
//! bottlenecks that name it are what it is right to find there. [`confusion`] judges. What is put up is in the journal, and taken down by `Drop` after
//! each run, or by the next start.
//!
//! Then [`itself`] compares the server with itself, and [`calibration_report`] says what that and the nets of the runs come to.

mod calibration_report;
mod confusion;
mod ground;
mod hosts;
mod injection;
mod injections;
pub mod itself;
mod live;
mod props;
#[cfg(test)]
mod tests;
pub mod zoo;

use crate::compare::interference::{HostWatch, disturbances};
use crate::error::LabError;
use crate::progress::{Event, Progress};
use crate::request::{
    CommandRequest, LoadRequest, PlaceRequest, Request as Ask, RunsRequest, ServerRequest, SutRequest, Warmup,
};
use crate::running::{Held, Session};
use crate::study::nearest;
use crate::subjects::embedded;
use crate::{blocks, session};
use ground::{Ground, Place, place};
use hosts::Hosts;
use injection::{Injection, Scene};
use injections::{INJECTIONS, UNDISTURBED, leaves_net};
use live::Live;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tare_machine::journal::Journal;
use tare_machine::{Root, facts};
use tare_model::Record;
use tare_model::calibration::{self, Calibration, Run, RunResult, SCHEMA, SelfComparison, SelfResult};
use tare_model::comparison::Disturbance;
use tare_stats::SplitMix64;

/// Runs of a program that is measured: each takes a tenth of a second and more.
const COMMAND_RUNS: u32 = 10;
/// The record of the run that is being measured, in the state directory: none of the user's own is pushed out.
const RECORD: &str = "calibrate.tare";
/// A run that is to be undisturbed and was not is made again, so often for each that was asked for.
const AGAIN_EACH: usize = 3;
/// Seconds that a run takes, about: before them it is not known better.
const RUN_S: f64 = 7.0;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// The command line, for the calibration report.
    pub argv: Vec<String>,
    /// How often each injection is measured.
    pub repeats: u32,
    /// These injections alone; none: all that can be made here.
    pub only: Vec<String>,
    /// How often the built-in server is compared with itself.
    pub comparisons: u32,
    /// Seed of the order; `None`: another one each time.
    pub seed: Option<u64>,
    /// The program that is the built-in server.
    pub embedded_program: PathBuf,
    /// A folder to keep the record of each run in.
    pub records: Option<PathBuf>,
}

/// How a calibration ended, and what there is of it.
#[derive(Debug)]
pub struct Calibrated {
    /// What came of the runs that were finished; `None`: nothing could be begun.
    pub calibration: Option<Calibration>,
    /// Whether it went to its end.
    pub end: Result<(), LabError>,
}

/// What there is to inject, and whether it can be here.
///
/// # Errors
/// The topology cannot be read.
pub fn list() -> Result<Vec<calibration::Injection>, LabError> {
    Ok(reported(&place()?))
}

/// Measures. What was finished before a failure or an interruption is kept and judged.
pub fn calibrate(request: &Request, session: &Session, progress: &mut dyn Progress) -> Calibrated {
    let mut calibration = None;
    let end = carry_out(request, session, &mut calibration, progress);
    Calibrated { calibration, end }
}

fn carry_out(
    request: &Request,
    session: &Session,
    kept: &mut Option<Calibration>,
    progress: &mut dyn Progress,
) -> Result<(), LabError> {
    let place = place()?;
    let chosen = chosen(request, &place)?;
    for line in crate::recover(&session.state_dir) {
        progress.show(Event::Notice(line));
    }
    if let Some(folder) = &request.records {
        std::fs::create_dir_all(folder).map_err(|error| {
            LabError::usage(format!("cannot use {}: {error}", folder.display()), "name another folder")
        })?;
    }
    let journal = Journal::create(&session.state_dir, &Root::live());
    let journal = Rc::new(journal.map_err(|error| LabError::State(error.to_string()))?);
    let seed = request.seed.unwrap_or_else(tare_sys::time::monotonic_ns);
    let calibration = kept.insert(nothing_yet(request, &place, seed));
    let begun = Instant::now();
    let end = all(&chosen, request, session, (&place, &journal), calibration, progress);
    calibration.took_s = begun.elapsed().as_secs_f64();
    calibration.complete = end.is_ok() && calibration.covered().0 == calibration.covered().1;
    // Somebody who still holds the journal has not undone everything: it stays for the next start.
    match Rc::into_inner(journal).map(Journal::finish) {
        Some(Err(error)) if end.is_ok() => Err(LabError::State(error.to_string())),
        _ => end,
    }
}

fn all(
    chosen: &[&'static Injection],
    request: &Request,
    session: &Session,
    (place, journal): (&Place, &Rc<Journal>),
    calibration: &mut Calibration,
    progress: &mut dyn Progress,
) -> Result<(), LabError> {
    let mut order: Vec<&Injection> = (0..request.repeats).flat_map(|_| chosen.iter().copied()).collect();
    let mut random = SplitMix64::new(calibration.seed);
    blocks::shuffle(&mut order, &mut random);
    let compared_s = f64::from(request.comparisons) * itself::BUDGET.as_secs_f64();
    progress.show(Event::Expected { total_s: order.len() as f64 * RUN_S + compared_s });
    let begun = Instant::now();
    let mut again = AGAIN_EACH * request.repeats as usize;
    let mut at = 0;
    while let Some(&injection) = order.get(at) {
        if session.interrupt.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        let begin_s = begun.elapsed().as_secs_f64();
        let file = match &request.records {
            Some(folder) => folder.join(format!("{:03}-{}.tare", at + 1, injection.name)),
            None => session.state_dir.join(RECORD),
        };
        let ground =
            Ground { place, journal, program: &request.embedded_program, interrupt: &session.interrupt };
        let session = Session { record: Some(file.clone()), ..session.clone() };
        let mut live =
            Live { within: progress, begun, of: format!("{}/{} {}", at + 1, order.len(), injection.name) };
        let watch_of_host = HostWatch::begin(&[place.sut_cpu, place.load_cpu]);
        let result = one(injection, request, &ground, &session, &mut live);
        // By what was taken alone, whatever was found: a run is not made again because of its alarms.
        let disturbed = match injection.name == UNDISTURBED {
            true => disturbances(&watch_of_host.until_now()),
            false => Vec::new(),
        };
        if !disturbed.is_empty() && again > 0 {
            again -= 1;
            order.push(injection);
        }
        if request.records.is_none() {
            std::fs::remove_file(file).ok();
        }
        let result = match result {
            Ok(found) => RunResult::Measured(found),
            Err(LabError::Interrupted) => return Err(LabError::Interrupted),
            Err(error) => RunResult::Failed { why: error.to_string() },
        };
        at += 1;
        let reported = line(injection, &result, &disturbed);
        progress.show(Event::Step(format!("{at}/{} {reported}", order.len())));
        let took_s = begun.elapsed().as_secs_f64() - begin_s;
        calibration.runs.push(Run { injection: injection.name.into(), begin_s, took_s, disturbed, result });
        calibration.summary = confusion::summary(&calibration.runs, |name| name == UNDISTURBED);
        calibration.net_spread = calibration_report::net_spread(&calibration.runs, leaves_net);
    }
    comparisons(request, session, (begun, &mut random), calibration, progress)
}

/// Compares the built-in server with itself, as often as was asked.
fn comparisons(
    request: &Request,
    session: &Session,
    (begun, random): (Instant, &mut SplitMix64),
    calibration: &mut Calibration,
    progress: &mut dyn Progress,
) -> Result<(), LabError> {
    for at in 1..=request.comparisons {
        let begin_s = begun.elapsed().as_secs_f64();
        let of = format!("comparison with itself {at}/{}", request.comparisons);
        let record = request.records.as_ref().map(|folder| folder.join(format!("itself-{at:03}.json")));
        let session = Session { record, ..session.clone() };
        // Few enough digits for every reader of JSON.
        let asked = itself::request(&request.argv, &request.embedded_program, random.next_u64() >> 11)?;
        let mut live = Live { within: progress, begun, of: of.clone() };
        let result = itself::compare(&asked, &session, &mut live)?;
        progress.show(Event::Step(format!("{of}: {}", said(&result))));
        let took_s = begun.elapsed().as_secs_f64() - begin_s;
        calibration.comparisons.push(SelfComparison { begin_s, took_s, result });
        let budget_s = itself::BUDGET.as_secs_f64();
        calibration.aa_control = calibration_report::aa_control(&calibration.comparisons, budget_s);
    }
    Ok(())
}

/// Puts an injection up, measures, takes it down.
fn one(
    injection: &Injection,
    request: &Request,
    ground: &Ground<'_>,
    session: &Session,
    progress: &mut dyn Progress,
) -> Result<calibration::Found, LabError> {
    let mut scene = Scene::undisturbed(ground.place)?;
    let record = (injection.put_up)(ground, &mut scene)
        .and_then(|()| measure(&scene, request, ground, session, progress));
    scene.take_down();
    let outcome = tare_explain::explain(&record?);
    Ok(confusion::judge(injection, injection.name == UNDISTURBED, &outcome))
}

/// An ordinary session in the scene.
fn measure(
    scene: &Scene,
    request: &Request,
    ground: &Ground<'_>,
    session: &Session,
    progress: &mut dyn Progress,
) -> Result<Record, LabError> {
    if let Some(words) = &scene.command {
        let measured = command_request(words, &scene.server.groups, request, ground);
        return recorded(session::measure(Ask::Program(Box::new(measured)), session, progress));
    }
    let server = &scene.server;
    let words = match &scene.apart {
        Some((hosts, _)) => hosts.at_server(&server.words(ground.program, Hosts::address())),
        None => server.words(ground.program, "127.0.0.1"),
    };
    let mut sut = embedded::listening(words, &server.cpus, &server.groups, ground.journal, ground.interrupt)?;
    let at = sut.answers_at()?;
    let url = format!("http://{}:{}{}", at.host(), at.port(), server.path);
    if let Some((hosts, options)) = &scene.apart {
        return hosts.session((&sut, &url), options, session, ground);
    }
    let target = tare_load::Target::parse(&url).map_err(|error| LabError::usage(error.to_string(), ""))?;
    let subject = sut.pids.first().map_or(SutRequest::Find, |pid| SutRequest::Pid(*pid));
    let load = LoadRequest::Own { threads: Some(server.load_threads) };
    let traffic = server.traffic.aimed_at(target);
    let mut measured = ServerRequest::new(subject, load, traffic, request.embedded_program.clone());
    measured.argv = request.argv.clone();
    measured.url = Some(url);
    measured.trials.length = Some(scene.trial);
    measured.trials.count = scene.trials;
    measured.trials.warmup = Warmup::Fixed(scene.warmup);
    measured.place.load_cpus = Some(server.load_cpus.clone());
    measured.beside.no_levels = !server.levels;
    measured.beside.no_reference = true;
    let held = session::measure(Ask::Server(Box::new(measured)), session, progress);
    sut.stop();
    recorded(held)
}

fn recorded(held: Held) -> Result<Record, LabError> {
    held.end?;
    held.record.ok_or_else(|| LabError::Observe("nothing was recorded".into()))
}

fn command_request(
    words: &[String],
    groups: &[PathBuf],
    request: &Request,
    ground: &Ground<'_>,
) -> CommandRequest {
    CommandRequest {
        argv: request.argv.clone(),
        command: words.to_vec(),
        runs: RunsRequest { count: Some(COMMAND_RUNS), warmup: 1, ..RunsRequest::default() },
        place: PlaceRequest { sut_cpus: Some(vec![ground.place.sut_cpu]), ..PlaceRequest::default() },
        groups: groups.to_vec(),
        ..CommandRequest::default()
    }
}

/// Those that were asked for and can be made here.
fn chosen(request: &Request, place: &Place) -> Result<Vec<&'static Injection>, LabError> {
    let names: Vec<&str> = INJECTIONS.iter().map(|injection| injection.name).collect();
    for name in &request.only {
        if !names.contains(&name.as_str()) {
            return Err(LabError::usage(
                format!("there is no injection '{name}'"),
                nearest::hint(name, &names),
            ));
        }
    }
    let asked = |injection: &&&Injection| {
        request.only.is_empty() || request.only.iter().any(|name| name == injection.name)
    };
    let chosen: Vec<&'static Injection> = INJECTIONS.iter().filter(asked).copied().collect();
    let here: Vec<&'static Injection> =
        chosen.iter().filter(|injection| not_here(injection, place).is_none()).copied().collect();
    match (here.is_empty(), chosen.iter().find_map(|injection| not_here(injection, place))) {
        (true, why) => Err(LabError::usage(
            format!("nothing can be injected here: {}", why.unwrap_or_default()),
            "'tare calibrate --list' says what each injection needs",
        )),
        (false, _) => Ok(here),
    }
}

/// Why an injection cannot be made here.
fn not_here(injection: &Injection, place: &Place) -> Option<String> {
    injection.needs.iter().find_map(|need| need.missing(place))
}

fn reported(place: &Place) -> Vec<calibration::Injection> {
    let reported = |injection: &&Injection| calibration::Injection {
        name: injection.name.into(),
        about: injection.about.into(),
        expected: injection.expected().collect(),
        undisturbed: injection.name == UNDISTURBED,
        leaves_net: leaves_net(injection.name),
        not_here: not_here(injection, place),
    };
    INJECTIONS.iter().map(reported).collect()
}

fn nothing_yet(request: &Request, place: &Place, seed: u64) -> Calibration {
    let reach = facts::Reach { company: None, windows: false };
    Calibration {
        schema: SCHEMA,
        argv: request.argv.clone(),
        started_unix_s: tare_sys::time::wall_s(),
        took_s: 0.0,
        seed,
        repeats: request.repeats,
        complete: false,
        machine: calibration::Place::of(&facts::survey(&Root::live(), reach).machine),
        injections: reported(place),
        runs: Vec::new(),
        summary: Default::default(),
        comparisons: Vec::new(),
        aa_control: None,
        net_spread: None,
        note_ln: Some(confusion::NOTE_LN),
    }
}

/// What a run came to, in a line.
fn line(injection: &Injection, result: &RunResult, disturbed: &[Disturbance]) -> String {
    match result {
        _ if !disturbed.is_empty() => format!("{}: disturbed from outside, not counted", injection.name),
        RunResult::Measured(found) if found.right => {
            format!("{}: found {}", injection.name, found.found.id())
        }
        RunResult::Measured(found) => {
            let beside = found.first_finding.map_or(String::new(), |first| format!(", then {}", first.id()));
            let alarms: String = found.alarms.iter().map(|alarm| format!(", alarm {}", alarm.id())).collect();
            format!("{}: WRONG: found {}{beside}{alarms}", injection.name, found.bottleneck.id())
        }
        RunResult::Failed { why } => format!("{}: FAILED: {why}", injection.name),
    }
}

/// What a comparison came to, in a line.
fn said(result: &SelfResult) -> String {
    let different = match result {
        SelfResult::Failed { why } => return format!("FAILED: {why}"),
        SelfResult::Compared(compared) => &compared.different,
    };
    let figures: Vec<&str> = different.iter().map(|called| called.figure.name()).collect();
    match figures.is_empty() {
        true => "no figure called different".into(),
        false => format!("WRONG: called different: {}", figures.join(", ")),
    }
}
