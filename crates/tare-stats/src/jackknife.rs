//! The delete-one jackknife: intervals for anything computed from pooled trials.

use crate::describe::mean;
use crate::interval::Interval;
use crate::student::t_quantile;

/// A statistic of pooled trials with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Jackknife {
    /// The statistic of all trials together.
    pub value: f64,
    /// Its standard error.
    pub se: f64,
    /// Degrees of freedom: trials − 1.
    pub df: f64,
}

impl Jackknife {
    /// The statistic of so many trials whose 95 % interval reaches `half` to either side; `None` for fewer than two trials, or where
    /// `half` is no length.
    pub fn of_half(value: f64, half: f64, trials: u32) -> Option<Jackknife> {
        let df = f64::from(trials.checked_sub(1).filter(|df| *df > 0)?);
        let se = Some(half).filter(|half| *half >= 0.0)? / t_quantile(0.975, df)?;
        se.is_finite().then_some(Jackknife { value, se, df })
    }

    /// Another statistic with this one's error added to its own, both independent: squares add up, and the degrees of freedom are
    /// Welch's and Satterthwaite's.
    pub fn added_to(&self, other: Jackknife) -> Jackknife {
        let (one, more) = (self.se * self.se, other.se * other.se);
        let both = one + more;
        if both <= 0.0 {
            return other;
        }
        let df = 1.0 / ((one / both).powi(2) / self.df + (more / both).powi(2) / other.df);
        Jackknife { value: other.value, se: both.sqrt(), df }
    }

    /// The 95 % interval, by Student's t.
    pub fn ci95(&self) -> Option<Interval> {
        Interval::around(self.value, self.se, self.df)
    }
}

/// Delete-one jackknife (Tukey 1958; Efron and Tibshirani 1993, chapter 11) of several statistics at once.
///
/// `statistic` is called with `None` for all `trials`, then once for each trial to leave out; it returns the same
/// number of values each time. The standard error is √((n−1)/n · Σ(θ₍ᵢ₎ − θ̄)²): for a mean it is s/√n exactly, for
/// a ratio of sums it needs no formula of its own. `None` for fewer than two trials, when the statistic cannot be
/// computed without one of them, or when a value is not finite.
pub fn jackknife(
    trials: usize,
    statistic: impl Fn(Option<usize>) -> Option<Vec<f64>>,
) -> Option<Vec<Jackknife>> {
    if trials < 2 {
        return None;
    }
    let all = statistic(None)?;
    let left_out: Vec<Vec<f64>> = (0..trials).map(|skip| statistic(Some(skip))).collect::<Option<_>>()?;
    let n = trials as f64;
    let one = |(index, value): (usize, &f64)| {
        let replicates: Vec<f64> =
            left_out.iter().map(|values| values.get(index).copied()).collect::<Option<_>>()?;
        let centre = mean(&replicates)?;
        let squares: f64 = replicates.iter().map(|replicate| (replicate - centre).powi(2)).sum();
        let se = ((n - 1.0) / n * squares).sqrt();
        (value.is_finite() && se.is_finite()).then_some(Jackknife { value: *value, se, df: n - 1.0 })
    };
    all.iter().enumerate().map(one).collect()
}

/// The jackknife's pseudo-values of a statistic of so many trials, n·θ − (n−1)·θ₍ᵢ₎ (Tukey 1958): their mean is the statistic less its bias of first
/// order, and they scatter as values of single trials would. `None` for fewer than two trials, or where it cannot be computed without one of them.
pub fn pseudo_values(trials: usize, statistic: impl Fn(Option<usize>) -> Option<f64>) -> Option<Vec<f64>> {
    if trials < 2 {
        return None;
    }
    let (all, n) = (statistic(None)?, trials as f64);
    let value =
        |skip: usize| Some(n * all - (n - 1.0) * statistic(Some(skip))?).filter(|value| value.is_finite());
    (0..trials).map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pseudo_values_of_a_mean_are_the_values() {
        let values = [1.0, 4.0, 10.0];
        let of_mean = |skip: Option<usize>| {
            let kept = values.iter().enumerate().filter(|(at, _)| Some(*at) != skip);
            mean(&kept.map(|(_, value)| *value).collect::<Vec<f64>>())
        };
        let pseudo = pseudo_values(3, of_mean).unwrap();
        assert!(pseudo.iter().zip(values).all(|(one, other)| (one - other).abs() < 1e-12), "{pseudo:?}");
        assert_eq!(pseudo_values(1, of_mean), None);
        assert_eq!(pseudo_values(3, |skip| (skip != Some(1)).then_some(1.0)), None);
    }
}
