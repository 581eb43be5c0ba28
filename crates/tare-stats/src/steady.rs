//! Steady state: from where on a series of times or rates stays at one level.
//!
//! The way of Barrett et al. (2017) and Traini et al. (2022): wild single values are left out, change points of mean and
//! variance cut the rest into segments, and the last segment reaches back as far as segments have its mean. A series
//! that reaches its last level only near its end is not steady. The state says what the series does in the end: it stays at
//! a level, drifts further than levels may differ, has two modes, or comes to no level.

use crate::changes::{VALUES_MAX, change_points_above};
use crate::describe::{mean, median};
use crate::drift::drift;
use crate::level::{ALIKE_SHARE, Level, Rules, Segment, last_level};
use crate::modes::two_modes;
use crate::outliers::tamed;

/// The share at the end that must be at one level.
const END_SHARE: f64 = 1.0 / 6.0;
/// A standard deviation below this share of the median changes no level: it may be that of a clock's readings.
const SPREAD_MIN: f64 = 1e-4;

/// Fewest values of which anything can be said.
pub const VALUES_MIN: usize = 20;

/// The result for a series.
#[derive(Debug, Clone, PartialEq)]
pub struct Steadiness {
    /// Index of the first value of the last stretch that may have one mean; `None` where that was reached too near to the end. It is at one
    /// level from there on where the state is [`State::Steady`].
    pub from: Option<usize>,
    /// What it is from there on; where it came to no level, as a whole.
    pub state: State,
    /// The level that it is at from there on; both, the lower first, where it alternates between two; none where it drifts or is never steady. In
    /// the unit of the values.
    pub levels: Vec<f64>,
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

/// Where a series becomes steady. All values must be above zero.
///
/// `None` for fewer than [`VALUES_MIN`] values, more than [`VALUES_MAX`], or one that is not above zero and finite.
pub fn steadiness(values: &[f64]) -> Option<Steadiness> {
    steadiness_by(values, &Rules::default())
}

/// [`steadiness`] by other rules of what is one level.
pub fn steadiness_by(values: &[f64], rules: &Rules) -> Option<Steadiness> {
    let usable = (VALUES_MIN..=VALUES_MAX).contains(&values.len())
        && values.iter().all(|value| value.is_finite() && *value > 0.0);
    if !usable {
        return None;
    }
    let tamed = tamed(values, rules.few_of(values.len()));
    let kept: Vec<f64> = tamed.kept.iter().map(|at| values[*at]).collect();
    let changes = change_points_above(&kept, SPREAD_MIN * median(&kept)?)?;
    // A segment ends with a value that was kept; wild ones after it belong to the next.
    let ends = changes.into_iter().map(|change| tamed.kept[change - 1] + 1);
    let edges: Vec<usize> = std::iter::once(0).chain(ends).chain([values.len()]).collect();
    let segments: Option<Vec<Segment>> = edges
        .windows(2)
        .map(|edge| Some(Segment { from: edge[0], to: edge[1], mean: mean(&values[edge[0]..edge[1]])? }))
        .collect();
    let segments = segments?;
    let latest = values.len() as f64 * (1.0 - END_SHARE);
    let level =
        Some(last_level(&tamed.values, &segments, rules)?).filter(|level| level.from as f64 <= latest);
    let is_late = |at: &&usize| level.as_ref().is_none_or(|level| level.holds(**at));
    let late: Vec<f64> = tamed.kept.iter().filter(is_late).map(|at| values[*at]).collect();
    let (state, levels) = state(&late, values.len(), level.is_some());
    let from = level.map(|level: Level| level.from);
    Some(Steadiness { from, state, levels, wild: values.len() - tamed.kept.len(), segments })
}

/// Of the values from the last level on, if the series of so many values came to one: the state, and the levels.
fn state(values: &[f64], length: usize, is_steady: bool) -> (State, Vec<f64>) {
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    // A straight drift moves twice as far from end to end as from half to half. It is one where it leaves the level in that time, and in half
    // the time of the series: halves of a whole series that are alike are one level, as segments are.
    let far = |drift: f64| {
        let moved = 2.0 * drift.abs();
        let in_half = moved * 0.5 * length as f64 / values.len() as f64;
        moved.min(in_half) > ALIKE_SHARE.ln_1p()
    };
    let drifts = drift(&logs).is_some_and(|drift| {
        far(drift.value) && drift.ci95.is_some_and(|ci95| ci95.lo > 0.0 || ci95.hi < 0.0)
    });
    match two_modes(values, ALIKE_SHARE) {
        Some(modes) => (State::Bimodal, modes.to_vec()),
        None if drifts => (State::Drifting, Vec::new()),
        None if is_steady => (State::Steady, mean(values).into_iter().collect()),
        None => (State::NeverSteady, Vec::new()),
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
    found.levels.iter_mut().for_each(|level| *level /= together as f64);
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
