//! One launch after the other, of servers or of commands, until what they differ by is known well enough.

use super::judge::{FEWEST, LONG_S, PACE_OF, judge, length_s};
use super::request::Compared;
use super::treated;
use crate::error::LabError;
use crate::levels::nanoseconds;
use crate::progress::{Event, Progress};
use crate::running::{Running, Session};
use std::time::{Duration, Instant};
use tare_model::comparison::{Change, Comparison, Figure, Launch, Program, SCHEMA};
use tare_stats::{LAUNCHES_MIN, PLANNED_MAX};

/// Programs and the A/A control that are up at once: a turn of each in a round that should be short beside the host's drift.
const ARMS_MAX: usize = 9;
/// Launches after which it is known how long one takes: the first finds the length of a turn, too.
const PACE_AFTER: usize = 3;

pub(super) fn in_session(
    session: &Session,
    progress: &mut dyn Progress,
    compare: impl FnOnce(&mut Running<'_>, &mut Option<Comparison>) -> Result<(), LabError>,
) -> Compared {
    let mut running = match Running::begin(session, progress) {
        Ok(running) => running,
        Err(error) => return Compared { comparison: None, end: Err(error) },
    };
    let mut comparison = None;
    let end = compare(&mut running, &mut comparison);
    let end = running.end(end).end;
    Compared { comparison: comparison.filter(has_something), end }
}

/// Launches, or settings that could not be applied.
fn has_something(comparison: &Comparison) -> bool {
    !comparison.launches.is_empty() || treated::is_refused(comparison)
}

/// A launch that is over.
pub(super) struct Step {
    pub launch: Launch,
    /// Length of its turns, where the launch does not have it.
    pub turn: Duration,
    /// How many there are by now that take as long as all that are to come.
    pub alike: usize,
}

/// One launch after the other, until it is enough. Each gets its number, when the first began, and what to show.
pub(super) fn go_on(
    comparison: &mut Comparison,
    running: &mut Running<'_>,
    launch: impl FnMut(usize, Instant, &str, &mut Running<'_>) -> Result<Step, LabError>,
) -> Result<(), LabError> {
    go_on_with(comparison, running, |_| (), launch)
}

/// The same; `keep` adds what is known beside figures after each launch.
pub(super) fn go_on_with(
    comparison: &mut Comparison,
    running: &mut Running<'_>,
    keep: impl Fn(&mut Comparison),
    mut launch: impl FnMut(usize, Instant, &str, &mut Running<'_>) -> Result<Step, LabError>,
) -> Result<(), LabError> {
    running.progress.show(Event::Expected { total_s: comparison.budget_s });
    let begun = Instant::now();
    while comparison.ended.is_none() {
        let seq = comparison.launches.len();
        let Step { launch, turn, alike } = launch(seq, begun, &phase(comparison), running)?;
        // Those of the next may be longer.
        comparison.turn_ns = if launch.turn_ns > 0 { launch.turn_ns } else { nanoseconds(turn) };
        comparison.launches.push(launch);
        comparison.elapsed_s = begun.elapsed().as_secs_f64();
        let is_paced = seq + 1 >= PACE_AFTER && alike >= PACE_OF;
        if comparison.planned.is_none() && (is_paced || few_fit(comparison) || is_last(comparison)) {
            comparison.planned = Some(planned(comparison));
        }
        keep(comparison);
        judge(comparison);
        if let Some(path) = running.record_path() {
            tare_store::comparison::keep(comparison, path)
                .map_err(|error| LabError::State(format!("{}: {error}", path.display())))?;
        }
    }
    Ok(())
}

/// A comparison of these with no terms and no launches yet.
pub(super) fn empty(programs: Vec<Program>, seed: u64) -> Comparison {
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
        parts: Vec::new(),
        not_known: Vec::new(),
        interleaving: Vec::new(),
        treatments: Vec::new(),
        benchmarks: Vec::new(),
        warnings: Vec::new(),
    }
}

/// How many launches the budget has room for.
fn planned(comparison: &Comparison) -> usize {
    let left_s = comparison.budget_s - comparison.elapsed_s;
    let more = (left_s / length_s(&comparison.launches).max(1e-3)).max(0.0) as usize;
    (comparison.launches.len() + more).clamp(FEWEST, PLANNED_MAX)
}

/// Whether the budget has no room for another launch.
fn is_last(comparison: &Comparison) -> bool {
    let length_s = length_s(&comparison.launches);
    comparison.launches.len() >= FEWEST && comparison.elapsed_s + length_s > comparison.budget_s
}

/// Whether launches are so long, beside the budget, that the first must tell how many there are.
fn few_fit(comparison: &Comparison) -> bool {
    let length_s = length_s(&comparison.launches);
    length_s >= LONG_S && comparison.budget_s - comparison.elapsed_s < length_s * LAUNCHES_MIN as f64
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

pub(super) fn check_count(programs: usize) -> Result<(), LabError> {
    if programs + 1 > ARMS_MAX {
        return Err(LabError::usage(
            format!("{programs} programs are too many at once"),
            format!("compare at most {}", ARMS_MAX - 1),
        ));
    }
    Ok(())
}

pub(super) fn check_file(running: &Running<'_>) -> Result<(), LabError> {
    let Some(path) = running.record_path() else { return Ok(()) };
    tare_store::comparison::may_replace(path)
        .map_err(|error| LabError::usage(error.to_string(), "give -o a new name, like result.json"))
}
