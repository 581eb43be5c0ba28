//! The level of the reference server: what it costs on this machine with nothing in its way, over the sessions of one boot.
//!
//! Interference of a host lasts for seconds to an hour, so that a session by itself does not know how far it was disturbed. The
//! level is the lower quartile of what the reference cost in stretches of a quarter of a minute, of all sessions. A level that was
//! stated once stays as long as what is known since does not speak against it: nets of different sessions are then the same
//! multiple of their shares, and repeat as these do.

use crate::accounting::{Closed, Loss};
use crate::capacity::reference::cost_s;
use std::collections::BTreeMap;
use tare_model::Record;
use tare_model::outcome::TareCause;
use tare_model::plan::{HttpWorkload, Purpose, Workload};
use tare_model::reference_level::{ReferenceBlock, ReferenceHistory, ReferenceLevel};

/// Length of a stretch: interference changes little within it, and often from one to the next.
const BLOCK_NS: u64 = 15_000_000_000;
/// Stretches that are kept.
pub const BLOCKS_MAX: usize = 256;
/// The share of them that cost less than the level.
const QUANTILE: f64 = 0.25;
/// Standard error of a quartile of n normal values over s/√n: √(q(1 − q)) / φ(z).
const QUARTILE_ERROR: f64 = 1.36;
/// How much stretches differ before any was seen, on the log, and as how many stretches that counts.
const PRIOR_LN: f64 = 0.03;
const PRIOR_BLOCKS: f64 = 8.0;
/// No level is known better than this.
const HALF_LN_MIN: f64 = 0.01;
/// A level is stated anew once what was found since lies so many times as far from it as half of its 95 % interval: that is asked after
/// each session, and sessions one after another are alike, so that chance alone would leave the interval itself again and again.
const MOVED_HALVES: f64 = 2.0;
/// A session in which the reference was held back in all of its windows does not know its level to more than this.
const DISTURBED_HALF_LN: f64 = 0.2;
/// A quota that takes more of the CPU entitlement leaves caches cold.
const THROTTLED_MAX: f64 = 0.01;

/// What a record has to say of the level: empty where no reference was interleaved with the SUT, or it was throttled.
pub fn blocks(record: &Record) -> Vec<ReferenceBlock> {
    match &record.plan.workload {
        Workload::Http(http) => blocks_of(record, http, &Closed::all(record)),
        Workload::Command(_) => Vec::new(),
    }
}

/// What is known with these stretches too.
pub fn kept(mut history: ReferenceHistory, blocks: Vec<ReferenceBlock>) -> ReferenceHistory {
    history.blocks.extend(blocks);
    let too_many = history.blocks.len().saturating_sub(BLOCKS_MAX);
    history.blocks.drain(..too_many);
    history.level = restated(history.level, &history.blocks);
    history
}

/// The level that a record's net is stated at: what was known before it, else its own; `None` where it knew of no level at all.
pub(crate) fn stated(record: &Record, http: &HttpWorkload, windows: &[Closed]) -> Option<ReferenceLevel> {
    let known = http.reference?;
    let own = || level_of(&blocks_of(record, http, windows));
    known.level.filter(is_level).or_else(own).or_else(|| {
        let all: Vec<f64> =
            references(record, http, windows).filter_map(|(_, window)| cost_s(window)).collect();
        let cost_s = tare_stats::quantile(&all, QUANTILE)?;
        Some(ReferenceLevel {
            cost_s,
            clock_hz: None,
            half_ln: DISTURBED_HALF_LN,
            spread_ln: PRIOR_LN,
            sessions: 1,
        })
    })
}

fn is_level(level: &ReferenceLevel) -> bool {
    let is_length = |value: f64| value.is_finite() && value > 0.0;
    let is_spread = level.spread_ln.is_finite() && level.spread_ln >= 0.0;
    is_length(level.cost_s) && is_length(level.half_ln) && is_spread && level.clock_hz.is_none_or(is_length)
}

/// The level that was stated, or another one where that can no longer be.
fn restated(stated: Option<ReferenceLevel>, blocks: &[ReferenceBlock]) -> Option<ReferenceLevel> {
    let found = level_of(blocks);
    let (Some(stated), Some(found)) = (stated.filter(is_level), found) else { return found };
    let moved = (found.cost_s / stated.cost_s).ln().abs();
    let stays = moved <= MOVED_HALVES * found.half_ln;
    let (cost_s, clock_hz) =
        if stays { (stated.cost_s, stated.clock_hz) } else { (found.cost_s, found.clock_hz) };
    Some(ReferenceLevel { cost_s, clock_hz, ..found })
}

fn level_of(blocks: &[ReferenceBlock]) -> Option<ReferenceLevel> {
    let costs: Vec<f64> = blocks.iter().map(|block| block.cost_s).filter(|cost| *cost > 0.0).collect();
    let (cost_s, median_s) = (tare_stats::quantile(&costs, QUANTILE)?, tare_stats::median(&costs)?);
    let clocks: Vec<f64> = blocks.iter().filter_map(|block| block.clock_hz).collect();
    // Of the lower half, which interference that comes and goes does not stretch; as many lie above the middle.
    let below: f64 = costs.iter().map(|cost| (median_s / cost).ln().max(0.0).powi(2)).sum();
    let all: f64 = costs.iter().map(|cost| (median_s / cost).ln().powi(2)).sum();
    let count = costs.len() as f64;
    let spread = |squares: f64| ((PRIOR_BLOCKS * PRIOR_LN.powi(2) + squares) / (PRIOR_BLOCKS + count)).sqrt();
    let half_ln = (1.96 * QUARTILE_ERROR * spread(2.0 * below) / count.sqrt()).max(HALF_LN_MIN);
    let mut sessions: Vec<u64> = blocks.iter().map(|block| block.session_unix_s).collect();
    sessions.sort_unstable();
    sessions.dedup();
    let level = ReferenceLevel {
        cost_s,
        clock_hz: tare_stats::median(&clocks),
        half_ln,
        spread_ln: spread(all),
        sessions: sessions.len() as u32,
    };
    Some(level).filter(is_level)
}

/// The reference's windows, by place among all.
fn references<'r>(
    record: &'r Record,
    http: &'r HttpWorkload,
    windows: &'r [Closed],
) -> impl Iterator<Item = (usize, &'r Closed)> {
    let is_reference = move |place: &usize| purpose(record, http, *place) == Some(Purpose::Reference);
    windows.iter().enumerate().filter(move |(place, window)| is_reference(place) && window.arms() > 1)
}

fn purpose(record: &Record, http: &HttpWorkload, place: usize) -> Option<Purpose> {
    let level = record.trials.get(place)?.level;
    Some(http.levels.get(level as usize)?.purpose)
}

fn blocks_of(record: &Record, http: &HttpWorkload, windows: &[Closed]) -> Vec<ReferenceBlock> {
    let begin_ns = |place: usize| record.trials.get(place).map(|trial| trial.observation.begin_ns);
    // Those of the SUT over the same instants: what held it back held back the reference in the same group.
    let throttled: Vec<u64> = windows
        .iter()
        .enumerate()
        .filter(|(_, window)| {
            window.sut.as_ref().is_some_and(|sut| sut.share(Loss::Tare(TareCause::Throttled)) > THROTTLED_MAX)
        })
        .filter_map(|(place, _)| begin_ns(place))
        .collect();
    let mut stretches: BTreeMap<u64, Vec<(f64, Option<f64>)>> = BTreeMap::new();
    for (place, window) in references(record, http, windows) {
        let free = begin_ns(place).filter(|begin_ns| !throttled.contains(begin_ns));
        if let Some((begin_ns, cost_s)) = free.zip(cost_s(window)) {
            stretches.entry(begin_ns / BLOCK_NS).or_default().push((cost_s, window.clock_hz()));
        }
    }
    let block = |seen: Vec<(f64, Option<f64>)>| {
        let (costs, clocks): (Vec<f64>, Vec<Option<f64>>) = seen.into_iter().unzip();
        let clocks: Vec<f64> = clocks.into_iter().flatten().collect();
        Some(ReferenceBlock {
            cost_s: tare_stats::median(&costs)?,
            clock_hz: tare_stats::median(&clocks),
            session_unix_s: record.plan.started_unix_s,
        })
    };
    stretches.into_values().filter_map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(cost_s: f64, session_unix_s: u64) -> ReferenceBlock {
        ReferenceBlock { cost_s, clock_hz: Some(3e9), session_unix_s }
    }

    /// What the reference cost in 41 rounds of nginx, nanoseconds, with half-hours in which a hypervisor had the two CPUs apart.
    const ROUNDS_NS: [f64; 41] = [
        4117., 4179., 4196., 4255., 5595., 4570., 4275., 4149., 4410., 4330., 4234., 4365., 4289., 4315.,
        5506., 4239., 4397., 5475., 5257., 4221., 4003., 4141., 5602., 4261., 4597., 5213., 3988., 3991.,
        4021., 4008., 4034., 3934., 3887., 3998., 4240., 4204., 5554., 4177., 4027., 4009., 4054.,
    ];

    #[test]
    fn a_level_stays_where_it_is_and_is_known_better_with_each_session() {
        let mut history = ReferenceHistory::default();
        let mut levels = Vec::new();
        for (session, ns) in (0..).zip(ROUNDS_NS) {
            history = kept(history, vec![block(ns * 1e-9, session)]);
            levels.push(history.level.unwrap());
        }
        let [first, last] = [levels[0], levels[40]];
        assert!(first.half_ln > 0.06 && last.half_ln < 0.02 && last.sessions == 41, "{first:?} {last:?}");
        let restated = levels.windows(2).filter(|pair| pair[0].cost_s != pair[1].cost_s).count();
        assert!(restated <= 2, "{restated}");
        let held =
            levels.iter().filter(|level| (level.cost_s / last.cost_s).ln().abs() <= level.half_ln).count();
        assert!(held >= 39, "{held}");
    }

    #[test]
    fn a_level_of_a_bad_minute_is_given_up() {
        let bad = kept(ReferenceHistory::default(), vec![block(5.6e-6, 0)]);
        let history = kept(bad, (1..9).map(|session| block(4.1e-6, session)).collect());
        assert!((history.level.unwrap().cost_s / 4.1e-6).ln().abs() < 1e-3, "{history:?}");
    }

    #[test]
    fn what_is_kept_is_bounded_and_what_is_no_level_is_none() {
        let many = (0..1000).map(|session| block(4e-6, session)).collect();
        assert_eq!(kept(ReferenceHistory::default(), many).blocks.len(), BLOCKS_MAX);
        assert_eq!(kept(ReferenceHistory::default(), vec![block(0.0, 1), block(f64::NAN, 2)]).level, None);
        assert_eq!(kept(ReferenceHistory::default(), Vec::new()).level, None);
    }
}
