//! Properties of the statistics, and the coverage of the intervals on simulated data.

use proptest::prelude::*;
use tare_stats::*;

fn positive() -> impl Strategy<Value = f64> {
    prop_oneof![1e-9..1e-3f64, 1e-3..1e3f64, 1e3..1e12f64]
}

proptest! {
    #[test]
    fn log_mean_splits_a_ratio_exactly(a in positive(), share in 0.0..1.0f64, cut in 0.0..1.0f64) {
        let lost = a * share * 0.999;
        let b = a - lost;
        let mean = log_mean(a, b).unwrap();
        let parts = lost * cut / mean + lost * (1.0 - cut) / mean;
        prop_assert!((parts - (a / b).ln()).abs() < 1e-9, "{parts} against {}", (a / b).ln());
    }

    #[test]
    fn log_mean_lies_between_the_other_means(a in positive(), b in positive()) {
        let mean = log_mean(a, b).unwrap();
        prop_assert!(mean >= (a.ln() / 2.0 + b.ln() / 2.0).exp() * (1.0 - 1e-9));
        prop_assert!(mean <= (a / 2.0 + b / 2.0) * (1.0 + 1e-9));
        prop_assert_eq!(log_mean(b, a).unwrap(), mean);
    }

    #[test]
    fn log_mean_is_continuous_where_the_two_meet(a in positive(), step in -1e-3..1e-3f64) {
        let mean = log_mean(a, a * (1.0 + step)).unwrap();
        let expected = a * (1.0 + step / 2.0 - step * step / 12.0);
        prop_assert!((mean / expected - 1.0).abs() < 1e-9);
    }

    #[test]
    fn quantiles_are_ordered_and_inside(values in prop::collection::vec(-1e9..1e9f64, 1..40), q in 0.0..1.0f64) {
        let low = quantile(&values, 0.0).unwrap();
        let high = quantile(&values, 1.0).unwrap();
        let middle = quantile(&values, q).unwrap();
        prop_assert!(low <= middle && middle <= high);
    }

    #[test]
    fn nothing_is_ever_nan(values in prop::collection::vec(prop::num::f64::ANY, 0..6), q in prop::num::f64::ANY) {
        let plain = [mean(&values), stdev(&values), median(&values), quantile(&values, q)];
        prop_assert!(plain.into_iter().flatten().all(f64::is_finite));
        let reversed: Vec<f64> = values.iter().rev().copied().collect();
        for estimate in [mean_interval(&values), paired_log_ratio(&values, &reversed)]
            .into_iter().flatten()
        {
            prop_assert!(estimate.value.is_finite());
            prop_assert!(estimate.ci95.is_none_or(|ci| ci.lo.is_finite() && ci.hi.is_finite() && ci.lo <= ci.hi));
        }
    }

    #[test]
    fn jackknife_of_a_mean_is_its_standard_error(values in prop::collection::vec(-1e3..1e3f64, 2..20)) {
        let without = |skip: Option<usize>| -> Option<Vec<f64>> {
            let kept: Vec<f64> = (0..values.len()).filter(|i| Some(*i) != skip).map(|i| values[i]).collect();
            Some(vec![mean(&kept)?])
        };
        let jack = jackknife(values.len(), without).unwrap()[0];
        let expected = stdev(&values).unwrap() / (values.len() as f64).sqrt();
        prop_assert!((jack.se - expected).abs() < 1e-9 * (1.0 + expected));
    }
}

#[test]
fn too_little_data_is_none() {
    assert_eq!(mean(&[]), None);
    assert_eq!(stdev(&[1.0]), None);
    assert_eq!(median(&[]), None);
    assert_eq!(quantile(&[1.0], 1.5), None);
    assert_eq!(mean_interval(&[]), None);
    assert_eq!(mean_interval(&[3.0]).unwrap().ci95, None);
    assert_eq!(paired_log_ratio(&[1.0], &[]), None);
    assert_eq!(paired_log_ratio(&[0.0], &[1.0]), None);
    assert_eq!(jackknife(1, |_| Some(vec![1.0])), None);
    assert_eq!(jackknife(3, |skip| skip.is_none().then(|| vec![1.0])), None);
    for (a, b) in [(0.0, 1.0), (-1.0, 2.0), (f64::NAN, 1.0), (1.0, f64::INFINITY)] {
        assert_eq!(log_mean(a, b), None);
    }
}

#[test]
fn known_figures() {
    let values = [2.0, 4.0, 4.0, 5.0, 7.0];
    assert!((mean(&values).unwrap() - 4.4).abs() < 1e-12);
    assert!((stdev(&values).unwrap() - 3.3f64.sqrt()).abs() < 1e-12);
    assert_eq!(median(&values), Some(4.0));
    assert_eq!(quantile(&[1.0, 2.0], 0.25), Some(1.25));
    assert!((log_mean(2.0, 1.0).unwrap() - 1.0 / 2f64.ln()).abs() < 1e-12);
    let interval = Interval { lo: 1.0, hi: 3.0 };
    assert_eq!(
        (interval.share_above(0.0), interval.share_above(2.5), interval.share_above(3.5)),
        (1.0, 0.25, 0.0)
    );
}

/// A small generator of its own, so that the simulation is the same on every machine and run.
struct Lcg(u64);

impl Lcg {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (2.0 * std::f64::consts::PI * self.uniform()).cos()
    }
}

#[test]
fn intervals_cover_the_truth_as_often_as_they_say() {
    const ROUNDS: u32 = 4000;
    let mut random = Lcg(20_240_601);
    for n in [3usize, 5, 12] {
        let (mut covered_mean, mut covered_ratio) = (0u32, 0u32);
        for _ in 0..ROUNDS {
            let values: Vec<f64> = (0..n).map(|_| 10.0 + random.normal()).collect();
            let ci = mean_interval(&values).unwrap().ci95.unwrap();
            covered_mean += u32::from(ci.lo <= 10.0 && 10.0 <= ci.hi);
            // A pooled rate, requests over seconds, on the log: what every figure of a result is.
            let trials: Vec<(f64, f64)> = (0..n)
                .map(|_| (1e5 * (0.02 * random.normal()).exp(), 1.0 + 0.01 * random.uniform()))
                .collect();
            let rate = |skip: Option<usize>| {
                let kept = || (0..n).filter(|i| Some(*i) != skip).map(|i| trials[i]);
                let (requests, seconds) =
                    (kept().map(|t| t.0 * t.1).sum::<f64>(), kept().map(|t| t.1).sum::<f64>());
                Some(vec![(requests / seconds).ln()])
            };
            let ci = jackknife(n, rate).unwrap()[0].ci95().unwrap();
            let truth = 1e5f64.ln() + 0.02f64.powi(2) / 2.0;
            covered_ratio += u32::from(ci.lo <= truth && truth <= ci.hi);
        }
        for (name, covered) in [("mean", covered_mean), ("pooled rate", covered_ratio)] {
            let share = f64::from(covered) / f64::from(ROUNDS);
            assert!((0.935..=0.965).contains(&share), "{name} of {n}: {share}");
        }
    }
}
