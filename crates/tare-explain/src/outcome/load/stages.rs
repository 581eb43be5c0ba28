//! The stages of a load whose rate changes: each a result of its own, and what they show of the server's capacity.

use super::facts::Facts;
use super::load_warnings;
use crate::outcome::requests::summary_of;
use crate::outcome::stages::left_over;
use tare_model::load::{LoadRun, LoadStage};
use tare_model::outcome::{Followed, StageOutcome};

/// Each stage, in order, and how far the server followed. Empty where the load has none.
pub(super) fn of(run: &LoadRun) -> (Vec<StageOutcome>, Option<Followed>) {
    let mut stages = Vec::new();
    let mut followed: Option<Followed> = None;
    let mut left_before = 0;
    for stage in &run.stages {
        let alone = LoadRun { sample: stage.sample.clone(), stages: Vec::new(), ..run.clone() };
        let facts = Facts::of(&alone);
        let outcome = outcome_of(stage, &facts, left_before);
        let so_far = followed.get_or_insert(Followed { held_hz: None, missed_hz: None, capacity_hz: None });
        match outcome.followed {
            // What a stage is like behind one that was not followed is the end of the other.
            _ if so_far.missed_hz.is_some() => {}
            // An error page is quick, and no answer to what was asked.
            Some(true) if !outcome.valid => {}
            Some(true) => so_far.held_hz = so_far.held_hz.into_iter().chain(outcome.rate_hz).reduce(f64::max),
            Some(false) => {
                so_far.missed_hz = outcome.offered_hz;
                // Where the rate changed, it was answered for a part of the time.
                let shows = !facts.saturated() && stage.from_hz == stage.to_hz;
                so_far.capacity_hz = outcome.rate_hz.filter(|_| shows);
            }
            None => {}
        }
        left_before = facts.unsent();
        stages.push(outcome);
    }
    (stages, followed)
}

fn outcome_of(stage: &LoadStage, facts: &Facts, left_before: u64) -> StageOutcome {
    let (mut warnings, mut valid) = load_warnings::judge(facts);
    if left_before > 0 {
        valid = false;
        warnings.insert(0, left_over(left_before));
    }
    StageOutcome {
        from_hz: stage.from_hz,
        to_hz: stage.to_hz,
        elapsed_s: facts.elapsed_s,
        offered_hz: stage
            .sample
            .scheduled
            .filter(|_| facts.elapsed_s > 0.0)
            .map(|due| due as f64 / facts.elapsed_s),
        rate_hz: facts.rate_hz,
        errors: facts.errors,
        followed: facts.schedule_kept.map(|_| !facts.missed_schedule()),
        left_before,
        valid,
        warnings,
        latency_ns: stage.sample.latency.value().map(summary_of).unwrap_or_default(),
    }
}
