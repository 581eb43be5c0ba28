//! What wake-ups cost: C = C_sat + a · own wake-ups + b · threads of the generator woken on idle CPUs + c · those woken on busy CPUs, all a
//! request, over the trials of all levels.
//!
//! Non-negative least squares of relative errors, since costs of 4 and of 28 µs are read equally well in per cent. Two
//! levels determine one slope, not three: a ridge (each slope is expected about 0, with a spread of what such wake-ups cost elsewhere)
//! divides what cannot be distinguished as is likely, and hardly moves what can. A wake-up costs what it costs, however dear a request
//! is: no more is taken for it than it can take, else the noise of dear requests would be called wake-ups.

/// One trial as the fit sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FitSample {
    /// Service demand, in any unit, above zero.
    pub cost: f64,
    /// How many of that unit a second has.
    pub per_s: f64,
    /// The SUT's own sleeps a request.
    pub own: f64,
    /// Sleepers of the other side that it woke: on idle CPUs, on busy CPUs.
    pub woken_idle: f64,
    pub woken_busy: f64,
}

impl FitSample {
    fn terms(&self) -> [f64; TERMS] {
        [1.0, self.own, self.woken_idle, self.woken_busy]
    }

    /// All wake-ups a request.
    pub fn wakeups(&self) -> f64 {
        self.own + self.woken_idle + self.woken_busy
    }
}

const TERMS: usize = 4;
/// What a wake-up costs, CPU seconds: an own one, one of the generator on an idle CPU, one on a busy CPU (libreactor and nginx on the
/// virtual machine of docs/measured).
pub(crate) const WAKEUPS_S: [f64; 3] = [23e-6, 6e-6, 3e-6];
/// A wake-up may cost so many times as much elsewhere.
pub(crate) const WAKEUP_TIMES_MAX: f64 = 2.0;
/// Spread of single samples, relative.
const NOISE: f64 = 0.02;
/// Coordinate descent on four terms is done long before.
const ROUNDS_MAX: usize = 10_000;

/// The costs found: [C_sat, own, one of the generator on an idle CPU, one on a busy CPU], none below zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fit {
    pub terms: [f64; TERMS],
}

impl Fit {
    /// `None` with fewer than two samples, or where a figure is no number.
    pub fn of(samples: &[FitSample]) -> Option<Fit> {
        let usable = |sample: &FitSample| {
            sample.cost > 0.0 && sample.per_s > 0.0 && sample.terms().iter().all(|term| term.is_finite())
        };
        if samples.len() < 2 || !samples.iter().all(usable) {
            return None;
        }
        // Normal equations of Σ (terms·x / cost − 1)².
        let mut squares = [[0.0; TERMS]; TERMS];
        let mut sides = [0.0; TERMS];
        for sample in samples {
            let row = sample.terms().map(|term| term / sample.cost);
            for (one, side) in sides.iter_mut().enumerate() {
                *side += row[one];
                for other in 0..TERMS {
                    squares[one][other] += row[one] * row[other];
                }
            }
        }
        let per_s = samples.first()?.per_s;
        for (spread_s, term) in WAKEUPS_S.into_iter().zip(1..) {
            squares[term][term] += (NOISE / (spread_s * per_s)).powi(2);
        }
        let terms = descend(&squares, &sides)?;
        (terms[0] > 0.0 && terms.iter().all(|term| term.is_finite())).then_some(Fit { terms })
    }

    /// What the wake-ups of a sample cost: no more than so many can.
    pub fn of_wakeups(&self, sample: &FitSample) -> f64 {
        let cost = |[own, idle, busy]: [f64; 3]| {
            own * sample.own + idle * sample.woken_idle + busy * sample.woken_busy
        };
        let [_, own, idle, busy] = self.terms;
        cost([own, idle, busy]).min(WAKEUP_TIMES_MAX * sample.per_s * cost(WAKEUPS_S))
    }
}

/// Minimises x·S·x/2 − s·x over x ≥ 0, one term after the other (Franc, Hlaváč and Navara 2005).
fn descend(squares: &[[f64; TERMS]; TERMS], sides: &[f64; TERMS]) -> Option<[f64; TERMS]> {
    let mut found = [0.0; TERMS];
    for _ in 0..ROUNDS_MAX {
        let mut moved: f64 = 0.0;
        for term in 0..TERMS {
            let own = squares[term][term];
            if own <= 0.0 {
                continue;
            }
            let others: f64 = (0..TERMS)
                .filter(|other| *other != term)
                .map(|other| squares[term][other] * found[other])
                .sum();
            let next = ((sides[term] - others) / own).max(0.0);
            if !next.is_finite() {
                return None;
            }
            // In shares of the costs themselves.
            moved = moved.max((next - found[term]).abs() * squares[term][term].sqrt());
            found[term] = next;
        }
        if moved < 1e-12 {
            break;
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(truth: [f64; 4], own: f64, woken_idle: f64, woken_busy: f64) -> FitSample {
        let cost = truth[0] + truth[1] * own + truth[2] * woken_idle + truth[3] * woken_busy;
        FitSample { cost, per_s: 1e6, own, woken_idle, woken_busy }
    }

    #[test]
    fn finds_what_wake_ups_cost_where_levels_differ_in_each() {
        let truth = [4.3, 20.0, 3.0, 1.0];
        let samples = [
            (0.0, 0.0, 0.0),
            (1.0, 0.1, 0.0),
            (0.3, 1.0, 0.0),
            (0.1, 0.2, 1.0),
            (0.0, 0.0, 1.0),
            (0.5, 0.5, 0.5),
        ];
        let fit = Fit::of(&samples.map(|(own, idle, busy)| sample(truth, own, idle, busy))).unwrap();
        for (found, true_one) in fit.terms.iter().zip(truth) {
            assert!((found / true_one - 1.0).abs() < 0.02, "{fit:?}");
        }
    }

    #[test]
    fn two_levels_determine_the_cost_at_saturation() {
        // One connection and sixty-four: both kinds of wake-ups cannot be distinguished, what they cost together can.
        let truth = [4.3, 20.0, 3.0, 1.0];
        let samples = [sample(truth, 1.0, 1.0, 0.0), sample(truth, 0.02, 0.03, 0.0)];
        let fit = Fit::of(&samples).unwrap();
        assert!((fit.terms[0] / 4.3 - 1.0).abs() < 0.03, "{fit:?}");
    }

    /// Half as much again for a request of 200 µs is what a shared host does, or another batch, and no wake-up of 200 µs.
    #[test]
    fn the_noise_of_dear_requests_is_no_cost_of_wake_ups() {
        let noisy = |cost, own| FitSample { cost, per_s: 1e6, own, woken_idle: 1.0, woken_busy: 0.0 };
        let fit = Fit::of(&[noisy(300.0, 0.6), noisy(290.0, 0.55), noisy(205.0, 0.1), noisy(200.0, 0.1)]);
        let taken_off = fit.unwrap().of_wakeups(&noisy(300.0, 0.6));
        assert!(taken_off < 40.0, "{taken_off}");
    }

    #[test]
    fn more_cpu_with_fewer_wake_ups_is_no_negative_cost() {
        let fit = Fit::of(&[
            sample([4.0, 0.0, 0.0, 0.0], 1.0, 1.0, 0.0),
            sample([5.0, 0.0, 0.0, 0.0], 0.0, 0.0, 0.0),
        ]);
        assert!(fit.unwrap().terms.iter().all(|term| *term >= 0.0));
    }

    proptest! {
        #[test]
        fn no_samples_however_odd_give_a_fit_that_is_no_number(
            samples in prop::collection::vec((0.0..1e3f64, 0.0..1e6f64, prop::num::f64::ANY, 0.0..1.0f64), 0..8),
        ) {
            let samples: Vec<FitSample> = samples
                .into_iter()
                .map(|(cost, own, woken_idle, woken_busy)| FitSample { cost, per_s: 1e6, own, woken_idle, woken_busy })
                .collect();
            if let Some(fit) = Fit::of(&samples) {
                prop_assert!(fit.terms.iter().all(|term| term.is_finite() && *term >= 0.0));
                prop_assert!(fit.terms[0] > 0.0);
            }
        }
    }
}
