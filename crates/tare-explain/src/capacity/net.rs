//! Gross → tare → net with intervals: the iron law on pooled accounting, and a jackknife over the blocks.

use crate::accounting::Closed;
use crate::capacity::iron::{Chain, Point};
use crate::capacity::level::Level;
use crate::capacity::reference;
use crate::capacity::service_demand::{Basis, Choice, Seen};
use tare_model::Missing;
use tare_model::outcome::TareCause;
use tare_model::reference_level::ReferenceLevel;
use tare_stats::{Interval, Jackknife, jackknife};

/// Gross → tare → net with intervals.
#[derive(Debug, Clone)]
pub(crate) struct NetEstimate {
    /// req/s (http) or seconds (commands).
    pub net: f64,
    pub net_ci95: Option<Interval>,
    /// What the trials alone say of it: how far sessions lie apart is not in it.
    pub net_of_trials: Option<Interval>,
    pub parts: Vec<(TareCause, f64, Option<Interval>)>,
    /// Clock that net is stated at.
    pub reference_hz: Option<f64>,
    pub entitled: f64,
    /// How the demand at saturation was found (http).
    pub choice: Option<Choice>,
    /// Net against the reference server, where that was measured.
    pub against: Option<Against>,
}

/// With such a ratio between its ends an interval says nothing.
const UNKNOWN_RATIO: f64 = 10.0;

impl NetEstimate {
    /// Itself, if its trials tell anything. How far sessions lie apart does not count here: it makes the interval wide.
    ///
    /// # Errors
    /// The trials leave net open by a factor of ten.
    pub fn if_known(self) -> Result<NetEstimate, Missing> {
        if !self.net_of_trials.as_ref().is_some_and(is_open) {
            return Ok(self);
        }
        Err(Missing::with_remedy(
            "the trials differ so much that net could be a tenth or ten times as much",
            "take more or longer trials (--trials, -d)",
        ))
    }

    /// Whether another session may find a net that is ten times as high or as low.
    pub fn is_of_this_session_alone(&self) -> bool {
        self.net_ci95.as_ref().is_some_and(is_open)
    }
}

fn is_open(interval: &Interval) -> bool {
    interval.lo <= 0.0 || interval.hi > UNKNOWN_RATIO * interval.lo
}

/// Net against the reference server's in the same blocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Against {
    /// Net of a CPU over the reference's of one.
    pub ratio: f64,
    pub ratio_ci95: Option<Interval>,
    /// ln of the ratio as the blocks spread it; `None`: there is one block.
    pub ratio_ln: Option<Jackknife>,
    /// CPU seconds of a request of the reference.
    pub cost_s: f64,
    /// Whether net and its cost part have the interference taken out.
    pub corrected: bool,
    /// Whether its CPUs decide net, and no serial stage of the program does.
    pub is_of_cpus: bool,
    /// What net is stated at.
    pub level: Option<ReferenceLevel>,
}

/// The trials that net is computed from. A block is one trial of each level, or of a level with more of them several.
pub(crate) struct Evidence<'l> {
    pub asked: &'l Level,
    pub saturating: Option<&'l Level>,
    pub reference: Option<&'l Level>,
    /// The reference server's level, where the session knew or found one.
    pub level: Option<ReferenceLevel>,
}

impl Evidence<'_> {
    /// How many blocks were planned; a level with a single trial is in all of them.
    fn blocks(&self) -> usize {
        let levels = [Some(self.asked), self.saturating, self.reference].into_iter().flatten();
        levels.map(|level| level.planned).filter(|trials| *trials > 1).min().unwrap_or(0)
    }

    /// Those of them in which the asked load was measured: a session may have been interrupted.
    fn measured(&self) -> Vec<usize> {
        let mut blocks: Vec<usize> =
            (0..self.asked.trials.len()).filter_map(|trial| self.block_of(self.asked, trial)).collect();
        blocks.dedup();
        blocks
    }

    fn block_of(&self, level: &Level, trial: usize) -> Option<usize> {
        (level.planned > 1).then(|| trial * self.blocks() / level.planned)
    }

    /// The trials of a level, without those of a block.
    fn trials<'t>(&'t self, level: &'t Level, skip: Option<usize>) -> impl Iterator<Item = &'t Closed> {
        let kept = move |(trial, window)| {
            let is_left_out = skip.is_some() && self.block_of(level, trial) == skip;
            (!is_left_out).then_some(window)
        };
        level.trials.iter().enumerate().filter_map(kept)
    }

    fn pool(&self, level: &Level, skip: Option<usize>) -> Closed {
        Closed::pool(self.trials(level, skip))
    }

    /// Whether the reference shows the interference of the windows that the demand at saturation is from: it was loaded interleaved with the
    /// SUT in them.
    fn shows_interference(&self, choice: &Choice) -> bool {
        let interleaved = self.reference.is_some_and(|reference| reference.pool.arms() > 1);
        interleaved && choice.from_saturating && choice.basis == Basis::Measured && self.are_apart()
    }

    /// Whether the SUT and the reference did what they were sent each in its own part of the time.
    fn are_apart(&self) -> bool {
        let point = self.saturating.and_then(|level| Point::of(&level.pool).ok());
        point.is_none_or(|point| point.arms < 2 || point.keeps_to_its_part())
    }

    /// All that is seen without one of the blocks.
    fn seen(&self, skip: Option<usize>, corrected: bool) -> Option<Seen> {
        let saturating = self.saturating.and_then(|level| Point::of(&self.pool(level, skip)).ok());
        let levels = [Some(self.asked), self.saturating.filter(|_| saturating.is_some())];
        let samples = |level| {
            self.trials(level, skip).filter_map(|window| Point::of(window).ok()?.fit_sample(corrected))
        };
        Some(Seen {
            asked: Point::of(&self.pool(self.asked, skip)).ok()?,
            saturating,
            samples: levels.into_iter().flatten().flat_map(samples).collect(),
        })
    }

    /// How long the trials of the asked level took, seconds; at least one.
    fn length_s(&self) -> f64 {
        self.asked.pool.span.wall_s.max(1.0)
    }

    fn reference_cost_s(&self, skip: Option<usize>) -> Option<f64> {
        self.reference.and_then(|level| reference::cost_s(&self.pool(level, skip)))
    }
}

/// Estimates net from the asked level and the levels beside it.
pub(crate) fn estimate_net(
    point: &Point,
    evidence: &Evidence,
    reference_hz: Option<f64>,
) -> Result<NetEstimate, Missing> {
    let seen =
        evidence.seen(None, false).ok_or_else(|| Missing::new("the server did not run in the window"))?;
    let choice = seen.choose()?;
    let timeline = |corrected| Timeline::of(evidence, choice, reference_hz, corrected);
    let timeline = Some(evidence.shows_interference(&choice))
        .filter(|shows| *shows)
        .and_then(timeline)
        .or_else(|| timeline(false))
        .ok_or_else(|| Missing::new("a term of the iron law is zero or not a number"))?;
    let cost_se = lone_trial_se(&choice, evidence);
    let ci = |place: usize, moves_with_cost: bool| {
        let jack = timeline.spread.as_ref()?.get(place)?;
        let (cost_se, [below, above]) =
            if moves_with_cost { (cost_se, choice.ln_slack) } else { (0.0, [0.0, 0.0]) };
        let around = Interval::around(jack.value, jack.se.hypot(cost_se), jack.df)?;
        // A lower C_sat is a higher net and a larger cost part.
        Interval::new(around.lo - above, around.hi + below)
    };
    let chain = &timeline.chain;
    let ratio = timeline.ratio.filter(|_| evidence.are_apart());
    let against = ratio.zip(evidence.reference_cost_s(None)).map(|(ratio, cost_s)| Against {
        ratio,
        ratio_ci95: ci(RATIO, true).and_then(|interval| interval.map(f64::exp)),
        ratio_ln: timeline.spread.as_ref().and_then(|spread| spread.get(RATIO)).copied(),
        cost_s,
        corrected: timeline.corrected,
        is_of_cpus: timeline.is_of_cpus,
        level: evidence.level.filter(|_| timeline.corrected),
    });
    let net_of_trials = ci(NET, true);
    let wider = || repeats_ln(timeline.spread.as_ref()?.get(NET)?, &timeline, evidence);
    let net_ci95 =
        net_of_trials.map(|interval| widened(&interval, chain.net_hz.ln(), wider().unwrap_or(0.0)));
    let parts = chain
        .parts
        .iter()
        .enumerate()
        .map(|(place, (cause, part))| (*cause, *part, ci(place + PARTS, *cause == TareCause::Cost)))
        .collect();
    Ok(NetEstimate {
        net: chain.net_hz,
        net_ci95: net_ci95.and_then(|interval| interval.map(f64::exp)),
        net_of_trials: net_of_trials.and_then(|interval| interval.map(f64::exp)),
        parts,
        reference_hz: reference_hz.filter(|_| chain.parts.contains_key(&TareCause::Clock)),
        entitled: point.entitled,
        choice: Some(choice),
        against,
    })
}

/// What nets of sessions differ by beyond the spread of their trials, half of an interval on the log. With a level of the reference:
/// see [`between_sessions_ln`]. Without: what interference that lasts leaves between sessions that are an hour apart.
fn repeats_ln(net: &Jackknife, timeline: &Timeline, evidence: &Evidence) -> Option<f64> {
    match (&evidence.level, timeline.corrected) {
        (Some(level), true) => Some(between_sessions_ln(level, evidence.reference_cost_s(None))),
        _ => {
            let wider = net.between_runs(HOUR_S / evidence.length_s()).ci95()?;
            Some(0.5 * (wider.hi - wider.lo))
        }
    }
}

/// What nets of sessions that are stated at a level differ by, half of an interval on the log: how well the level is known, how far a strong
/// interference of this session may meet two programs unlike, and how far any of this machine's does.
pub(crate) fn between_sessions_ln(level: &ReferenceLevel, reference_cost_s: Option<f64>) -> f64 {
    let disturbed = reference_cost_s.map_or(0.0, |cost_s| (cost_s / level.cost_s).ln().abs());
    level.half_ln.hypot(unlike_ln(disturbed)).hypot(unlike_programs_ln(level))
}

/// How far what this machine's host does to every session meets two programs unlike, half of an interval on the log.
pub(crate) fn unlike_programs_ln(level: &ReferenceLevel) -> f64 {
    UNLIKE_SPREAD * level.spread_ln
}

/// How far interference of a size may meet two programs unlike: up to a sixth their ratio holds within 1 %, beyond it by a
/// quarter of what is more (nginx beside the reference server, 250 sessions; 7 % where everything took 35 % more).
pub(crate) fn unlike_ln(disturbed: f64) -> f64 {
    UNLIKE_SHARE * (disturbed - ALIKE_LN).max(0.0)
}

/// The interval, reaching at least as far from its middle as squares add up to.
fn widened(interval: &Interval, middle: f64, half_ln: f64) -> Interval {
    let reach = |end: f64| (end - middle).abs().hypot(half_ln);
    Interval::new(middle - reach(interval.lo), middle + reach(interval.hi)).unwrap_or(*interval)
}

const HOUR_S: f64 = 3600.0;
const ALIKE_LN: f64 = 0.15;
const UNLIKE_SHARE: f64 = 0.25;
/// Half of an interval gets so much of the standard deviation of the reference from one stretch to another (nginx, Node and Go beside the
/// reference, 189 sessions in six conditions).
const UNLIKE_SPREAD: f64 = 0.4;

/// What arithmetic may leave of two equal figures, as a share.
const ROUNDING: f64 = 1e-9;

/// Places of the figures that are jackknifed.
const NET: usize = 0;
const RATIO: usize = 1;
const PARTS: usize = 2;

/// Gross to net with or without the interference, and how it spreads over the blocks.
struct Timeline {
    corrected: bool,
    chain: Chain,
    /// Net of a CPU over the reference's of one.
    ratio: Option<f64>,
    /// Whether its CPUs decide net, and no serial stage of the program does.
    is_of_cpus: bool,
    /// ln net, ln ratio (0 without a reference), then each part.
    spread: Option<Vec<Jackknife>>,
}

impl Timeline {
    fn of(
        evidence: &Evidence,
        choice: Choice,
        reference_hz: Option<f64>,
        corrected: bool,
    ) -> Option<Timeline> {
        let run = |skip| {
            let seen = evidence.seen(skip, corrected)?;
            let cost = seen.cost(&choice, corrected)?;
            let chain = match evidence.level.filter(|_| corrected) {
                Some(level) => Chain::stated(&seen.asked, &cost, level.clock_hz, reference_hz)?,
                None => Chain::of(&seen.asked, &cost, reference_hz)?,
            };
            // In seconds and with the interference of the blocks on both sides: that is what cancels.
            let cost_as_it_was = seen.cost(&choice, false)?;
            let as_it_was = Chain::of(&seen.asked, &cost_as_it_was, None)?;
            let ratio =
                evidence.reference_cost_s(skip).map(|cost_s| as_it_was.net_hz / seen.asked.entitled * cost_s);
            let of_cpus_hz = seen.asked.entitled / cost_as_it_was.cost_s;
            let is_of_cpus = as_it_was.net_hz >= (1.0 - ROUNDING) * of_cpus_hz;
            Some((chain, ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0), is_of_cpus))
        };
        let (chain, ratio, is_of_cpus) = run(None)?;
        let causes: Vec<TareCause> = chain.parts.keys().copied().collect();
        let measured = evidence.measured();
        let spread = jackknife(measured.len(), |skip| {
            let (chain, ratio, _) = run(skip.and_then(|place| measured.get(place).copied()))?;
            let parts = causes.iter().map(|cause| chain.parts.get(cause).copied().unwrap_or(0.0));
            Some([chain.net_hz.ln(), ratio.map_or(0.0, f64::ln)].into_iter().chain(parts).collect())
        });
        Some(Timeline { corrected, chain, ratio, is_of_cpus, spread })
    }
}

/// Standard error of ln C_sat where it comes from a single trial, which has no spread of its own: it is one draw with
/// the spread that single trials of the asked level have.
fn lone_trial_se(choice: &Choice, evidence: &Evidence) -> f64 {
    let lone = |level: &&Level| choice.from_saturating && level.trials.len() == 1;
    if evidence.saturating.filter(lone).is_none() {
        return 0.0;
    }
    let ln_cost = |window: &Closed| {
        let point = Point::of(window).ok()?;
        Some((point.cost_s * point.clock_hz.unwrap_or(1.0)).ln())
    };
    let costs: Vec<f64> = evidence.asked.trials.iter().filter_map(ln_cost).collect();
    tare_stats::stdev(&costs).unwrap_or(0.0)
}

/// The parts as the outcome lists them: largest first.
pub(crate) fn by_size(
    parts: &[(TareCause, f64, Option<Interval>)],
) -> Vec<(TareCause, f64, Option<Interval>)> {
    let mut sorted = parts.to_vec();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_without_meaning_is_no_net() {
        let estimate = |of_trials, of_sessions| NetEstimate {
            net: 1e4,
            net_ci95: of_sessions,
            net_of_trials: of_trials,
            parts: Vec::new(),
            reference_hz: None,
            entitled: 1.0,
            choice: None,
            against: None,
        };
        let (open, closed) = (Interval::new(17.0, 2e9), Interval::new(5e3, 2e4));
        assert!(estimate(open, open).if_known().is_err());
        assert!(estimate(closed, closed).if_known().is_ok());
        let few = estimate(closed, open);
        assert!(few.is_of_this_session_alone() && few.if_known().is_ok(), "few short trials");
        assert!(!estimate(closed, closed).is_of_this_session_alone());
        assert!(estimate(None, None).if_known().is_ok(), "one trial has none");
    }
}
