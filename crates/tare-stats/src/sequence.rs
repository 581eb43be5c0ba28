//! Intervals that stay valid when they are checked after every launch, or every trial: stopping early keeps 95 %.

use crate::aa_control::Contrasts;
use crate::interval::{Interval, Mean};
use crate::normal;
use crate::pooled::{self, POOLED_MIN, pooled};
use crate::series::{SERIES_MIN, cosines, series_mean};
use crate::student::t_upper;
use crate::trimmed::{kept, trimmed_mean};

/// Fewest launches with a result: with fewer, Student's t alone would make the interval several times as wide.
pub const LAUNCHES_MIN: usize = 8;
/// Most launches that may be planned.
pub const PLANNED_MAX: usize = 10_000;
/// Slope of the line over its height at the start. A flat line is tightest at the end of the budget, a steep one halfway: with a
/// half, an interval at the end is 1.22 times as wide as one that was not checked before, one at a quarter of the
/// budget 1.8 times.
const SLOPE: f64 = 0.5;
/// The power of the minimum detectable effect.
const POWER: f64 = 0.9;
/// Half the width of the interval whose price is given.
const ONE_PERCENT: f64 = 0.01;

/// Checks a mean after each of a planned number of launches, whose values are independent and sometimes wild, or of values
/// of one launch, which may be autocorrelated.
///
/// The sum of n errors is a Brownian motion in time n, and two lines ±(a + b·n) that it leaves before the planned end with probability
/// 1 − level bound every one of its means at once: ±(a + b·n)/n. The probability of meeting one line before time 1 is known exactly,
/// Φ̄(a + b) + e^(−2ab)·Φ(b − a) (Robbins and Siegmund, Annals of Mathematical Statistics 41, 1970; Siegmund, "Sequential
/// Analysis", 1985, 3.15), both together at most twice that. These are repeated confidence intervals (Jennison and Turnbull,
/// Journal of the Royal Statistical Society B 51, 1989): from two fifths of the budget on they are tighter than sequences that hold for ever
/// (Robbins' mixture has at best 1.55 times the width of a single interval, and pays for checks that no budget allows). The mean of launches is the
/// trimmed one ([`crate::trimmed_mean_interval`]), whose sum is as much of a Brownian motion as that of a mean is; its standard error has as many
/// degrees of freedom as launches are left, but one. That of a series is the plain one, with an error that heeds autocorrelation
/// ([`series_mean`]): only the share of the planned values enters, so that autocorrelation changes the error, not the bounds. Each bound becomes
/// the t of the same tail (Jennison and Turnbull, "Group Sequential Methods", 2000, 4.4).
#[derive(Debug, Clone)]
pub struct Sequence {
    /// Standard errors that the interval reaches to each side, by launches − 1; infinite where no double holds its tail.
    errors: Vec<f64>,
    /// Height of the line at the start, for a Brownian motion until time 1.
    start: f64,
    values: Values,
}

/// What is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Values {
    Launches,
    /// Fewer of them than [`LAUNCHES_MIN`], or hardly more, with one error of effect and control.
    Few,
    Series,
}

impl Values {
    fn fewest(self) -> usize {
        match self {
            Values::Launches => LAUNCHES_MIN,
            Values::Few => POOLED_MIN,
            Values::Series => SERIES_MIN,
        }
    }

    fn mean(self, columns: &[&[f64]]) -> Option<Mean> {
        match (self, columns) {
            (Values::Launches, _) => trimmed_mean(columns),
            (Values::Few, [one, other]) => pooled(one, other).map(|[effect, _]| effect),
            (Values::Series, [series]) => series_mean(series),
            (Values::Few | Values::Series, _) => None,
        }
    }

    /// Degrees of freedom of the standard error of so many. A series has one less than cosines: the few are checked repeatedly, and
    /// with all of them the bounds were left in up to 7 of 100 simulated series (`tests/series.rs`).
    fn freedom(self, count: usize) -> f64 {
        match self {
            Values::Launches => kept(count).saturating_sub(1).max(1) as f64,
            Values::Few => pooled::freedom(count),
            Values::Series => (cosines(count) as f64 - 1.0).max(1.0),
        }
    }
}

/// The result of one interim analysis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Analysis {
    /// The mean so far.
    pub mean: Mean,
    /// Its interval, valid for all checks together.
    pub interval: Interval,
}

/// What launches of the same spread would show; of logarithms, or of shares of the mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Foresight {
    /// The smallest true effect that the planned launches would show in nine of ten plans: as many standard errors of their mean as the
    /// interval reaches at the end, and the t that a mean falls short of by chance in the tenth. That is the textbook's
    /// (z₁₋α⁄₂ + z_power)·σ/√n with the bound of this interval (NIST/SEMATECH e-Handbook of Statistical Methods, 7.2.2.2).
    pub detectable: Option<f64>,
    /// How many launches a new plan would need for an interval of ±1 %; `None` above [`PLANNED_MAX`].
    pub one_percent_launches: Option<usize>,
}

impl Sequence {
    /// For so many launches at most ([`LAUNCHES_MIN`] to [`PLANNED_MAX`]) and a level between 0 and 1; `None` otherwise.
    pub fn of_launches(planned: usize, level: f64) -> Option<Sequence> {
        Sequence::of(planned, level, Values::Launches)
    }

    /// The same where there is time for few launches, two at least: each has two values, [`Contrasts::effect`], and the error is of the effect
    /// and the A/A control together.
    pub fn of_few(planned: usize, level: f64) -> Option<Sequence> {
        Sequence::of(planned, level, Values::Few)
    }

    /// The same of a series of so many values at most ([`SERIES_MIN`] to [`PLANNED_MAX`]), in the order of their time.
    pub fn of_series(planned: usize, level: f64) -> Option<Sequence> {
        Sequence::of(planned, level, Values::Series)
    }

    fn of(planned: usize, level: f64, values: Values) -> Option<Sequence> {
        let possible = (values.fewest()..=PLANNED_MAX).contains(&planned) && level > 0.0 && level < 1.0;
        if !possible {
            return None;
        }
        let start = start_of_line(1.0 - level)?;
        let at = |count: usize| errors_at(start, count, planned, values).unwrap_or(f64::INFINITY);
        Some(Sequence { errors: (1..=planned).map(at).collect(), start, values })
    }

    /// How many are planned at most.
    pub fn planned(&self) -> usize {
        self.errors.len()
    }

    /// The mean of the launches so far, of which each has a value in every column (one, or [`crate::Contrasts::effect`]; of a
    /// series one). `None` before there are [`LAUNCHES_MIN`] or [`SERIES_MIN`], beyond the plan, or too early for a result.
    pub fn analyse(&self, columns: &[&[f64]]) -> Option<Analysis> {
        let launches = columns.first()?.len();
        let errors = self.errors.get(launches.checked_sub(1)?)?;
        let mean = self.values.mean(columns).filter(|_| launches >= self.values.fewest())?;
        Some(Analysis { mean, interval: mean.within(*errors)? })
    }

    /// The mean of the A/A control of the launches so far.
    pub fn analyse_aa_control(&self, contrasts: &Contrasts) -> Option<Analysis> {
        if self.values != Values::Few {
            return self.analyse(&[&contrasts.aa_control]);
        }
        let [one, other] = &contrasts.effect;
        let errors = self.errors.get(one.len().checked_sub(1)?)?;
        let [_, mean] = pooled(one, other)?;
        Some(Analysis { mean, interval: mean.within(*errors)? })
    }

    /// What to expect, by the spread of the `launches` behind a check.
    pub fn foresee(&self, analysis: &Analysis, launches: usize) -> Foresight {
        Foresight {
            detectable: self.detectable(&analysis.mean, launches),
            one_percent_launches: self.launches_for(ONE_PERCENT, &analysis.mean, launches),
        }
    }

    fn detectable(&self, mean: &Mean, launches: usize) -> Option<f64> {
        let planned = self.planned();
        let missed = t_upper(1.0 - POWER, self.values.freedom(planned))?;
        let errors = self.errors.last().filter(|errors| errors.is_finite())?;
        Some((errors + missed) * mean.se * (launches as f64 / planned as f64).sqrt())
    }

    /// How many launches a new plan would need for an interval of ±`half`, by the spread of the `launches` behind `mean`; `None` above
    /// [`PLANNED_MAX`].
    fn launches_for(&self, half: f64, mean: &Mean, launches: usize) -> Option<usize> {
        let of_one = mean.se * (launches as f64).sqrt();
        let narrow = |planned: usize| {
            let errors = errors_at(self.start, planned, planned, self.values);
            errors.is_some_and(|errors| errors * of_one / (planned as f64).sqrt() <= half)
        };
        // The width falls with every launch but, of a few, each fifth, when one more is left out at either end: it may be one off there.
        let (mut few, mut enough) = (self.values.fewest() - 1, PLANNED_MAX);
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

/// Standard errors from the mean to the line after so many of those that are planned.
fn errors_at(start: f64, count: usize, planned: usize, values: Values) -> Option<f64> {
    let share = count as f64 / planned as f64;
    let normal = start * (1.0 + SLOPE * share) / share.sqrt();
    t_upper(normal::upper_tail(normal)?, values.freedom(count))
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
        // Few launches make few degrees of freedom; with very many only the line is left.
        let last = *Sequence::of_launches(PLANNED_MAX, 0.95).unwrap().errors.last().unwrap();
        assert!((last - start * (1.0 + SLOPE)).abs() < 0.02, "{last}");
    }

    /// A random walk meets the line as often as a Brownian motion does, or a little less, since it is checked rarely.
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

    /// Who checks after each launch, and stops at the first interval without zero, is wrong in at most 5 of 100 cases, with
    /// normal errors or with one in ten that is ten times as wild.
    #[test]
    fn launches_hold_the_truth_at_every_check() {
        let mut noise = Noise::new(8);
        for (planned, wild) in [(12, 1.0), (24, 1.0), (24, 10.0), (60, 10.0)] {
            let sequence = Sequence::of_launches(planned, 0.95).unwrap();
            let runs = 2000;
            let missed = (0..runs)
                .filter(|_| {
                    let factor = |noise: &mut Noise| if noise.normal() > 1.28 { wild } else { 1.0 };
                    let values: Vec<f64> =
                        (0..planned).map(|_| factor(&mut noise) * noise.normal()).collect();
                    let analyses = (1..=planned).filter_map(|n| sequence.analyse(&[&values[..n]]));
                    analyses
                        .map(|analysis| analysis.interval)
                        .any(|interval| interval.lo > 0.0 || interval.hi < 0.0)
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
        let sequence = Sequence::of_launches(60, 0.95).unwrap();
        let analysis = sequence.analyse(&[&values]).unwrap();
        let half = 0.5 * (analysis.interval.hi - analysis.interval.lo);
        assert_eq!(sequence.launches_for(half * 1.000_001, &analysis.mean, 60), Some(60));
        let detectable = sequence.foresee(&analysis, 60).detectable.unwrap();
        assert!(detectable > half * 1.3 && detectable < half * 1.8, "{detectable} {half}");
        // Half of the launches, the same spread: the same forecast, within the error of their spread.
        let earlier = sequence.analyse(&[&values[..30]]).unwrap();
        let foreseen = sequence.foresee(&earlier, 30).detectable.unwrap();
        assert!((foreseen / detectable).ln().abs() < 1.0, "{foreseen} {detectable}");
        assert_eq!(sequence.launches_for(1e-9, &analysis.mean, 60), None);
        let one_percent = sequence.foresee(&analysis, 60).one_percent_launches.unwrap();
        assert!((one_percent > 60) == (half > 0.01), "{one_percent} {half}");
    }

    #[test]
    fn what_was_not_planned_is_not_shown() {
        assert!(Sequence::of_launches(LAUNCHES_MIN - 1, 0.95).is_none());
        assert!(Sequence::of_launches(PLANNED_MAX + 1, 0.95).is_none());
        assert!(Sequence::of_launches(100, 1.0).is_none() && Sequence::of_launches(100, f64::NAN).is_none());
        let sequence = Sequence::of_launches(10, 0.95).unwrap();
        let values: Vec<f64> = (0..11).map(f64::from).collect();
        assert!(sequence.analyse(&[]).is_none() && sequence.analyse(&[&[]]).is_none());
        assert!(sequence.analyse(&[&values[..10]]).is_some());
        assert!(sequence.analyse(&[&values]).is_none());
        assert!(sequence.analyse(&[&values[..10], &values[..9]]).is_none(), "columns of different lengths");
    }
}
