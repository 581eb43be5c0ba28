//! How long turns must be, learnt from what requests take.
//!
//! The shorter the better: what a host does for milliseconds to seconds is the same for all servers then. But what is in flight when a
//! turn ends is answered after it, so the end of a turn is left to that.

use std::time::Duration;
use tare_model::plan::TURN_MAX;

/// Length of a turn, unless requests take too long for it. A core's speed changes for milliseconds, with what its other hyperthread does for
/// somebody else: the same programs differ by half as much with turns of 1 ms as with those of 5.
const TURN: Duration = Duration::from_millis(1);
/// Of a turn, this part at its end is for what is in flight, at least and at most.
const REST_MIN: f64 = 1.0 / 8.0;
const REST_MAX: f64 = 1.0 / 4.0;
/// For what is in flight there is so many times what a request takes: all connections wait for theirs at once.
const REST_OVER_LATENCY: f64 = 1.25;

/// Length of a turn where requests cost more interleaved than alone: Go's runtime watches its threads for some milliseconds after each
/// rest, which cost 3 ms of CPU time in each turn (`docs/measured/comparisons.md`).
const TURN_LONGER: Duration = Duration::from_millis(100);
/// From so much more on, on the log: of all servers of one launch, or as the median of so many launches.
const MUCH_MORE_LN: f64 = 0.15;
const MORE_LN: f64 = 0.08;
const MORE_OF: usize = 3;

/// Periods of a quota in a turn of a server that has one of its own. In shorter turns it would never run out: a server is loaded for a part of the
/// time only, and has the quota of all of it.
const PERIODS: u32 = 3;

/// A turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn {
    pub length: Duration,
    /// Its end, in which nobody sends.
    pub rest: Duration,
}

impl Turn {
    /// For requests that take so long.
    fn of(latency: Duration) -> Turn {
        let rest = latency.mul_f64(REST_OVER_LATENCY).min(TURN_MAX.mul_f64(REST_MAX));
        Turn::with(rest, rest.div_f64(REST_MAX))
    }

    fn with(rest: Duration, length: Duration) -> Turn {
        let length = length.clamp(TURN, TURN_MAX);
        Turn { length, rest: rest.max(length.mul_f64(REST_MIN)) }
    }
}

/// What is known of the time that requests take.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Of the slowest server, launch by launch.
    latencies: Vec<Duration>,
    /// Of a quota that not all servers have.
    period: Option<Duration>,
    /// What a request costs interleaved over what it costs alone, on the log, by launch.
    more_ln: Vec<f64>,
    /// Whether that is so much that turns have to be longer.
    is_longer: bool,
}

impl Pace {
    /// Of servers that are loaded one after another: nobody else waits for the end of a turn.
    pub fn apart() -> Pace {
        Pace { is_longer: true, ..Pace::default() }
    }

    /// The turn for what most launches showed: one bad moment makes no longer turns.
    pub fn turn(&self) -> Turn {
        let mut latencies = self.latencies.clone();
        latencies.sort_unstable();
        let middle = latencies.get(latencies.len().saturating_sub(1) / 2);
        let turn = Turn::of(middle.copied().unwrap_or_default());
        let of_quota = self.period.map(|period| period.saturating_mul(PERIODS));
        let of_cost = self.is_longer.then_some(TURN_LONGER);
        let at_least = of_quota.into_iter().chain(of_cost).max().unwrap_or_default();
        Turn::with(turn.rest, turn.length.max(at_least))
    }

    /// What a request cost interleaved over what it cost alone, of the servers of a launch that were loaded alone.
    pub fn learn_costs(&mut self, ratios: &[f64]) {
        let lns: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).filter(|ln| ln.is_finite()).collect();
        self.more_ln.extend(tare_stats::median(&lns).filter(|_| !self.is_longer));
        let by_all = lns.len() > 1 && lns.iter().all(|ln| *ln > MUCH_MORE_LN);
        let by_launches =
            self.more_ln.len() >= MORE_OF && tare_stats::median(&self.more_ln).is_some_and(|ln| ln > MORE_LN);
        self.is_longer |= by_all || by_launches;
    }

    /// There is a quota with such a period that not all servers have.
    pub fn quota_of_some(&mut self, period: Option<Duration>) {
        self.period = period;
    }

    /// What requests took in a launch. Whether turns must be found anew before that launch is measured: the first one's are too
    /// short for what its servers have in flight, and while they are in each other's way nobody knows what a request takes.
    pub fn learn(&mut self, latency: Duration) -> bool {
        let is_first = self.latencies.is_empty();
        let too_short = is_first && Turn::of(latency).length > self.turn().length;
        self.latencies.push(latency);
        too_short
    }

    /// What the first launch's requests take in the turns that it asked for.
    pub fn learn_anew(&mut self, latency: Duration) {
        self.latencies = vec![latency];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_turn_ends_with_a_rest_for_what_is_in_flight() {
        assert_eq!(Turn::of(Duration::ZERO), Turn { length: TURN, rest: TURN / 8 });
        let rest = Duration::from_micros(225);
        assert_eq!(Turn::of(Duration::from_micros(180)), Turn { length: TURN, rest });
        assert_eq!(Turn::of(ms(8)), Turn { length: ms(40), rest: ms(10) });
        assert_eq!(Turn::of(Duration::from_secs(9)), Turn { length: TURN_MAX, rest: TURN_MAX / 4 });
    }

    #[test]
    fn a_quota_that_not_all_have_can_run_out_in_a_turn() {
        let mut pace = Pace::default();
        pace.quota_of_some(Some(ms(100)));
        assert_eq!(pace.turn(), Turn { length: ms(300), rest: ms(300) / 8 });
        pace.quota_of_some(Some(ms(20)));
        assert_eq!(pace.turn().length, ms(60));
        pace.quota_of_some(Some(Duration::MAX));
        assert_eq!(pace.turn().length, TURN_MAX);
        pace.quota_of_some(None);
        assert_eq!(pace.turn().length, TURN);
    }

    #[test]
    fn one_slow_moment_makes_no_longer_turns() {
        let mut pace = Pace::default();
        assert!(pace.learn(ms(6)), "too short for the first launch");
        pace.learn_anew(ms(2));
        assert_eq!(pace.turn(), Turn::of(ms(2)));
        assert!(!pace.learn(ms(90)));
        assert!(!pace.learn(ms(2)));
        assert_eq!(pace.turn(), Turn::of(ms(2)));
        // Most launches say so.
        (0..3).for_each(|_| assert!(!pace.learn(ms(4))));
        assert_eq!(pace.turn(), Turn::of(ms(4)));
        assert!(!Pace::default().learn(Duration::from_micros(180)), "long enough as it is");
    }

    #[test]
    fn turns_are_longer_where_requests_cost_more_in_them() {
        let learnt = |launches: &[&[f64]]| {
            let mut pace = Pace::default();
            pace.learn(Duration::from_micros(180));
            launches.iter().for_each(|ratios| pace.learn_costs(ratios));
            pace
        };
        // One server, one launch that was disturbed, or what differs a little, says nothing.
        for launches in
            [&[&[1.4][..]][..], &[&[1.2, 1.0]], &[&[1.3], &[0.9], &[1.0, f64::NAN], &[0.0], &[], &[1.02]]]
        {
            assert_eq!(learnt(launches).turn().length, TURN, "{launches:?}");
        }
        let longer = Turn { length: TURN_LONGER, rest: TURN_LONGER / 8 };
        assert_eq!(learnt(&[&[1.3, 1.2]]).turn(), longer);
        let mut pace = learnt(&[&[1.1], &[1.12], &[1.1]]);
        assert_eq!(pace.turn(), longer);
        // What it costs in longer turns is no reason to make them short again.
        (0..9).for_each(|_| pace.learn_costs(&[1.0, 1.0]));
        assert_eq!(pace.turn().length, TURN_LONGER);
        pace.quota_of_some(Some(ms(100)));
        assert_eq!(pace.turn().length, ms(300));
    }

    proptest! {
        /// A turn is one that generators take: they send for more than half of it.
        #[test]
        fn more_than_half_of_a_turn_is_for_sending(latency_ns in 0u64..20_000_000_000) {
            let Turn { length, rest } = Turn::of(Duration::from_nanos(latency_ns));
            prop_assert!((TURN..=TURN_MAX).contains(&length));
            prop_assert!(rest * 4 <= length + Duration::from_nanos(4) && rest * 8 >= length - Duration::from_nanos(8));
        }
    }
}
