//! Quantiles of Student's t distribution.

use crate::describe::finite;

/// Quantile of Student's t with `df` degrees of freedom: the t with P(T ≤ t) = `p`.
///
/// `p` strictly between 0 and 1, `df` ≥ 1 (need not be whole); `None` otherwise. To a relative error below 1e-9.
pub fn t_quantile(p: f64, df: f64) -> Option<f64> {
    if !(p > 0.0 && p < 1.0) {
        return None;
    }
    let t = t_upper(p.min(1.0 - p), df)?;
    Some(if p < 0.5 { -t } else { t })
}

/// The t ≥ 0 with P(T > t) = `tail`, which may be too small for one minus it to differ from one.
///
/// `tail` above 0 and at most a half, `df` ≥ 1; `None` otherwise, and where t is beyond 2⁶¹, far beyond any
/// confidence that a double can distinguish from 1. Found by bisection on the
/// distribution function, whose tail is I(df/(df+t²); df/2, 1/2)/2 (Abramowitz and Stegun 26.7.1).
pub(crate) fn t_upper(tail: f64, df: f64) -> Option<f64> {
    if !(tail > 0.0 && tail <= 0.5 && df.is_finite() && df >= 1.0) {
        return None;
    }
    let (mut low, mut high) = (0.0f64, 2.0f64);
    // With one degree of freedom the tail is about 1/(πt): sixty doublings reach any p that a double holds apart.
    let mut doublings = 60;
    while upper_tail(high, df) > tail {
        if doublings == 0 {
            return None;
        }
        doublings -= 1;
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if upper_tail(middle, df) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    finite(0.5 * (low + high))
}

/// P(T > t) for t ≥ 0.
fn upper_tail(t: f64, df: f64) -> f64 {
    0.5 * incomplete_beta(df / (df + t * t), 0.5 * df, 0.5)
}

/// Regularised incomplete beta function I(x; a, b), by its continued fraction (Abramowitz and Stegun 26.5.8).
pub(crate) fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast on one side of the mean; the other side is its mirror image.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta_fraction(1.0 - x, b, a);
    }
    incomplete_beta_fraction(x, a, b)
}

fn incomplete_beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let front = (a * x.ln() + b * (-x).ln_1p() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b)).exp() / a;
    let guard = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / guard(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for step in 1..500 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / guard(1.0 + even * d);
        c = guard(1.0 + even / c);
        fraction *= c * d;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / guard(1.0 + odd * d);
        c = guard(1.0 + odd / c);
        let change = c * d;
        fraction *= change;
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    front * fraction
}

/// ln Γ(x) for x > 0: Stirling's series after the argument is raised above 10 by Γ(x + 1) = x Γ(x).
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut product) = (x, 1.0f64);
    while x < 10.0 {
        product *= x;
        x += 1.0;
    }
    let inverse = 1.0 / x;
    let square = inverse * inverse;
    let series = inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0)));
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - product.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_published_tables() {
        // Two-sided 95 % points, NIST/SEMATECH e-Handbook 1.3.6.7.2; the last is the normal's.
        let table = [(1.0, 12.706), (2.0, 4.303), (4.0, 2.776), (9.0, 2.262), (30.0, 2.042), (1e6, 1.960)];
        for (df, expected) in table {
            let t = t_quantile(0.975, df).unwrap();
            assert!((t - expected).abs() < 6e-4, "df {df}: {t}");
            assert!((t + t_quantile(0.025, df).unwrap()).abs() < 1e-9);
        }
        assert!(t_quantile(0.5, 3.0).unwrap().abs() < 1e-9);
    }

    #[test]
    fn refuses_what_has_no_answer() {
        for (p, df) in [(0.0, 3.0), (1.0, 3.0), (0.5, 0.0), (f64::NAN, 3.0), (0.5, f64::INFINITY)] {
            assert_eq!(t_quantile(p, df), None);
        }
        // With one degree of freedom the tail is 1/(πt).
        let far = t_upper(1e-18, 1.0).unwrap();
        assert!((far * 1e-18 * std::f64::consts::PI - 1.0).abs() < 1e-6, "{far}");
        assert_eq!(t_upper(1e-19, 1.0), None, "beyond 2⁶¹");
    }
}
