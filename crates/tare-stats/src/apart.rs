//! How much two runs differ that were measured one after the other with no change between them.

use crate::jackknife::Jackknife;

/// Trials by which degrees of freedom are found, at most: that takes the square of their number in steps.
const TRIALS_MAX: usize = 500;

impl Jackknife {
    /// Its error where the run is held against another one of much the same length, which began `apart` lengths of a run earlier or
    /// later (below 1 is 1: one right after the other).
    ///
    /// Independent trials would give a run's mean to s/√n. Trials are not independent: interference lasts for a second, a minute or
    /// an hour, so longer runs average less of it away than their length promises, and runs further apart differ
    /// more. Noise with a spectrum of h/f has both: n trials have a spread s² of h·n·ln n/(n − 1), and the means of two runs whose
    /// starts lie k lengths apart differ with a variance of h·(g(k+1) + g(k−1) − 2g(k)), g(x) = x²·ln x (Allan, Proceedings of the
    /// IEEE 54, 1966; Barnes et al., IEEE Transactions on Instrumentation and Measurement 20, 1971); each run brings half of that. The
    /// error so becomes at least √2 times as large, and more trials make it hardly smaller. The degrees of freedom are Satterthwaite's
    /// of s² under such noise, (Σ λ)²/Σ λ² of the trials' covariance without its mean (Biometrics Bulletin 2, 1946).
    pub fn between_runs(self, apart: f64) -> Jackknife {
        let trials = self.df + 1.0;
        if trials < 2.0 {
            return self;
        }
        let factor = (structure(apart.max(1.0)) * self.df / (2.0 * trials.ln())).sqrt();
        Jackknife { se: factor * self.se, df: freedom(trials as usize), ..self }
    }
}

/// Variance of the difference of two means over h, with starts so many lengths apart, 1 at least.
fn structure(apart: f64) -> f64 {
    // From here on the second difference of g is 3 + 2·ln k to a millionth, and rounding would hide the exact terms.
    const FAR: f64 = 1e3;
    if apart > FAR {
        return 3.0 + 2.0 * apart.ln();
    }
    let g = |x: f64| if x > 0.0 { x * x * x.ln() } else { 0.0 };
    g(apart + 1.0) + g(apart - 1.0) - 2.0 * g(apart)
}

/// Degrees of freedom of the spread of so many trials.
fn freedom(trials: usize) -> f64 {
    let n = trials.clamp(2, TRIALS_MAX);
    // The covariance of two trials but for a constant, which falls out with the mean.
    let covariances: Vec<f64> =
        (0..n).map(|lag| if lag == 0 { 0.0 } else { -0.5 * structure(lag as f64) }).collect();
    let of = |one: usize, other: usize| covariances[one.abs_diff(other)];
    let means: Vec<f64> =
        (0..n).map(|one| (0..n).map(|other| of(one, other)).sum::<f64>() / n as f64).collect();
    let mean = means.iter().sum::<f64>() / n as f64;
    let centred = |one: usize, other: usize| of(one, other) - means[one] - means[other] + mean;
    let trace: f64 = (0..n).map(|one| centred(one, one)).sum();
    let squares: f64 = (0..n)
        .flat_map(|one| (0..n).map(move |other| (one, other)))
        .map(|(one, other)| centred(one, other).powi(2))
        .sum();
    trace * trace / squares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;
    use crate::{jackknife, mean, simultaneous_intervals};

    #[test]
    fn two_trials_of_neighbours_and_what_lies_far() {
        let one = |trials: usize| Jackknife { value: 1.0, se: 1.0, df: trials as f64 - 1.0 };
        let two = one(2).between_runs(1.0);
        assert!((two.se - 2f64.sqrt()).abs() < 1e-12 && (two.df - 1.0).abs() < 1e-12, "{two:?}");
        assert!((structure(1.0) - 4.0 * 2f64.ln()).abs() < 1e-12);
        assert!((structure(1000.0) - structure(1000.1)).abs() < 1e-3, "no step where the formula changes");
        assert!(structure(1e9).is_finite() && structure(1e9) > structure(10.0));
        assert_eq!(one(1).between_runs(5.0), one(1));
        assert_eq!(one(5).between_runs(f64::NAN), one(5).between_runs(0.0));
        // The spread of so many simulated trials of [`flicker`] has 3.0, 4.8 and 10.6.
        for (trials, simulated) in [(5, 3.0), (10, 4.8), (40, 10.6)] {
            let found = one(trials).between_runs(1.0).df;
            assert!((found / simulated - 1.0).abs() < 0.15, "{trials} trials: {found}");
        }
        let many = one(1_000_000).between_runs(1.0);
        assert!(many.se.is_finite() && many.df > one(100).between_runs(1.0).df, "{many:?}");
    }

    #[test]
    fn an_interval_tells_what_stands_behind_it() {
        let one = Jackknife::of_half(0.1, 0.02, 5).unwrap();
        let interval = one.ci95().unwrap();
        assert!((interval.lo - 0.08).abs() < 1e-12 && (interval.hi - 0.12).abs() < 1e-12, "{one:?}");
        assert_eq!(one.df, 4.0);
        for (half, trials) in [(0.02, 0), (0.02, 1), (-0.02, 5), (f64::NAN, 5), (f64::INFINITY, 5)] {
            assert_eq!(Jackknife::of_half(0.1, half, trials), None, "{half} {trials}");
        }
    }

    /// Noise with equal power in each octave: random walks that forget within 1, 2, 4, … trials.
    fn flicker(noise: &mut Noise, values: usize) -> Vec<f64> {
        const OCTAVES: i32 = 12;
        let mut walks: Vec<f64> = (0..OCTAVES).map(|_| noise.normal()).collect();
        (0..values)
            .map(|_| {
                for (octave, walk) in walks.iter_mut().enumerate() {
                    let kept = (-0.5f64.powi(octave as i32)).exp();
                    *walk = kept * *walk + (1.0 - kept * kept).sqrt() * noise.normal();
                }
                walks.iter().sum()
            })
            .collect()
    }

    /// How often the interval of a difference holds zero: this one, and one for independent trials.
    fn held(noise: &mut Noise, trials: usize, between: usize) -> [f64; 2] {
        let runs = 2000;
        let mut held = [0; 2];
        for _ in 0..runs {
            let values = flicker(noise, 2 * trials + between);
            let (a, b) = (&values[..trials], &values[trials + between..]);
            let of = |kept: &[f64], skip: Option<usize>| {
                let kept = kept.iter().enumerate().filter(|(at, _)| Some(*at) != skip);
                mean(&kept.map(|(_, value)| *value).collect::<Vec<f64>>())
            };
            let change = |skip_a, skip_b| Some(vec![of(b, skip_b)? - of(a, skip_a)?]);
            let sides =
                [jackknife(trials, |skip| change(skip, None)), jackknife(trials, |skip| change(None, skip))];
            let [first, second] = sides.map(Option::unwrap);
            let apart = (trials + between) as f64 / trials as f64;
            let wider = |side: &[Jackknife]| vec![side[0].between_runs(apart)];
            for (held, [first, second]) in
                held.iter_mut().zip([[wider(&first), wider(&second)], [first, second]])
            {
                let interval = simultaneous_intervals(&first, &second).unwrap()[0];
                *held += i32::from(interval.lo <= 0.0 && 0.0 <= interval.hi);
            }
        }
        held.map(|held| f64::from(held) / f64::from(runs))
    }

    #[test]
    fn runs_of_a_machine_with_interference_hold_that_nothing_changed() {
        let mut noise = Noise::new(11);
        for (trials, between) in [(3, 0), (5, 0), (5, 10), (10, 3), (10, 200), (40, 10)] {
            let [apart, independent] = held(&mut noise, trials, between);
            assert!((0.93..0.995).contains(&apart), "{trials} trials, {between} between: {apart}");
            assert!(independent < 0.9, "{trials} trials, {between} between: {independent} as they were");
        }
    }
}
