//! A mean that a few wild values do not decide.

use crate::describe::{finite, mean, stdev};
use crate::interval::{Estimate, Interval, Mean};

/// Share of the values that is left out at each end.
const TRIMMED: f64 = 0.2;

/// The mean without the fifth of the values at either end, with its 95 % interval by Student's t on the winsorised spread
/// (Tukey and McLaughlin, Sankhyā A 25, 1963; Yuen, Biometrika 61, 1974): for errors with heavy tails, which a host's bursts
/// make, much narrower than the mean's, and hardly wider for normal ones. Of fewer than five values
/// a fifth is less than one: then it is the plain mean, which one wild value can decide. `None` for no values or one that is not finite; no
/// interval where fewer than two are left.
pub fn trimmed_mean_interval(values: &[f64]) -> Option<Estimate> {
    let ci95 = trimmed_mean(&[values]).and_then(|mean| Interval::around(mean.value, mean.se, mean.df));
    Some(Estimate { value: mean(Sorted::of(&[values])?.left()?)?, ci95 })
}

/// The same with its error, of launches with a value in each of the columns: the values are trimmed together, and the error is that of
/// what each launch says with all of its own (the influence function's, by launch). `None` where columns are of different lengths, or fewer than
/// two launches are left.
pub(crate) fn trimmed_mean(columns: &[&[f64]]) -> Option<Mean> {
    let sorted = Sorted::of(columns)?;
    let kept = sorted.left()?;
    let (low, high) = (*kept.first()?, *kept.last()?);
    let launch = |at: usize| -> f64 {
        columns.iter().map(|column| column[at].clamp(low, high)).sum::<f64>() / columns.len() as f64
    };
    let winsorised: Vec<f64> = (0..sorted.launches).map(launch).collect();
    let left = self::kept(sorted.launches) as f64;
    // Yuen's error, whose correction for what is left out is of the values, as these were trimmed.
    let corrected = (sorted.values.len() as f64 - 1.0) / (kept.len() as f64 - 1.0);
    let se = finite(stdev(&winsorised)? * (corrected / left).sqrt())?;
    Some(Mean { value: mean(kept)?, se, df: left - 1.0 })
}

/// How many of so many launches are left.
pub(crate) fn kept(launches: usize) -> usize {
    launches - 2 * cut(launches)
}

fn cut(launches: usize) -> usize {
    (TRIMMED * launches as f64) as usize
}

/// The values of all columns.
struct Sorted {
    launches: usize,
    /// How many are left out at either end.
    cut: usize,
    values: Vec<f64>,
}

impl Sorted {
    fn of(columns: &[&[f64]]) -> Option<Sorted> {
        let launches = columns.first()?.len();
        if columns.iter().any(|column| column.len() != launches) {
            return None;
        }
        let mut values = columns.concat();
        values.sort_by(f64::total_cmp);
        finite(values.iter().sum())?;
        Some(Sorted { launches, cut: cut(launches) * columns.len(), values })
    }

    fn left(&self) -> Option<&[f64]> {
        self.values.get(self.cut..self.values.len() - self.cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;
    use proptest::prelude::*;

    /// Values by `next` of a mean of 1, so many at a time: the share of intervals that hold it, and the mean half-width.
    fn coverage(n: usize, mut next: impl FnMut(&mut Noise) -> f64) -> (f64, f64) {
        let mut noise = Noise::new(7);
        let (mut held, mut widths) = (0, 0.0);
        const RUNS: u32 = 4000;
        for _ in 0..RUNS {
            let values: Vec<f64> = (0..n).map(|_| 1.0 + next(&mut noise)).collect();
            let interval = trimmed_mean_interval(&values).unwrap().ci95.unwrap();
            held += u32::from((interval.lo..=interval.hi).contains(&1.0));
            widths += (interval.hi - interval.lo) / 2.0;
        }
        (f64::from(held) / f64::from(RUNS), widths / f64::from(RUNS))
    }

    #[test]
    fn its_interval_holds_the_mean_as_often_as_it_says() {
        for n in [20, 40] {
            let (normal, of_normal) = coverage(n, Noise::normal);
            // One value in ten is ten times as wild.
            let (wild, of_wild) = coverage(n, |noise| {
                let factor = if noise.normal() > 1.28 { 10.0 } else { 1.0 };
                factor * noise.normal()
            });
            assert!((0.935..=0.97).contains(&normal), "{n}: {normal}");
            assert!((0.935..=0.975).contains(&wild), "{n}: {wild}");
            assert!(of_wild < 1.6 * of_normal, "{n}: {of_wild} beside {of_normal}");
        }
    }

    #[test]
    fn of_fewer_than_five_values_none_is_left_out() {
        for values in [&[1.0, 2.0, 4.0, 100.0][..], &[1.0, 3.0], &[7.0]] {
            let (trimmed, plain) =
                (trimmed_mean_interval(values).unwrap(), crate::mean_interval(values).unwrap());
            assert_eq!(trimmed.value, plain.value);
            let length = |estimate: Estimate| estimate.ci95.map_or(0.0, |ci95| ci95.hi - ci95.lo);
            assert!((length(trimmed) - length(plain)).abs() < 1e-9, "{values:?}");
        }
        assert_eq!(trimmed_mean_interval(&[1.0, 2.0, 3.0, 4.0, 1e9]).unwrap().value, 3.0);
        assert_eq!(trimmed_mean_interval(&[]), None);
    }

    proptest! {
        #[test]
        fn a_wild_value_moves_it_no_farther_than_the_others_reach(
            values in proptest::collection::vec(-1e3f64..1e3, 5..60),
            wild in prop::num::f64::NORMAL.prop_filter("finite sums", |wild| wild.abs() < 1e300),
        ) {
            let mut with = values.clone();
            with[0] = wild;
            let of = |values: &[f64]| trimmed_mean_interval(values).map(|estimate| estimate.value);
            let reach = values.iter().skip(1).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(*value), high.max(*value))
            });
            prop_assert!((reach.0..=reach.1).contains(&of(&with).unwrap()));
            with[0] = f64::NAN;
            prop_assert_eq!(of(&with), None);
        }
    }
}
