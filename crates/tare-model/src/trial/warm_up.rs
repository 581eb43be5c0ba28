//! The load before the first trial, and when it has been enough.

use serde::{Deserialize, Serialize};

/// A rate that is higher by less has not risen.
const RISE: f64 = 1.05;

/// Load before the first trial, of which nothing is counted in any figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WarmUp {
    /// Length of a slice.
    pub slice_ns: u64,
    /// Answers in each.
    pub answers: Vec<u64>,
    /// What the answers of each were waited for, together, nanoseconds, where the rate was given: it is no matter of the server's then.
    /// Empty otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waited_ns: Vec<u64>,
}

impl WarmUp {
    /// Slice from which on the rate was at its last level; `None` where it came to none, or too little was answered to tell.
    pub fn steady_from(&self) -> Option<usize> {
        tare_stats::steadiness_of_counts(&self.answers)?.from
    }

    /// Whether it was at one level long enough: for three quarters of the time where it had risen to that. A runtime that compiles
    /// climbs in steps, each about as long as all before it; a fall is the machine's interference, which no warm-up ends. At a given rate
    /// latencies must not have fallen lately, either; they need not come to one level, which few do.
    pub fn is_over(&self) -> bool {
        let Some(from) = self.steady_from() else { return false };
        let is_long_past = |from: usize| from <= self.answers.len() / 4;
        let rate_is = is_long_past(from) || self.growth().is_none_or(|growth| growth < RISE);
        rate_is && self.latency_fall().is_none_or(|(from, fall)| is_long_past(from) || fall < RISE)
    }

    /// Where the rate was given: the slice from which on latencies were at their last level (the middle, where they came to none or drift), and
    /// how many times as long they were before it: their means, where there is no level the medians of the slices', which a single
    /// slow start does not move. `None` where the rate was not given, nothing was before, or too little was answered to tell.
    pub fn latency_fall(&self) -> Option<(usize, f64)> {
        if self.waited_ns.len() != self.answers.len() {
            return None;
        }
        let found = tare_stats::steadiness_of_means(&self.waited_ns, &self.answers)?;
        let waited: Vec<Waited> = self.waited_ns.iter().zip(&self.answers).map(Waited::of).collect();
        let level = found.from.filter(|_| found.state != tare_stats::State::Drifting);
        let from = level.unwrap_or(waited.len() / 2);
        let (before, after) = waited.split_at_checked(from)?;
        let of = if level.is_some() { Waited::mean_ns } else { Waited::median_ns };
        Some((from, of(before)? / of(after)?))
    }

    /// Rate of the last level over the rate before it; `None` where there was none before it, or no last level.
    pub fn growth(&self) -> Option<f64> {
        let (before, after) = self.answers.split_at(self.steady_from()?.min(self.answers.len()));
        Some(mean(after)? / mean(before)?)
    }
}

/// Mean of counts, where it is above 0.
fn mean(counts: &[u64]) -> Option<f64> {
    let counts: Vec<f64> = counts.iter().map(|count| *count as f64).collect();
    tare_stats::mean(&counts).filter(|mean| *mean > 0.0)
}

/// The answers of a slice, and what they were waited for, nanoseconds.
#[derive(Clone, Copy)]
struct Waited {
    ns: f64,
    answers: f64,
}

impl Waited {
    fn of((ns, answers): (&u64, &u64)) -> Waited {
        Waited { ns: *ns as f64, answers: *answers as f64 }
    }

    /// Of all answers in these slices; `None` where there are none.
    fn mean_ns(slices: &[Waited]) -> Option<f64> {
        let (ns, answers) = slices.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.ns, sum.1 + one.answers));
        Some(ns / answers).filter(|mean| *mean > 0.0 && mean.is_finite())
    }

    /// The middle one of the slices' means.
    fn median_ns(slices: &[Waited]) -> Option<f64> {
        let means: Vec<f64> = slices.iter().filter_map(|one| Waited::mean_ns(&[*one])).collect();
        tare_stats::median(&means)
    }
}

#[cfg(test)]
mod tests {
    use super::WarmUp;

    fn load(levels: &[(usize, u64)]) -> WarmUp {
        let slices = |&(slices, level): &(usize, u64)| (0..slices as u64).map(move |at| level + at % 3);
        let answers = levels.iter().flat_map(slices).collect();
        WarmUp { slice_ns: 50_000_000, answers, waited_ns: Vec::new() }
    }

    #[test]
    fn a_rise_must_be_long_past_and_a_fall_need_not() {
        assert!(load(&[(30, 500)]).is_over());
        assert!(!load(&[(20, 100), (20, 400)]).is_over(), "the next step may be as long as all before it");
        assert!(load(&[(10, 100), (50, 400)]).is_over());
        assert!(load(&[(20, 400), (20, 280)]).is_over());
        assert!(!load(&[(40, 100), (4, 400)]).is_over(), "too short to be a level");
        let growth = load(&[(10, 100), (50, 400)]).growth().unwrap_or(0.0);
        assert!((growth / (401.0 / 101.0) - 1.0).abs() < 0.05, "{growth}");
    }

    #[test]
    fn few_requests_are_at_a_level_too_and_none_at_none() {
        let of = |answers: Vec<u64>| WarmUp { slice_ns: 50_000_000, answers, waited_ns: Vec::new() };
        let few = of((0..200).map(|at| u64::from(at % 4 == 0)).collect());
        assert_eq!((few.steady_from(), few.is_over(), few.growth()), (Some(0), true, None));
        let none = of(vec![0; 200]);
        assert_eq!((none.steady_from(), none.is_over(), none.growth()), (None, false, None));
    }

    /// A rate that was asked for is at its level from the first slice on, whatever the server does.
    #[test]
    fn at_a_given_rate_it_is_latency_that_must_have_fallen_long_ago() {
        let waited = |levels: &[(usize, u64)]| {
            let load = load(&[(levels.iter().map(|(slices, _)| slices).sum(), 100)]);
            let each_ns =
                levels.iter().flat_map(|&(slices, ns)| (0..slices as u64).map(move |at| ns + at % 7));
            let waited_ns = each_ns.zip(&load.answers).map(|(ns, answers)| ns * answers).collect();
            WarmUp { waited_ns, ..load }
        };
        let level = waited(&[(30, 9000)]);
        assert!(level.is_over() && level.latency_fall().is_none());
        let lately = waited(&[(20, 9000), (20, 3000)]);
        assert!(lately.steady_from() == Some(0) && !lately.is_over());
        let (from, fall) = lately.latency_fall().unwrap_or_default();
        assert!(from == 20 && (fall - 3.0).abs() < 0.01, "{from} {fall}");
        assert!(waited(&[(10, 9000), (50, 3000)]).is_over());
        assert!(waited(&[(20, 3000), (20, 9000)]).is_over(), "the machine's interference");
        assert!(!waited(&[(10, 9000), (10, 8000), (10, 7000), (10, 6000)]).is_over());
        // On and on upwards, but for a cold start: to no level, and it did not fall.
        let rising = (0..60).map(|at| (1, if at == 0 { 900_000 } else { 3000 + 200 * at }));
        let rising = waited(&rising.collect::<Vec<_>>());
        assert_eq!(rising.latency_fall().map(|(from, fall)| (from, fall < 1.0)), Some((30, true)));
        assert!(rising.is_over());
        let falling = waited(&(0..60).map(|at| (1, 15_000 - 200 * at)).collect::<Vec<_>>());
        assert!(!falling.is_over());
        assert_eq!(load(&[(30, 100)]).latency_fall(), None);
    }
}
