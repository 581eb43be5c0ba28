//! Intervals that may be looked at after every block: whoever stops for what he sees still has 95 %.

use crate::interval::Interval;
use crate::normal;
use crate::series::{SERIES_MIN, SeriesMean, cosines, series_mean};
use crate::student::t_upper;
use crate::trimmed::{kept, trimmed_mean};

/// Most blocks that may be planned.
pub const PLANNED_MAX: usize = 10_000;
/// Slope of the line over its height at the start. A flat line is tightest at the end of the budget, a steep one halfway: with a
/// half, an interval at the end is 1.22 times as wide as one that nobody looked at before, one at a quarter of the
/// budget 1.8 times.
const SLOPE: f64 = 0.5;

/// Looks at a mean after each of a planned number of blocks.
///
/// The sum of n errors is a Brownian motion in time n, and two lines ±(a + b·n) that it leaves before the planned end with probability
/// 1 − level bound every one of its means at once: ±(a + b·n)/n. The probability of meeting one line before time 1 is known exactly,
/// Φ̄(a + b) + e^(−2ab)·Φ(b − a) (Robbins and Siegmund, Annals of Mathematical Statistics 41, 1970; Siegmund, "Sequential
/// Analysis", 1985, 3.15), both together at most twice that. These are repeated confidence intervals (Jennison and Turnbull,
/// Journal of the Royal Statistical Society B 51, 1989): from two fifths of the budget on they are tighter than sequences that hold for ever
/// (Robbins' mixture has at best 1.55 times the width of a single look, and pays for looks that no budget allows). The
/// standard error is estimated as in [`series_mean`]: each bound becomes the t of the same tail (Jennison and Turnbull,
/// "Group Sequential Methods", 2000, 4.4). Only the share of the planned blocks enters, so autocorrelation changes the error, not the bounds.
#[derive(Debug, Clone)]
pub struct Sequence {
    /// Standard errors that the interval reaches to each side, by blocks − 1; infinite where no double holds its tail.
    errors: Vec<f64>,
    /// Height of the line at the start, for a Brownian motion until time 1.
    start: f64,
    values: Values,
}

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Values {
    /// Blocks one after the other on what was started once: each may lean on those before it.
    Series,
    /// Each on a launch of its own: they do not, and now and then one is wild.
    Launches,
}

impl Values {
    fn mean(self, values: &[f64]) -> Option<SeriesMean> {
        match self {
            Values::Series => series_mean(values),
            Values::Launches if values.len() < SERIES_MIN => None,
            Values::Launches => trimmed_mean(values),
        }
    }

    /// Degrees of freedom of the standard error.
    fn freedom(self, values: usize) -> f64 {
        match self {
            Values::Series => cosines(values) as f64,
            Values::Launches => kept(values).saturating_sub(1).max(1) as f64,
        }
    }
}

/// What was seen at a look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// The mean so far.
    pub mean: SeriesMean,
    /// Its interval, good for all looks together.
    pub interval: Interval,
}

/// Why no further block is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The interval is as narrow as was asked.
    Precise,
    /// All planned blocks are over.
    Budget,
}

impl Sequence {
    /// For so many blocks at most ([`SERIES_MIN`] to [`PLANNED_MAX`]) and a level between 0 and 1; `None` otherwise.
    pub fn new(planned: usize, level: f64) -> Option<Sequence> {
        Sequence::of(planned, level, Values::Series)
    }

    /// The same for values that are each of a launch of its own, and so independent: their trimmed mean
    /// ([`crate::trimmed_mean_interval`]), whose sum is as much of a Brownian motion as that of a mean is, and whose error is of as many
    /// degrees of freedom as launches are left: where there are some twenty, half as wide as that of a series.
    pub fn of_launches(planned: usize, level: f64) -> Option<Sequence> {
        Sequence::of(planned, level, Values::Launches)
    }

    fn of(planned: usize, level: f64, values: Values) -> Option<Sequence> {
        let possible = (SERIES_MIN..=PLANNED_MAX).contains(&planned) && level > 0.0 && level < 1.0;
        if !possible {
            return None;
        }
        let start = start_of_line(1.0 - level)?;
        let at = |blocks: usize| errors_at(start, blocks, planned, values).unwrap_or(f64::INFINITY);
        Some(Sequence { errors: (1..=planned).map(at).collect(), start, values })
    }

    /// How many blocks are planned at most.
    pub fn planned(&self) -> usize {
        self.errors.len()
    }

    /// The mean of the blocks so far, in the order of their time. `None` before there are [`SERIES_MIN`], beyond the plan, or too early to say
    /// anything.
    pub fn look(&self, values: &[f64]) -> Option<Look> {
        let errors = self.errors.get(values.len().checked_sub(1)?)?;
        let mean = self.values.mean(values)?;
        Some(Look { mean, interval: mean.within(*errors)? })
    }

    /// Whether to stop after so many blocks: the interval is within ±`precision`, or the budget is over.
    pub fn stop(&self, blocks: usize, look: Option<&Look>, precision: Option<f64>) -> Option<Stop> {
        let half = look.map(|look| 0.5 * (look.interval.hi - look.interval.lo));
        match half.zip(precision) {
            Some((half, precision)) if half <= precision => Some(Stop::Precise),
            _ => (blocks >= self.planned()).then_some(Stop::Budget),
        }
    }

    /// The smallest true effect that the planned blocks would show with a probability of `power`, by the spread of the `blocks`
    /// behind `mean`.
    pub fn detectable(&self, mean: &SeriesMean, blocks: usize, power: f64) -> Option<f64> {
        let planned = self.planned();
        let missed = t_upper((1.0 - power).min(0.5), self.values.freedom(planned))?;
        let errors = self.errors.last().filter(|errors| errors.is_finite())?;
        Some((errors + missed) * mean.se * (blocks as f64 / planned as f64).sqrt())
    }

    /// How many blocks a new plan would need for an interval of ±`half`, by the spread of the `blocks` behind `mean`; `None` above
    /// [`PLANNED_MAX`].
    pub fn blocks_for(&self, half: f64, mean: &SeriesMean, blocks: usize) -> Option<usize> {
        let of_one = mean.se * (blocks as f64).sqrt();
        let narrow = |planned: usize| {
            let errors = errors_at(self.start, planned, planned, self.values);
            errors.is_some_and(|errors| errors * of_one / (planned as f64).sqrt() <= half)
        };
        // The width falls with every block, but for the steps of the degrees of freedom, which widen nothing.
        let (mut few, mut enough) = (SERIES_MIN - 1, PLANNED_MAX);
        if !narrow(enough) {
            return None;
        }
        while enough - few > 1 {
            let middle = few + (enough - few) / 2;
            if narrow(middle) { enough = middle } else { few = middle }
        }
        Some(enough)
    }
}

/// The height a of lines a + a·[`SLOPE`]·t that a Brownian motion meets before time 1 with this probability, both together.
fn start_of_line(error: f64) -> Option<f64> {
    let meets = |start: f64| {
        let slope = SLOPE * start;
        let beyond = normal::upper_tail(start + slope)?;
        let reflected = (-2.0 * start * slope).exp() * normal::upper_tail(start - slope)?;
        Some(2.0 * (beyond + reflected))
    };
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if meets(middle)? > error { low = middle } else { high = middle }
    }
    Some(high)
}

/// Standard errors from the mean to the line after so many of the planned blocks.
fn errors_at(start: f64, blocks: usize, planned: usize, values: Values) -> Option<f64> {
    let share = blocks as f64 / planned as f64;
    let normal = start * (1.0 + SLOPE * share) / share.sqrt();
    t_upper(normal::upper_tail(normal)?, values.freedom(blocks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;

    /// At the ends that the formula has: a Brownian motion stays within ±2.24 (reflection) if the line is flat, and the lines of
    /// 95 % here begin at 1.60.
    #[test]
    fn the_line_is_where_the_formula_puts_it() {
        let start = start_of_line(0.05).unwrap();
        assert!((start - 1.597).abs() < 2e-3, "{start}");
        // Few cosines make few degrees of freedom; with very many only the line is left.
        let last = *Sequence::new(PLANNED_MAX, 0.95).unwrap().errors.last().unwrap();
        assert!((last - start * (1.0 + SLOPE)).abs() < 0.02, "{last}");
    }

    /// A random walk meets the line as often as a Brownian motion does, or a little less, since it is looked at seldom.
    #[test]
    fn a_walk_leaves_the_lines_as_often_as_it_may() {
        let start = start_of_line(0.05).unwrap();
        let (steps, runs) = (1000, 4000);
        let mut noise = Noise::new(12);
        let left = (0..runs)
            .filter(|_| {
                let mut sum = 0.0f64;
                (1..=steps).any(|step| {
                    sum += noise.normal() / f64::from(steps).sqrt();
                    sum.abs() > start * (1.0 + SLOPE * f64::from(step) / f64::from(steps))
                })
            })
            .count();
        let share = left as f64 / f64::from(runs);
        assert!((0.035..0.055).contains(&share), "{share}");
    }

    /// Whoever looks at launches after each, and stops at the first interval without zero, is wrong in 5 of 100 cases at most, be the
    /// errors normal or one in ten ten times as wild.
    #[test]
    fn launches_hold_the_truth_at_every_look() {
        let mut noise = Noise::new(8);
        for (planned, wild) in [(12, 1.0), (24, 1.0), (24, 10.0), (60, 10.0)] {
            let sequence = Sequence::of_launches(planned, 0.95).unwrap();
            let runs = 2000;
            let missed = (0..runs)
                .filter(|_| {
                    let factor = |noise: &mut Noise| if noise.normal() > 1.28 { wild } else { 1.0 };
                    let values: Vec<f64> =
                        (0..planned).map(|_| factor(&mut noise) * noise.normal()).collect();
                    let looks = (1..=planned).filter_map(|n| sequence.look(&values[..n]));
                    looks.map(|look| look.interval).any(|interval| interval.lo > 0.0 || interval.hi < 0.0)
                })
                .count();
            let share = missed as f64 / f64::from(runs);
            assert!(share < 0.06, "{planned} {wild}: {share}");
        }
    }

    #[test]
    fn what_it_foresees_it_shows() {
        let mut noise = Noise::new(5);
        let values: Vec<f64> = (0..60).map(|_| 0.02 * noise.normal()).collect();
        let sequence = Sequence::new(60, 0.95).unwrap();
        let look = sequence.look(&values).unwrap();
        let half = 0.5 * (look.interval.hi - look.interval.lo);
        assert_eq!(sequence.stop(60, Some(&look), Some(half * 0.9)), Some(Stop::Budget));
        assert_eq!(sequence.stop(59, Some(&look), Some(half * 0.9)), None);
        assert_eq!(sequence.stop(59, Some(&look), Some(half * 1.1)), Some(Stop::Precise));
        assert_eq!(sequence.stop(1, None, Some(1.0)), None);
        assert_eq!(sequence.blocks_for(half * 1.000_001, &look.mean, 60), Some(60));
        let detectable = sequence.detectable(&look.mean, 60, 0.9).unwrap();
        assert!(detectable > half * 1.3 && detectable < half * 1.8, "{detectable} {half}");
        // Half of the blocks, the same spread: the same foresight, within what half of the blocks tell of the spread.
        let earlier = sequence.look(&values[..30]).unwrap();
        let foreseen = sequence.detectable(&earlier.mean, 30, 0.9).unwrap();
        assert!((foreseen / detectable).ln().abs() < 1.0, "{foreseen} {detectable}");
        assert_eq!(sequence.blocks_for(1e-9, &look.mean, 60), None);
    }

    #[test]
    fn what_was_not_planned_is_not_shown() {
        assert!(Sequence::new(SERIES_MIN - 1, 0.95).is_none());
        assert!(Sequence::new(PLANNED_MAX + 1, 0.95).is_none());
        assert!(Sequence::new(100, 1.0).is_none() && Sequence::new(100, f64::NAN).is_none());
        let sequence = Sequence::new(10, 0.95).unwrap();
        let values: Vec<f64> = (0..11).map(f64::from).collect();
        assert!(sequence.look(&[]).is_none());
        assert!(sequence.look(&values[..10]).is_some());
        assert!(sequence.look(&values).is_none());
    }
}
