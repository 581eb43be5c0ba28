//! The laws: a figure as a function of one factor.

/// A law of scaling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Law {
    /// X = γ·n.
    Linear,
    /// X = γ·n / (1 + α(n − 1)): Amdahl, AFIPS 1967.
    Amdahl,
    /// X = γ·n / (1 + α(n − 1) + βn(n − 1)): Gunther, Guerrilla Capacity Planning, 2007, equation 4.31.
    Usl,
    /// X = γ·n up to a break, and another straight line from there on.
    Piecewise,
}

impl Law {
    /// All of them, the simplest first.
    pub const ALL: [Law; 4] = [Law::Linear, Law::Amdahl, Law::Usl, Law::Piecewise];

    /// How many parameters it has.
    pub fn parameters(self) -> usize {
        match self {
            Law::Linear => 1,
            Law::Amdahl => 2,
            Law::Usl | Law::Piecewise => 3,
        }
    }
}

/// A law with its parameters, in the units of the data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Curve {
    /// The universal scalability law; Amdahl's where β is 0, a straight line where both are.
    Smooth {
        /// X(1), above 0.
        gamma: f64,
        /// Contention, 0 to 1.
        alpha: f64,
        /// Coherency, 0 or more.
        beta: f64,
    },
    /// Two straight lines.
    Broken {
        /// What each n adds up to the break.
        gamma: f64,
        /// Where it breaks.
        at: f64,
        /// What each n adds behind it; negative where it falls.
        after: f64,
    },
}

impl Curve {
    /// X(n). What has no value (n is so small that the denominator is not above 0) is NaN.
    pub fn at(&self, n: f64) -> f64 {
        match *self {
            Curve::Smooth { gamma, alpha, beta } => {
                let below = 1.0 + alpha * (n - 1.0) + beta * n * (n - 1.0);
                if below > 0.0 { gamma * n / below } else { f64::NAN }
            }
            Curve::Broken { gamma, at, after } => gamma * n.min(at) + after * (n - at).max(0.0),
        }
    }

    /// n at which X is highest: √((1 − α)/β) (Gunther 2007, equation 4.33). `None` where it rises for ever, or never does.
    pub fn peak(&self) -> Option<f64> {
        match *self {
            Curve::Smooth { alpha, beta, .. } if beta > 0.0 && alpha < 1.0 => {
                Some(((1.0 - alpha) / beta).sqrt())
            }
            Curve::Broken { at, after, .. } if after < 0.0 => Some(at),
            _ => None,
        }
    }

    /// n at which the straight line γ·n meets the highest X, or the one that X tends to: 1/(α + 2√(β(1 − α)) − β), which is X(N*)/γ with
    /// N* put in. `None` where X rises without end.
    pub fn knee(&self) -> Option<f64> {
        match *self {
            Curve::Smooth { alpha, beta, .. } => {
                let share = if beta >= 1.0 - alpha {
                    1.0
                } else {
                    alpha + 2.0 * (beta * (1.0 - alpha)).sqrt() - beta
                };
                (share > 0.0).then(|| 1.0 / share)
            }
            Curve::Broken { at, after, .. } => (after <= 0.0).then_some(at),
        }
    }

    /// The same with X in another unit.
    pub(super) fn times(self, scale: f64) -> Curve {
        match self {
            Curve::Smooth { gamma, alpha, beta } => Curve::Smooth { gamma: gamma * scale, alpha, beta },
            Curve::Broken { gamma, at, after } => {
                Curve::Broken { gamma: gamma * scale, at, after: after * scale }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peak_and_knee_are_where_the_curve_has_them() {
        let usl = Curve::Smooth { gamma: 90.0, alpha: 0.0277, beta: 1.04e-4 };
        let peak = usl.peak().unwrap();
        assert!((peak - 96.69).abs() < 0.01, "{peak}");
        assert!(usl.at(peak) > usl.at(peak - 0.5) && usl.at(peak) > usl.at(peak + 0.5));
        assert!((usl.knee().unwrap() * 90.0 / usl.at(peak) - 1.0).abs() < 1e-12);
        let amdahl = Curve::Smooth { gamma: 2.0, alpha: 0.05, beta: 0.0 };
        assert_eq!((amdahl.peak(), amdahl.knee()), (None, Some(20.0)));
        let linear = Curve::Smooth { gamma: 2.0, alpha: 0.0, beta: 0.0 };
        assert_eq!((linear.peak(), linear.knee(), linear.at(7.0)), (None, None, 14.0));
        let broken = Curve::Broken { gamma: 10.0, at: 1.5, after: -1.0 };
        assert_eq!(
            (broken.at(1.0), broken.at(3.5), broken.peak(), broken.knee()),
            (10.0, 13.0, Some(1.5), Some(1.5))
        );
    }
}
