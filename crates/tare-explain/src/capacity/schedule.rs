//! Schedules of open loops, and which stage of a changing rate decides.

use crate::accounting::{Answered, Closed};
use tare_model::plan::{HttpWorkload, PlannedStage};
use tare_model::trial::{Measure, Trial};

/// More than this share of its schedule an open loop must not miss.
pub(crate) const MISSING_MAX: f64 = 0.01;
/// Fewer slices say nothing of what is usual.
const SLICES_MIN: usize = 8;
/// More failed attempts than this, and the figure is not one of the workload.
pub(crate) const ERROR_SHARE_MAX: f64 = 0.001;

/// Whether an open loop got answers to what it was to send; one a trial may be on its way at the edge.
pub(crate) fn reached(pool: &Closed) -> bool {
    let (Some(scheduled), Some(missing)) = (pool.answered.scheduled, missing(pool)) else { return false };
    scheduled > 0.0 && missing <= MISSING_MAX * scheduled + f64::from(pool.span.trials)
}

/// Requests of the schedule without an answer. Of a stage it is known how many requests waited for a connection at its edges: only by how many
/// more these became, or by how far answers fell behind on connections that had room, and by what had no answer, it missed its schedule.
pub(crate) fn missing(pool: &Closed) -> Option<f64> {
    let Answered { scheduled, requests, more_unsent, fell_behind, .. } = &pool.answered;
    let (scheduled, requests) = ((*scheduled)?, (*requests)?);
    Some(match more_unsent {
        Some(more) => more.max(*fell_behind) + pool.answered.answerless(),
        None => scheduled - requests,
    })
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
        let pool = Closed::pool(of_stage.clone().map(|(_, window)| window));
        first = first.or(Some(index));
        if shows_capacity(&pool, of_stage.map(|(trial, _)| trial), stage) {
            return Some(index);
        }
        all_held &= !fails(&pool) && !missed(&pool);
        let rate_hz = pool.rate_hz().unwrap_or(0.0);
        let is_more = rate_hz > held.map_or(0.0, |(_, most_hz)| most_hz);
        held = if all_held && is_more { Some((index, rate_hz)) } else { held };
    }
    held.map(|(index, _)| index).or(first)
}

/// Whether what was answered in a stage is what the server can do. A pause at the end of a window leaves requests unanswered too, but most
/// of the time all were.
pub(crate) fn shows_capacity<'t>(
    pool: &Closed,
    trials: impl Iterator<Item = &'t Trial>,
    stage: PlannedStage,
) -> bool {
    let rates_hz: Vec<f64> = trials.flat_map(slice_rates_hz).collect();
    let usual_hz = tare_stats::median(&rates_hz).filter(|_| rates_hz.len() >= SLICES_MIN);
    let offered_hz = pool.answered.scheduled.map(|scheduled| scheduled / pool.answered.elapsed_s);
    let keeps_up =
        usual_hz.zip(offered_hz).is_some_and(|(usual, offered)| usual >= (1.0 - MISSING_MAX) * offered);
    missed(pool) && !fails(pool) && !stage.is_ramp() && !keeps_up
}

/// Answers per second in each slice of a trial, but for the last one, which may be short.
fn slice_rates_hz(trial: &Trial) -> Vec<f64> {
    let Measure::Http(sample) = &trial.sample else { return Vec::new() };
    let pairs = sample.slices.windows(2).rev().skip(1);
    let rate = |pair: &[(u64, u64)]| pair[1].1 as f64 * 1e9 / pair[1].0.saturating_sub(pair[0].0) as f64;
    pairs.map(rate).filter(|rate_hz| rate_hz.is_finite()).collect()
}
