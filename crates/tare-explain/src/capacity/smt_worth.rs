//! What an SMT thread is worth: the throughput that the second sibling of a core adds, as a share of a core.
//!
//! CPUs are added in the topology's order, a thread of each core first. With c cores and s of their siblings the rate is
//! X(c + s) = X(c)·(1 + w·s/c), where w is the worth: X(c)/c is what a core does while all cores work, one thread on each. At s = c this is
//! X(2c)/X(c) − 1. A core's first thread slows down when its sibling works: w is what both do together above what one did alone.
//!
//! With several levels of s, w of a block is the least-squares slope through the origin of X(c + s)/X(c) − 1 over s/c, so that levels with more
//! siblings, whose ratio tells more, count more. Levels of a block are measured beside each other: drift cancels in the ratio. The interval is
//! Student's t over blocks.

use tare_model::outcome::{Cause, Estimate};
use tare_model::scaling::{OrderedCpu, ScaleLevel};
use tare_model::warning::Warning;
use tare_model::{Missing, Reading};
use tare_stats::mean_interval;

/// How a sibling is called in the order of CPUs.
const SIBLING: &str = "smt";
/// A level at which less of the CPUs was busy does not show what they could do.
const BUSY_MIN: f64 = 0.85;
/// A load generator that takes more than this share of them has its part in what siblings are worth.
const GENERATOR_MAX: f64 = 0.02;
/// The warning of a sweep at whose highest level the load generator ran on the server's CPUs.
pub const SHARED: &str = "generator-shares-cpus";

/// How many physical cores come before the first sibling; `None` where there is no sibling.
pub fn cores_before_siblings(order: &[OrderedCpu]) -> Option<usize> {
    order.iter().position(|cpu| cpu.adds.starts_with(SIBLING))
}

/// [`smt_worth`] of a sweep that was measured, with what was busy: missing where a level does not show what its CPUs could do, since they were
/// not busy, the load generator was the bottleneck, or it ran on the same CPUs. Of another factor than CPUs it is no question.
pub fn of_sweep(levels: &[ScaleLevel], order: &[OrderedCpu], warnings: &[Warning]) -> Reading<Estimate> {
    if order.is_empty() {
        return Reading::NotApplicable { not_applicable: "CPUs were not varied".to_owned() };
    }
    let Some(cores) = cores_before_siblings(order) else {
        return Reading::missing("there is no SMT here: no CPU is the second thread of a core");
    };
    let takes_part = |level: &&ScaleLevel| level.n > cores as f64 - 0.5 && level.n < 2.0 * cores as f64 + 0.5;
    let used: Vec<&ScaleLevel> = levels.iter().filter(takes_part).collect();
    if warnings.iter().any(|warning| warning.id == SHARED) {
        return Reading::Missing(Missing::with_remedy(
            "at the highest level the load generator ran on the server's CPUs",
            "load it from another host (--load-cpus holds the generator here), or vary fewer CPUs",
        ));
    }
    match used.iter().find_map(|level| doubt(level)) {
        Some(doubt) => Reading::Missing(doubt),
        None => smt_worth(levels, order),
    }
}

/// Why a level does not show what its CPUs can do.
fn doubt(level: &ScaleLevel) -> Option<Missing> {
    let n = level.n;
    if level.bottlenecks.iter().filter(|cause| **cause == Cause::LoadGeneratorBound).count() * 2
        > level.bottlenecks.len()
    {
        let why = format!(
            "the load generator was the bottleneck at {n:.0} CPUs: the figure there is a lower bound"
        );
        return Some(Missing::with_remedy(
            why,
            "give the generator more CPUs, or let it run on another host",
        ));
    }
    // With a thread on every core there is no CPU left that is not a sibling of one of them.
    let generator = level.accounting.value().and_then(|accounting| accounting.generator_cpus);
    if let Some(cpus) = generator.filter(|cpus| *cpus > GENERATOR_MAX * n) {
        return Some(Missing::with_remedy(
            format!("with {n:.0} CPUs the load generator ran on {cpus:.2} CPUs of the same cores"),
            "load it from another host",
        ));
    }
    let busy = level.accounting.value().and_then(|accounting| accounting.cpus_busy);
    match busy {
        Some(busy) if busy < BUSY_MIN * n => Some(Missing::with_remedy(
            format!("of {n:.0} CPUs {busy:.2} were busy, so the figure does not show what they could do"),
            "give it as many threads or workers as CPUs, and load that keeps them busy",
        )),
        Some(_) => None,
        None => Some(Missing::new(format!("how busy {n:.0} CPUs were is not known"))),
    }
}

/// The worth of an SMT thread in cores, with its 95 % interval (none of a single block); 0.2: the second thread of a core adds a fifth of
/// what a core does with one.
///
/// `levels` are of a sweep over CPUs: `n` of them, the first of `order`; a sample for each block.
pub fn smt_worth(levels: &[ScaleLevel], order: &[OrderedCpu]) -> Reading<Estimate> {
    worth(levels, order).into()
}

fn worth(levels: &[ScaleLevel], order: &[OrderedCpu]) -> Result<Estimate, Missing> {
    let Some(cores) = cores_before_siblings(order) else {
        return Err(Missing::new("no CPU that was added is an SMT sibling of another"));
    };
    if cores == 0 || order.iter().skip(cores).any(|cpu| !cpu.adds.starts_with(SIBLING)) {
        return Err(Missing::with_remedy(
            "SMT siblings were added before all cores had a thread",
            "add CPUs in the order cores first",
        ));
    }
    let is_at = |level: &&ScaleLevel, n: usize| (level.n - n as f64).abs() < 0.5;
    let base = levels.iter().find(|level| is_at(level, cores)).ok_or_else(|| {
        Missing::with_remedy(
            format!("no level has one thread on each of the {cores} cores"),
            format!("measure a level of {cores} CPUs"),
        )
    })?;
    // The second thread of each core; a third would be another question.
    let beyond = |level: &&ScaleLevel| {
        let siblings = level.n - cores as f64;
        siblings > 0.5 && siblings < cores as f64 + 0.5 && level.n < order.len() as f64 + 0.5
    };
    let beyond: Vec<&ScaleLevel> = levels.iter().filter(beyond).collect();
    if beyond.is_empty() {
        return Err(Missing::with_remedy(
            "no level has SMT siblings at work",
            format!("measure a level of {} CPUs", (2 * cores).min(order.len())),
        ));
    }
    let blocks = base.samples.len();
    if blocks == 0 || beyond.iter().any(|level| level.samples.len() != blocks) {
        return Err(Missing::new(
            "levels have not as many samples as each other: which belong together is not known",
        ));
    }
    let each: Option<Vec<f64>> = (0..blocks).map(|block| of_block(base, &beyond, block)).collect();
    let estimate = each.as_deref().and_then(mean_interval);
    let estimate = estimate.ok_or_else(|| Missing::new("a level has no figure, or one of 0"))?;
    Ok(Estimate {
        value: estimate.value,
        unit: "cores".to_owned(),
        ci95: estimate.ci95.map(|interval| [interval.lo, interval.hi]),
    })
}

/// The slope through the origin.
fn of_block(base: &ScaleLevel, beyond: &[&ScaleLevel], block: usize) -> Option<f64> {
    let first = *base.samples.get(block)?;
    let (mut products, mut squares) = (0.0, 0.0);
    for level in beyond {
        let share = (level.n - base.n) / base.n;
        let more = level.samples.get(block)? / first - 1.0;
        products += share * more;
        squares += share * share;
    }
    let slope = products / squares;
    (slope.is_finite() && first > 0.0).then_some(slope)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tare_model::scaling::LevelAccounting;
    use tare_stats::SplitMix64;

    fn order(cores: usize, siblings: usize) -> Vec<OrderedCpu> {
        let cpu = |at: usize| OrderedCpu {
            cpu: at as u32,
            adds: if at < cores { "core".to_owned() } else { "smt-sibling".to_owned() },
            node: Some(0),
        };
        (0..cores + siblings).map(cpu).collect()
    }

    fn level(n: usize, samples: Vec<f64>) -> ScaleLevel {
        ScaleLevel {
            n: n as f64,
            estimate: Reading::missing("not asked"),
            samples,
            is_outlier: false,
            bottlenecks: Vec::new(),
            accounting: Reading::missing("not asked"),
            lost: Vec::new(),
        }
    }

    fn value(levels: &[ScaleLevel], order: &[OrderedCpu]) -> f64 {
        smt_worth(levels, order).value().unwrap().value
    }

    /// Field report R4: 2 sockets of 16 cores with 2 threads each, throughput of `openssl speed -multi` × 1.8 from 16 to 32 CPUs and × 1.2
    /// from 32 to 64; of `sysbench cpu` linear to 32, then flat: 0.02.
    #[test]
    fn recorded_figures_of_32_cores_with_two_threads() {
        let order = order(32, 32);
        let openssl = [level(16, vec![16.0]), level(32, vec![28.8]), level(64, vec![28.8 * 1.2])];
        let worth = smt_worth(&openssl, &order);
        let worth = worth.value().unwrap();
        assert!(
            (worth.value - 0.2).abs() < 1e-9 && worth.ci95.is_none() && worth.unit == "cores",
            "{worth:?}"
        );
        let sysbench = [level(1, vec![1.0]), level(32, vec![32.0]), level(64, vec![32.0 * 1.02])];
        assert!((value(&sysbench, &order) - 0.02).abs() < 1e-9);
    }

    #[test]
    fn several_levels_of_siblings_say_the_same() {
        let of = |siblings: usize| vec![8.0 + 0.35 * siblings as f64; 3];
        let levels: Vec<ScaleLevel> =
            [0, 2, 4, 8].map(|siblings| level(8 + siblings, of(siblings))).into_iter().collect();
        assert!((value(&levels, &order(8, 8)) - 0.35).abs() < 1e-9);
        // Less with the second thread than without.
        let worse = [level(2, vec![2.0, 2.0]), level(4, vec![1.8, 1.8])];
        assert!((value(&worse, &order(2, 2)) + 0.1).abs() < 1e-9);
    }

    #[test]
    fn what_cannot_be_known_is_missing_with_its_reason() {
        let why = |levels: &[ScaleLevel], order: &[OrderedCpu]| match smt_worth(levels, order) {
            Reading::Missing(missing) => missing.why,
            other => panic!("{other:?}"),
        };
        let both = [level(2, vec![2.0]), level(4, vec![2.4])];
        assert!(why(&both, &order(4, 0)).contains("no CPU that was added is an SMT sibling"));
        assert!(why(&both[1..], &order(2, 2)).contains("one thread on each of the 2 cores"));
        assert!(why(&both[..1], &order(2, 2)).contains("no level has SMT siblings"));
        assert!(
            why(&[level(2, vec![2.0, 2.0]), level(4, vec![2.4])], &order(2, 2)).contains("as many samples")
        );
        assert!(why(&[level(2, vec![0.0]), level(4, vec![2.4])], &order(2, 2)).contains("one of 0"));
        let mut mixed = order(2, 2);
        mixed.swap(1, 2);
        assert!(why(&both, &mixed).contains("before all cores"));
        assert!(why(&[], &[]).contains("no CPU"));
    }

    fn busy(n: usize, busy: f64, samples: Vec<f64>) -> ScaleLevel {
        let accounting = LevelAccounting { cpus_busy: Some(busy), ..LevelAccounting::default() };
        ScaleLevel { accounting: Reading::Measured(accounting), ..level(n, samples) }
    }

    #[test]
    fn a_sweep_says_it_only_where_all_cpus_were_at_work() {
        let order = order(2, 2);
        let full = [busy(1, 1.0, vec![1.0]), busy(2, 2.0, vec![2.0]), busy(4, 3.95, vec![2.6])];
        let worth = of_sweep(&full, &order, &[]);
        assert!((worth.value().unwrap().value - 0.3).abs() < 1e-9);
        let why = |levels: &[ScaleLevel], order: &[OrderedCpu], warnings: &[Warning]| {
            of_sweep(levels, order, warnings).ok().unwrap_err().why
        };
        // Two threads on four CPUs: the figure does not rise, and says nothing of siblings.
        let idle = [busy(2, 2.0, vec![2.0]), busy(4, 2.0, vec![2.0])];
        assert!(why(&idle, &order, &[]).contains("of 4 CPUs 2.00 were busy"));
        let mut limited = full.clone();
        limited[2].bottlenecks = vec![Cause::LoadGeneratorBound];
        assert!(why(&limited, &order, &[]).contains("lower bound"));
        let shared = Warning { id: SHARED.to_owned(), text: String::new(), hint: String::new() };
        assert!(why(&full, &order, &[shared]).contains("ran on the server's CPUs"));
        let loaded = |level: &ScaleLevel| {
            let accounting =
                LevelAccounting { generator_cpus: Some(1.0), ..*level.accounting.value().unwrap() };
            ScaleLevel { accounting: Reading::Measured(accounting), ..level.clone() }
        };
        let loaded: Vec<ScaleLevel> = full.iter().map(loaded).collect();
        assert!(why(&loaded, &order, &[]).contains("1.00 CPUs of the same cores"));
        assert!(why(&full, &super::tests::order(4, 0), &[]).contains("there is no SMT here"));
        assert!(why(&[level(2, vec![2.0]), level(4, vec![2.6])], &order, &[]).contains("not known"));
        assert!(why(&full, &[], &[]).contains("CPUs were not varied"));
    }

    /// 95 % intervals hold the true worth in about 95 of 100 sweeps of 8 blocks with 3 % of noise and a drift that all levels share.
    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        let mut random = SplitMix64::new(24);
        let mut unit = || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let (sweeps, blocks, truth) = (2000, 8, 0.25);
        let mut held = 0;
        for _ in 0..sweeps {
            let mut samples = [Vec::new(), Vec::new(), Vec::new()];
            for _ in 0..blocks {
                let drift = 1.0 + 0.2 * (unit() - 0.5);
                for (siblings, samples) in [0.0, 2.0, 4.0].into_iter().zip(&mut samples) {
                    let normal = (0..12).map(|_| unit()).sum::<f64>() - 6.0;
                    samples.push((4.0 + truth * siblings) * drift * (1.0 + 0.03 * normal));
                }
            }
            let levels = [4, 6, 8].into_iter().zip(samples).map(|(n, samples)| level(n, samples));
            let levels: Vec<ScaleLevel> = levels.collect();
            let [low, high] = smt_worth(&levels, &order(4, 4)).value().unwrap().ci95.unwrap();
            held += usize::from(low <= truth && truth <= high);
        }
        let share = held as f64 / sweeps as f64;
        assert!((0.93..=0.97).contains(&share), "{share}");
    }

    proptest! {
        #[test]
        fn no_sweep_makes_it_panic_or_say_what_is_no_number(
            cores in 0usize..5,
            siblings in 0usize..5,
            levels in prop::collection::vec((0usize..10, prop::collection::vec(prop_oneof![Just(f64::NAN), Just(0.0), -1.0..1e9f64], 0..4)), 0..6),
        ) {
            let levels: Vec<ScaleLevel> = levels.into_iter().map(|(n, samples)| level(n, samples)).collect();
            if let Reading::Measured(worth) = smt_worth(&levels, &order(cores, siblings)) {
                prop_assert!(worth.value.is_finite());
            }
        }
    }
}
