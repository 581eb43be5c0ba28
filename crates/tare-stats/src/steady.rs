//! Steady state: from where on a series of times or rates stays at one level.
//!
//! The way of Barrett et al. (2017) and Traini et al. (2022): wild single values are left out, change points of mean and
//! variance cut the rest into segments, and the last segment reaches back as far as segments have its mean. A series
//! that reaches its last level only near its end is not steady. The state says what the series does in the end: it stays at
//! a level, drifts further than levels may differ, has two modes, or comes to no level.

use crate::changes::{VALUES_MAX, change_points};
use crate::describe::mean;
use crate::drift::drift;
use crate::modes::has_two_modes;

/// Length of the windows in which a value may be wild, or the series' own where that is shorter.
const WINDOW: usize = 200;
/// The first values are never wild: they may be a warm-up.
const WARM_UP: usize = 30;
/// A value is wild in a window if it is farther from the median than this many times P99 − P1.
const WILD_SPREADS: f64 = 3.0;
/// Means that differ by less than this share count as equal.
const ALIKE_SHARE: f64 = 0.05;
/// Standard errors in half of a 95 % interval.
const ERRORS_95: f64 = 1.959_964;
/// The share at the end that must be at one level.
const END_SHARE: f64 = 1.0 / 6.0;

/// Fewest values of which anything can be said.
pub const VALUES_MIN: usize = 20;

/// The result for a series.
#[derive(Debug, Clone, PartialEq)]
pub struct Steadiness {
    /// Index of the first value of the last level; `None` where that level was reached too near to the end.
    pub from: Option<usize>,
    /// What it is from there on; where it came to no level, as a whole.
    pub state: State,
    /// The stretches between change points, in order.
    pub segments: Vec<Segment>,
    /// Values so far from those around them that they moved no change point.
    pub wild: usize,
}

/// What a series does in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is at one level.
    Steady,
    /// It changes without a direction.
    NeverSteady,
    /// It keeps rising or falling.
    Drifting,
    /// It alternates between two levels.
    Bimodal,
}

/// A stretch without a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// Index of its first value.
    pub from: usize,
    /// Index after its last.
    pub to: usize,
    /// Mean of its values, wild ones included.
    pub mean: f64,
}

/// Where a series becomes steady. All values must be above zero.
///
/// `None` for fewer than [`VALUES_MIN`] values, more than [`VALUES_MAX`], or one that is not above zero and finite.
pub fn steadiness(values: &[f64]) -> Option<Steadiness> {
    let usable = (VALUES_MIN..=VALUES_MAX).contains(&values.len())
        && values.iter().all(|value| value.is_finite() && *value > 0.0);
    if !usable {
        return None;
    }
    let tame = tame(values);
    let kept: Vec<f64> = tame.iter().map(|at| values[*at]).collect();
    // A segment ends with a value that was kept; wild ones after it belong to the next.
    let ends = change_points(&kept)?.into_iter().map(|change| tame[change - 1] + 1);
    let edges: Vec<usize> = std::iter::once(0).chain(ends).chain([values.len()]).collect();
    let segments: Option<Vec<Segment>> = edges
        .windows(2)
        .map(|edge| Some(Segment { from: edge[0], to: edge[1], mean: mean(&values[edge[0]..edge[1]])? }))
        .collect();
    let segments = segments?;
    let last = segments.last()?;
    let level = segments
        .iter()
        .rev()
        .take_while(|segment| alike(&values[last.from..last.to], &values[segment.from..segment.to]))
        .last()?;
    let latest = values.len() as f64 * (1.0 - END_SHARE);
    let from = Some(level.from).filter(|from| *from as f64 <= latest);
    let late: Vec<f64> = tame.iter().filter(|at| **at >= from.unwrap_or(0)).map(|at| values[*at]).collect();
    let state = state(&late, from.is_some());
    Some(Steadiness { from, state, wild: values.len() - tame.len(), segments })
}

/// Of the values from the last level on, if it came to one.
fn state(values: &[f64], is_steady: bool) -> State {
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    // A straight drift moves twice as far from end to end as from half to half.
    let far = |drift: f64| 2.0 * drift.abs() > ALIKE_SHARE.ln_1p();
    let drifts = drift(&logs).is_some_and(|drift| {
        far(drift.value) && drift.ci95.is_some_and(|ci95| ci95.lo > 0.0 || ci95.hi < 0.0)
    });
    match () {
        () if has_two_modes(values, ALIKE_SHARE) => State::Bimodal,
        () if drifts => State::Drifting,
        () if is_steady => State::Steady,
        () => State::NeverSteady,
    }
}

/// [`steadiness`] of what was counted in slices of equal length. Neighbours are joined, two, four or eight, until none is
/// empty: a server with few requests has empty slices at any level. Indices are those of `counts`.
pub fn steadiness_of_counts(counts: &[u64]) -> Option<Steadiness> {
    let together = together(counts)?;
    let sums: Vec<f64> =
        counts.chunks_exact(together).map(|counts| counts.iter().sum::<u64>() as f64).collect();
    let mut found = steadiness(&sums)?.in_slices_of(together);
    found.segments.iter_mut().for_each(|segment| segment.mean /= together as f64);
    Some(found)
}

/// [`steadiness`] of the mean of something, of which slices hold the sum and the count; put together as in [`steadiness_of_counts`].
pub fn steadiness_of_means(sums: &[u64], counts: &[u64]) -> Option<Steadiness> {
    let together = together(counts)?;
    let sum = |slices: &[u64]| slices.iter().map(|value| *value as f64).sum::<f64>();
    let slices = sums.chunks_exact(together).zip(counts.chunks_exact(together));
    let means: Vec<f64> = slices.map(|(sums, counts)| sum(sums) / sum(counts)).collect();
    Some(steadiness(&means)?.in_slices_of(together))
}

/// How many neighbours are put together so that none of them is empty.
fn together(counts: &[u64]) -> Option<usize> {
    [1, 2, 4, 8]
        .into_iter()
        .find(|&together| counts.chunks_exact(together).all(|counts| counts.iter().any(|count| *count > 0)))
}

impl Steadiness {
    /// The same, of values that are so many slices each.
    fn in_slices_of(mut self, together: usize) -> Steadiness {
        self.from = self.from.map(|from| from * together);
        for segment in &mut self.segments {
            segment.from *= together;
            segment.to *= together;
        }
        self
    }
}

/// Indices of the values that are wild in no window.
fn tame(values: &[f64]) -> Vec<usize> {
    let length = WINDOW.min(values.len());
    let first = WARM_UP.min(values.len() - length);
    let mut wild = vec![false; values.len()];
    let mut sorted: Vec<f64> = values[..length].to_vec();
    sorted.sort_by(f64::total_cmp);
    for from in 0..=values.len() - length {
        if from > 0 {
            let place = |sorted: &[f64], value: f64| sorted.partition_point(|other| *other < value);
            sorted.remove(place(&sorted, values[from - 1]));
            let entering = values[from + length - 1];
            sorted.insert(place(&sorted, entering), entering);
        }
        let (middle, low, high) = (at(&sorted, 0.5), at(&sorted, 0.01), at(&sorted, 0.99));
        let far = WILD_SPREADS * (high - low);
        if from < first {
            continue;
        }
        for (value, wild) in values[from..].iter().zip(&mut wild[from..]).take(length) {
            *wild |= (value - middle).abs() > far;
        }
    }
    (0..values.len()).filter(|at| !wild[*at]).collect()
}

/// Quantile of sorted values, between neighbours by their distance.
fn at(sorted: &[f64], q: f64) -> f64 {
    let position = q * (sorted.len() - 1) as f64;
    let below = sorted[position as usize];
    let above = sorted[(position as usize + 1).min(sorted.len() - 1)];
    below + position.fract() * (above - below)
}

/// Whether the ratio of two means may be within [`ALIKE_SHARE`] of 1: its 95 % interval (Kalibera and Jones 2013, here by
/// the delta method) reaches that far.
fn alike(one: &[f64], other: &[f64]) -> bool {
    let (Some(one), Some(other)) = (Level::of(one), Level::of(other)) else { return false };
    let ratio = one.mean / other.mean;
    let half = ERRORS_95 * ratio * one.relative_error.hypot(other.relative_error);
    ratio + half >= 1.0 - ALIKE_SHARE && ratio - half <= 1.0 + ALIKE_SHARE
}

/// A mean with its standard error as a share of it.
struct Level {
    mean: f64,
    relative_error: f64,
}

impl Level {
    fn of(values: &[f64]) -> Option<Level> {
        let mean = mean(values)?;
        let error = crate::describe::stdev(values).unwrap_or(0.0) / (values.len() as f64).sqrt();
        Some(Level { mean, relative_error: error / mean })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;
    use proptest::prelude::*;

    fn series(noise: f64, levels: &[(f64, usize)]) -> Vec<f64> {
        let mut random = Noise::new(11);
        let values = levels.iter().flat_map(|(level, count)| std::iter::repeat_n(*level, *count));
        values.map(|level| level * (1.0 + noise * random.normal())).collect()
    }

    fn from(values: &[f64]) -> Option<usize> {
        steadiness(values).unwrap().from
    }

    #[test]
    fn a_warm_up_is_left_behind() {
        let start = from(&series(0.01, &[(3.0, 50), (1.5, 100), (1.0, 850)])).unwrap();
        assert!(start.abs_diff(150) <= 3, "{start}");
        assert_eq!(from(&series(0.01, &[(1.0, 500)])), Some(0));
        assert_eq!(from(&[2.0; 100]), Some(0));
    }

    #[test]
    fn levels_that_nobody_tells_apart_are_one() {
        let start = from(&series(0.005, &[(2.0, 100), (1.03, 300), (1.0, 600)])).unwrap();
        assert!(start.abs_diff(100) <= 3, "{start}");
    }

    #[test]
    fn what_changes_near_its_end_was_never_steady() {
        assert_eq!(from(&series(0.01, &[(1.0, 900), (1.5, 100)])), None);
    }

    #[test]
    fn single_wild_values_change_nothing() {
        let mut values = series(0.01, &[(1.0, 600)]);
        for at in [50, 250, 251, 599] {
            values[at] = 40.0;
        }
        let found = steadiness(&values).unwrap();
        assert_eq!((found.from, found.wild), (Some(0), 4));
    }

    #[test]
    fn what_has_no_level_is_none() {
        assert_eq!(steadiness(&[1.0; VALUES_MIN - 1]), None);
        assert_eq!(steadiness(&[0.0; 100]), None);
        assert_eq!(steadiness(&vec![1.0; VALUES_MAX + 1]), None);
    }

    fn state(values: &[f64]) -> State {
        steadiness(values).unwrap().state
    }

    #[test]
    fn each_state_is_distinguished_from_the_others() {
        let mut noise = Noise::new(21);
        for _ in 0..50 {
            let mut of = |level: &dyn Fn(f64, &mut Noise) -> f64| -> State {
                let at = |at: u32, noise: &mut Noise| {
                    level(f64::from(at) / 400.0, noise) * (1.0 + 0.01 * noise.normal())
                };
                state(&(0..400).map(|place| at(place, &mut noise)).collect::<Vec<f64>>())
            };
            assert_eq!(of(&|_, _| 1.0), State::Steady);
            assert_eq!(of(&|at, _| if at < 0.2 { 2.0 } else { 1.0 }), State::Steady, "a warm-up");
            assert_eq!(of(&|at, _| 1.0 + (-20.0 * at).exp()), State::Steady, "a warm-up that fades");
            assert_eq!(of(&|at, _| 1.0 + at), State::Drifting);
            assert_eq!(of(&|at, _| 1.0 - 0.3 * at), State::Drifting);
            assert_eq!(of(&|_, noise| if noise.uniform() < 0.4 { 1.2 } else { 1.0 }), State::Bimodal);
            assert_eq!(
                of(&|at, _| if ((16.0 * at) as u32).is_multiple_of(2) { 1.2 } else { 1.0 }),
                State::Bimodal,
                "long ones"
            );
            assert_eq!(
                of(&|at, _| if at > 0.9 { 1.5 } else { 1.0 }),
                State::NeverSteady,
                "a step at the end"
            );
        }
    }

    proptest! {
        #[test]
        fn segments_cover_the_series(values in prop::collection::vec(0.001..1e3f64, VALUES_MIN..300)) {
            let found = steadiness(&values).unwrap();
            prop_assert_eq!(found.segments[0].from, 0);
            prop_assert_eq!(found.segments.last().unwrap().to, values.len());
            prop_assert!(found.segments.windows(2).all(|pair| pair[0].to == pair[1].from));
            if let Some(from) = found.from {
                prop_assert!(found.segments.iter().any(|segment| segment.from == from));
            }
        }
    }
}
