//! Confidence intervals at 95 %, by Student's t.

use crate::describe::{finite, mean, stdev};
use crate::student::t_quantile;

/// A closed interval; `lo` ≤ `hi`, both finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
}

impl Interval {
    /// The interval between two ends in either order; `None` unless both are finite.
    pub fn new(one: f64, other: f64) -> Option<Self> {
        (one.is_finite() && other.is_finite()).then(|| Interval { lo: one.min(other), hi: one.max(other) })
    }

    /// `centre` ± t·`se` with `df` degrees of freedom, at 95 %.
    pub fn around(centre: f64, se: f64, df: f64) -> Option<Self> {
        let half = t_quantile(0.975, df)? * se;
        Interval::new(centre - half, centre + half)
    }

    /// Which share of the interval lies above a threshold, 0..=1. An interval of no length is all or nothing.
    pub fn share_above(&self, threshold: f64) -> f64 {
        let length = self.hi - self.lo;
        if length > 0.0 && length.is_finite() {
            ((self.hi - threshold) / length).clamp(0.0, 1.0)
        } else if self.lo > threshold {
            1.0
        } else {
            0.0
        }
    }

    /// Both ends through a monotonic function; `None` if an end leaves the finite numbers.
    pub fn map(self, f: impl Fn(f64) -> f64) -> Option<Self> {
        Interval::new(f(self.lo), f(self.hi))
    }
}

/// A mean with its error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mean {
    /// The mean.
    pub value: f64,
    /// Its standard error.
    pub se: f64,
    /// Degrees of freedom of the standard error.
    pub df: f64,
}

impl Mean {
    /// The mean ± this many standard errors.
    pub(crate) fn within(&self, errors: f64) -> Option<Interval> {
        Interval::new(self.value - errors * self.se, self.value + errors * self.se)
    }
}

/// A value and its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// `None` for a single observation, whose spread is unknown.
    pub ci95: Option<Interval>,
}

/// Mean with its t-interval (mean ± t₀.₉₇₅,ₙ₋₁ · s/√n); exact for normal errors, close for others by the central
/// limit theorem. `None` for no values; no interval for one.
pub fn mean_interval(values: &[f64]) -> Option<Estimate> {
    let value = mean(values)?;
    let n = values.len() as f64;
    let ci95 = stdev(values).and_then(|spread| Interval::around(value, spread / n.sqrt(), n - 1.0));
    Some(Estimate { value, ci95 })
}

/// Mean of ln(`after`/`before`) of pairs, with its t-interval: for rates and times, whose disturbances are factors. A disturbance of
/// both members of a pair cancels. exp of the result is a ratio with its interval. `None` unless the slices are of equal
/// length and not empty, and all values above zero.
pub fn paired_log_ratio(before: &[f64], after: &[f64]) -> Option<Estimate> {
    if before.len() != after.len() {
        return None;
    }
    let of = |(one, other): (&f64, &f64)| {
        (*one > 0.0 && *other > 0.0).then(|| other.ln() - one.ln()).and_then(finite)
    };
    let differences: Option<Vec<f64>> = before.iter().zip(after).map(of).collect();
    mean_interval(&differences?)
}
