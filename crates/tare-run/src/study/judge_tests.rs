use super::super::expect::parse;
use super::*;
use std::collections::BTreeMap;
use tare_model::machine::{MachineFacts, Regime};
use tare_model::observation::Role;
use tare_model::outcome::{
    Answers, Conditions, Estimate, Figures, Gross, GrossIs, LatencySummary, NetOrMissing, OverTime,
    RoleAccounting, SCHEMA, ServingAccounting, ThreadRow, TimeAccounting, WaitSplit,
};
use tare_model::{Missing, Reading};

/// Each by itself.
const BLOCKS: Intervals = Intervals::Once { square: 1 };

/// A result of so many requests a second, with this 99th percentile and this many voluntary switches a second.
fn outcome(rate_hz: f64, p99_ns: f64, voluntary_hz: f64) -> Outcome {
    let regime = || Regime {
        irq_time_accounting: Reading::missing("not read"),
        paravirt_time_accounting: Reading::missing("not read"),
        cpu_accounting: Reading::missing("not read"),
        cgroup: Reading::missing("not read"),
    };
    let thread = |run: f64, voluntary_hz: f64| ThreadRow {
        lived: 1.0,
        role: Role::Sut,
        pid: 1,
        tid: 1,
        name: "server".to_owned(),
        user: run,
        system: 0.0,
        run,
        wait: 0.0,
        voluntary_hz,
        involuntary_hz: 0.0,
        cpus: vec![0],
    };
    let sut = RoleAccounting {
        wall_s: 2.0,
        run_s: 0.9,
        wait_s: WaitSplit::default(),
        blocked_s: BTreeMap::new(),
        idle_threads: 0,
        serving: ServingAccounting::default(),
        busy_cpus: 0.9,
        sut_wakeups_hz: None,
        entitled_cpus: 1.0,
        losses_cpus: BTreeMap::new(),
        execution: None,
    };
    Outcome {
        verdict: tare_model::outcome::Verdict {
            valid: true,
            warnings: Vec::new(),
            bottleneck: Cause::ServerCpuBound,
            bottleneck_confidence: None,
            findings: Vec::new(),
            confirmation: None,
        },
        figures: Figures {
            gross: Gross::Measured(Estimate { value: rate_hz, unit: "req/s".to_owned(), ci95: None }),
            gross_is: GrossIs::Capacity,
            stopping: None,
            net: NetOrMissing::Missing(Missing::new("no levels")),
            tare: Vec::new(),
            ceiling: tare_model::Reading::default(),
            metrics: Vec::new(),
        },
        answers: Answers {
            latency_ns: Some(LatencySummary { p99: Some(p99_ns), ..LatencySummary::default() }),
            ..Answers::default()
        },
        over_time: OverTime { spikes: Reading::missing("none"), timeline: None },
        conditions: Conditions {
            tried_layouts: Vec::new(),
            own_cost: None,
            machine: MachineFacts {
                kernel: String::new(),
                cpu_model: Reading::missing("not read"),
                cpus: Vec::new(),
                memory_bytes: Reading::missing("not read"),
                tick_hz: Reading::missing("not read"),
                base_slice_ns: Reading::missing("not read"),
                regime: regime(),
                virtualization: Reading::missing("not read"),
                clocksource: Reading::missing("not read"),
                governor: Reading::missing("not read"),
                pmu: Reading::missing("not read"),
                boot_id: Reading::missing("not read"),
            },
        },
        schema: SCHEMA,
        workload: "http".to_owned(),
        accounting: TimeAccounting {
            residual_ratio: None,
            residuals: BTreeMap::new(),
            regime: regime(),
            sut: Some(sut),
            load: None,
            tare: None,
            // The main thread waits, and is not one that serves.
            threads: vec![thread(0.9, voluntary_hz), thread(0.0, 1000.0)],
            cpus: Vec::new(),
            switches: None,
            downstream: Vec::new(),
        },
        trials: Vec::new(),
    }
}

fn results(rates_hz: [f64; 4], p99_ns: f64, voluntary_hz: f64) -> Vec<Outcome> {
    rates_hz.into_iter().map(|rate| outcome(rate, p99_ns * (1.0 + rate / 1e9), voluntary_hz)).collect()
}

#[test]
fn what_came_out_is_held_to_what_was_expected() {
    let before = results([100e3, 70e3, 101e3, 99e3], 1e6, 900.0);
    // Slower by 10 %, in the same interference; it never sleeps.
    let after = results([90e3, 63.2e3, 91e3, 89e3], 2e6, 0.0);
    let verdict = |text: &str| judge(&parse(text).unwrap()[0], &before, &after, &BLOCKS).verdict;
    use Verdict::{CouldNotTell, DidNotHold, Held};
    for (text, expected) in [
        ("throughput down", Held),
        ("throughput down by 5%", Held),
        ("throughput down by 10%", CouldNotTell),
        ("throughput down by 20%", DidNotHold),
        ("throughput up", DidNotHold),
        ("throughput same", DidNotHold),
        ("throughput same within 20%", Held),
        ("throughput > 20k", Held),
        ("throughput > 85k", CouldNotTell),
        ("throughput > 300k", DidNotHold),
        ("p99 up", Held),
        ("p99 = 2.1ms", Held),
        ("p99 < 1ms", DidNotHold),
        ("sut.voluntary_switches = 0", Held),
        ("sut.voluntary_switches down", Held),
        ("sut.voluntary_switches = 900", DidNotHold),
        ("sut.busy = 90%", Held),
        ("net up", CouldNotTell),
        ("load.busy = 1", CouldNotTell),
        ("bottleneck = server-cpu-bound", Held),
        ("bottleneck = load-generator-bound", DidNotHold),
    ] {
        assert_eq!(verdict(text), expected, "{text}");
    }
}

#[test]
fn nothing_beside_nothing_is_the_same() {
    let (none, few) = (results([1e5; 4], 1e6, 0.0), results([1e5; 4], 1e6, 0.2));
    let verdict = |text: &str| judge(&parse(text).unwrap()[0], &none, &few, &BLOCKS).verdict;
    assert_eq!(verdict("sut.voluntary_switches same"), Verdict::Held);
    assert_eq!(verdict("sut.voluntary_switches up"), Verdict::DidNotHold);
}

#[test]
fn what_is_not_valid_counts_for_nothing() {
    let before = results([1e5; 4], 1e6, 0.0);
    let mut after = results([9e4, 9.1e4, 9e4, 5e6], 1e6, 0.0);
    after[3].verdict.valid = false;
    let down = &parse("throughput down").unwrap()[0];
    assert_eq!(judge(down, &before, &after, &BLOCKS).verdict, Verdict::Held);
    after.iter_mut().for_each(|outcome| outcome.verdict.valid = false);
    let judged = judge(down, &before, &after, &BLOCKS);
    assert_eq!(judged.verdict, Verdict::CouldNotTell);
    assert_eq!(judged.seen, Seen::Nothing("0 valid blocks, two are needed".to_owned()));
    assert_eq!(judge(down, &before[..1], &after[..1], &BLOCKS).verdict, Verdict::CouldNotTell);
    assert_eq!(
        judge(&parse("bottleneck = unknown").unwrap()[0], &[], &[], &BLOCKS).verdict,
        Verdict::CouldNotTell
    );
}

/// An interval that holds for every analysis is wider, and most of all while there are few of the planned blocks.
#[test]
fn what_is_analysed_after_each_block_is_known_later() {
    // Spread out evenly, in an order that goes with nothing.
    let noise = |block: u32, step: f64| (f64::from(block) * step).fract() - 0.5;
    let rates = |rate_hz: f64, step: f64| {
        (0..24)
            .map(|block| outcome(rate_hz * (1.0 + 0.04 * noise(block, step)), 1e6, 0.0))
            .collect::<Vec<_>>()
    };
    let (before, after) = (rates(100e3, 0.618), rates(98e3, 0.414));
    let down = &parse("throughput down").unwrap()[0];
    let width = |blocks: usize, intervals: &Intervals| match judge(
        down,
        &before[..blocks],
        &after[..blocks],
        intervals,
    )
    .seen
    {
        Seen::Ratio { ci95: [lo, hi], .. } => Some(hi - lo),
        _ => None,
    };
    let each = Intervals::after_each(24).unwrap();
    assert_eq!(width(7, &each), None, "too few to analyse");
    let [early, half, all] =
        [8, 12, 24].map(|blocks| width(blocks, &each).unwrap() / width(blocks, &BLOCKS).unwrap());
    assert!(early > half && early > all && half > 1.0 && all > 1.0, "{early} {half} {all}");
    assert!(Intervals::after_each(7).is_none());
}

/// Each figure that is reported for every cell is one that a result has, or says why not.
#[test]
fn every_change_against_the_baseline_is_reported() {
    let (before, after) = (
        [outcome(1000.0, 1e6, 1.0), outcome(1010.0, 1e6, 1.0)],
        [outcome(500.0, 2e6, 1.0), outcome(505.0, 2e6, 1.0)],
    );
    let changes = changes(&before, &after, &BLOCKS);
    assert_eq!(changes.len(), tare_model::figure::Figure::of_servers().count());
    let Seen::Ratio { value, .. } = changes["throughput"] else { panic!("{changes:#?}") };
    assert!((value - 0.5).abs() < 1e-9, "{value}");
    assert!(
        matches!(&changes["cpu_per_request"], Seen::Nothing(why) if why.contains("cpu_per_request")),
        "{changes:#?}"
    );
}
