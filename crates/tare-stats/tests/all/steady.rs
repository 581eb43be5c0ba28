//! What a verdict on steady state must not hang on: rounding, single readings, short disturbances, wide intervals.
//!
//! Each series is made by construction, the same in every run.

use crate::noise::Noise;
use tare_stats::{State, steadiness};

/// Levels, each for so many values, with normal noise of this share.
fn series(noise: f64, levels: &[(f64, usize)]) -> Vec<f64> {
    let mut random = Noise::new(5);
    let levels = levels.iter().flat_map(|(level, count)| std::iter::repeat_n(*level, *count));
    levels.map(|level| level * (1.0 + noise * random.normal())).collect()
}

fn judged(values: &[f64]) -> (Option<usize>, State) {
    let found = steadiness(values).unwrap();
    (found.from, found.state)
}

/// Readings of a clock with a coarse step, and the same after a computation that is off in the last digit: equal readings differ by 1e-16 then.
#[test]
fn rounding_decides_no_step() {
    for step in [0.02, 0.1, 0.25] {
        for noise in [0.01, 0.1] {
            let read = |value: &f64| (value / step).round() * step;
            let rounded: Vec<f64> = series(noise, &[(2.0, 1500)]).iter().map(read).collect();
            let computed: Vec<f64> = rounded
                .iter()
                .enumerate()
                .map(|(at, value)| value * (1.0 + f64::EPSILON * (at * 7 % 5) as f64))
                .collect();
            let (found, same) = (steadiness(&rounded).unwrap(), steadiness(&computed).unwrap());
            assert_eq!((found.from, found.state), (Some(0), State::Steady), "step {step}, noise {noise}");
            assert_eq!((same.from, same.state), (Some(0), State::Steady), "step {step}, noise {noise}");
            assert_eq!(found.segments.len(), same.segments.len(), "step {step}, noise {noise}");
            let fading: Vec<f64> = series(noise, &[(8.0, 100), (2.0, 900)])
                .iter()
                .map(|value| read(value) / 3.0 * 3.0)
                .collect();
            let from = judged(&fading).0.unwrap();
            assert!(from.abs_diff(100) <= 2, "step {step}, noise {noise}: {from}");
        }
    }
    // Nothing but the last digit changes.
    let last_digit: Vec<f64> = (0..600).map(|at| if at < 580 { 0.1 + 0.2 } else { 0.3 }).collect();
    assert_eq!(judged(&last_digit), (Some(0), State::Steady));
    assert_eq!(steadiness(&last_digit).unwrap().segments.len(), 1);
}

/// A first value so large that the squares of the others are below its last digit.
#[test]
fn a_huge_first_value_hides_no_step() {
    for first in [1e3, 1e8, 1e12] {
        let mut values = series(0.01, &[(2.0, 400), (1.0, 1100)]);
        values[0] = first;
        let (from, state) = judged(&values);
        let from = from.unwrap();
        assert!(from.abs_diff(400) <= 2 && state == State::Steady, "{first}: {from}, {state:?}");
    }
}

#[test]
fn three_slow_iterations_near_the_end_are_no_change() {
    for slow in [1.5, 3.0, 50.0] {
        for at in [2500, 2900, 2990, 2997] {
            let mut values = series(0.01, &[(2.0, 300), (1.0, 2700)]);
            values[at..at + 3].iter_mut().for_each(|value| *value *= slow);
            let (from, state) = judged(&values);
            assert!(
                from.is_some_and(|from| from.abs_diff(300) <= 3) && state == State::Steady,
                "{slow} times at {at}: {from:?}, {state:?}"
            );
        }
    }
    // A step that lasts is none of the kind.
    assert_eq!(judged(&series(0.01, &[(1.0, 2950), (1.5, 50)])), (None, State::NeverSteady));
}

#[test]
fn one_outlier_in_the_last_segment_hides_no_step() {
    for outlier in [100.0, 1e4, 1e6] {
        for at in [700, 1000, 1490, 1499] {
            let mut values = series(0.01, &[(2.0, 600), (1.0, 900)]);
            values[at] = outlier;
            let (from, state) = judged(&values);
            let from = from.unwrap();
            assert!(
                from.abs_diff(600) <= 2 && state == State::Steady,
                "{outlier} at {at}: {from}, {state:?}"
            );
        }
        let mut values = series(0.01, &[(1.0, 1400), (2.0, 100)]);
        values[1450] = outlier;
        assert_eq!(judged(&values), (None, State::NeverSteady), "{outlier}");
    }
}

/// However few or wild the values are by which two levels are compared.
#[test]
fn a_plateau_of_twice_the_level_is_another_level() {
    let after = |tail: &[f64]| {
        let mut values = series(0.01, &[(1.0, 1000), (2.0, 500)]);
        values.extend(tail);
        values
    };
    // The last segment alone has an interval that reaches from one level to the other.
    for tail in [&[0.5, 3.5][..], &[1.0, 3.0, 0.4, 4.0], &[0.2, 6.0, 0.3, 5.0, 0.2, 7.0, 0.4, 6.0]] {
        let from = judged(&after(tail)).0;
        assert!(from.is_none_or(|from| from >= 998), "{tail:?}: {from:?}");
    }
    for noise in [0.05, 0.1, 0.2] {
        for (plateau, count) in [(2.0, 60), (2.0, 400), (0.5, 60)] {
            let values = series(noise, &[(1.0, 1500), (plateau, count), (1.0, 800 - count)]);
            let (from, _) = judged(&values);
            let end = 1500 + count;
            assert!(
                from.is_some_and(|from| from >= end - 5),
                "{plateau} for {count}, noise {noise}: {from:?} before {end}"
            );
        }
    }
}

/// Both levels are said where there are two, and none where there is none.
#[test]
fn the_mean_of_two_modes_is_no_level() {
    let mut random = Noise::new(9);
    let alternating: Vec<f64> = series(0.01, &[(1.0, 1200)])
        .into_iter()
        .map(|value| if random.uniform() < 0.4 { 1.5 * value } else { value })
        .collect();
    let found = steadiness(&alternating).unwrap();
    assert_eq!(found.state, State::Bimodal);
    let [low, high] = found.levels[..] else { panic!("{:?}", found.levels) };
    assert!((low - 1.0).abs() < 0.01 && (high - 1.5).abs() < 0.01, "{low} {high}");
    let mut steady = series(0.01, &[(3.0, 100), (1.0, 900)]);
    steady[950] = 1e5;
    let levels = steadiness(&steady).unwrap().levels;
    assert!(levels.len() == 1 && (levels[0] - 1.0).abs() < 0.01, "{levels:?}");
    assert!(steadiness(&series(0.01, &[(1.0, 900), (2.0, 100)])).unwrap().levels.is_empty());
}

/// The state says where a level is, and how many.
#[test]
fn what_is_found_never_contradicts_itself() {
    let mut random = Noise::new(31);
    for at in 0..200 {
        let levels: Vec<(f64, usize)> = (0..1 + at % 4)
            .map(|_| (0.5 + random.uniform(), 20 + (200.0 * random.uniform()) as usize))
            .collect();
        let spread = 0.3 * random.uniform();
        let values: Vec<f64> = series(0.01, &levels)
            .iter()
            .zip(0u32..)
            .map(|(value, place)| {
                let wild = if random.uniform() < 0.002 { 1e4 } else { 1.0 };
                value * wild * (1.0 + spread * f64::from(u32::from(at % 2 == 0) * (place % 2)))
            })
            .collect();
        let found = steadiness(&values).unwrap();
        let levels = match found.state {
            State::Steady => 1,
            State::Bimodal => 2,
            State::Drifting | State::NeverSteady => 0,
        };
        assert_eq!(found.levels.len(), levels, "{found:?}");
        assert!(found.state != State::Steady || found.from.is_some(), "{found:?}");
        assert!(found.state != State::NeverSteady || found.from.is_none(), "{found:?}");
    }
}

/// No input panics, and no figure is not a number.
#[test]
fn any_series_is_judged_or_refused() {
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -1.0] {
        for at in [0, 50, 99] {
            let mut values = vec![1.0; 100];
            values[at] = odd;
            assert_eq!(steadiness(&values), None, "{odd} at {at}");
        }
        assert_eq!(steadiness(&[odd; 100]), None);
    }
    assert_eq!(steadiness(&[]), None);
    assert_eq!(judged(&[7.0; 3000]), (Some(0), State::Steady));
    let powers = [5e-324, 1e-310, 1e-300, 1e-12, 1.0, 1e12, 1e150, 1e300, f64::MAX];
    let mut random = Noise::new(77);
    for length in [20, 21, 39, 40, 199, 200, 201, 230, 500] {
        for _ in 0..20 {
            let mut next = || powers[(powers.len() as f64 * random.uniform()) as usize];
            let (one, other) = (next(), next());
            let wide: Vec<f64> = (0..length).map(|_| next()).collect();
            let two: Vec<f64> = (0..length).map(|at| if at % 7 < 3 { one } else { other }).collect();
            let step: Vec<f64> = (0..length).map(|at| if at < length / 2 { one } else { other }).collect();
            for values in [wide, two, step, vec![one; length]] {
                if let Some(found) = steadiness(&values) {
                    let figures =
                        found.segments.iter().map(|segment| segment.mean).chain(found.levels.clone());
                    assert!(figures.clone().all(f64::is_finite), "{found:?}");
                }
            }
        }
    }
}
