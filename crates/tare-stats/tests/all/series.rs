//! Whether intervals of a series that is checked after each value hold its mean as often as they say, with autocorrelation as in the
//! trials of a server. The noise is the same in every run, so that no luck decides.

use crate::noise::Noise;
use tare_stats::Sequence;

const RUNS: u32 = 2000;
const PLANNED: usize = 40;
/// Steps of a trial, a tenth of a second each.
const STEPS: u32 = 20;

/// What makes a server's rate differ from moment to moment, as shares of it.
struct Interference {
    name: &'static str,
    /// Deviation of what has a memory of a second.
    slow: f64,
    /// It is slower by this in every other of its modes, which last for two seconds on average.
    modes: f64,
}

const INTERFERENCES: [Interference; 5] = [
    Interference { name: "quiet", slow: 0.0, modes: 0.0 },
    Interference { name: "autocorrelated", slow: 0.05, modes: 0.0 },
    Interference { name: "two modes", slow: 0.0, modes: 0.3 },
    Interference { name: "both", slow: 0.05, modes: 0.1 },
    Interference { name: "slow only", slow: 0.15, modes: 0.0 },
];

/// Rates of a session's trials, whose mean is 1 in the long run.
fn trials(interference: &Interference, noise: &mut Noise) -> Vec<f64> {
    let (mut slow, mut is_slow) = (noise.normal(), noise.uniform() < 0.5);
    let kept = (-0.1f64).exp();
    let mut step = || {
        slow = kept * slow + (1.0 - kept * kept).sqrt() * noise.normal();
        is_slow ^= noise.uniform() < 0.05;
        1.0 + interference.slow * slow
            + if is_slow { -0.5 } else { 0.5 } * interference.modes
            + 0.02 * noise.normal()
    };
    (0..PLANNED).map(|_| (0..STEPS).map(|_| step()).sum::<f64>() / f64::from(STEPS)).collect()
}

/// In how many of the runs the interval holds at which it was stopped, at the first that is as narrow as ±2 % or does not hold: the worst that a
/// user can do.
fn held(interference: &Interference, seed: u64) -> Option<u32> {
    let mut noise = Noise::new(seed);
    let sequence = Sequence::of_series(PLANNED, 0.95)?;
    let mut held = 0;
    for _ in 0..RUNS {
        let rates = trials(interference, &mut noise);
        let analyses = (1..=PLANNED).filter_map(|count| Some(sequence.analyse(&[&rates[..count]])?.interval));
        let holds = |interval: tare_stats::Interval| interval.lo <= 1.0 && 1.0 <= interval.hi;
        let mut last = true;
        for interval in analyses {
            last = holds(interval);
            if !last || interval.hi - interval.lo < 0.04 {
                break;
            }
        }
        held += u32::from(last);
    }
    Some(held)
}

#[test]
fn a_series_that_is_stopped_holds_its_mean_as_often_as_it_says() {
    let mut wrong = Vec::new();
    for (seed, interference) in (1..).zip(&INTERFERENCES) {
        let share = f64::from(held(interference, seed).unwrap_or(0)) / f64::from(RUNS);
        println!("{:16} {share:.3}", interference.name);
        if share < 0.93 {
            wrong.push((interference.name, share));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
