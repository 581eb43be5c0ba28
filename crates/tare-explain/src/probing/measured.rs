//! The median of each window, and estimates over rounds: a window is one value, rounds are the replicates.

use std::collections::BTreeSet;
use tare_model::probing::{ProbeKind, ProbeWindow, ProbingRun};
use tare_stats::{level_of_each, mean, stdev, t_quantile};

/// Fewer requests in a window have no median.
const REQUESTS_MIN: usize = 5;

/// An estimate with an interval that holds together with all others that are held against the first state: those of the table's ratios and
/// differences, and those that verdicts compare (Bonferroni). Without a spread its ends are infinite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Est {
    pub value: f64,
    pub lo: f64,
    pub hi: f64,
}

impl Est {
    /// Both ends, where they are finite.
    pub fn ends(&self) -> Option<[f64; 2]> {
        (self.lo.is_finite() && self.hi.is_finite()).then_some([self.lo, self.hi])
    }
}

/// What was measured, window by window.
pub(super) struct Measured<'a> {
    pub run: &'a ProbingRun,
    /// Of each probe, of each state, of each round.
    medians: Vec<Vec<Vec<Option<f64>>>>,
    /// The level of each interval, so that all hold together.
    level: f64,
}

impl<'a> Measured<'a> {
    pub fn of(run: &'a ProbingRun) -> Measured<'a> {
        let (probes, states) = (run.probes.len(), run.states.len());
        let rounds = run.windows.iter().map(|window| window.round as usize + 1).max().unwrap_or(0);
        let mut medians = vec![vec![vec![None; rounds]; states]; probes];
        for window in &run.windows {
            let of_probe: Option<&mut Vec<Vec<Option<f64>>>> = medians.get_mut(window.probe);
            if let Some(of_state) = of_probe.and_then(|of_probe| of_probe.get_mut(window.state)) {
                of_state[window.round as usize] = quantile(&[window], 0.5, run.plan.timeout_s, REQUESTS_MIN);
            }
        }
        // A ratio and a difference each, and what verdicts compare beside them.
        let level = level_of_each((2 * probes + compared(run)) * states.saturating_sub(1));
        Measured { run, medians, level }
    }

    /// The median of each round.
    pub fn medians(&self, probe: usize, state: usize) -> &[Option<f64>] {
        &self.medians[probe][state]
    }

    /// Rounds in which every state was measured that did not fail.
    pub fn rounds_done(&self) -> u32 {
        let states = self.run.states.iter().enumerate().filter(|(_, state)| state.failed.is_none());
        let of_state = |state: usize| {
            let rounds: BTreeSet<u32> = self
                .run
                .windows
                .iter()
                .filter(|window| window.state == state)
                .map(|window| window.round)
                .collect();
            rounds.len() as u32
        };
        states.map(|(at, _)| of_state(at)).min().unwrap_or(0)
    }

    /// Of each round in which all of these probes were measured in the first state and in this one: both medians of each.
    fn rounds<const N: usize>(&self, probes: [usize; N], state: usize) -> Vec<[(f64, f64); N]> {
        let rounds = self.medians.first().and_then(|states| states.first()).map_or(0, Vec::len);
        let of = |round: usize| {
            let mut found = [(0.0, 0.0); N];
            for (slot, probe) in found.iter_mut().zip(probes) {
                *slot = (self.medians[probe][0][round]?, self.medians[probe][state][round]?);
            }
            Some(found)
        };
        (0..rounds).filter_map(of).collect()
    }

    /// How many rounds an estimate of a probe in a state has.
    pub fn rounds_of(&self, probe: usize, state: usize) -> usize {
        self.rounds([probe], state).len()
    }

    /// The median over that of the first state, geometric mean over rounds.
    pub fn ratio(&self, probe: usize, state: usize) -> Option<Est> {
        let logs: Vec<f64> =
            self.rounds([probe], state).iter().map(|[(base, at)]| (at / base).ln()).collect();
        let log = self.estimate(&logs)?;
        Some(Est { value: log.value.exp(), lo: log.lo.exp(), hi: log.hi.exp() })
    }

    /// Seconds more than in the first state.
    pub fn added(&self, probe: usize, state: usize) -> Option<Est> {
        let each: Vec<f64> = self.rounds([probe], state).iter().map(|[(base, at)]| at - base).collect();
        self.estimate(&each)
    }

    /// The same between the narrower ends of two intervals: that of the differences, and that of the ratios times the first state's median.
    /// Where rounds differ by factors the second is narrower, where something adds a time the first. Both hold, since the level counts both.
    pub fn added_within(&self, probe: usize, state: usize) -> Option<Est> {
        let (added, ratio, base) =
            (self.added(probe, state)?, self.ratio(probe, state)?, self.base_s(probe)?);
        let (lo, hi) = (added.lo.max(base * (ratio.lo - 1.0)), added.hi.min(base * (ratio.hi - 1.0)));
        Some(if lo <= hi { Est { value: added.value.clamp(lo, hi), lo, hi } } else { added })
    }

    /// Seconds more than in the first state, less so many times what another one takes longer.
    pub fn added_beyond(&self, probe: usize, (other, times): (usize, f64), state: usize) -> Option<Est> {
        let rounds = self.rounds([probe, other], state);
        let each = rounds
            .iter()
            .map(|[(base, at), (other_base, other_at)]| (at - base) - times * (other_at - other_base));
        self.estimate(&each.collect::<Vec<f64>>())
    }

    /// The median in the first state, geometric mean over rounds.
    pub fn base_s(&self, probe: usize) -> Option<f64> {
        let logs: Vec<f64> =
            self.medians[probe].first()?.iter().flatten().map(|median| median.ln()).collect();
        mean(&logs).map(f64::exp)
    }

    /// Mean with its interval by Student's t at the level that all have in common.
    fn estimate(&self, values: &[f64]) -> Option<Est> {
        let value = mean(values)?;
        let half = stdev(values).and_then(|spread| {
            let t = t_quantile(0.5 + 0.5 * self.level, values.len() as f64 - 1.0)?;
            Some(t * spread / (values.len() as f64).sqrt())
        });
        let half = half.unwrap_or(f64::INFINITY);
        Some(Est { value, lo: value - half, hi: value + half })
    }
}

/// Intervals of verdicts that are of two probes, for each state: a service without each that it calls, and each that is called without the
/// network to it.
fn compared(run: &ProbingRun) -> usize {
    let calls = || run.probes.iter().flat_map(|probe| probe.calls.iter().flatten()).map(|call| &call.probe);
    let has_network = run.probes.iter().any(|probe| probe.kind == ProbeKind::Tcp);
    let called = if has_network { calls().collect::<BTreeSet<&String>>().len() } else { 0 };
    calls().count() + called
}

/// A quantile of all requests of these windows: one that timed out took the time limit, one that failed otherwise took longer than
/// all. `None` where there are fewer than `least`, or where it is a failure.
pub(super) fn quantile(windows: &[&ProbeWindow], share: f64, timeout_s: f64, least: usize) -> Option<f64> {
    let mut times: Vec<f64> = windows.iter().flat_map(|window| window.times_s.iter().copied()).collect();
    times.retain(|time| *time > 0.0);
    let timed_out: u64 = windows.iter().map(|window| window.timed_out).sum();
    times.extend(std::iter::repeat_n(timeout_s, timed_out as usize));
    times.sort_by(f64::total_cmp);
    let failures =
        windows.iter().flat_map(|window| &window.failures).map(|failure| failure.count).sum::<u64>();
    let count = times.len() + failures as usize;
    if count < least.max(1) {
        return None;
    }
    // Between two of them, as the common definition (Hyndman and Fan's seventh) has it.
    let place = share * (count - 1) as f64;
    let (low, high) = (times.get(place.floor() as usize)?, times.get(place.ceil() as usize)?);
    Some(low + (high - low) * place.fract())
}
