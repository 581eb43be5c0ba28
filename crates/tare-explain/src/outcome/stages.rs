//! The stages of a watched load whose rate changes: each explained for itself, and what they show of the server's capacity.

use super::requests;
use super::verdict::verdict;
use crate::capacity::levels::Accounting;
use crate::capacity::schedule;
use tare_model::outcome::{Followed, GrossIs, StageOutcome, Warning, WatchedStage};
use tare_model::plan::PlannedStage;

/// Each stage, in order, and how far the server followed. Empty where the load has none.
pub(crate) fn of(accounting: &Accounting) -> (Vec<WatchedStage>, Option<Followed>) {
    let Some(http) = accounting.http else { return (Vec::new(), None) };
    let mut stages = Vec::new();
    let mut followed: Option<Followed> = None;
    for (index, stage) in schedule::stages(http, &accounting.record.trials) {
        let at = accounting.at(index);
        let (watched, gross_is) = watched(&at, (index, stage), accounting.asked_index == Some(index));
        let so_far = followed.get_or_insert(Followed { held_hz: None, missed_hz: None, capacity_hz: None });
        let counted = &watched.counted;
        if watched.decides && schedule::shows_capacity(&at.asked.pool, at.asked_trials(), stage) {
            so_far.capacity_hz = counted.rate_hz.filter(|_| gross_is != GrossIs::LowerBound);
        }
        // What a stage is like behind one that was not followed is the end of the other.
        if so_far.missed_hz.is_none() && !stage_is_pause(counted) {
            let (held, failed) = (counted.followed == Some(true), schedule::fails(&at.asked.pool));
            if held && counted.valid {
                // What was left before may be answered on top.
                let held_hz =
                    counted.rate_hz.zip(counted.offered_hz).map(|(rate, offered)| rate.min(offered));
                so_far.held_hz = so_far.held_hz.into_iter().chain(held_hz).reduce(f64::max);
            } else if !held || failed {
                so_far.missed_hz = counted.offered_hz;
            }
        }
        stages.push(watched);
    }
    (stages, followed)
}

/// Nothing was asked for in it.
fn stage_is_pause(stage: &StageOutcome) -> bool {
    stage.followed.is_none()
}

fn watched(at: &Accounting, (index, stage): (usize, PlannedStage), decides: bool) -> (WatchedStage, GrossIs) {
    let (mut verdict, gross_is) = verdict(at);
    let answered = &at.asked.pool.answered;
    let left_before = at.samples().filter_map(|sample| sample.detail.as_ref()?.unsent);
    let left_before: u64 = left_before.map(|unsent| unsent.left_before.min(unsent.at_begin)).sum();
    let scheduled = answered.scheduled.filter(|scheduled| *scheduled > 0.0);
    if left_before as f64 > schedule::MISSING_MAX * scheduled.unwrap_or(0.0) {
        verdict.valid = false;
        verdict.warnings.insert(0, left_over(left_before));
    }
    let counted = StageOutcome {
        from_hz: stage.from_hz,
        to_hz: stage.to_hz,
        elapsed_s: answered.elapsed_s,
        offered_hz: answered
            .scheduled
            .filter(|_| answered.elapsed_s > 0.0)
            .map(|due| due / answered.elapsed_s),
        rate_hz: answered.rate_hz(),
        errors: answered.failed() as u64,
        followed: scheduled.map(|_| schedule::reached(&at.asked.pool)),
        left_before,
        valid: verdict.valid,
        warnings: verdict.warnings,
        latency_ns: requests::latency(at),
    };
    let bottleneck = verdict.bottleneck;
    let finding = verdict.findings.into_iter().find(|finding| finding.cause == bottleneck);
    let bottleneck_confidence = verdict.bottleneck_confidence;
    let trials = at.asked.trials.len();
    let stage = index as u32 + 1;
    (WatchedStage { stage, counted, trials, bottleneck, bottleneck_confidence, finding, decides }, gross_is)
}

/// A stage that began with what another had left.
pub(crate) fn left_over(requests: u64) -> Warning {
    Warning {
        id: "left-over".to_owned(),
        text: format!(
            "it began with {requests} requests that the stage before had left: their waits are in its latencies"
        ),
        hint: "a rate that the server cannot follow comes last".to_owned(),
    }
}
