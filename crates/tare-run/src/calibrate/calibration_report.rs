//! What comparisons of a server with itself, and the nets of runs, come to. Pure.

use tare_model::calibration::{
    AaControl, CalledDifferent, Compared, NET_RUNS_MIN, NetSpread, Run, RunResult, SelfComparison, SelfResult,
};
use tare_stats::{Interval, median, proportion_interval, quantile};

/// Counts the comparisons; `None` without any.
pub(super) fn aa_control(comparisons: &[SelfComparison], budget_s: f64) -> Option<AaControl> {
    let compared: Vec<&Compared> = comparisons.iter().filter_map(compared).collect();
    let different = compared.iter().filter(|one| !one.different.is_empty()).count();
    let size = |called: &CalledDifferent| called.change.value.ln_1p().abs();
    let called = compared.iter().flat_map(|one| &one.different).copied();
    let detectable: Vec<f64> = compared.iter().filter_map(|one| one.detectable).collect();
    (!comparisons.is_empty()).then(|| AaControl {
        budget_s,
        comparisons: compared.len(),
        failed: comparisons.len() - compared.len(),
        different,
        rate_ci95: proportion_interval(different, compared.len()).map(|Interval { lo, hi }| [lo, hi]),
        largest: called.max_by(|one, other| size(one).total_cmp(&size(other))),
        detectable: median(&detectable),
    })
}

fn compared(comparison: &SelfComparison) -> Option<&Compared> {
    match &comparison.result {
        SelfResult::Compared(compared) => Some(compared),
        SelfResult::Failed { .. } => None,
    }
}

/// How much net moved over the runs that leave it alone; `None` without any. Quartiles, as one run with much interference is no measure of
/// the others.
pub(super) fn net_spread(runs: &[Run], leaves_net: impl Fn(&str) -> bool) -> Option<NetSpread> {
    let runs: Vec<&Run> = runs.iter().filter(|run| leaves_net(&run.injection)).collect();
    let net = |run: &&Run| match &run.result {
        RunResult::Measured(found) => found.net.map(f64::ln).filter(|ln| ln.is_finite()),
        RunResult::Failed { .. } => None,
    };
    let nets_ln: Vec<f64> = runs.iter().filter_map(net).collect();
    let quartile = |share| quantile(&nets_ln, share).filter(|_| nets_ln.len() >= NET_RUNS_MIN);
    (!runs.is_empty()).then(|| NetSpread {
        runs: runs.len(),
        with_net: nets_ln.len(),
        median_hz: median(&nets_ln).map(f64::exp),
        quartiles_apart: quartile(0.75).zip(quartile(0.25)).map(|(upper, lower)| (upper - lower).exp_m1()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tare_model::calibration::Found;
    use tare_model::comparison::{Change, Figure};
    use tare_model::outcome::Cause;

    /// A comparison that called p99 different by each of these.
    fn said(different: &[f64], detectable: Option<f64>) -> SelfComparison {
        let called = |value: &f64| CalledDifferent {
            figure: Figure::P99,
            change: Change { value: *value, interval: [*value, *value] },
        };
        let different = different.iter().map(called).collect();
        let result = SelfResult::Compared(Compared { seed: 1, launches: 10, different, detectable });
        SelfComparison { begin_s: 0.0, took_s: 10.0, result }
    }

    fn failed() -> SelfComparison {
        let result = SelfResult::Failed { why: "no port".into() };
        SelfComparison { begin_s: 0.0, took_s: 1.0, result }
    }

    fn run(injection: &str, net: Option<f64>) -> Run {
        let result = RunResult::Measured(Found {
            bottleneck: Cause::ServerCpuBound,
            first_finding: None,
            found: Cause::ServerCpuBound,
            right: true,
            alarms: Vec::new(),
            gross: Some(1.0),
            net,
            findings: Vec::new(),
            right_as_listed: Some(true),
        });
        Run { injection: injection.into(), begin_s: 0.0, took_s: 1.0, disturbed: Vec::new(), result }
    }

    #[test]
    fn comparisons_are_counted_and_what_failed_is_in_no_rate() {
        assert_eq!(aa_control(&[], 10.0), None);
        let same = [said(&[], Some(0.04)), said(&[], None), failed(), said(&[], Some(0.06))];
        let same = aa_control(&same, 10.0).unwrap();
        assert_eq!((same.comparisons, same.failed, same.different), (3, 1, 0));
        let [low, high] = same.rate_ci95.unwrap();
        assert!(low == 0.0 && (high - 0.7076).abs() < 1e-4);
        assert!(same.largest.is_none() && (same.detectable.unwrap() - 0.05).abs() < 1e-12);
        let reported = [said(&[0.04, -0.05], None), said(&[0.051], None), said(&[], None)];
        let reported = aa_control(&reported, 10.0).unwrap();
        // Two figures of one comparison are one comparison; a twentieth less is more than a twentieth more.
        assert_eq!((reported.different, reported.largest.unwrap().change.value), (2, -0.05));
        assert_eq!(reported.detectable, None);
        let none = aa_control(&[failed()], 10.0).unwrap();
        assert_eq!((none.comparisons, none.failed, none.rate_ci95), (0, 1, None));
    }

    #[test]
    fn net_spreads_over_the_runs_that_leave_it_alone_and_have_one() {
        let leaves_net = |name: &str| name != "lock";
        assert_eq!(net_spread(&[run("lock", Some(5.0))], leaves_net), None);
        let mut runs: Vec<Run> = [99.0, 100.0, 103.0].map(|net| run("none", Some(net))).to_vec();
        runs.extend([run("lock", Some(7.0)), run("quota", None)]);
        runs.push(Run { result: RunResult::Failed { why: "gone".into() }, ..run("quota", None) });
        let few = net_spread(&runs, leaves_net).unwrap();
        assert_eq!((few.runs, few.with_net, few.quartiles_apart), (5, 3, None));
        assert!((few.median_hz.unwrap() - 100.0).abs() < 1e-9);
        runs.push(run("quota", Some(104.0)));
        runs.push(run("quota", Some(4.0)));
        let enough = net_spread(&runs, leaves_net).unwrap();
        assert_eq!((enough.runs, enough.with_net), (7, 5));
        assert!((enough.quartiles_apart.unwrap() - 4.0 / 99.0).abs() < 1e-9, "one that is off moves little");
    }

    proptest! {
        /// Neither the unit nor the order matters, and no spread is wider than all.
        #[test]
        fn spread_is_of_ratios(nets in prop::collection::vec(1e3..1e6f64, 4..40), unit in 1e-3..1e3f64) {
            let apart = |nets: Vec<f64>| {
                let runs: Vec<Run> = nets.into_iter().map(|net| run("none", Some(net))).collect();
                net_spread(&runs, |_| true).unwrap().quartiles_apart.unwrap()
            };
            let straight = apart(nets.clone());
            let turned = apart(nets.iter().rev().map(|net| net * unit).collect());
            let widest = nets.iter().copied().fold(0.0, f64::max) / nets.iter().copied().fold(f64::INFINITY, f64::min);
            prop_assert!((straight - turned).abs() < 1e-9 * (1.0 + straight));
            prop_assert!(straight >= 0.0 && straight <= widest - 1.0 + 1e-9 * widest);
        }

        #[test]
        fn a_rate_holds_what_was_counted(same in 0usize..20, reported in 0usize..20, lost in 0usize..5) {
            let all: Vec<SelfComparison> = (0..same).map(|_| said(&[], Some(0.1)))
                .chain((0..reported).map(|_| said(&[0.03], None)))
                .chain((0..lost).map(|_| failed()))
                .collect();
            let Some(counted) = aa_control(&all, 10.0) else {
                prop_assert!(all.is_empty());
                return Ok(());
            };
            prop_assert_eq!((counted.comparisons, counted.failed, counted.different), (same + reported, lost, reported));
            if let Some([low, high]) = counted.rate_ci95 {
                let rate = reported as f64 / (same + reported) as f64;
                prop_assert!(low <= rate && rate <= high);
            }
            prop_assert_eq!(counted.rate_ci95.is_some(), same + reported > 0);
            prop_assert_eq!(counted.largest.is_some(), reported > 0);
        }
    }
}
