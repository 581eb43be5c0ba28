//! Where the level of a short series changed for good: the history of a branch, run by run.
//!
//! Change points alone follow two runs that are close by chance: a series of twenty nearly always has such a pair. So a
//! test compares the means beside each, and the weakest is dropped until all that are left pass.

use crate::changes::change_points;
use crate::describe::mean;
use crate::student::t_quantile;

/// One is found in this share of series without a change.
const FALSE_ALARMS: f64 = 0.01;

/// The starts of all levels but the first, ascending: the change points at which the mean provably changes, in all but one of a
/// hundred series in which it never does (Bonferroni over the places where it could).
///
/// None for a series that is too short to show any.
pub fn level_change_points(values: &[f64]) -> Vec<usize> {
    let mut change_points = change_points(values).unwrap_or_default();
    while !change_points.is_empty() {
        let Some(noise) = Noise::of(values, &change_points) else { return Vec::new() };
        let Some(needed) = t_quantile(1.0 - 0.5 * FALSE_ALARMS / values.len() as f64, noise.freedom) else {
            return Vec::new();
        };
        let weakest = (0..change_points.len())
            .map(|at| (at, noise.t(values, &change_points, at)))
            .min_by(|one, other| one.1.total_cmp(&other.1));
        match weakest {
            Some((at, t)) if t < needed => _ = change_points.remove(at),
            _ => break,
        }
    }
    change_points
}

/// What neighbours differ by where nothing changed.
struct Noise {
    variance: f64,
    freedom: f64,
}

impl Noise {
    /// From differences of successive values of one level (von Neumann, Annals of Mathematical Statistics 12, 1941): a change that
    /// was not found yet is in one of them only. Each value is in two, so that of n differences two thirds are degrees of freedom.
    fn of(values: &[f64], change_points: &[usize]) -> Option<Noise> {
        let within = (1..values.len()).filter(|at| change_points.binary_search(at).is_err());
        let squares: Vec<f64> = within.map(|at| 0.5 * (values[at] - values[at - 1]).powi(2)).collect();
        Some(Noise { variance: mean(&squares)?, freedom: (squares.len() as f64 * 2.0 / 3.0).max(1.0) })
    }

    /// How far the means on both sides of a change lie apart, in standard errors.
    fn t(&self, values: &[f64], change_points: &[usize], at: usize) -> f64 {
        let begin = if at == 0 { 0 } else { change_points[at - 1] };
        let end = change_points.get(at + 1).copied().unwrap_or(values.len());
        let (before, after) = (&values[begin..change_points[at]], &values[change_points[at]..end]);
        let (Some(from), Some(to)) = (mean(before), mean(after)) else { return 0.0 };
        let error = (self.variance * (1.0 / before.len() as f64 + 1.0 / after.len() as f64)).sqrt();
        // Values that are all alike on both sides: any difference is one.
        if error > 0.0 { (to - from).abs() / error } else { f64::INFINITY }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise;

    fn series(runs: usize, noise: &mut noise::Noise, step: impl Fn(usize) -> f64) -> Vec<f64> {
        (0..runs).map(|at| step(at) + noise.normal()).collect()
    }

    #[test]
    fn none_is_found_where_there_is_none() {
        let mut noise = noise::Noise::new(11);
        for runs in [5, 6, 8, 12, 20, 50, 200] {
            let repeats = 500;
            let found = (0..repeats)
                .filter(|_| !level_change_points(&series(runs, &mut noise, |_| 0.0)).is_empty())
                .count();
            // One per cent and three standard deviations, and some: the places are not drawn at random.
            assert!(found <= 15, "{runs} runs: {found} of {repeats}");
        }
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let mut noise = noise::Noise::new(12);
        for (runs, at, height) in [(40, 30, 5.0), (20, 14, 8.0), (30, 27, 10.0), (60, 20, -4.0)] {
            let repeats = 200;
            let found = (0..repeats).filter(|_| {
                let change_points =
                    level_change_points(&series(runs, &mut noise, |run| if run < at { 0.0 } else { height }));
                change_points.last().is_some_and(|last| last.abs_diff(at) <= 1)
            });
            let found = found.count();
            assert!(found >= 180, "{runs} runs, step of {height} at {at}: {found} of {repeats}");
        }
    }

    #[test]
    fn odd_series_have_none() {
        for values in [&[][..], &[1.0], &[1.0, 2.0], &[1.0; 30], &[f64::NAN; 9]] {
            assert_eq!(level_change_points(values), Vec::<usize>::new(), "{values:?}");
        }
    }
}
