//! Runs a study: block by block, each cell on a launch of its own, and every result kept as it comes.

use super::around::Surroundings;
use super::expect::Expectation;
use super::figures;
use super::interim::Intervals;
use super::judge::{changes, judge};
use super::order::orders;
use super::resolve::{Cell, Study};
use crate::compare::interference::{HostWatch, disturbances};
use crate::error::{LOAD_HELP, LabError, URL_EXAMPLE};
use crate::progress::{Event, Part, Progress};
use crate::request::{LoadRequest, Request, ServerRequest, SutRequest};
use crate::running::Session;
use crate::subjects::answer::is_taken;
use crate::treatment::Treatment;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tare_load::{CONNECTIONS_DEFAULT, Content, Gaps, LoadSpec, Pacing, Target};
use tare_machine::{Root, facts};
use tare_model::comparison::Interference;
use tare_model::outcome::Outcome;
use tare_model::study::{CellOutcome, DisturbedBlock, FigureSeen, SCHEMA, StudyOutcome};

/// Stands for the built-in server until it is up and its port known.
const EMBEDDED_URL: &str = "http://127.0.0.1/";

/// What a study needs beside itself.
#[derive(Debug)]
pub struct Setup {
    /// Where launches keep their things; its record is not used.
    pub session: Session,
    /// A folder for the record of each launch; `None`: as records that no file was named for.
    pub records: Option<PathBuf>,
    /// The command line, for the records.
    pub argv: Vec<String>,
    /// The program that is the built-in server.
    pub embedded_program: PathBuf,
    /// What each cell is measured with, of [`super::Settings::tuned`]; empty: nothing, in none of them.
    pub treatments: Vec<Treatment>,
}

/// How a study ended, and what there is of it.
#[derive(Debug)]
pub struct Studied {
    /// What came of the launches that were measured to their end.
    pub outcome: StudyOutcome,
    /// Whether all were.
    pub end: Result<(), LabError>,
}

/// Runs it. What was measured before a failure or an interruption is kept and judged.
pub fn run(study: &Study, setup: &Setup, progress: &mut dyn Progress) -> Studied {
    let seed = study.seed.unwrap_or_else(tare_sys::time::monotonic_ns);
    let mut seen = Seen { results: vec![Vec::new(); study.cells.len()], ..Seen::default() };
    let end = all(study, setup, seed, &mut seen, progress);
    Studied { outcome: outcome(study, seed, seen), end }
}

/// What there is by now.
#[derive(Default)]
struct Seen {
    /// Of each cell, block by block.
    results: Vec<Vec<Outcome>>,
    measured_again: usize,
    disturbed: Vec<DisturbedBlock>,
}

/// One time through the cells of a block.
struct Pass {
    /// Each with its cell.
    results: Vec<(usize, Outcome)>,
    interference: Interference,
    end: Result<(), LabError>,
}

fn all(
    study: &Study,
    setup: &Setup,
    seed: u64,
    seen: &mut Seen,
    progress: &mut dyn Progress,
) -> Result<(), LabError> {
    if let Some(folder) = &setup.records {
        std::fs::create_dir_all(folder).map_err(|error| {
            LabError::usage(
                format!("cannot use {}: {error}", folder.display()),
                "name another folder with -o",
            )
        })?;
    }
    let requests: Vec<ServerRequest> =
        study.cells.iter().map(|cell| request(study, cell, setup)).collect::<Result<_, _>>()?;
    let intervals = Intervals::of(study);
    let beside = |cell: &Cell| cell.settings.beside.clone().unwrap_or_default();
    let besides = study.cells.iter().map(beside).collect();
    let surroundings = Surroundings::of(&setup.treatments, besides, &setup.session.state_dir, progress)?;
    let end = blocks(study, (setup, &surroundings), &requests, &intervals, seed, seen, progress);
    surroundings.end().and(end)
}

/// Block by block, until there is enough.
fn blocks(
    study: &Study,
    (setup, surroundings): (&Setup, &Surroundings),
    requests: &[ServerRequest],
    intervals: &Intervals,
    seed: u64,
    seen: &mut Seen,
    progress: &mut dyn Progress,
) -> Result<(), LabError> {
    progress.show(Event::Expected { total_s: study.expected().as_secs_f64() });
    let progress: &mut dyn Progress = &mut Part { within: progress, begun: Instant::now() };
    for (block, order) in orders(seed, study.cells.len(), study.blocks as usize).into_iter().enumerate() {
        let name = format!("block {}/{}", block + 1, study.blocks);
        let file = format!("block-{:04}", block + 1);
        let mut pass = pass(study, (setup, surroundings), requests, &order, (&name, &file), progress);
        // By what was taken alone, whatever came out: results do not decide which of them counts.
        let may_again = pass.end.is_ok() && seen.measured_again < study.reruns as usize;
        if may_again && !disturbances(&pass.interference).is_empty() {
            seen.measured_again += 1;
            let (name, file) = (format!("{name} once more, it was disturbed"), format!("{file}-again"));
            let again = self::pass(study, (setup, surroundings), requests, &order, (&name, &file), progress);
            match again.end {
                Ok(()) if taken(&again.interference) < taken(&pass.interference) => pass = again,
                end => pass.end = end,
            }
        }
        let by = disturbances(&pass.interference);
        if !by.is_empty() {
            seen.disturbed.push(DisturbedBlock { block: block + 1, by });
        }
        pass.results.into_iter().for_each(|(cell, result)| seen.results[cell].push(result));
        pass.end?;
        if intervals.precision(study, &seen.results).is_some_and(|precision| precision.is_reached()) {
            break;
        }
    }
    Ok(())
}

/// Measures the cells in this order; what was measured before a failure is there.
fn pass(
    study: &Study,
    (setup, surroundings): (&Setup, &Surroundings),
    requests: &[ServerRequest],
    order: &[usize],
    (name, file): (&str, &str),
    progress: &mut dyn Progress,
) -> Pass {
    let online: Vec<u32> = facts::read(&Root::live()).cpus.iter().map(|cpu| cpu.cpu).collect();
    let watch_of_host = HostWatch::begin(&online);
    let mut results = Vec::with_capacity(order.len());
    let mut end = Ok(());
    for &at in order {
        if setup.session.interrupt.load(Ordering::Relaxed) {
            end = Err(LabError::Interrupted);
            break;
        }
        progress.show(Event::Step(format!("{name}: {}", study.cells[at].name)));
        let file = |folder: &PathBuf| folder.join(format!("{file}-cell-{:03}.tare", at + 1));
        let session = Session { record: setup.records.as_ref().map(file), ..setup.session.clone() };
        let request = &requests[at];
        let name = &study.cells[at].name;
        let measure = |progress: &mut dyn Progress| {
            crate::session::measure(Request::Server(Box::new(request.clone())), &session, progress)
        };
        let (held, put_back) = match surroundings.with((at, name), measure, progress) {
            Ok(both) => both,
            Err(error) => {
                end = Err(error);
                break;
            }
        };
        let measured = held.end.is_ok();
        if let Err(error) = held.end.and_then(|()| port_is_free(request)) {
            end = Err(error.of(&format!("of case '{name}'"), "try its command by hand"));
        }
        if end.is_ok() {
            end = put_back;
        }
        if measured {
            results.extend(held.record.as_ref().map(|record| (at, tare_explain::explain(record))));
        }
        if end.is_err() {
            break;
        }
    }
    Pass { results, interference: watch_of_host.until_now(), end }
}

/// A port that is taken when all that a launch started is gone: the next one could not have it, and another server be measured for it.
fn port_is_free(request: &ServerRequest) -> Result<(), LabError> {
    let target = &request.traffic.route.target;
    if !matches!(request.sut, SutRequest::Start(_)) || !is_taken(target.at()) {
        return Ok(());
    }
    let what = format!(
        "left port {0} taken: whoever listens there is none that it started (hint: 'ss -ltnp sport = :{0}' names it; stop it)",
        target.port()
    );
    Err(LabError::Sut { what, last_output: String::new() })
}

/// What was taken from a block in all.
fn taken(interference: &Interference) -> f64 {
    interference.steal_share.unwrap_or(0.0) + interference.throttled_share.unwrap_or(0.0)
}

fn request(study: &Study, cell: &Cell, setup: &Setup) -> Result<ServerRequest, LabError> {
    let settings = &cell.settings;
    let sut = match (&settings.sut, &settings.url) {
        (Some(command), _) => SutRequest::Start(command.clone()),
        (None, Some(_)) => SutRequest::Find,
        (None, None) => SutRequest::Embedded,
    };
    let target = Target::parse(settings.url.as_deref().unwrap_or(EMBEDDED_URL))
        .map_err(|error| LabError::usage(error.to_string(), URL_EXAMPLE))?;
    let pacing = match settings.rate_hz {
        Some(rate_hz) => Pacing::Open { rate_hz, gaps: Gaps::Fixed },
        None => Pacing::Closed,
    };
    let traffic = LoadSpec {
        connections: settings.connections.unwrap_or(CONNECTIONS_DEFAULT),
        pipeline: settings.pipeline.unwrap_or(1),
        pacing,
        content: Content { headers: settings.header.iter().cloned().collect(), ..Content::default() },
        ..LoadSpec::new(target)
    };
    traffic.validate().map_err(|error| LabError::usage(format!("{}: {error}", cell.name), LOAD_HELP))?;
    // Net needs a saturating level and the reference beside it, some figures need tracepoints; nobody else waits for them.
    let expected = || study.cells.iter().flat_map(|cell| &cell.expect);
    let wants_net = expected().any(|expected| expected.is_about("net"));
    let load = LoadRequest::Own { threads: settings.threads };
    let mut request = ServerRequest::new(sut, load, traffic, setup.embedded_program.clone());
    request.argv = setup.argv.clone();
    request.url = settings.url.clone();
    request.trials.length = Some(study.trial);
    request.trials.count = study.trials;
    request.trials.warmup = study.warmup;
    request.place.sut_cpus = settings.sut_cpus.clone();
    request.place.start_timeout = study.start_timeout;
    request.place.load_cpus = settings.load_cpus.clone();
    request.place.policy = settings.placement;
    request.watch.trace = expected().any(Expectation::needs_trace);
    request.beside.no_levels = !wants_net;
    request.beside.no_reference = !wants_net;
    Ok(request)
}

fn outcome(study: &Study, seed: u64, seen: Seen) -> StudyOutcome {
    let Seen { results, measured_again, disturbed } = seen;
    let intervals = Intervals::of(study);
    let precision = intervals.precision(study, &results);
    let cells = study.cells.iter().enumerate().map(|(at, cell)| {
        let valid: Vec<&Outcome> = results[at].iter().filter(|outcome| outcome.verdict.valid).collect();
        CellOutcome {
            name: cell.name.clone(),
            baseline: (cell.baseline != at).then(|| study.cells[cell.baseline].name.clone()),
            blocks: results[at].len(),
            valid: valid.len(),
            figures: figures(&valid, &intervals),
            bottlenecks: valid.iter().map(|outcome| outcome.verdict.bottleneck).collect(),
            changes: match cell.baseline == at {
                true => BTreeMap::new(),
                false => changes(&results[cell.baseline], &results[at], &intervals),
            },
            expectations: cell
                .expect
                .iter()
                .map(|expected| judge(expected, &results[cell.baseline], &results[at], &intervals))
                .collect(),
        }
    });
    StudyOutcome {
        schema: SCHEMA,
        name: study.name.clone(),
        seed,
        blocks: study.blocks,
        precision,
        measured_again,
        disturbed,
        cells: cells.collect(),
        left_out: study.left_out.iter().cloned().collect(),
    }
}

fn figures(valid: &[&Outcome], intervals: &Intervals) -> BTreeMap<String, Option<FigureSeen>> {
    let one = |figure: &figures::Figure| {
        let values: Option<Vec<f64>> = valid.iter().map(|outcome| figure.value(outcome)).collect();
        let values = values?;
        let (value, ci95) = match intervals.interval(&values) {
            Ok((value, interval)) => (value, Some([interval.lo, interval.hi])),
            Err(_) => (tare_stats::mean(&values)?, None),
        };
        Some(FigureSeen { value, ci95, unit: figure.unit })
    };
    figures::all().iter().map(|figure| (figure.name.to_owned(), one(figure))).collect()
}
