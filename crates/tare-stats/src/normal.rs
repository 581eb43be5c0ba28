//! The tail of the normal distribution.

/// From here on the continued fraction converges faster than the series.
const FAR: f64 = 3.0;

/// P(Z > z) of a standard normal Z, to a relative error below 1e-12; `None` for what is not a number.
///
/// The series of Abramowitz and Stegun 26.2.10 near the middle, the continued fraction 26.2.14 further out, where one minus a
/// series would have no digits left.
pub(crate) fn upper_tail(z: f64) -> Option<f64> {
    if z.is_nan() {
        return None;
    }
    if z < 0.0 {
        return Some(1.0 - upper_tail(-z)?);
    }
    let density = (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt();
    if z < FAR {
        let (mut term, mut sum, mut odd) = (z, z, 1.0);
        while term > sum * 1e-17 {
            odd += 2.0;
            term *= z * z / odd;
            sum += term;
        }
        return Some(0.5 - density * sum);
    }
    let fraction = (1..=120).rev().fold(z, |below, k| z + f64::from(k) / below);
    Some(density / fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_published_tables() {
        // Abramowitz and Stegun, tables 26.1 and 26.2.
        let table = [
            (0.0, 0.5),
            (1.0, 0.158_655_253_931_457),
            (1.959_963_984_540_054, 0.025),
            (2.999_999, 1.349_902_463_438e-3),
            (3.0, 1.349_898_031_630_09e-3),
            (5.0, 2.866_515_718_791_94e-7),
            (10.0, 7.619_853_024_160_5e-24),
        ];
        for (z, expected) in table {
            let tail = upper_tail(z).unwrap();
            assert!((tail / expected - 1.0).abs() < 1e-9, "{z}: {tail}");
            assert!((upper_tail(-z).unwrap() + tail - 1.0).abs() < 1e-12);
        }
        assert_eq!(upper_tail(f64::NAN), None);
        assert_eq!(upper_tail(f64::INFINITY), Some(0.0));
    }
}
