//! What an interval of a difference says.

use crate::interval::Interval;

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// As throughput.
    Higher,
    /// As a cost or a latency.
    Lower,
}

/// What can be said of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Better, by however little.
    Faster,
    /// Worse, by however little.
    Slower,
    /// Zero is possible and more than the margin is not.
    NoDifference,
    /// Both zero and more than the margin are possible.
    CannotTell,
}

/// The verdict on an interval of ln(after/before), where ratios within 1 ± `margin` do not matter (0.02 for 2 %; 0: each does).
///
/// A proven difference is faster or slower even within the margin: its interval shows how small it is.
/// At a margin of 1 or more only what is higher can be beyond it.
pub fn verdict(interval: Interval, margin: f64, better: Better) -> Verdict {
    let margin = margin.max(0.0);
    if interval.lo > 0.0 || interval.hi < 0.0 {
        return match (interval.lo > 0.0) == (better == Better::Higher) {
            true => Verdict::Faster,
            false => Verdict::Slower,
        };
    }
    let lowest = if margin < 1.0 { (-margin).ln_1p() } else { f64::NEG_INFINITY };
    if lowest <= interval.lo && interval.hi <= margin.ln_1p() {
        return Verdict::NoDifference;
    }
    Verdict::CannotTell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_interval() {
        let say = |lo, hi, better| verdict(Interval { lo, hi }, 0.02, better);
        assert_eq!(say(0.001, 0.005, Better::Higher), Verdict::Faster);
        assert_eq!(say(0.001, 0.005, Better::Lower), Verdict::Slower);
        assert_eq!(say(-0.03, -0.01, Better::Higher), Verdict::Slower);
        assert_eq!(say(-0.03, -0.01, Better::Lower), Verdict::Faster);
        assert_eq!(say(-0.02, 0.019, Better::Higher), Verdict::NoDifference);
        assert_eq!(say(-0.021, 0.019, Better::Higher), Verdict::CannotTell);
        assert_eq!(say(-0.01, 0.02, Better::Higher), Verdict::CannotTell);
        assert_eq!(say(0.0, 0.0, Better::Higher), Verdict::NoDifference);
        assert_eq!(verdict(Interval { lo: -9.0, hi: 0.5 }, 1.0, Better::Lower), Verdict::NoDifference);
        assert_eq!(verdict(Interval { lo: -0.001, hi: 0.0 }, 0.0, Better::Lower), Verdict::CannotTell);
    }
}
