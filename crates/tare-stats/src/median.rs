//! An interval for a median that asks nothing of how values are distributed.

use crate::describe::median;
use crate::interval::{Interval, mean_interval};

/// Each side of the interval is wrong at most this often.
const TAIL: f64 = 0.025;
/// From so many values on their own order tells it: of 5 the whole range holds the median in 94 of 100 cases only.
const ORDER_MIN: usize = 6;
/// Fewer than this tell nothing of their spread.
const VALUES_MIN: usize = 3;

/// The median, and its 95 % interval where there are three values or more. From six on it is between two of the values, by their order
/// alone (the sign test turned round: David and Nagaraja, *Order Statistics*, 7.1); of three to five it is Student's for the mean, widened to
/// the median where that lies outside. `None` without values, or where one is not finite.
pub fn median_interval(values: &[f64]) -> Option<(f64, Option<Interval>)> {
    let value = median(values)?;
    let interval = match values.len() {
        0..VALUES_MIN => None,
        VALUES_MIN..ORDER_MIN => mean_interval(values)
            .and_then(|mean| mean.ci95)
            .and_then(|mean| Interval::new(mean.lo.min(value), mean.hi.max(value))),
        count => {
            let mut sorted = values.to_vec();
            sorted.sort_by(f64::total_cmp);
            let outside = outside(count);
            Interval::new(*sorted.get(outside)?, *sorted.get(count - 1 - outside)?)
        }
    };
    Some((value, interval))
}

/// How many values may be left out at each end: as many as are below the median by chance in at most 2.5 % of samples of `count`.
fn outside(count: usize) -> usize {
    // P(Bin(count, 1/2) ≤ k), summed in logarithms: 2^-count is no double any more from 1,075 on.
    let mut log_term = -(count as f64) * std::f64::consts::LN_2;
    let mut sum = 0.0;
    let mut k = 0usize;
    loop {
        sum += log_term.exp();
        if sum > TAIL || 2 * k + 1 >= count {
            return k.saturating_sub(usize::from(sum > TAIL));
        }
        log_term += ((count - k) as f64 / (k + 1) as f64).ln();
        k += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    #[test]
    fn it_leaves_out_as_many_as_the_tables_say() {
        // One-sided 2.5 % points of the sign test, less one: what is left out at each end.
        for (count, left) in [(6, 0), (8, 0), (9, 1), (10, 1), (11, 1), (12, 2), (20, 5), (50, 17), (100, 39)]
        {
            assert_eq!(outside(count), left, "{count}");
        }
        // By the normal approximation of large ones.
        let left = outside(1_000_000) as f64;
        assert!((left - (500_000.0 - 0.98 * 1000.0)).abs() < 3.0, "{left}");
    }

    #[test]
    fn few_values_have_an_interval_that_holds_their_median() {
        assert_eq!(median_interval(&[]), None);
        assert_eq!(median_interval(&[1.0, f64::NAN]), None);
        assert_eq!(median_interval(&[1.0, 2.0]), Some((1.5, None)));
        let (value, interval) = median_interval(&[1.0, 1.0, 1.0, 1.0, 100.0]).unwrap();
        let interval = interval.unwrap();
        assert!(value == 1.0 && interval.lo <= 1.0 && interval.hi > 20.0, "{interval:?}");
    }

    #[test]
    fn it_holds_the_median_as_often_as_it_says() {
        let mut random = SplitMix64::new(7);
        let mut uniform = || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        for count in [3, 6, 10, 25] {
            // Skewed by far: the median of -ln(u) is ln 2.
            let held = (0..2000).filter(|_| {
                let values: Vec<f64> = (0..count).map(|_| -uniform().max(1e-300).ln()).collect();
                let interval = median_interval(&values).and_then(|(_, interval)| interval).unwrap();
                (interval.lo..=interval.hi).contains(&std::f64::consts::LN_2)
            });
            let held = held.count();
            // 95 %, less four standard deviations of 2,000 draws; of three values Student's holds a mean, which lies off a skewed median.
            let least = if count < ORDER_MIN { 1800 } else { 1861 };
            assert!(held >= least, "{count}: {held}");
        }
    }
}
