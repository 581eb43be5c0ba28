//! `tare ceiling`: what this machine can do at most.
//!
//! Every ceiling is sampled once in each round, in an order drawn at random, so that a bad half-minute of the host meets all of them
//! alike. A ceiling is the median of its rounds, with an interval of that median by the order of the rounds alone. To add one: a file
//! with a `kinds`, and a line in [`registry`].

mod arithmetic;
mod company;
mod disk;
mod ground;
mod kernel;
mod kind;
mod loopback;
mod memory;
mod packets;
mod reference;
mod registry;
mod rounds;
mod served;

use crate::bounds;
use crate::error::LabError;
use crate::place;
use crate::progress::{Event, Progress};
use crate::running::{Running, Session};
use company::warning;
use ground::Ground;
use kind::Kind;
use rounds::Sampled;
use std::cell::OnceCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tare_machine::placement::{self, Wanted};
use tare_machine::probes::{disk as probe, memory as caches};
use tare_machine::{Root, cgroup};
use tare_model::Reading;
use tare_model::ceiling::{Ceiling, Ceilings, KnownCeiling, KnownCeilings, ListedCeiling};
use tare_model::format::SCHEMA;
use tare_model::outcome::Estimate;
use tare_model::placement::Policy;
use tare_model::warning::Warning;

/// Of fewer rounds the interval is Student's, which a single bad round decides.
const ROUNDS_FEW: u32 = 6;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// Names of the ceilings, or how they begin; empty: all.
    pub only: Vec<String>,
    /// How long it may take.
    pub budget: Duration,
    /// The folder whose disk is measured.
    pub dir: PathBuf,
    /// This program, which is the reference server too.
    pub program: PathBuf,
}

/// What came of it.
#[derive(Debug)]
pub struct Measured {
    /// What was measured, also where it was interrupted; `None` where there is nothing.
    pub ceilings: Option<Ceilings>,
    /// How it ended.
    pub end: Result<(), LabError>,
}

/// Every ceiling of this machine.
pub fn list() -> Vec<ListedCeiling> {
    let cpus = tare_sys::affinity::get(0).map_or(1, |cpus| cpus.len());
    let entry = |kind: Kind| ListedCeiling {
        better: kind.better(),
        unit: kind.unit.to_owned(),
        name: kind.name,
        about: kind.about,
    };
    registry::all(cpus).into_iter().map(entry).collect()
}

/// Measures, and keeps what was found for the later runs of this boot.
pub fn measure(request: &Request, session: &Session, progress: &mut dyn Progress) -> Measured {
    match begin(request, session, progress) {
        Ok(measured) => measured,
        Err(error) => Measured { ceilings: None, end: Err(error) },
    }
}

fn begin(request: &Request, session: &Session, progress: &mut dyn Progress) -> Result<Measured, LabError> {
    let begun = Instant::now();
    let cpus = tare_sys::affinity::get(0).map_err(|error| LabError::Observe(format!("the CPUs: {error}")))?;
    let kinds = chosen(registry::all(cpus.len()), &request.only)?;
    let mut running = Running::begin(session, progress)?;
    for path in probe::clean_up(&request.dir) {
        let text = format!("removed {}, left by a run that was killed", path.display());
        running.progress.show(Event::Notice(text));
    }
    let ground = Rc::new(ground(request, session, &running, cpus)?);
    running.progress.show(Event::Expected { total_s: request.budget.as_secs_f64() });
    let before = company::Stamp::now();
    let seed = tare_sys::time::monotonic_ns();
    let mut rounds = rounds::Rounds::open(kinds, &ground);
    let opened = Instant::now();
    let budget = for_rounds(request.budget, opened - begun);
    let end = rounds.measure(budget, opened, seed, &mut running);
    let served = ground.reference.get().and_then(|reference| reference.as_ref().ok());
    let served = served.map_or_else(Vec::new, |reference| reference.pids().to_vec());
    let mut warnings = warnings(&ground, rounds.done, &before, &served);
    let found: Vec<Ceiling> = rounds.into_sampled().into_iter().map(ceiling).collect();
    let kept = match &end {
        Ok(()) => keep(&found, &running).map_err(|why| warnings.push(not_kept(&why))).is_ok(),
        Err(_) => false,
    };
    let cpus = ground.cpus.clone();
    // What was started is stopped first: the session then ends with nothing left to undo.
    drop(ground);
    let end = running.end(end).end;
    let is_any = found.iter().any(|ceiling| !ceiling.samples.is_empty());
    let ceilings = Ceilings {
        schema: SCHEMA,
        rounds: rounds_of(&found),
        ceilings: found,
        seed,
        took_s: begun.elapsed().as_secs_f64(),
        directory: request.dir.display().to_string(),
        cpus,
        kept,
        warnings,
    };
    Ok(Measured { ceilings: (is_any || end.is_ok()).then_some(ceilings), end })
}

/// What of the budget the rounds have once everything is open: a slow disk, or gigabytes of arrays, leave them half of it at least, as rounds
/// that are cut short say little of any ceiling.
fn for_rounds(budget: Duration, opening: Duration) -> Duration {
    budget.saturating_sub(opening).max(budget / 2)
}

/// Rounds that all that can be measured took part in.
fn rounds_of(ceilings: &[Ceiling]) -> u32 {
    ceilings.iter().map(|ceiling| ceiling.samples.len()).max().unwrap_or(0) as u32
}

/// Those whose name is asked for, or begins so.
fn chosen(all: Vec<Kind>, only: &[String]) -> Result<Vec<Kind>, LabError> {
    let is = |kind: &Kind, asked: &str| {
        kind.name == asked || kind.name.strip_prefix(asked).is_some_and(|rest| rest.starts_with('-'))
    };
    if let Some(asked) = only.iter().find(|asked| !all.iter().any(|kind| is(kind, asked))) {
        let nearest = all.iter().max_by(|a, b| {
            strsim::jaro_winkler(&a.name, asked).total_cmp(&strsim::jaro_winkler(&b.name, asked))
        });
        let nearest = nearest.map_or(String::new(), |kind| format!("did you mean {}? ", kind.name));
        return Err(LabError::usage(
            format!("there is no ceiling '{asked}'"),
            format!("{nearest}'tare ceiling --list' has all names"),
        ));
    }
    Ok(all.into_iter().filter(|kind| only.is_empty() || only.iter().any(|asked| is(kind, asked))).collect())
}

fn ground(
    request: &Request,
    session: &Session,
    running: &Running<'_>,
    cpus: Vec<u32>,
) -> Result<Ground, LabError> {
    let topology = &running.topology;
    let wanted = Wanted {
        sut_allowed: &[],
        sut_threads: (cpus.len() as u32 / 2).max(1),
        load_threads: place::load_threads(topology),
        given_sut: &[],
        given_load: &[],
        policy: Policy::Auto,
        quota_cpus: None,
    };
    let placement =
        placement::choose(topology, &wanted).map_err(|error| LabError::usage(error.to_string(), ""))?;
    let last_cache = cpus.iter().filter_map(|cpu| caches::last_cache_bytes(&Root::live(), *cpu)).max();
    Ok(Ground {
        may_poll: place::has_cores_of_its_own(&placement, topology),
        cpus,
        placement,
        dir: request.dir.clone(),
        program: request.program.clone(),
        journal: Rc::clone(&running.journal),
        interrupt: Arc::clone(&session.interrupt),
        facts: running.facts.cpus.clone(),
        arrays_bytes: ground::arrays_bytes(running.survey()),
        last_cache_bytes: last_cache.unwrap_or(0),
        bandwidth: OnceCell::new(),
        reference: OnceCell::new(),
    })
}

fn ceiling(sampled: Sampled) -> Ceiling {
    // Of logarithms: disturbances are factors, and no end of an interval is below zero.
    let logarithms: Vec<f64> = sampled.samples.iter().map(|sample| sample.ln()).collect();
    let estimate = match tare_stats::median_interval(&logarithms) {
        Some((ln, interval)) => Reading::Measured(Estimate {
            value: ln.exp(),
            unit: sampled.unit.to_owned(),
            ci95: interval.map(|interval| [interval.lo.exp(), interval.hi.exp()]),
        }),
        None => Reading::Missing(sampled.missing),
    };
    Ceiling {
        name: sampled.name,
        about: sampled.about,
        better: sampled.better,
        estimate,
        samples: sampled.samples,
        note: sampled.note,
    }
}

/// Puts what was measured where later runs find it.
fn keep(found: &[Ceiling], running: &Running<'_>) -> Result<(), String> {
    let known = |ceiling: &Ceiling| {
        // One or two rounds say nothing of how well it is known.
        let estimate = ceiling.estimate.value().filter(|estimate| estimate.ci95.is_some())?.clone();
        Some(KnownCeiling { name: ceiling.name.clone(), estimate })
    };
    let ceilings: Vec<KnownCeiling> = found.iter().filter_map(known).collect();
    if ceilings.is_empty() {
        return Err("no ceiling was measured in three rounds or more".to_owned());
    }
    let key = bounds::key(&running.facts).map_err(|missing| missing.why)?;
    let known = KnownCeilings { measured_unix_s: tare_sys::time::wall_s(), ceilings };
    let path = bounds::path(running.state_dir());
    tare_store::ceiling::keep(&path, &key, known).map_err(|error| format!("{}: {error}", path.display()))
}

fn not_kept(why: &str) -> Warning {
    warning(
        "ceilings-not-kept",
        format!("the ceilings could not be kept: {why}"),
        "give a longer --budget, or make the state directory writable: later runs then say their share of a ceiling",
    )
}

fn warnings(ground: &Ground, rounds: u32, before: &company::Stamp, served: &[u32]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if let Some(quota) = cgroup::quota_cpus(&Root::live(), std::process::id()) {
        warnings.push(warning(
            "quota",
            format!("a quota of {quota:.2} CPUs holds this process: the ceilings are those below it"),
            "measure outside of the control group for those of the machine",
        ));
    }
    if ground.cpus.len() == 1 {
        warnings.push(warning(
            "one-cpu",
            "this process may use one CPU: senders and receivers take it from each other".to_owned(),
            "measure without taskset, or on a machine with more CPUs",
        ));
    }
    if rounds < ROUNDS_FEW {
        warnings.push(warning(
            "few-rounds",
            format!("{rounds} rounds were measured: {ROUNDS_FEW} are the fewest whose interval one bad round does not decide"),
            "give a longer --budget, or fewer ceilings (--only)",
        ));
    }
    warnings.extend(before.warnings(served));
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_have_half_of_the_budget_however_long_it_took_to_open() {
        let s = Duration::from_secs;
        assert_eq!(for_rounds(s(45), s(5)), s(40));
        assert_eq!(for_rounds(s(10), s(9)), s(5));
        assert_eq!(for_rounds(s(10), s(60)), s(5));
    }

    #[test]
    fn names_are_chosen_whole_or_by_their_beginning() {
        let names = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
            chosen(registry::all(2), &only)
                .map(|kinds| kinds.into_iter().map(|kind| kind.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["fsync"]).expect("one"), ["fsync"]);
        assert_eq!(names(&["memory-copy"]).expect("two"), ["memory-copy-1", "memory-copy-2"]);
        assert!(names(&[]).expect("all").len() > 25);
        let text = names(&["fsnc"]).expect_err("no such name").to_string();
        assert!(text.contains("fsync") && text.contains("--list"), "{text}");
        assert!(names(&["memory-cop"]).is_err());
    }
}
