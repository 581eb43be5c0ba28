//! What instances that ran at once come to together, and how evenly they lose.

use crate::capacity::efficiency::Seen;
use std::collections::BTreeMap;
use tare_model::instances::Fairness;
use tare_model::outcome::Estimate;
use tare_model::scaling::LevelAccounting;
use tare_model::{Missing, Reading};
use tare_stats::{mean, mean_interval};

/// All instances of a level as one: figures and CPUs are sums, IPC and clock means by CPU time, latency a mean by figure. `cpus_there`: how
/// many CPUs they were held on in all, which is less than the sum where they share some. `None` of no instance.
pub fn together(n: f64, instances: &[Seen], cpus_there: f64) -> Option<Seen> {
    let first = instances.first()?;
    let x: f64 = instances.iter().map(|seen| seen.x).sum();
    let sum = |of: fn(&LevelAccounting) -> Option<f64>| -> Option<f64> {
        instances.iter().map(|seen| of(&seen.accounting)).sum()
    };
    let by_busy = |of: fn(&Seen) -> Option<f64>| by(instances, |seen| seen.accounting.cpus_busy, of);
    let busy = sum(|of| of.cpus_busy);
    let limited = instances.iter().filter(|seen| seen.generator_limits).count();
    let accounting = LevelAccounting {
        cpus_entitled: sum(|of| of.cpus_entitled).map(|cpus| cpus.min(cpus_there)),
        cpus_busy: busy,
        cpu_s_per_unit: busy.filter(|_| x > 0.0).map(|busy| busy / x),
        cpus_waited_for: sum(|of| of.cpus_waited_for),
        cpus_throttled: sum(|of| of.cpus_throttled),
        lock_wait_s_per_s: sum(|of| of.lock_wait_s_per_s),
        ipc: by_busy(|seen| seen.accounting.ipc),
        clock_hz: by_busy(|seen| seen.accounting.clock_hz),
        generator_cpus: sum(|of| of.generator_cpus),
        latency_s: by(instances, |seen| Some(seen.x), |seen| seen.accounting.latency_s),
    };
    Some(Seen {
        n,
        x,
        counted: first.counted,
        accounting,
        losses_cpus: losses(instances),
        cpus_there: Some(cpus_there),
        kernel_share: by_busy(|seen| seen.kernel_share),
        generator_limits: 2 * limited > instances.len(),
        generator_waits_cpus: instances.iter().map(|seen| seen.generator_waits_cpus).sum(),
    })
}

/// The mean, each counted by its weight; `None` where one is not known.
fn by(
    instances: &[Seen],
    weight: impl Fn(&Seen) -> Option<f64>,
    of: impl Fn(&Seen) -> Option<f64>,
) -> Option<f64> {
    let weights: f64 = instances.iter().map(&weight).sum::<Option<f64>>()?;
    let sum: f64 = instances.iter().map(|seen| Some(of(seen)? * weight(seen)?)).sum::<Option<f64>>()?;
    Some(sum / weights).filter(|mean| mean.is_finite())
}

fn losses(instances: &[Seen]) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for (name, cpus) in instances.iter().flat_map(|seen| &seen.losses_cpus) {
        *sums.entry(name.clone()).or_insert(0.0) += cpus;
    }
    sums
}

/// Jain's index of fairness, (Σk)² / (n·Σk²): 1 where all are the same, 1/n where one has everything (Jain, Chiu and Hawe, "A quantitative
/// measure of fairness and discrimination", DEC-TR-301, 1984). `None` of no share, and where one is negative or all are 0.
pub fn jain(kept: &[f64]) -> Option<f64> {
    let (sum, squares) =
        kept.iter().fold((0.0, 0.0), |(sum, squares), share| (sum + share, squares + share * share));
    let index = sum * sum / (kept.len() as f64 * squares);
    (kept.iter().all(|share| *share >= 0.0) && index.is_finite()).then_some(index)
}

/// How evenly the instances of a level lose: `blocks` has, of each block, the share that each instance keeps of its figure alone.
pub fn fairness(n: f64, blocks: &[Vec<f64>]) -> Fairness {
    let each: Vec<f64> = blocks.iter().filter_map(|kept| jain(kept)).collect();
    let jain = mean_interval(&each).map(|mean| Estimate {
        value: mean.value,
        unit: String::new(),
        // By construction it is in this range.
        ci95: mean.ci95.map(|ends| [ends.lo.max(1.0 / n), ends.hi.min(1.0)]),
    });
    let missing = || {
        let remedy = "more --blocks, or 'tare run' of one instance";
        Reading::Missing(Missing::with_remedy(
            "in no block all instances were valid alone and together",
            remedy,
        ))
    };
    let end = |pick: fn(f64, f64) -> f64| {
        let ends: Vec<f64> = blocks.iter().filter_map(|kept| kept.iter().copied().reduce(pick)).collect();
        mean(&ends)
    };
    Fairness {
        n,
        jain: jain.map_or_else(missing, Reading::Measured),
        least_kept: end(f64::min),
        most_kept: end(f64::max),
    }
}
