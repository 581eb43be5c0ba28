//! Several statistics of two independent samples, with intervals that all hold at once.

use crate::interval::Interval;
use crate::jackknife::Jackknife;
use crate::student::t_quantile;

/// The level that each of so many intervals needs for all of them to hold together in 95 %: 0.95^(1/k), whatever their correlation
/// (Šidák, JASA 62, 1967).
pub fn level_of_each(intervals: usize) -> f64 {
    0.95f64.powf(1.0 / intervals.max(1) as f64)
}

/// 95 % intervals that hold *together* for the statistics of two independent samples.
///
/// Each statistic is computed from both samples; `first` holds its jackknife over the trials of the first sample with
/// the second one whole, `second` the reverse. The squared standard errors add up, with Welch–Satterthwaite degrees of
/// freedom (Welch, Biometrika 34, 1947: ν = (s₁² + s₂²)² / (s₁⁴/ν₁ + s₂⁴/ν₂)). Of k statistics that vary at all each
/// gets the level of [`level_of_each`]. One that does not vary has an interval of no length. `None` where the lengths differ, a value is not finite,
/// or there is none.
pub fn simultaneous_intervals(first: &[Jackknife], second: &[Jackknife]) -> Option<Vec<Interval>> {
    if first.len() != second.len() || first.is_empty() {
        return None;
    }
    let varying = first.iter().zip(second).filter(|(one, other)| one.se > 0.0 || other.se > 0.0).count();
    let level = level_of_each(varying);
    let one = |(one, other): (&Jackknife, &Jackknife)| {
        let both = other.added_to(*one);
        if both.se == 0.0 {
            return Interval::new(both.value, both.value);
        }
        let half = t_quantile(0.5 + 0.5 * level, both.df)? * both.se;
        Interval::new(both.value - half, both.value + half)
    };
    first.iter().zip(second).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jackknife;
    use crate::noise::Noise;

    /// Trials of six figures with a disturbance in common and one of their own.
    fn sample(random: &mut Noise, trials: usize, spread: f64) -> Vec<[f64; 6]> {
        let mut trial = || {
            let common = random.normal();
            [0.0, 0.2, 0.5, 1.0, 2.0, 4.0].map(|own| spread * (common + own * random.normal()))
        };
        (0..trials).map(|_| trial()).collect()
    }

    fn means(trials: &[[f64; 6]], skip: Option<usize>) -> [f64; 6] {
        let kept: Vec<&[f64; 6]> =
            trials.iter().enumerate().filter(|(at, _)| Some(*at) != skip).map(|(_, trial)| trial).collect();
        std::array::from_fn(|figure| kept.iter().map(|trial| trial[figure]).sum::<f64>() / kept.len() as f64)
    }

    fn intervals(a: &[[f64; 6]], b: &[[f64; 6]]) -> Vec<Interval> {
        let change = |from: [f64; 6], to: [f64; 6]| {
            Some(from.iter().zip(to).map(|(from, to)| to - from).collect::<Vec<f64>>())
        };
        let first = jackknife(a.len(), |skip| change(means(a, skip), means(b, None))).unwrap();
        let second = jackknife(b.len(), |skip| change(means(a, None), means(b, skip))).unwrap();
        simultaneous_intervals(&first, &second).unwrap()
    }

    /// The truth is 0: all six must hold it in 95 of 100 repeats, within the error of 4000 of them (three standard
    /// deviations are 1.0 %), and not in all of them.
    #[test]
    fn all_hold_the_truth_together() {
        for (seed, trials, spreads) in
            [(1, (5, 5), (1.0, 1.0)), (2, (3, 3), (1.0, 3.0)), (3, (10, 4), (1.0, 0.2))]
        {
            let mut random = Noise::new(seed);
            let repeats = 4000;
            let held = (0..repeats)
                .filter(|_| {
                    let a = sample(&mut random, trials.0, spreads.0);
                    let b = sample(&mut random, trials.1, spreads.1);
                    intervals(&a, &b).iter().all(|interval| interval.lo <= 0.0 && 0.0 <= interval.hi)
                })
                .count();
            let share = held as f64 / f64::from(repeats);
            assert!((0.94..0.999).contains(&share), "{trials:?} {spreads:?}: {share}");
        }
    }

    #[test]
    fn what_does_not_vary_has_no_length_and_costs_the_others_nothing() {
        let jack = |value, se| Jackknife { value, se, df: 4.0 };
        let alone = simultaneous_intervals(&[jack(1.0, 0.1)], &[jack(1.0, 0.1)]).unwrap();
        let both =
            simultaneous_intervals(&[jack(0.0, 0.0), jack(1.0, 0.1)], &[jack(0.0, 0.0), jack(1.0, 0.1)])
                .unwrap();
        assert_eq!((both[0].lo, both[0].hi), (0.0, 0.0));
        assert_eq!(both[1], alone[0]);
        // Of equal spread: 8 degrees of freedom, whose 97.5 % point is 2.306.
        assert!((alone[0].hi - 1.0 - 2.306 * 0.02f64.sqrt()).abs() < 1e-3);
        let tiny = simultaneous_intervals(&[jack(0.0, 1e-170)], &[jack(0.0, 1e-170)]).unwrap();
        assert!(tiny[0].hi.is_finite());
        assert_eq!(simultaneous_intervals(&[], &[]), None);
        assert_eq!(simultaneous_intervals(&[jack(1.0, 0.1)], &[]), None);
    }
}
