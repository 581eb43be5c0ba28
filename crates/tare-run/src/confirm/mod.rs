//! Confirming by intervention: a little of the one resource that is said to be the bottleneck is given or taken, in pairs of short trials
//! of the same server, in an order drawn at random. `tare-explain` computes from the pairs how throughput follows it. Where the bottleneck is of a
//! kind that nothing can be tried on, the first finding that is not is tried in its stead.
//!
//! What is tried on each cause is a file in `interventions/` and a line in its registry. Whatever is changed is in the journal and is
//! put back by `Drop`, or by the next start.

mod intervention;
mod interventions;

use crate::error::LabError;
use crate::generate::load_failed;
use crate::loads::drive::{Drive, start};
use crate::progress::Event;
use crate::running::Running;
use crate::subjects::sut::Sut;
use intervention::{Change, Ground, Lever, Toggle};
use std::time::Duration;
use tare_load::{Generator, LoadSpec, Pacing};
use tare_model::Missing;
use tare_model::intervention::{Blocks, Intervention, Pair};
use tare_model::outcome::{Cause, NotTried, Outcome};
use tare_stats::SplitMix64;

/// Pairs of trials: Student's interval is then 0.84 standard deviations of a pair wide on either side.
const PAIRS: usize = 8;
/// Length of a trial: whole periods of a quota, which are 100 ms nearly everywhere.
const TRIAL: Duration = Duration::from_millis(500);
/// After each change, until it is felt: a period of a quota and a bit.
const SETTLE: Duration = Duration::from_millis(120);

/// How long it takes, about.
pub(crate) const EXPECTED_S: f64 = 2.0 * PAIRS as f64 * 0.62;

/// Why blocks came to no end: the session's own failure, or a reason that is the result.
enum Stopped {
    Failed(LabError),
    Cannot(Missing),
}

impl From<LabError> for Stopped {
    fn from(error: LabError) -> Stopped {
        Stopped::Failed(error)
    }
}

impl From<Missing> for Stopped {
    fn from(missing: Missing) -> Stopped {
        Stopped::Cannot(missing)
    }
}

/// Tries what the bottleneck of the trials so far is said to be, and keeps what came of it, also where it cannot be tried here.
pub(crate) fn confirm(drive: &Drive<'_>, sut: &mut Sut, running: &mut Running<'_>) -> Result<(), LabError> {
    let Some(outcome) = running.explained() else { return Ok(()) };
    let found: Vec<Cause> = outcome.verdict.findings.iter().map(|finding| finding.cause).collect();
    let (cause, instead_of) = to_try(outcome.verdict.bottleneck, &found);
    if interventions::of(cause).is_ok() {
        running.progress.show(Event::Step(format!("trying whether it is {}", cause.id())));
    }
    let blocks = match blocks(cause, &outcome, drive, sut, running) {
        Ok(blocks) => Ok(blocks),
        Err(Stopped::Cannot(missing)) => Err(missing),
        Err(Stopped::Failed(error)) => return Err(error),
    };
    running.keep_intervention(Intervention { cause, instead_of, blocks: blocks.into() })
}

/// The bottleneck; where nothing can be tried on it the first finding on which something can, and why the bottleneck is not.
fn to_try(bottleneck: Cause, found: &[Cause]) -> (Cause, Option<NotTried>) {
    // What holds an error page where it is says nothing of the workload.
    let Some(why) = interventions::of(bottleneck).err().filter(|_| bottleneck != Cause::Errors) else {
        return (bottleneck, None);
    };
    match found.iter().find(|cause| interventions::of(**cause).is_ok()) {
        Some(cause) => (*cause, Some(NotTried { cause: bottleneck, why })),
        None => (bottleneck, None),
    }
}

fn blocks(
    cause: Cause,
    outcome: &Outcome,
    drive: &Drive<'_>,
    sut: &mut Sut,
    running: &mut Running<'_>,
) -> Result<Blocks, Stopped> {
    let intervention = interventions::of(cause)?;
    let spec = asked(drive, sut)?;
    let mut generator = start(&spec, sut, running.interrupt)?;
    let tids = generator.thread_ids();
    sut.meet_children();
    let pids = sut.pids.clone();
    let (journal, topology) = (running.journal.clone(), running.topology.clone());
    let change = (intervention.prepare)(&Ground {
        outcome,
        pids: &pids,
        spec: &spec,
        load_tids: &tids,
        placement: drive.placement,
        topology: &topology,
        journal: &journal,
        state_dir: running.state_dir(),
    })?;
    let Change { what, unit, before, changed, by } = change;
    let mut random = SplitMix64::new(drive.seed);
    let pairs = match by {
        Lever::Toggle(mut lever) => {
            running.wait(SETTLE, "settling", |_| None)?;
            let pairs = pairs(&mut random, |changed, phase| {
                toggled(lever.as_mut(), changed, &mut generator, phase, running)
            });
            // Put back before the load ends: threads that have ended are in no group.
            drop(lever);
            generator.stop().map_err(load_failed)?;
            pairs?
        }
        Lever::Load(other) => {
            generator.stop().map_err(load_failed)?;
            pairs(&mut random, |changed, phase| {
                loaded(if changed { &other } else { &spec }, sut, phase, running)
            })?
        }
    };
    sut.check_alive()?;
    Ok(Blocks { what, unit: unit.to_owned(), before, changed, floor: intervention.floor, pairs })
}

/// The load that was asked for, where it is tare's to change and stays the same while it is compared.
fn asked(drive: &Drive<'_>, sut: &Sut) -> Result<LoadSpec, Missing> {
    let pacing = &drive.request.traffic.pacing;
    if !drive.request.load.is_own() {
        return Err(Missing::with_remedy(
            "the load is somebody else's generator",
            "run again with tare's own (without --load and --load-pid)",
        ));
    }
    if pacing.stages_ns().is_some() {
        return Err(Missing::with_remedy(
            "the load's rate changes by itself",
            "run again at one rate (--rate)",
        ));
    }
    let level = drive.levels.first().ok_or_else(|| Missing::new("no level was driven"))?;
    Ok(drive.stand(0, level).spec(Pacing::clone(pacing), sut))
}

/// Drives the pairs, the changed one first or last as the dice fall.
fn pairs(
    random: &mut SplitMix64,
    mut trial_hz: impl FnMut(bool, &str) -> Result<f64, Stopped>,
) -> Result<Vec<Pair>, Stopped> {
    let mut pairs = Vec::with_capacity(PAIRS);
    for at in 1..=PAIRS {
        let phase = format!("confirming {at}/{PAIRS}");
        let changed_first = random.next_u64().is_multiple_of(2);
        let first = trial_hz(changed_first, &phase)?;
        let second = trial_hz(!changed_first, &phase)?;
        let (changed_hz, before_hz) = if changed_first { (first, second) } else { (second, first) };
        pairs.push(Pair { before_hz, changed_hz });
    }
    Ok(pairs)
}

/// A trial with something changed or not, under the load that goes on.
fn toggled(
    lever: &mut dyn Toggle,
    changed: bool,
    generator: &mut Generator,
    phase: &str,
    running: &mut Running<'_>,
) -> Result<f64, Stopped> {
    lever.set(changed)?;
    rate(generator, phase, running)
}

/// A trial under a load of its own.
fn loaded(spec: &LoadSpec, sut: &mut Sut, phase: &str, running: &mut Running<'_>) -> Result<f64, Stopped> {
    let mut generator = start(spec, sut, running.interrupt)?;
    let rate_hz = rate(&mut generator, phase, running)?;
    generator.stop().map_err(load_failed)?;
    Ok(rate_hz)
}

/// Answers per second of a trial.
fn rate(generator: &mut Generator, phase: &str, running: &mut Running<'_>) -> Result<f64, Stopped> {
    running.wait(SETTLE, phase, |_| None)?;
    generator.cut();
    running.wait(TRIAL, phase, |_| None)?;
    let sample = generator.cut();
    let answers = sample.requests.ok()?;
    Ok(answers as f64 * 1e9 / sample.elapsed_ns.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_finding_that_can_be_is_tried_where_the_limit_cannot() {
        use Cause::{BlockedOnDisk, CpuContended, CpuQuotaThrottled, Errors, Oversubscribed, Unknown};
        let tried = |bottleneck, found: &[Cause]| {
            let (cause, instead_of) = to_try(bottleneck, found);
            (cause, instead_of.map(|not| not.cause))
        };
        assert_eq!(tried(CpuQuotaThrottled, &[CpuContended, CpuQuotaThrottled]), (CpuQuotaThrottled, None));
        let some = [BlockedOnDisk, Oversubscribed, CpuContended, CpuQuotaThrottled, Unknown];
        for bottleneck in [Unknown, BlockedOnDisk] {
            assert_eq!(tried(bottleneck, &some), (CpuContended, Some(bottleneck)));
        }
        // Nothing to try: why the bottleneck is not stays the result.
        assert_eq!(tried(Unknown, &[BlockedOnDisk, Unknown]), (Unknown, None));
        assert_eq!(tried(Errors, &[Errors, CpuContended]), (Errors, None));
        let (_, instead_of) = to_try(Unknown, &some);
        let why = interventions::of(Unknown).err();
        assert!(why.is_some() && instead_of.map(|not| not.why) == why);
    }
}
