//! What a series would be under constant interference: the part that follows covariates is removed.

use crate::describe::{finite, mean, median, stdev};

/// A covariate whose deviation is less than this did not move.
const MOVED: f64 = 1e-9;
/// Fewest values more than slopes: with fewer a slope is a guess.
const FREE_MIN: usize = 6;
/// Above this leverage a value decides a slope alone.
const LEVERAGE_MAX: f64 = 1.0 - 1e-9;

/// `values` as they would be where each of the `covariates` is at its median: their mean is what a linear regression says there.
///
/// They are the jackknife's pseudo-values of that prediction, θ + (n−1)·aᵢ·rᵢ/(1−hᵢ) with the residual r, the leverage h and the weight a
/// that the value has in θ (Hinkley, Technometrics 19, 1977; Efron and Tibshirani 1993, chapter 11), so that an interval of their mean counts in
/// what the slopes are uncertain by, whatever the variance of each value. Without a covariate they are `values`. Regression
/// adjustment of a randomized experiment removes no effect (Lin, Annals of Applied Statistics 7, 2013).
///
/// A covariate that did not move is left out. `None`: no covariate is left, they are too many for so few values or cannot be separated, lengths differ, or
/// something is not finite.
pub fn adjusted(values: &[f64], covariates: &[Vec<f64>]) -> Option<Vec<f64>> {
    if covariates.iter().any(|covariate| covariate.len() != values.len()) {
        return None;
    }
    let columns: Vec<Vec<f64>> = covariates.iter().filter_map(|covariate| column(covariate)).collect();
    if columns.is_empty() || values.len() < columns.len() + 1 + FREE_MIN {
        return None;
    }
    let row = |at: usize| -> Vec<f64> {
        std::iter::once(1.0).chain(columns.iter().map(|column| column[at])).collect()
    };
    let rows: Vec<Vec<f64>> = (0..values.len()).map(row).collect();
    let inverse = inverse(products(&rows))?;
    let along =
        |row: &[f64], other: &[f64]| row.iter().zip(other).map(|(one, other)| one * other).sum::<f64>();
    let weights: Vec<Vec<f64>> =
        rows.iter().map(|row| inverse.iter().map(|line| along(line, row)).collect()).collect();
    let slopes: Vec<f64> = (0..inverse.len())
        .map(|at| weights.iter().zip(values).map(|(weight, value)| weight[at] * value).sum())
        .collect();
    let others = values.len() as f64 - 1.0;
    let pseudo = |((row, weight), value): ((&Vec<f64>, &Vec<f64>), &f64)| {
        let leverage = along(row, weight);
        let residual = value - along(row, &slopes);
        let moved = others * weight[0] * residual / (1.0 - leverage);
        if leverage < LEVERAGE_MAX { finite(slopes[0] + moved) } else { None }
    };
    rows.iter().zip(&weights).zip(values).map(pseudo).collect()
}

/// A covariate in deviations from its median; `None` for one that did not move.
fn column(covariate: &[f64]) -> Option<Vec<f64>> {
    let (middle, spread) = (median(covariate)?, stdev(covariate)?);
    (spread > MOVED * middle.abs().max(MOVED))
        .then(|| covariate.iter().map(|value| (value - middle) / spread).collect())
}

/// The matrix of the sums of products.
fn products(rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let size = rows.first().map_or(0, Vec::len);
    let sum = |one: usize, other: usize| rows.iter().map(|row| row[one] * row[other]).sum();
    (0..size).map(|one| (0..size).map(|other| sum(one, other)).collect()).collect()
}

/// By Gauss and Jordan, with the largest pivot of each column; `None` where none is above rounding.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let size = matrix.len();
    let largest = mean(&matrix.iter().flatten().map(|value| value.abs()).collect::<Vec<_>>())?;
    for (at, line) in matrix.iter_mut().enumerate() {
        line.extend((0..size).map(|column| f64::from(u8::from(column == at))));
    }
    for at in 0..size {
        let pivot =
            (at..size).max_by(|one, other| matrix[*one][at].abs().total_cmp(&matrix[*other][at].abs()))?;
        matrix.swap(at, pivot);
        let scale = matrix[at][at];
        if scale.abs() <= MOVED * largest {
            return None;
        }
        matrix[at].iter_mut().for_each(|value| *value /= scale);
        let line = matrix[at].clone();
        for (_, other) in matrix.iter_mut().enumerate().filter(|(row, _)| *row != at) {
            let times = other[at];
            other.iter_mut().zip(&line).for_each(|(value, of)| *value -= times * of);
        }
    }
    Some(matrix.into_iter().map(|line| line[size..].to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Interval;
    use crate::noise::Noise;
    use crate::trimmed_mean_interval;
    use proptest::prelude::*;

    /// Values that follow two covariates with these slopes, and have a noise of their own.
    fn leaning(n: usize, slopes: [f64; 2], noise: &mut Noise) -> (Vec<f64>, Vec<Vec<f64>>) {
        let covariates: Vec<Vec<f64>> =
            (0..2).map(|_| (0..n).map(|_| 0.2 * noise.normal()).collect()).collect();
        let value = |at: usize, noise: &mut Noise| {
            0.02 + slopes[0] * covariates[0][at] + slopes[1] * covariates[1][at] + 0.01 * noise.normal()
        };
        ((0..n).map(|at| value(at, noise)).collect(), covariates)
    }

    /// By the mean that launches are judged by.
    fn interval(values: &[f64]) -> Interval {
        trimmed_mean_interval(values).unwrap().ci95.unwrap()
    }

    #[test]
    fn intervals_hold_the_value_at_median_interference_and_are_narrower() {
        let mut noise = Noise::new(11);
        const RUNS: usize = 2000;
        for n in [16, 40] {
            let (mut held, mut raw_width, mut width) = (0, 0.0, 0.0);
            for _ in 0..RUNS {
                let (values, covariates) = leaning(n, [0.3, -0.2], &mut noise);
                let raw = interval(&values);
                let corrected = interval(&adjusted(&values, &covariates).unwrap());
                let truth =
                    0.02 + 0.3 * median(&covariates[0]).unwrap() - 0.2 * median(&covariates[1]).unwrap();
                held += usize::from((corrected.lo..=corrected.hi).contains(&truth));
                raw_width += raw.hi - raw.lo;
                width += corrected.hi - corrected.lo;
            }
            let coverage = held as f64 / RUNS as f64;
            assert!((0.93..=0.98).contains(&coverage), "{n}: {coverage}");
            assert!(width < 0.3 * raw_width, "{n}: {width} beside {raw_width}");
        }
    }

    #[test]
    fn what_leans_on_nothing_is_hardly_wider() {
        let mut noise = Noise::new(5);
        let (mut held, mut raw_width, mut width) = (0, 0.0, 0.0);
        const RUNS: usize = 2000;
        for _ in 0..RUNS {
            let (values, covariates) = leaning(24, [0.0, 0.0], &mut noise);
            let raw = interval(&values);
            let corrected = interval(&adjusted(&values, &covariates).unwrap());
            held += usize::from((corrected.lo..=corrected.hi).contains(&0.02));
            raw_width += raw.hi - raw.lo;
            width += corrected.hi - corrected.lo;
        }
        let coverage = held as f64 / RUNS as f64;
        assert!((0.93..=0.98).contains(&coverage), "{coverage}");
        assert!(width < 1.2 * raw_width, "{width} beside {raw_width}");
    }

    #[test]
    fn what_cannot_be_taken_out_is_none() {
        let values: Vec<f64> = (0..20).map(f64::from).collect();
        let slope: Vec<f64> = values.iter().map(|value| 3.0 * value).collect();
        assert_eq!(adjusted(&values, &[]), None);
        assert_eq!(adjusted(&values, &[vec![2.99e9; 20]]), None, "it did not move");
        assert_eq!(adjusted(&values, &[slope.clone(), slope.clone()]), None, "one and the same");
        assert_eq!(adjusted(&values, &[slope[1..].to_vec()]), None);
        assert_eq!(adjusted(&values[..7], &[slope[..7].to_vec()]), None, "too few");
        let mut broken = slope.clone();
        broken[3] = f64::NAN;
        assert_eq!(adjusted(&values, &[broken]), None);
        // All of it is the covariate's: nothing is left of the spread.
        let corrected = adjusted(&values, &[slope, vec![1.0; 20]]).unwrap();
        assert!(corrected.iter().all(|value| (value - 9.5).abs() < 1e-9), "{corrected:?}");
    }

    proptest! {
        /// The unit of a covariate is no matter.
        #[test]
        fn units_fall_out(seed in 0u64..1000, scale in 1e-6..1e6f64, shift in -1.0..1.0f64) {
            let (values, covariates) = leaning(20, [0.1, 0.2], &mut Noise::new(seed));
            let other: Vec<Vec<f64>> =
                covariates.iter().map(|one| one.iter().map(|value| scale * (value + shift)).collect()).collect();
            let (one, other) = (adjusted(&values, &covariates).unwrap(), adjusted(&values, &other).unwrap());
            for (one, other) in one.iter().zip(other) {
                prop_assert!((one - other).abs() < 1e-6);
            }
        }
    }
}
