//! The rate behind a count of successes.

use crate::interval::Interval;
use crate::student::incomplete_beta;

/// Each side of the interval is wrong at most this often.
const TAIL: f64 = 0.025;

/// The exact 95 % interval of a rate of which `successes` were seen in `trials` (Clopper and Pearson 1934): it holds the rate in
/// 95 of 100 such counts or more, however few trials there are. `None` without trials, or with more successes than these.
pub fn proportion_interval(successes: usize, trials: usize) -> Option<Interval> {
    let failures = trials.checked_sub(successes).filter(|_| trials > 0)?;
    let (seen, missed) = (successes as f64, failures as f64);
    // P(so many or more | rate) = I(rate; seen, missed + 1), and P(so many or fewer | rate) = 1 − I(rate; seen + 1, missed).
    let low = match successes {
        0 => 0.0,
        _ => rate_at(TAIL, seen, missed + 1.0),
    };
    let high = match failures {
        0 => 1.0,
        _ => rate_at(1.0 - TAIL, seen + 1.0, missed),
    };
    Interval::new(low, high)
}

/// The x with I(x; a, b) = `share`, by bisection.
fn rate_at(share: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0f64, 1.0f64);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if incomplete_beta(middle, a, b) < share {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn agrees_with_what_is_known() {
        // Nothing seen: 1 − 0.025^(1/n). The others as R's binom.test gives them.
        let table = [
            ((0, 1), (0.0, 0.975)),
            ((0, 3), (0.0, 0.7076)),
            ((1, 3), (0.0084, 0.9057)),
            ((3, 3), (0.2924, 1.0)),
            ((2, 10), (0.0252, 0.5561)),
            ((5, 100), (0.0164, 0.1128)),
        ];
        for ((successes, trials), (low, high)) in table {
            let interval = proportion_interval(successes, trials).unwrap();
            assert!((interval.lo - low).abs() < 6e-5, "{successes} of {trials}: {interval:?}");
            assert!((interval.hi - high).abs() < 6e-5, "{successes} of {trials}: {interval:?}");
        }
        assert_eq!(proportion_interval(0, 0), None);
        assert_eq!(proportion_interval(4, 3), None);
    }

    /// P(exactly so many successes), term by term.
    fn chances(trials: usize, rate: f64) -> Vec<f64> {
        let mut chances = vec![1.0];
        for _ in 0..trials {
            let of = |at: usize| chances.get(at).copied().unwrap_or(0.0);
            let one_more = |at: usize| if at == 0 { 0.0 } else { of(at - 1) };
            chances = (0..=chances.len()).map(|at| of(at) * (1.0 - rate) + one_more(at) * rate).collect();
        }
        chances
    }

    proptest! {
        /// The coverage itself, summed over every possible count.
        #[test]
        fn it_holds_the_rate_in_95_of_100_counts_or_more(trials in 1usize..40, rate in 0.0..=1.0f64) {
            let holds = |seen: usize| proportion_interval(seen, trials).is_some_and(|i| i.lo <= rate && rate <= i.hi);
            let covered: f64 =
                chances(trials, rate).iter().enumerate().filter(|(seen, _)| holds(*seen)).map(|(_, chance)| chance).sum();
            prop_assert!(covered >= 0.95 - 1e-9, "{covered} of {trials} at {rate}");
        }

        #[test]
        fn it_holds_what_was_seen_and_mirrors(trials in 1usize..5000, share in 0.0..=1.0f64) {
            let seen = (share * trials as f64) as usize;
            let interval = proportion_interval(seen, trials).unwrap();
            let rate = seen as f64 / trials as f64;
            prop_assert!(0.0 <= interval.lo && interval.lo <= rate && rate <= interval.hi && interval.hi <= 1.0);
            let mirrored = proportion_interval(trials - seen, trials).unwrap();
            prop_assert!((interval.lo + mirrored.hi - 1.0).abs() < 1e-9);
            prop_assert!((interval.hi + mirrored.lo - 1.0).abs() < 1e-9);
        }
    }
}
