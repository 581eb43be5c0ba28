//! The zoo: real programs of which it is known by their set-up what limits them. Each pair of subject and truth is an ordinary session, and
//! [`judge`] compares its verdict with the truth.
//!
//! The state is the folder of records: what has a record is not measured again but explained anew, so that it can be interrupted, gone on with,
//! and judged by a better explanation. A subject is a file in `subjects/` and a line in [`data`].

mod data;
mod judge;
mod stand;
#[cfg(test)]
mod tests;

use super::ground::{self, Ground};
use crate::error::LabError;
use crate::progress::{Event, Progress};
use crate::running::Session;
use crate::study::nearest;
use data::{Pair, Subject};
use stand::Prepared;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tare_machine::journal::Journal;
use tare_machine::{Root, facts};
use tare_model::calibration::{Place, SCHEMA};
use tare_model::zoo::{self, Run, RunResult, Truth, Zoo};

/// Seconds that a run takes, about: a short one, and a long one.
const RUN_S: [f64; 2] = [10.0, 30.0];

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// The command line, for the report.
    pub argv: Vec<String>,
    /// How often each pair is measured.
    pub repeats: u32,
    /// These alone, `SUBJECT` or `SUBJECT/TRUTH`; none: all that are installed.
    pub only: Vec<String>,
    /// Sessions as long as those of `tare run` are by themselves, with the reference.
    pub is_long: bool,
    /// No run is begun after so long; `None`: no limit.
    pub budget: Option<Duration>,
    /// The program that measures.
    pub program: PathBuf,
    /// A folder with the record of each run.
    pub records: PathBuf,
}

/// How it ended, and what there is of it.
#[derive(Debug)]
pub struct Measured {
    /// What came of the runs that were finished; `None`: nothing could be begun.
    pub zoo: Option<Zoo>,
    /// Whether it went to its end.
    pub end: Result<(), LabError>,
}

/// Measures what has no record yet, and judges all.
pub fn measure(request: &Request, session: &Session, progress: &mut dyn Progress) -> Measured {
    let mut zoo = None;
    let end = carry_out(request, session, &mut zoo, progress);
    Measured { zoo, end }
}

fn carry_out(
    request: &Request,
    session: &Session,
    kept: &mut Option<Zoo>,
    progress: &mut dyn Progress,
) -> Result<(), LabError> {
    let (subjects, truths) = (data::subjects(), data::truths());
    let (subjects, truths) = (subjects.map_err(LabError::State)?, truths.map_err(LabError::State)?);
    let place = ground::place()?;
    check_names(request, &subjects)?;
    std::fs::create_dir_all(&request.records).map_err(|error| {
        LabError::usage(format!("cannot use {}: {error}", request.records.display()), "name another folder")
    })?;
    for line in crate::recover(&session.state_dir) {
        progress.show(Event::Notice(line));
    }
    let journal = Journal::create(&session.state_dir, &Root::live());
    let journal = Rc::new(journal.map_err(|error| LabError::State(error.to_string()))?);
    let ground =
        Ground { place: &place, journal: &journal, program: &request.program, interrupt: &session.interrupt };
    let begun = Instant::now();
    let zoo = kept.insert(nothing_yet(request, &subjects, truths));
    let end = all(&subjects, request, session, &ground, zoo, progress);
    zoo.took_s = begun.elapsed().as_secs_f64();
    match Rc::into_inner(journal).map(Journal::finish) {
        Some(Err(error)) if end.is_ok() => Err(LabError::State(error.to_string())),
        _ => end,
    }
}

fn all(
    subjects: &[Subject],
    request: &Request,
    session: &Session,
    ground: &Ground<'_>,
    zoo: &mut Zoo,
    progress: &mut dyn Progress,
) -> Result<(), LabError> {
    let begun = Instant::now();
    let all: usize = subjects.iter().map(|subject| chosen(request, subject).len()).sum();
    progress.show(Event::Expected { total_s: all as f64 * RUN_S[usize::from(request.is_long)] });
    zoo.complete = true;
    for (at, subject) in subjects.iter().enumerate() {
        let runs = chosen(request, subject);
        let unmeasured = |(repeat, pair): &&(u32, Pair)| !file(request, subject, pair, *repeat).exists();
        let any_to_measure = runs.iter().any(|run| unmeasured(&run));
        let missing = if any_to_measure { stand::missing(subject, ground)? } else { None };
        let is_missing = missing.is_some();
        if let Some(known) = zoo.subjects.get_mut(at) {
            known.missing = missing;
        }
        let mut prepared = None;
        for run in &runs {
            let is_new = unmeasured(&run);
            let is_over = request.budget.is_some_and(|budget| begun.elapsed() >= budget);
            if is_new && (is_missing || is_over) {
                zoo.complete &= is_missing;
                continue;
            }
            if session.interrupt.load(Ordering::Relaxed) {
                zoo.complete = false;
                return Err(LabError::Interrupted);
            }
            let record = match is_new {
                false => tare_store::read(&file(request, subject, &run.1, run.0))
                    .map_err(|error| LabError::State(error.to_string())),
                true => one(request, (subject, run), &mut prepared, (session, ground)),
            };
            keep(record, (subject, run), zoo, progress)?;
        }
    }
    Ok(())
}

/// The runs of a subject that are asked for.
fn chosen(request: &Request, subject: &Subject) -> Vec<(u32, Pair)> {
    let pairs = subject.pairs.iter().filter(|pair| is_asked(request, subject, pair));
    (1..=request.repeats).flat_map(|repeat| pairs.clone().map(move |pair| (repeat, pair.clone()))).collect()
}

/// Judges a run, and keeps what came of it.
fn keep(
    record: Result<tare_model::Record, LabError>,
    (subject, (repeat, pair)): (&Subject, &(u32, Pair)),
    zoo: &mut Zoo,
    progress: &mut dyn Progress,
) -> Result<(), LabError> {
    let result = match record {
        Ok(record) => judged(&record, pair, zoo),
        Err(LabError::Interrupted) => {
            zoo.complete = false;
            return Err(LabError::Interrupted);
        }
        Err(error) => RunResult::Failed { why: error.to_string() },
    };
    progress.show(Event::Step(format!("{}/{} {repeat}: {}", subject.name, pair.truth, said(&result))));
    let (subject, truth) = (subject.name.clone(), pair.truth.clone());
    zoo.runs.push(Run { subject, truth, repeat: *repeat, result });
    zoo.summary = judge::summary(&zoo.runs, &zoo.truths);
    Ok(())
}

/// A session of a pair; a record of one that failed does not stay.
fn one<'s>(
    request: &Request,
    (subject, (repeat, pair)): (&'s Subject, &(u32, Pair)),
    prepared: &mut Option<Prepared<'s>>,
    (session, ground): (&Session, &Ground<'_>),
) -> Result<tare_model::Record, LabError> {
    let prepared = match prepared {
        Some(prepared) => prepared,
        None => prepared.insert(Prepared::new(subject, request.is_long, ground)?),
    };
    let file = file(request, subject, pair, *repeat);
    let begun = file.with_extension("part");
    let session = Session { record: Some(begun.clone()), ..session.clone() };
    let record = prepared.session(pair, ground, &session);
    match &record {
        Ok(_) => std::fs::rename(&begun, file).map_err(|error| LabError::State(error.to_string()))?,
        Err(_) => std::fs::remove_file(&begun).unwrap_or_default(),
    }
    record
}

fn judged(record: &tare_model::Record, pair: &Pair, zoo: &Zoo) -> RunResult {
    match zoo.truths.iter().find(|truth| truth.name == pair.truth) {
        Some(truth) => RunResult::Measured(judge::judge(truth, &tare_explain::explain(record))),
        None => RunResult::Failed { why: format!("there is no truth '{}'", pair.truth) },
    }
}

fn file(request: &Request, subject: &Subject, pair: &Pair, repeat: u32) -> PathBuf {
    request.records.join(format!("{}--{}--{repeat}.tare", subject.name, pair.truth))
}

fn is_asked(request: &Request, subject: &Subject, pair: &Pair) -> bool {
    let named = |name: &String| *name == subject.name || *name == format!("{}/{}", subject.name, pair.truth);
    request.only.is_empty() || request.only.iter().any(named)
}

fn check_names(request: &Request, subjects: &[Subject]) -> Result<(), LabError> {
    let pairs = subjects
        .iter()
        .flat_map(|subject| subject.pairs.iter().map(move |pair| format!("{}/{}", subject.name, pair.truth)));
    let names: Vec<String> = subjects.iter().map(|subject| subject.name.clone()).chain(pairs).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match request.only.iter().find(|name| !names.contains(&name.as_str())) {
        Some(name) => {
            Err(LabError::usage(format!("there is no '{name}' in the zoo"), nearest::hint(name, &names)))
        }
        None => Ok(()),
    }
}

fn nothing_yet(request: &Request, subjects: &[Subject], truths: Vec<Truth>) -> Zoo {
    let reach = facts::Reach { company: None, windows: false };
    let listed = |subject: &Subject| zoo::Subject {
        name: subject.name.clone(),
        about: subject.about.clone(),
        truths: subject.pairs.iter().map(|pair| pair.truth.clone()).collect(),
        missing: None,
    };
    Zoo {
        schema: SCHEMA,
        argv: request.argv.clone(),
        started_unix_s: tare_sys::time::wall_s(),
        took_s: 0.0,
        repeats: request.repeats,
        complete: false,
        machine: Place::of(&facts::survey(&Root::live(), reach).machine),
        truths,
        subjects: subjects.iter().map(listed).collect(),
        runs: Vec::new(),
        summary: Default::default(),
    }
}

/// What a run came to, in a line.
fn said(result: &RunResult) -> String {
    let found = match result {
        RunResult::Failed { why } => return format!("FAILED: {why}"),
        RunResult::Measured(found) => found,
    };
    let alarms: String = found.alarms.iter().map(|alarm| format!(", alarm {}", alarm.id())).collect();
    let judgement = match found.judgement {
        zoo::Judgement::Right => "found",
        zoo::Judgement::NotKnown => "NOT KNOWN:",
        zoo::Judgement::Wrong => "WRONG: found",
    };
    format!("{judgement} {}{alarms}", found.bottleneck.id())
}
