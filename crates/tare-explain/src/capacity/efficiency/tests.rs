//! Levels whose truth is known by construction.

use super::{Seen, lost};
use proptest::prelude::*;
use tare_model::scaling::{LevelAccounting, LostPart};

/// A level with n units that each need `cost_s` of CPU time, on `busy` of `entitled` CPUs.
fn level(n: f64, busy: f64, entitled: f64, cost_s: f64, losses: &[(&str, f64)]) -> Seen {
    Seen {
        n,
        x: busy / cost_s,
        counted: "run",
        accounting: LevelAccounting {
            cpus_entitled: Some(entitled),
            cpus_busy: Some(busy),
            cpu_s_per_unit: Some(cost_s),
            ..LevelAccounting::default()
        },
        losses_cpus: losses.iter().map(|(loss, cpus)| ((*loss).to_owned(), *cpus)).collect(),
        cpus_there: Some(2.0),
        ..Seen::default()
    }
}

fn share(parts: &[LostPart], name: &str) -> f64 {
    parts.iter().filter(|part| part.part.contains(name)).map(|part| part.share).sum()
}

fn assert_share(parts: &[LostPart], name: &str, right: f64) {
    assert!((share(parts, name) - right).abs() < 1e-9, "{name}: {parts:#?}");
}

#[test]
fn nothing_is_lost_where_all_grows_alike() {
    let lowest = level(1.0, 1.0, 1.0, 0.1, &[]);
    assert_eq!(lost(&lowest, &lowest), []);
    assert_eq!(lost(&lowest, &level(2.0, 2.0, 2.0, 0.1, &[])), []);
    // More than in proportion.
    assert_eq!(lost(&lowest, &level(2.0, 2.0, 2.0, 0.08, &[])), []);
}

#[test]
fn four_threads_on_two_cpus_lack_cpus() {
    let parts = lost(&level(1.0, 1.0, 1.0, 0.1, &[]), &level(4.0, 2.0, 2.0, 0.1, &[]));
    assert_share(&parts, "no more CPUs to use", 1.0);
}

/// ln(4/2) for the CPUs, ln(2/1.5) for the quota.
#[test]
fn a_quota_is_another_part_than_the_number_of_cpus() {
    let parts = lost(&level(1.0, 1.0, 1.0, 0.1, &[]), &level(4.0, 1.5, 2.0, 0.1, &[("throttled", 0.5)]));
    let all = (4.0_f64 / 1.5).ln();
    assert_share(&parts, "no more CPUs to use", 2.0_f64.ln() / all);
    assert_share(&parts, "quota", (2.0_f64 / 1.5).ln() / all);
}

/// Each unit sleeps for 0.7 in a timer at every level; what grows is the wait for the lock.
#[test]
fn sleep_that_each_unit_needs_is_no_loss_and_a_lock_is() {
    let lowest = level(1.0, 0.3, 1.0, 0.03, &[("timer", 0.7)]);
    let rate = 10.0 * 8.0 / (1.0 + 0.3 * 7.0);
    let busy = rate * 0.03;
    let of_sleep = 2.0 - busy;
    let there = level(8.0, busy, 2.0, 0.03, &[("timer", 0.25 * of_sleep), ("lock", 0.75 * of_sleep)]);
    let parts = lost(&lowest, &there);
    assert!(share(&parts, "locks") > 0.8, "{parts:#?}");
    assert_share(&parts, "timer", 0.0);
}

/// A program that hardly uses CPU time: a unit that needs less of it does not make up for the lock, one that needs more has its part.
#[test]
fn where_cpus_are_to_spare_time_is_what_counts() {
    let lowest = level(1.0, 0.01, 2.0, 1e-4, &[("timer", 0.99)]);
    let less = level(4.0, 0.02, 2.0, 0.8e-4, &[("lock", 0.3), ("timer", 0.7), ("preempted", 0.1)]);
    let parts = lost(&lowest, &less);
    assert_share(&parts, "locks", 0.75);
    assert_share(&parts, "others use", 0.25);
    let costly = level(4.0, 0.3, 2.0, 2e-3, &[("lock", 0.095), ("timer", 0.7)]);
    let parts = lost(&lowest, &costly);
    assert_share(&parts, "locks", 0.25);
    assert_share(&parts, "CPU time of a run", 0.75);
}

/// Flat from the lowest level on: nobody is to blame but that there is no more.
#[test]
fn a_server_that_is_full_at_the_lowest_level_lacks_what_it_may_use() {
    let mut lowest = level(8.0, 0.99, 1.0, 1e-5, &[("no-work", 0.01)]);
    let mut highest = level(64.0, 1.0, 1.0, 1e-5, &[]);
    let parts = lost(&lowest, &highest);
    assert!(share(&parts, "too few threads at work") > 0.99, "{parts:#?}");
    lowest.cpus_there = Some(1.0);
    highest.cpus_there = Some(1.0);
    assert!(share(&lost(&lowest, &highest), "no more CPUs to use") > 0.99);
}

/// A quota of 150 % on two CPUs is no lack of threads, whether it is seen to stop the program or not.
#[test]
fn a_quota_is_not_called_too_few_threads() {
    let lowest = level(1.0, 1.0, 1.0, 0.1, &[]);
    let mut four = level(4.0, 1.5, 1.5, 0.1, &[]);
    let name = |four: &Seen| lost(&lowest, four)[0].part.clone();
    assert_eq!(name(&four), "a CPU quota, or too few threads at work");
    four.accounting.cpus_throttled = Some(0.4);
    assert_eq!(name(&four), "held back by a CPU quota");
    // Even of a whole CPU.
    let mut one = level(4.0, 1.0, 1.0, 0.1, &[]);
    assert_eq!(name(&one), "too few threads at work");
    one.accounting.cpus_throttled = Some(0.4);
    assert_eq!(name(&one), "held back by a CPU quota");
}

#[test]
fn idle_cpus_are_the_generators_only_where_it_is_the_bottleneck() {
    let lowest = level(1.0, 0.5, 2.0, 1e-5, &[("no-work", 1.5)]);
    let mut there = Seen { counted: "request", ..level(8.0, 1.0, 2.0, 1e-5, &[("no-work", 1.0)]) };
    let name = |there: &Seen| lost(&lowest, there)[1].part.clone();
    assert_eq!(name(&there), "nothing to do");
    there.generator_limits = true;
    assert_eq!(name(&there), "the load generator gave no more");
}

#[test]
fn memory_is_named_only_as_far_as_it_is_measured() {
    let mut lowest = level(1.0, 1.0, 1.0, 0.2, &[]);
    let mut both = level(2.0, 2.0, 2.0, 0.3, &[]);
    for seen in [&mut lowest, &mut both] {
        seen.accounting.clock_hz = Some(3e9);
    }
    // A server: nothing is known but the time.
    assert_share(&lost(&lowest, &both), "CPU time of a run", 1.0);
    for seen in [&mut lowest, &mut both] {
        seen.kernel_share = Some(0.01);
    }
    let parts = lost(&lowest, &both);
    assert_share(&parts, "memory and caches", 1.0);
    assert!(parts[0].evidence.contains("no PMU"), "{parts:#?}");
    both.kernel_share = Some(0.3);
    assert_share(&lost(&lowest, &both), "in the kernel", 1.0);
    // With a PMU: half as many instructions in a cycle, and a quarter fewer of them.
    lowest.accounting.ipc = Some(2.0);
    both.accounting.ipc = Some(1.0);
    let parts = lost(&lowest, &both);
    assert_share(&parts, "IPC", 2.0_f64.ln() / 1.5_f64.ln());
    assert_share(&parts, "more instructions", 0.75_f64.ln() / 1.5_f64.ln());
    // Half of the growth is a slower clock.
    (lowest.accounting.ipc, both.accounting.ipc) = (None, None);
    both.accounting.clock_hz = Some(3e9 / 1.5_f64.sqrt());
    assert_share(&lost(&lowest, &both), "the clock", 0.5);
}

#[test]
fn what_was_not_observed_is_not_known() {
    let unseen = |n: f64| Seen { n, x: 100.0, counted: "request", ..Seen::default() };
    let parts = lost(&unseen(1.0), &unseen(4.0));
    assert_eq!((parts.len(), parts[0].part.as_str(), parts[0].share), (1, "not known", 1.0));
}

proptest! {
    #[test]
    fn shares_sum_to_one(
        n in 1.0..100.0f64, busy_1 in 0.01..2.0f64, busy in 0.01..2.0f64, costs in (0.01..1.0f64, 0.01..1.0f64),
        losses in prop::collection::vec(0.0..1.0f64, 4), clocks in prop::option::of((1e9..4e9f64, 1e9..4e9f64)),
    ) {
        let names = ["no-work", "lock", "throttled", "timer"];
        let losses: Vec<(&str, f64)> = names.into_iter().zip(losses).collect();
        let mut lowest = level(1.0, busy_1, 2.0, costs.0, &losses);
        let mut there = level(n, busy, 2.0, costs.1, &losses);
        lowest.accounting.clock_hz = clocks.map(|(clock, _)| clock);
        there.accounting.clock_hz = clocks.map(|(_, clock)| clock);
        let parts = lost(&lowest, &there);
        let sum: f64 = parts.iter().map(|part| part.share).sum();
        prop_assert!(parts.is_empty() || (sum - 1.0).abs() < 1e-6, "{parts:#?}");
    }
}

/// Two workers in a container that a quota stopped for a moment: six CPUs are missing since nobody runs on them.
#[test]
fn a_short_stop_is_not_why_workers_are_few() {
    let lowest = level(1.0, 1.0, 1.0, 0.1, &[]);
    let stopped = |cpus: f64| {
        let mut few = level(8.0, 2.0, 2.0, 0.1, &[("throttled", cpus)]);
        (few.cpus_there, few.accounting.cpus_throttled) = (Some(8.0), Some(cpus));
        lost(&lowest, &few)
    };
    assert_share(&stopped(0.03), "too few threads at work", 1.0);
    assert_share(&stopped(4.0), "held back by a CPU quota", 1.0);
}
