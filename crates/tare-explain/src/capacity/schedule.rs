//! Schedules of open loops, and which stage of a changing rate decides.

use crate::accounting::Closed;
use tare_model::plan::{HttpWorkload, PlannedStage};
use tare_model::trial::Trial;

/// More than this share of its schedule an open loop must not miss.
pub(crate) const MISSING_MAX: f64 = 0.01;
/// More failed attempts than this, and the figure is not one of the workload.
pub(crate) const ERROR_SHARE_MAX: f64 = 0.001;

/// Whether an open loop got answers to what it was to send; one a trial may be on its way at the edge. Of a stage it is known how many
/// requests waited for a connection at its edges: only by how many more these became, and by what had no answer, it missed its schedule.
pub(crate) fn reached(pool: &Closed) -> bool {
    let (Some(scheduled), Some(requests)) = (pool.answered.scheduled, pool.answered.requests) else {
        return false;
    };
    let missing = match pool.answered.more_unsent {
        Some(more) => more.max(0.0) + pool.answered.answerless(),
        None => scheduled - requests,
    };
    scheduled > 0.0 && missing <= MISSING_MAX * scheduled + f64::from(pool.span.trials)
}

/// Whether an open loop got fewer answers than it was to send: its latencies then are those of a load that nobody asked
/// for, and the requests that were not sent are in none of them.
pub(crate) fn missed(pool: &Closed) -> bool {
    pool.answered.scheduled.is_some_and(|scheduled| scheduled > 0.0) && !reached(pool)
}

/// Whether so much failed that the figure is not a figure of the workload.
pub(crate) fn fails(pool: &Closed) -> bool {
    pool.answered.error_share() > ERROR_SHARE_MAX
}

/// The stages of a plan that were driven: each with the index of its level.
pub(crate) fn stages<'a>(
    http: &'a HttpWorkload,
    trials: &'a [Trial],
) -> impl Iterator<Item = (usize, PlannedStage)> + 'a {
    let driven = |index: &usize| trials.iter().any(|trial| trial.level as usize == *index);
    let levels = http.levels.iter().enumerate();
    levels.filter_map(|(index, level)| Some((index, level.stage?))).filter(move |(index, _)| driven(index))
}

/// Which level gross, net and bottleneck of a load with stages are of: the first stage that was not followed, as its answers are what the
/// server can do. Not one whose answers are errors, nor one in which the rate changed and with it what the server did. Where there is none,
/// the highest rate that was followed before one was not; else the first stage. `None`: the load has no stages.
pub(crate) fn deciding(http: &HttpWorkload, trials: &[Trial], windows: &[Closed]) -> Option<usize> {
    let mut held: Option<(usize, f64)> = None;
    let (mut first, mut all_held) = (None, true);
    for (index, stage) in stages(http, trials) {
        let of_stage = trials.iter().zip(windows).filter(|(trial, _)| trial.level as usize == index);
        let pool = Closed::pool(of_stage.map(|(_, window)| window));
        first = first.or(Some(index));
        if shows_capacity(&pool, stage) {
            return Some(index);
        }
        all_held &= !fails(&pool) && !missed(&pool);
        let rate_hz = pool.rate_hz().unwrap_or(0.0);
        let is_more = rate_hz > held.map_or(0.0, |(_, most_hz)| most_hz);
        held = if all_held && is_more { Some((index, rate_hz)) } else { held };
    }
    held.map(|(index, _)| index).or(first)
}

/// Whether what was answered in a stage is what the server can do.
pub(crate) fn shows_capacity(pool: &Closed, stage: PlannedStage) -> bool {
    missed(pool) && !fails(pool) && !stage.is_ramp()
}
