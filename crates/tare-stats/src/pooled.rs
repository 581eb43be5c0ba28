//! Few launches: one error from all that launches show, of the effect and of the A/A control together.

use crate::describe::{finite, mean};
use crate::interval::Mean;

/// Fewest launches with a result.
pub(crate) const POOLED_MIN: usize = 2;

/// Degrees of freedom of the error of so many launches.
pub(crate) fn freedom(launches: usize) -> f64 {
    (2 * launches).saturating_sub(1).max(1) as f64
}

/// The means of the effect and of the A/A control, from ln b − ln a and ln b − ln a′ of each launch.
///
/// Where a, a′ and b vary by σ from launch to launch beside what all three share, the mean of both differences varies by 1.5 σ², and their
/// difference, ln a′ − ln a, which is uncorrelated with it and has a mean of zero, by 2 σ²: a two-way layout of launches and programs with
/// 2n − 1 degrees of freedom for σ² (Scheffé, The Analysis of Variance, 1959, 4.2), where the effect alone has n − 1. Of two
/// to seven launches that is the difference between a result and none; from eight on the trimmed mean needs no equal variances.
/// `None` for fewer than [`POOLED_MIN`] launches, columns of different lengths, or what is not finite.
pub(crate) fn pooled(one: &[f64], other: &[f64]) -> Option<[Mean; 2]> {
    if one.len() != other.len() || one.len() < POOLED_MIN {
        return None;
    }
    let effects: Vec<f64> = one.iter().zip(other).map(|(one, other)| (one + other) / 2.0).collect();
    let controls: Vec<f64> = one.iter().zip(other).map(|(one, other)| one - other).collect();
    let (effect, control) = (mean(&effects)?, mean(&controls)?);
    let squares =
        |values: &[f64], about: f64| values.iter().map(|value| (value - about).powi(2)).sum::<f64>();
    let launches = one.len() as f64;
    let df = freedom(one.len());
    let variance = finite((squares(&effects, effect) / 1.5 + squares(&controls, 0.0) / 2.0) / df)?;
    let of = |value: f64, times: f64| Mean { value, se: (times * variance / launches).sqrt(), df };
    Some([of(effect, 1.5), of(control, 2.0)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;
    use crate::{Interval, Sequence};

    #[test]
    fn the_error_is_of_both() {
        let [effect, control] = pooled(&[0.05, 0.07], &[0.03, 0.05]).unwrap();
        assert!((effect.value - 0.05).abs() < 1e-12 && (control.value - 0.02).abs() < 1e-12);
        // (0.01² + 0.01²)/1.5 + 2 · 0.02²/2, over three.
        let variance = (0.0002 / 1.5 + 0.0004) / 3.0;
        assert!((effect.se - (0.75f64 * variance).sqrt()).abs() < 1e-12);
        assert!((control.se - f64::sqrt(variance)).abs() < 1e-12);
        assert_eq!(pooled(&[0.1], &[0.1]), None);
        assert_eq!(pooled(&[0.1, 0.2], &[0.1]), None);
    }

    /// Checked after every launch, as a comparison does, and with a program that varies twice as much as the other.
    #[test]
    fn few_launches_hold_the_truth_at_every_check() {
        let mut noise = Noise::new(5);
        for (planned, apart) in [(2, 1.0), (3, 1.0), (5, 1.0), (7, 1.0), (4, 2.0), (7, 2.0)] {
            let sequence = Sequence::of_few(planned, 0.99).unwrap();
            let runs = 3000;
            let misses = |noise: &mut Noise| {
                let launch = |noise: &mut Noise| {
                    let (a, again, b) = (noise.normal(), noise.normal(), apart * noise.normal());
                    [b - a, b - again]
                };
                let launches: Vec<[f64; 2]> = (0..planned).map(|_| launch(noise)).collect();
                let column = |at: usize| launches.iter().map(|launch| launch[at]).collect::<Vec<_>>();
                let (one, other) = (column(0), column(1));
                (POOLED_MIN..=planned).any(|n| {
                    let analysis = sequence.analyse(&[&one[..n], &other[..n]]);
                    analysis.is_some_and(|analysis| {
                        let Interval { lo, hi } = analysis.interval;
                        lo > 0.0 || hi < 0.0
                    })
                })
            };
            let missed = (0..runs).filter(|_| misses(&mut noise)).count();
            let share = missed as f64 / f64::from(runs);
            assert!(share < if apart > 1.0 { 0.03 } else { 0.014 }, "{planned} {apart}: {share}");
        }
    }
}
