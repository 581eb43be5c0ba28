//! Medians with order-statistic intervals, and random orders.

use std::time::{SystemTime, UNIX_EPOCH};

/// A median and its 95 % interval.
pub struct Interval {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

/// The median, with the pair of order statistics that hold it in 95 % of samples (sign test), whatever the
/// distribution.
pub fn median_interval(values: impl Iterator<Item = f64>) -> Interval {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let n = values.len();
    if n == 0 {
        return Interval { median: f64::NAN, low: f64::NAN, high: f64::NAN };
    }
    // Normal approximation of the binomial with p = 1/2.
    let half = 1.96 * (n as f64).sqrt() / 2.0;
    let low = ((n as f64 / 2.0 - half).floor().max(0.0)) as usize;
    let high = ((n as f64 / 2.0 + half).ceil() as usize).min(n - 1);
    let median = if n % 2 == 1 { values[n / 2] } else { (values[n / 2 - 1] + values[n / 2]) / 2.0 };
    Interval { median, low: values[low], high: values[high] }
}

/// A xorshift generator: only the order of servers hangs on it.
pub struct Random(u64);

impl Random {
    pub fn new() -> Random {
        let seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |d| d.as_nanos() as u64);
        Random(seed | 1)
    }

    /// The numbers below `n` in random order.
    pub fn order(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            order.swap(i, (self.0 % (i as u64 + 1)) as usize);
        }
        order
    }
}
