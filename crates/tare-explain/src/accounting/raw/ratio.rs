//! Shares of what may be nothing.

/// a / b, and 0 where there is nothing to divide by.
pub(crate) fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 0.0 }
}

/// The sum of two counts; unknown where one of them is.
pub(crate) fn sum(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.zip(b).map(|(a, b)| a + b)
}
