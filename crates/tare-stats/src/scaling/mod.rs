//! How a figure grows with one factor: the law that fits, its parameters, and how well they are known.
//!
//! Values are those of least squares; where each level has one sample, of plain least squares, as fits are published. Intervals are by
//! profile likelihood ([`profile`]). Between laws decides Akaike's information criterion, corrected for few samples. How often the
//! intervals hold the truth: `bench/scale`, and `docs/model/scaling.md`.

mod choice;
mod curve;
mod data;
mod fit;
mod heights;
mod least_squares;
mod profile;
#[cfg(test)]
mod published;

pub use choice::{Tried, Wanted};
pub use curve::{Curve, Law};
pub use data::{Level, Noise};
pub use profile::Ends;

use choice::Choice;
use fit::LawFit;
use profile::Smooth;

/// Levels at most.
pub const LEVELS_MAX: usize = 1000;
/// Samples of all levels at most.
pub const SAMPLES_MAX: usize = 100_000;
/// Points of the curve at most.
const CURVE_POINTS_MAX: usize = 1000;
/// Levels at which the curve is known exactly, at most: each takes a profile.
const CURVE_LEVELS_MAX: usize = 64;

/// A value and the ends of its 95 % interval, of which one may be infinite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known {
    /// The value.
    pub value: f64,
    /// `None`: too few levels for any.
    pub ci95: Option<Ends>,
}

/// A law that was fitted.
#[derive(Debug, Clone, PartialEq)]
pub struct Scaling {
    /// Which.
    pub law: Law,
    /// With its parameters.
    pub curve: Curve,
    /// How samples were weighted.
    pub noise: Noise,
    /// The level that is left out, since it is far from what all others say.
    pub outlier: Option<usize>,
    /// γ: X(1), or what each n adds before the break.
    pub gamma: Known,
    /// α and β; `None` of two straight lines. Of a simpler law that was chosen by itself, β (and α) is 0 with the interval that the
    /// universal law gives it: it is how large it may be unseen.
    pub alpha: Option<Known>,
    /// See `alpha`.
    pub beta: Option<Known>,
    /// Where X is highest; `None` where it rises without end.
    pub peak: Option<Known>,
    /// Where γ·n meets the highest X; `None` where there is none.
    pub knee: Option<Known>,
    /// Where two straight lines meet.
    pub break_n: Option<Known>,
    /// What each n adds behind the break.
    pub after: Option<Known>,
    /// Every law, the best first.
    pub tried: Vec<Tried>,
    /// n, X(n), and its 95 % band.
    pub points: Vec<(f64, f64, Option<Ends>)>,
}

/// Fits the laws to levels, ascending in n. `None`: a value that is not finite or not above 0, levels that do not ascend, too many, or too
/// few for any law.
pub fn scaling(levels: &[Level], wanted: Wanted) -> Option<Scaling> {
    if !is_usable(levels) {
        return None;
    }
    // Figures of size one: no square leaves the finite numbers.
    let largest =
        levels.iter().flat_map(|level| &level.samples).fold(0.0, |largest: f64, value| largest.max(*value));
    let scaled = |level: &Level| Level {
        n: level.n,
        samples: level.samples.iter().map(|value| value / largest).collect(),
    };
    let scaled: Vec<Level> = levels.iter().map(scaled).collect();
    if scaled.iter().flat_map(|level| &level.samples).any(|value| *value <= 0.0) {
        return None;
    }
    let choice = Choice::of(&scaled, wanted)?;
    Some(described(&choice, largest, wanted))
}

fn is_usable(levels: &[Level]) -> bool {
    let is_size = |value: &f64| value.is_finite() && *value > 0.0;
    let ascends = levels.windows(2).all(|pair| pair[0].n < pair[1].n);
    let samples: usize = levels.iter().map(|level| level.samples.len()).sum();
    let whole =
        |level: &Level| is_size(&level.n) && !level.samples.is_empty() && level.samples.iter().all(is_size);
    (2..=LEVELS_MAX).contains(&levels.len()) && samples <= SAMPLES_MAX && ascends && levels.iter().all(whole)
}

/// In the unit of the data.
fn described(choice: &Choice, unit: f64, wanted: Wanted) -> Scaling {
    let curve = choice.best.fitted.curve;
    let known = |value: f64, ends: Option<Ends>| Known { value, ci95: ends.map(|ends| around(ends, value)) };
    let smooth = Smooth::of(&choice.for_intervals);
    let other = choice.without_suspect.as_ref().and_then(Smooth::of);
    let broken = profile::broken(&choice.for_intervals);
    let ends_of = |of: &dyn Fn(&Smooth) -> Option<Ends>| {
        let ends = smooth.as_ref().and_then(of)?;
        Some(other.as_ref().and_then(of).map_or(ends, |(low, high)| (ends.0.min(low), ends.1.max(high))))
    };
    let times = |known: Known, by: f64| Known {
        value: known.value * by,
        ci95: known.ci95.map(|(low, high)| (low * by, high * by)),
    };
    let mut found = Scaling {
        law: choice.best.law,
        curve: curve.times(unit),
        noise: choice.best.data.noise,
        outlier: choice.best.data.without,
        gamma: Known { value: 0.0, ci95: None },
        alpha: None,
        beta: None,
        peak: None,
        knee: None,
        break_n: None,
        after: None,
        tried: choice.tried.clone(),
        points: points(choice, broken.as_ref(), unit, wanted.points.min(CURVE_POINTS_MAX)),
    };
    match curve {
        Curve::Smooth { gamma, alpha, beta } => {
            found.gamma = times(known(gamma, ends_of(&|smooth| Some(smooth.gamma()))), unit);
            found.alpha = Some(known(alpha, ends_of(&|smooth| Some(smooth.alpha()))));
            found.beta = Some(known(beta, ends_of(&|smooth| Some(smooth.beta()))));
            found.peak = curve.peak().map(|peak| known(peak, ends_of(&|smooth| smooth.peak())));
            found.knee = curve.knee().map(|knee| known(knee, ends_of(&|smooth| smooth.knee())));
        }
        Curve::Broken { gamma, at, after } => {
            let ends = broken.as_ref().map(|broken| (broken.gamma, broken.at, broken.after));
            let at = known(at, ends.map(|ends| ends.1));
            found.gamma = times(known(gamma, ends.map(|ends| ends.0)), unit);
            found.after = Some(times(known(after, ends.map(|ends| ends.2)), unit));
            found.break_n = Some(at);
            // What falls, or does not rise, by chance alone is neither.
            let (falls, rests) =
                ends.map_or((after < 0.0, after <= 0.0), |ends| (ends.2.1 < 0.0, ends.2.0 <= 0.0));
            found.peak = falls.then_some(at);
            found.knee = rests.then_some(at);
        }
    }
    found
}

/// The ends, moved out to a value that another kind of noise puts beyond them.
fn around((low, high): Ends, value: f64) -> Ends {
    (low.min(value), high.max(value))
}

/// The curve from the lowest level to the highest, with its band.
fn points(
    choice: &Choice,
    broken: Option<&profile::Broken>,
    unit: f64,
    count: usize,
) -> Vec<(f64, f64, Option<Ends>)> {
    let fit: &LawFit = &choice.best;
    let all = &fit.data.points;
    let (Some(first), Some(last)) = (all.first(), all.last()) else { return Vec::new() };
    if count < 2 {
        return Vec::new();
    }
    let smooth = Smooth::of(&choice.for_band);
    let band = |n: f64| -> Option<Ends> {
        if let Some(broken) = broken {
            let values = broken.edge.iter().map(|curve| curve.at(n)).filter(|value| value.is_finite());
            return values.fold(None, |ends: Option<Ends>, value| {
                Some(ends.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
            });
        }
        smooth.as_ref().map(|smooth| smooth.value_at(n))
    };
    let point = |n: f64| {
        let value = fit.fitted.curve.at(n);
        let ends = band(n).map(|ends| around(ends, value)).map(|(low, high)| (low * unit, high * unit));
        (n, value * unit, ends)
    };
    let step = (last.n - first.n) / (count - 1) as f64;
    let mut places: Vec<f64> = (0..count - 1).map(|index| first.n + index as f64 * step).collect();
    // Also where it is held against a level, and where it breaks: a straight line between two points is not the law there.
    places.extend(all.iter().map(|point| point.n).take(CURVE_LEVELS_MAX));
    places.push(last.n);
    if let Curve::Broken { at, .. } = fit.fitted.curve {
        places.push(at);
    }
    places.retain(|n| (first.n..=last.n).contains(n));
    places.sort_by(f64::total_cmp);
    places.dedup();
    places.into_iter().map(point).collect()
}
