//! Location and spread.

/// Arithmetic mean; `None` for no values or one that is not finite.
pub fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    finite(values.iter().sum::<f64>() / values.len() as f64)
}

/// Sample standard deviation (n − 1 below); `None` for fewer than two values.
///
/// Two passes, because the one-pass sum of squares loses all digits when the spread is small beside the mean.
pub fn stdev(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let centre = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    finite((squares / (values.len() - 1) as f64).sqrt())
}

/// Median; `None` for no values or one that is not finite.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Quantile by linear interpolation between order statistics (Hyndman and Fan 1996, type 7, the default of R).
///
/// `q` in 0..=1; `None` outside of it, for no values, or for one that is not finite.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    if values.is_empty() || !(0.0..=1.0).contains(&q) || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let position = q * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let low = *sorted.get(below)?;
    let high = *sorted.get(below + 1).unwrap_or(&low);
    let fraction = position - below as f64;
    // Weighted sum, not low + fraction * (high - low): the difference of two huge values could overflow.
    finite(low * (1.0 - fraction) + high * fraction)
}

/// Readings closer to each other than this share are one reading that was computed in two ways: a double keeps sixteen digits, a sum
/// of thousands of them twelve.
const SAME_READING: f64 = 1e-9;

/// Whether two readings differ by no more than the rounding of a computation. False where one of them is not a number.
pub(crate) fn is_same_reading(one: f64, other: f64) -> bool {
    (one - other).abs() <= SAME_READING * one.abs().max(other.abs())
}

/// The smallest difference between two values that are not the same reading: the best resolution that the readings can have.
/// `None` where all are the same.
pub(crate) fn smallest_step(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let apart = sorted.windows(2).filter(|pair| !is_same_reading(pair[0], pair[1]));
    apart.map(|pair| pair[1] - pair[0]).filter(|step| *step > 0.0).min_by(f64::total_cmp)
}

/// The value, if it is a number.
pub(crate) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
