//! The load before the first trial, and when it has been enough.

use serde::{Deserialize, Serialize};

/// A rate that is higher by less has not risen.
const RISE: f64 = 1.05;
/// Shorter stretches are no level of CPU time per request.
const LEVEL_SLICES_MIN: usize = 8;
/// A level that begins later, as a share of the time, is none yet.
const LEVEL_BEGINS_MAX: f64 = 5.0 / 6.0;
/// So many slices are lately.
const LATELY_SLICES: usize = 20;
/// Compilers that took a larger share lately are still at work.
const COMPILING_MAX: f64 = 0.03;

/// Load before the first trial, of which nothing is counted in any figure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WarmUp {
    /// Length of a slice.
    pub slice_ns: u64,
    /// Answers in each.
    pub answers: Vec<u64>,
    /// What the answers of each were waited for, together, nanoseconds, where the rate was given: it is no matter of the server's then.
    /// Empty otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waited_ns: Vec<u64>,
    /// The runtime of a server that compiles while it runs; none where the server was compiled ahead, or could not be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// CPU time of the server's processes in each, nanoseconds. Empty, or shorter, where it is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_ns: Vec<u64>,
    /// CPU time of its threads that compile, of that. Empty where it cannot be distinguished.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compiling_ns: Vec<u64>,
}

impl WarmUp {
    /// Slice from which on it was at its last level; `None` where it came to none, or too little was answered to tell. Of a runtime that
    /// compiles that is the level of CPU time per request where that is known, which others on the host do not move; else of the rate.
    pub fn steady_from(&self) -> Option<usize> {
        match self.knows_cost() {
            true => self.cost_level(),
            false => tare_stats::steadiness_of_counts(&self.answers)?.from,
        }
    }

    fn knows_cost(&self) -> bool {
        self.runtime.is_some() && self.cpu_ns.len() == self.answers.len()
    }

    /// Slice from which on a request cost no more than it ever came to, but for what is no fall. What it cost more for a while later is
    /// the machine's interference.
    fn cost_level(&self) -> Option<usize> {
        let found = tare_stats::steadiness_of_means(&self.cpu_ns, &self.answers)?;
        let length = |segment: &&tare_stats::Segment| segment.to - segment.from >= LEVEL_SLICES_MIN;
        let lowest =
            found.segments.iter().filter(length).map(|segment| segment.mean).fold(f64::INFINITY, f64::min);
        let warm = found.segments.iter().find(|segment| segment.mean <= lowest * RISE)?;
        (warm.from as f64 <= self.answers.len() as f64 * LEVEL_BEGINS_MAX).then_some(warm.from)
    }

    /// How many times as much CPU time a request took before the last level, of a runtime that compiles; `None` where there was nothing
    /// before it, it came to none, or CPU time is not known.
    pub fn cost_fall(&self) -> Option<f64> {
        let from = self.knows_cost().then(|| self.steady_from()).flatten().filter(|from| *from > 0)?;
        let of = |slices: std::ops::Range<usize>| {
            let sum =
                |counts: &[u64]| counts.get(slices.clone()).map(|counts| counts.iter().sum::<u64>() as f64);
            Some(sum(&self.cpu_ns)? / sum(&self.answers)?).filter(|cost| cost.is_finite() && *cost > 0.0)
        };
        Some(of(0..from)? / of(from..self.answers.len())?)
    }

    /// Share of the server's CPU time that its compilers took lately; `None` where they cannot be distinguished.
    pub fn compiling_share(&self) -> Option<f64> {
        let lately = |ns: &[u64]| {
            ns.get(ns.len().checked_sub(LATELY_SLICES)?..).map(|ns| ns.iter().sum::<u64>() as f64)
        };
        if self.compiling_ns.len() != self.cpu_ns.len() {
            return None;
        }
        Some(lately(&self.compiling_ns)? / lately(&self.cpu_ns)?).filter(|share| share.is_finite())
    }

    /// Of a runtime that compiles: whether its level was there for three quarters of the time, or for half of it where its compilers are
    /// seen to be done.
    fn is_compiled(&self) -> bool {
        let Some(from) = self.steady_from() else { return false };
        let part = match self.compiling_share() {
            Some(share) if share > COMPILING_MAX => return false,
            Some(_) => 2,
            None => 4,
        };
        from <= self.answers.len() / part
    }

    /// Whether it was at one level long enough: for three quarters of the time where it had risen to that. A runtime that compiles
    /// climbs in steps, each about as long as all before it; a fall is the machine's interference, which no warm-up ends. At a given rate
    /// latencies must not have fallen lately, either; they need not come to one level, which few do.
    pub fn is_over(&self) -> bool {
        if self.knows_cost() {
            let latency_is =
                self.latency_fall().is_none_or(|(from, fall)| from <= self.answers.len() / 4 || fall < RISE);
            return self.is_compiled() && latency_is;
        }
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
        WarmUp { slice_ns: 50_000_000, answers, ..WarmUp::default() }
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
        let of = |answers: Vec<u64>| WarmUp { slice_ns: 50_000_000, answers, ..WarmUp::default() };
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

    /// Levels of CPU time per request, slice by slice, with what the compilers took of it.
    fn compiled(levels: &[(usize, u64, u64)], shows_compiling: bool) -> WarmUp {
        let slices = |&(slices, cost_ns, share): &(usize, u64, u64)| {
            (0..slices as u64).map(move |at| (cost_ns + at * 7919 % (cost_ns / 50), share))
        };
        let all: Vec<(u64, u64)> = levels.iter().flat_map(slices).collect();
        let cpu_ns: Vec<u64> = all.iter().map(|_| 50_000_000).collect();
        WarmUp {
            slice_ns: 50_000_000,
            answers: all.iter().map(|(cost_ns, _)| 50_000_000 / cost_ns).collect(),
            runtime: Some("JVM".to_owned()),
            compiling_ns: match shows_compiling {
                true => all.iter().map(|(_, share)| 50_000_000 * share / 100).collect(),
                false => Vec::new(),
            },
            cpu_ns,
            ..WarmUp::default()
        }
    }

    #[test]
    fn a_runtime_that_compiles_is_warm_by_its_cpu_time_and_its_compilers() {
        // A JVM on one CPU, as measured: it stands still at 52 µs a request while it compiles.
        let early = compiled(&[(10, 160_000, 60), (26, 64_000, 40), (24, 52_000, 40)], true);
        assert!(!early.is_over());
        let warm = [(10, 160_000, 60), (26, 64_000, 40), (48, 52_000, 40), (90, 23_000, 1)];
        assert!(compiled(&warm, true).is_over());
        let found = compiled(&warm, true);
        let (from, fall) = (found.steady_from().unwrap_or(0), found.cost_fall().unwrap_or(0.0));
        assert!((82..=86).contains(&from) && (2.3..3.5).contains(&fall), "{from} {fall}");
        assert!(found.compiling_share().is_some_and(|share| share < 0.02));
        // Who cannot see the compilers waits for the level to be long past.
        assert!(!compiled(&warm, false).is_over());
        let busy = [(10, 160_000, 60), (26, 64_000, 40), (48, 52_000, 40), (90, 23_000, 10)];
        assert!(!compiled(&busy, true).is_over(), "they are still at work");
    }

    #[test]
    fn what_the_host_takes_for_a_while_does_not_make_a_warm_runtime_cold() {
        let bump =
            compiled(&[(20, 240_000, 0), (100, 138_000, 0), (30, 170_000, 0), (30, 138_000, 0)], false);
        let from = bump.steady_from().unwrap_or(0);
        assert!((19..=21).contains(&from) && bump.is_over(), "{from}");
        // The rate of a server that was compiled ahead is judged as before.
        let ahead = WarmUp { runtime: None, ..bump };
        assert_eq!(ahead.cost_fall(), None);
    }
}
