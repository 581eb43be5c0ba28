//! The A/A control: the first of two programs once more, under another name. It differs from itself only by the instrument.

use crate::describe::finite;
use crate::interval::Interval;

/// What a block says of the effect, and of the A/A control.
#[derive(Debug, Clone, PartialEq)]
pub struct Contrasts {
    /// ln b − ln a and ln b − ln a′, block by block: the A/A control counts as the first program, so that its time is not lost. Two values and
    /// not their mean: for equal programs each lies above zero as often as below. The difference to a mean of two does not,
    /// where both are slow in one launch of five; a trimmed mean of it would then show an effect.
    pub effect: [Vec<f64>; 2],
    /// ln a′ − ln a. Uncorrelated with the effect where a and a′ vary alike, so that it is independent evidence on the effect.
    pub aa_control: Vec<f64>,
}

/// The effect and the A/A control of blocks in which all three ran; all values above zero. `None` where lengths differ or a
/// value has no logarithm.
pub fn contrasts(a: &[f64], aa_control: &[f64], b: &[f64]) -> Option<Contrasts> {
    if a.len() != aa_control.len() || a.len() != b.len() {
        return None;
    }
    let ln = |value: f64| if value > 0.0 { finite(value.ln()) } else { None };
    let logs: Vec<[f64; 3]> = a
        .iter()
        .zip(aa_control)
        .zip(b)
        .map(|((a, aa_control), b)| Some([ln(*a)?, ln(*aa_control)?, ln(*b)?]))
        .collect::<Option<_>>()?;
    Some(Contrasts {
        effect: [0, 1].map(|first| logs.iter().map(|logs| logs[2] - logs[first]).collect()),
        aa_control: logs.iter().map(|[a, aa_control, _]| aa_control - a).collect(),
    })
}

/// The interval of the effect, widened on both sides by how far the A/A control's is away from zero: the
/// session makes that much of a difference without a cause. A control that holds zero changes nothing.
pub fn widened(effect: Interval, aa_control: Interval) -> Interval {
    let proven = aa_control.lo.max(-aa_control.hi).max(0.0);
    Interval { lo: effect.lo - proven, hi: effect.hi + proven }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_what_the_control_proves_widens() {
        let effect = Interval { lo: 1.0, hi: 2.0 };
        let by = |lo, hi| widened(effect, Interval { lo, hi });
        assert_eq!(by(-0.1, 0.2), effect);
        assert_eq!(by(0.25, 0.5), Interval { lo: 0.75, hi: 2.25 });
        assert_eq!(by(-0.5, -0.25), Interval { lo: 0.75, hi: 2.25 });
    }

    #[test]
    fn what_has_no_logarithm_has_no_contrast() {
        assert_eq!(contrasts(&[1.0], &[1.0], &[]), None);
        assert_eq!(contrasts(&[1.0], &[0.0], &[1.0]), None);
        assert_eq!(contrasts(&[1.0], &[1.0], &[f64::INFINITY]), None);
    }

    proptest! {
        /// What affects all three equally is in neither.
        #[test]
        fn interference_cancels(blocks in prop::collection::vec((0.1..10.0f64, 0.1..10.0f64, 0.1..10.0f64, 0.1..10.0f64), 0..20)) {
            let column = |f: fn(&(f64, f64, f64, f64)) -> f64| blocks.iter().map(f).collect::<Vec<f64>>();
            let fair = contrasts(&column(|b| b.0), &column(|b| b.1), &column(|b| b.2)).unwrap();
            let foul = contrasts(&column(|b| b.0 * b.3), &column(|b| b.1 * b.3), &column(|b| b.2 * b.3)).unwrap();
            let all = |of: Contrasts| [of.effect.concat(), of.aa_control].concat();
            for (one, other) in all(fair).into_iter().zip(all(foul)) {
                prop_assert!((one - other).abs() < 1e-9);
            }
        }
    }
}
