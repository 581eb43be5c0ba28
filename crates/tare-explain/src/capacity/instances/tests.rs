//! Instances whose truth is known by construction, and those of field report R4.

use super::{Beside, fairness, jain, summary, taken, together};
use crate::capacity::efficiency::Seen;
use proptest::prelude::*;
use tare_model::instances::{Taken, TakenBy};
use tare_model::scaling::LevelAccounting;

/// An instance that needs `cost_s` of CPU time for a unit, `kernel` of it in the kernel, on `busy` CPUs.
fn seen(counted: &'static str, busy: f64, cost_s: f64, kernel: f64, losses: &[(&str, f64)]) -> Seen {
    Seen {
        n: 1.0,
        x: busy / cost_s,
        counted,
        accounting: LevelAccounting {
            cpus_entitled: Some(1.0),
            cpus_busy: Some(busy),
            cpu_s_per_unit: Some(cost_s),
            cpus_waited_for: losses.iter().find(|(loss, _)| *loss == "preempted").map(|(_, cpus)| *cpus),
            ..LevelAccounting::default()
        },
        losses_cpus: losses.iter().map(|(loss, cpus)| ((*loss).to_owned(), *cpus)).collect(),
        kernel_share: Some(kernel),
        ..Seen::default()
    }
}

/// Figures of R4: 4 CPUs each, 24k req/s alone and 12k together with 390 % CPU both times, IPC 0.58 (0.51 to 0.66) and 0.29 (0.27 to 0.31).
fn of_r4() -> [Seen; 2] {
    [(24_000.0, 0.58), (12_000.0, 0.29)].map(|(x, ipc)| Seen {
        n: 1.0,
        x,
        counted: "request",
        accounting: LevelAccounting {
            cpus_entitled: Some(4.0),
            cpus_busy: Some(3.9),
            cpu_s_per_unit: Some(3.9 / x),
            ipc: Some(ipc),
            ..LevelAccounting::default()
        },
        ..Seen::default()
    })
}

fn share(parts: &[Taken], by: TakenBy) -> f64 {
    parts.iter().filter(|part| part.by == by).map(|part| part.share).sum()
}

fn assert_share(parts: &[Taken], by: TakenBy, right: f64) {
    assert!((share(parts, by) - right).abs() < 1e-9, "{by:?}: {parts:#?}");
}

#[test]
fn the_sentence_of_field_report_r4() {
    let [alone, all] = of_r4();
    let parts = taken(&alone, &all, Beside::default());
    assert_share(&parts, TakenBy::Memory, 1.0);
    let line = summary(&alone, &all, &parts);
    assert_eq!(line.value().map(String::as_str), Some("CPU still 390 %, half the work: IPC 0.58 → 0.29"));
}

#[test]
fn an_instance_that_keeps_its_figure_lost_nothing() {
    let alone = seen("request", 1.0, 1e-5, 0.5, &[]);
    assert_eq!(taken(&alone, &alone, Beside::default()), []);
    let more = seen("request", 1.0, 0.98e-5, 0.5, &[]);
    assert_eq!(taken(&alone, &more, Beside::default()), []);
    let line = summary(&alone, &more, &[]);
    assert_eq!(line.value().map(String::as_str), Some("CPU still 100 %, the same work"));
}

/// Two programs on one CPU: each runs for half of the time, and waits for the other half.
#[test]
fn a_cpu_for_two_is_a_matter_of_the_cpu() {
    let alone = seen("run", 1.0, 0.2, 0.02, &[]);
    let both = seen("run", 0.5, 0.2, 0.02, &[("preempted", 0.5)]);
    let parts = taken(&alone, &both, Beside { shares_cpus: true, shares_cores: false });
    assert_share(&parts, TakenBy::Cpu, 1.0);
    let line = summary(&alone, &both, &parts);
    let right = "CPU 100 % → 50 %, half the work: waiting for a CPU that others use";
    assert_eq!(line.value().map(String::as_str), Some(right));
}

/// Copies of a program bound by memory, each on its own CPU: CPUs are as busy as before, and the same work takes half as much again.
#[test]
fn without_a_pmu_own_code_that_slows_down_is_memory() {
    let alone = seen("run", 1.0, 0.2, 0.02, &[]);
    let both = seen("run", 1.0, 0.3, 0.02, &[]);
    let parts = taken(&alone, &both, Beside::default());
    assert_share(&parts, TakenBy::Memory, 1.0);
    assert!(parts[0].evidence.contains("no PMU"), "{parts:#?}");
    let shared = taken(&alone, &both, Beside { shares_cpus: false, shares_cores: true });
    assert!(shared[0].evidence.contains("SMT"), "{shared:#?}");
}

/// Own code grows by 1.2 and the kernel by 2: what both have in common is memory, the rest is the kernel's.
#[test]
fn the_kernel_is_named_for_what_it_grows_beyond_own_code() {
    let alone = seen("request", 1.0, 10e-6, 0.5, &[]);
    let cost = 1.2 * 5e-6 + 2.0 * 5e-6;
    let both = seen("request", 1.0, cost, 10e-6 / cost, &[]);
    let parts = taken(&alone, &both, Beside::default());
    let whole = 1.6_f64.ln();
    assert_share(&parts, TakenBy::Memory, 1.2_f64.ln() / whole);
    assert_share(&parts, TakenBy::NetworkStack, 1.0 - 1.2_f64.ln() / whole);
    // Both by the same factor: slower memory slows the kernel down as well.
    let alike = taken(&alone, &seen("request", 1.0, 15e-6, 0.5, &[]), Beside::default());
    assert_share(&alike, TakenBy::Memory, 1.0);
    // Next to no code of its own: where the time is, is all that is known.
    let kernel =
        taken(&seen("run", 1.0, 1.0, 0.97, &[]), &seen("run", 1.0, 1.5, 0.97, &[]), Beside::default());
    assert_share(&kernel, TakenBy::Kernel, 1.0);
}

/// A server that polls needs more CPU time for a request when its generator gives it less, and a program with a spinning barrier when one of
/// its threads waits for a CPU. Neither is slow memory.
#[test]
fn memory_is_not_named_where_the_program_may_have_spun() {
    let alone = Seen { generator_waits_cpus: Some(0.0), ..seen("request", 1.0, 1e-5, 0.1, &[]) };
    let mut both = seen("request", 1.0, 2e-5, 0.1, &[]);
    (both.generator_waits_cpus, both.accounting.generator_cpus) = (Some(0.3), Some(0.5));
    let parts = taken(&alone, &both, Beside::default());
    assert_share(&parts, TakenBy::NotExplained, 1.0);
    assert!(parts[0].evidence.contains("polls"), "{parts:#?}");
    both.generator_waits_cpus = Some(0.0);
    assert_share(&taken(&alone, &both, Beside::default()), TakenBy::Memory, 1.0);
    both.generator_limits = true;
    assert_share(&taken(&alone, &both, Beside::default()), TakenBy::NotExplained, 1.0);
    // Nor is it where a PMU shows a lower IPC, which `pause` has as well, or where it polls in the kernel.
    let with_ipc = |seen: &Seen, ipc: f64| {
        let mut seen = seen.clone();
        seen.accounting.ipc = Some(ipc);
        seen
    };
    let slower = taken(&with_ipc(&alone, 2.0), &with_ipc(&both, 1.0), Beside::default());
    assert_share(&slower, TakenBy::NotExplained, 1.0);
    let in_kernel = |seen: &Seen| Seen { kernel_share: Some(0.8), ..seen.clone() };
    let polls = taken(&in_kernel(&alone), &in_kernel(&both), Beside::default());
    assert_share(&polls, TakenBy::NotExplained, 1.0);
    let spins = seen("run", 0.9, 0.3, 0.0, &[("preempted", 0.4)]);
    let parts = taken(&seen("run", 1.0, 0.2, 0.0, &[]), &spins, Beside::default());
    assert_share(&parts, TakenBy::Memory, 0.0);
    assert!(share(&parts, TakenBy::NotExplained) > 0.5, "{parts:#?}");
}

#[test]
fn a_small_wait_is_no_reason_for_a_large_loss() {
    let alone = seen("request", 1.0, 1e-5, 0.5, &[]);
    let both = seen("request", 0.5, 1e-5, 0.5, &[("preempted", 0.01), ("no-work", 0.49)]);
    let parts = taken(&alone, &both, Beside::default());
    assert_share(&parts, TakenBy::Cpu, 0.02);
    assert_share(&parts, TakenBy::NotExplained, 0.98);
    assert!(parts[0].evidence.contains("waited for requests"), "{parts:#?}");
    let limited = Seen { generator_limits: true, ..both };
    assert_share(&taken(&alone, &limited, Beside::default()), TakenBy::Generator, 0.98);
}

#[test]
fn each_wait_has_its_name() {
    let alone = seen("request", 1.0, 1e-5, 0.5, &[]);
    for (loss, by) in [
        ("throttled", TakenBy::Quota),
        ("steal", TakenBy::Host),
        ("downstream", TakenBy::Downstream),
        ("lock", TakenBy::Program),
        ("disk", TakenBy::Disk),
        ("placement", TakenBy::Generator),
        ("a loss of a later version", TakenBy::NotExplained),
    ] {
        let parts = taken(&alone, &seen("request", 0.6, 1e-5, 0.5, &[(loss, 0.4)]), Beside::default());
        assert_share(&parts, by, 1.0);
    }
}

#[test]
fn what_was_not_observed_is_not_explained() {
    let unseen = |x: f64| Seen { n: 1.0, x, counted: "request", ..Seen::default() };
    let parts = taken(&unseen(2.0), &unseen(1.0), Beside::default());
    assert_share(&parts, TakenBy::NotExplained, 1.0);
    assert!(summary(&unseen(2.0), &unseen(1.0), &parts).value().is_none());
}

#[test]
fn instances_together_are_their_sum() {
    let mut one = seen("request", 1.0, 1e-5, 0.5, &[("preempted", 0.2)]);
    let mut other = seen("request", 0.5, 2e-5, 0.2, &[("preempted", 0.3), ("lock", 0.1)]);
    (one.accounting.ipc, other.accounting.ipc) = (Some(1.0), Some(0.4));
    let both = together(2.0, &[one, other], 1.0).unwrap();
    assert!((both.x - 125_000.0).abs() < 1e-6 && both.accounting.cpus_busy == Some(1.5));
    // They share one CPU.
    assert_eq!(both.accounting.cpus_entitled, Some(1.0));
    assert!(
        (both.accounting.ipc.unwrap() - 0.8).abs() < 1e-9 && (both.kernel_share.unwrap() - 0.4).abs() < 1e-9
    );
    assert_eq!(both.losses_cpus.get("preempted"), Some(&0.5));
    assert_eq!(both.accounting.clock_hz, None);
    assert!(together(0.0, &[], 1.0).is_none());
}

#[test]
fn fairness_is_one_where_all_keep_the_same() {
    assert_eq!((jain(&[0.5; 4]), jain(&[1.0, 0.0, 0.0, 0.0])), (Some(1.0), Some(0.25)));
    assert_eq!((jain(&[]), jain(&[0.0, 0.0]), jain(&[1.0, -1.0])), (None, None, None));
    let even = fairness(2.0, &[vec![0.7, 0.7], vec![0.5, 0.5]]);
    assert_eq!(even.jain.value().map(|estimate| estimate.value), Some(1.0));
    assert!((even.least_kept.unwrap() - 0.6).abs() < 1e-9);
    let uneven = fairness(2.0, &[vec![0.9, 0.1], vec![0.8, 0.2]]);
    let index = uneven.jain.value().unwrap();
    let right = 0.5 * (1.0 / (2.0 * 0.82) + 1.0 / (2.0 * 0.68));
    assert!((index.value - right).abs() < 1e-9, "{index:?}");
    let [low, high] = index.ci95.unwrap();
    assert!(low >= 0.5 && high <= 1.0 && (uneven.most_kept.unwrap() - 0.85).abs() < 1e-9);
    assert!(fairness(2.0, &[]).jain.value().is_none());
}

proptest! {
    #[test]
    fn shares_sum_to_one(
        busy in (0.01..4.0f64, 0.01..4.0f64), costs in (1e-6..1.0f64, 1e-6..1.0f64), kernels in prop::option::of((0.0..1.0f64, 0.0..1.0f64)),
        ipcs in prop::option::of((0.1..3.0f64, 0.1..3.0f64)), clocks in prop::option::of((1e9..4e9f64, 1e9..4e9f64)),
        losses in prop::collection::vec(0.0..1.0f64, 5), limited in any::<bool>(),
    ) {
        let names = ["no-work", "lock", "throttled", "preempted", "placement"];
        let losses: Vec<(&str, f64)> = names.into_iter().zip(losses).collect();
        let mut alone = seen("request", busy.0, costs.0, 0.0, &[]);
        let mut both = seen("request", busy.1, costs.1, 0.0, &losses);
        (alone.kernel_share, both.kernel_share) = kernels.unzip();
        (alone.accounting.ipc, both.accounting.ipc) = ipcs.unzip();
        (alone.accounting.clock_hz, both.accounting.clock_hz) = clocks.unzip();
        both.generator_limits = limited;
        let parts = taken(&alone, &both, Beside::default());
        let sum: f64 = parts.iter().map(|part| part.share).sum();
        prop_assert!(parts.is_empty() || (sum - 1.0).abs() < 1e-6, "{parts:#?}");
        prop_assert!(parts.iter().all(|part| part.share.is_finite()));
    }
}
