//! The mean of a series whose values may be autocorrelated.

use crate::describe::{finite, mean};
use crate::interval::Mean;

/// Cosines in the variance of a mean, times n^(2/3). Lazarus, Lewis, Stock and Watson recommend 0.4 for series in general; trials are at
/// least as long as their correlation lasts, and fewer cosines make the interval wider.
const COSINES_OVER_N: f64 = 0.6;
/// With fewer, Student's t alone would make the interval several times as wide.
const COSINES_MIN: usize = 4;

/// Fewest values with a known error of the mean: as many as there are cosines, and a few more.
pub const SERIES_MIN: usize = 8;

/// Mean of values in the order of their time.
///
/// Its variance is that of the series at the lowest frequencies: the mean square of its products with the first B cosines
/// √(2/n)·cos(πj(t+½)/n), over n (equal-weighted cosines: Müller, Journal of Econometrics 135, 2007; Lazarus, Lewis, Stock and
/// Watson, Journal of Business & Economic Statistics 36, 2018), with B degrees of freedom. For independent normal values
/// the interval is exact for any B; for autocorrelated values it holds as long as their memory is short beside
/// n/B values (`tests/series.rs` measures how often).
///
/// `None` for fewer than [`SERIES_MIN`] values or one that is not finite.
pub(crate) fn series_mean(values: &[f64]) -> Option<Mean> {
    if values.len() < SERIES_MIN {
        return None;
    }
    let value = mean(values)?;
    let n = values.len() as f64;
    let cosines = cosines(values.len());
    let squares: f64 = (1..=cosines)
        .map(|j| {
            let step = std::f64::consts::PI * j as f64 / n;
            // Centred: the rounding of a large mean would be in every product.
            let product = |(at, one): (usize, &f64)| (one - value) * (step * (at as f64 + 0.5)).cos();
            values.iter().enumerate().map(product).sum::<f64>().powi(2) * 2.0 / n
        })
        .sum();
    let se = finite((squares / cosines as f64 / n).sqrt())?;
    Some(Mean { value, se, df: cosines as f64 })
}

/// How many cosines the error of a mean of so many values is of.
pub(crate) fn cosines(values: usize) -> usize {
    ((COSINES_OVER_N * (values as f64).powf(2.0 / 3.0)).round() as usize).max(COSINES_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;
    use proptest::prelude::*;

    /// Of independent values the error is that of the usual formula, on average.
    #[test]
    fn independent_values_have_the_usual_error() {
        let mut noise = Noise::new(3);
        let runs = 400;
        let n = 100;
        let squares: f64 = (0..runs)
            .map(|_| {
                let values: Vec<f64> = (0..n).map(|_| 5.0 + noise.normal()).collect();
                series_mean(&values).unwrap().se.powi(2)
            })
            .sum();
        let over_usual = squares / f64::from(runs) * n as f64;
        // Its own deviation is √(2/13/400) = 2 %.
        assert!((over_usual - 1.0).abs() < 0.08, "{over_usual}");
    }

    #[test]
    fn autocorrelated_values_have_a_larger_error() {
        let mut noise = Noise::new(4);
        let mut last = 0.0;
        let values: Vec<f64> = (0..2000)
            .map(|_| {
                last = 0.5 * last + noise.normal();
                last
            })
            .collect();
        let mean = series_mean(&values).unwrap();
        // The long-run variance of an autoregression is that of its shocks over (1 − φ)²: four times.
        let expected = 2.0 / (values.len() as f64).sqrt();
        assert!((mean.se / expected - 1.0).abs() < 0.25, "{} against {expected}", mean.se);
    }

    #[test]
    fn too_few_is_none() {
        assert_eq!(series_mean(&[1.0; SERIES_MIN - 1]), None);
        assert_eq!(series_mean(&[f64::NAN; SERIES_MIN]), None);
        assert_eq!(series_mean(&[1.0; SERIES_MIN]).unwrap().se, 0.0);
    }

    proptest! {
        #[test]
        fn neither_place_nor_scale_nor_direction_matters(values in prop::collection::vec(-1.0..1.0f64, SERIES_MIN..80)) {
            let mean = series_mean(&values).unwrap();
            let moved: Vec<f64> = values.iter().rev().map(|value| 1000.0 - 8.0 * value).collect();
            let other = series_mean(&moved).unwrap();
            prop_assert!((other.value - (1000.0 - 8.0 * mean.value)).abs() < 1e-9);
            prop_assert!((other.se - 8.0 * mean.se).abs() < 1e-9);
        }

        #[test]
        fn nothing_is_ever_nan(values in prop::collection::vec(prop::num::f64::ANY, 0..20)) {
            if let Some(mean) = series_mean(&values) {
                prop_assert!(mean.value.is_finite() && mean.se.is_finite());
            }
        }
    }
}
