//! Gross to net: what is known of net's truth comes out of records made to it, and what cannot be known is missing or
//! wide.

use crate::support::*;
use proptest::prelude::*;
use tare_explain::explain;
use tare_model::observation::Role;
use tare_model::outcome::{Cause, Net, NetOrMissing, Outcome, TareCause};

/// A server that costs `cost_us` a request at full load, busy for `run` of its CPU.
fn busy(run: f64, cost_us: f64) -> Scene {
    Scene {
        threads: vec![server(run, 0.0), generator(0.6, 0.0)],
        rate_hz: run / cost_us * 1e6,
        ..Scene::default()
    }
}

/// The same with so many sleeps a request of the server and of the generator.
fn waking(run: f64, cost_us: f64, own: f64, peers: f64) -> Scene {
    let mut scene = busy(run, cost_us);
    scene.threads[0].voluntary_hz = own * scene.rate_hz;
    scene.threads[1].voluntary_hz = peers * scene.rate_hz;
    scene
}

fn net(outcome: &Outcome) -> &Net {
    match &outcome.figures.net {
        NetOrMissing::Net(net) => net,
        NetOrMissing::Missing(missing) => panic!("{missing}"),
    }
}

fn part(outcome: &Outcome, cause: TareCause) -> f64 {
    outcome.figures.tare.iter().find(|part| part.cause == cause).map_or(0.0, |part| part.ln_share)
}

fn parts_are_the_whole(outcome: &Outcome) {
    if let (NetOrMissing::Net(net), Some(gross)) = (&outcome.figures.net, outcome.figures.gross.value()) {
        let parts: f64 = outcome.figures.tare.iter().map(|part| part.ln_share).sum();
        assert!(
            (parts - (net.value / gross).ln()).abs() < 1e-9,
            "{:?} {:?}",
            outcome.figures.tare,
            outcome.figures.net
        );
    }
}

/// Interference by block: everything costs so many times as much, and the SUT a thousandth more or less than that.
fn interfered(factors: &[f64], asked: impl Fn(f64) -> Scene, saturating_us: f64) -> Outcome {
    let blocks: Vec<[Scene; 3]> = factors
        .iter()
        .zip([1.001, 0.999].into_iter().cycle())
        .map(|(factor, own)| {
            [asked(*factor), busy(0.98, saturating_us * factor * own), busy(0.98, 4.0 * factor)]
        })
        .collect();
    explain(&in_blocks(8, &blocks))
}

#[test]
fn interference_that_hits_all_levels_of_a_block_is_in_no_ratio_and_is_taken_out() {
    let outcome =
        interfered(&[1.0, 1.0, 1.0, 1.3, 1.3, 1.3, 1.0, 1.0, 1.0], |factor| busy(0.6, 6.0 * factor), 5.0);
    parts_are_the_whole(&outcome);
    let net = net(&outcome);
    let against = net.against_reference.as_ref().expect("the reference was measured");
    // 5 µs against 4 µs in every block.
    assert!((against.ratio - 0.8).abs() < 1e-3, "{against:?}");
    let [low, high] = against.ci95.expect("nine blocks");
    assert!(high - low < 0.002, "{against:?}");
    assert!((4.2e3..4.5e3).contains(&against.cpu_ns_per_request), "{against:?}");
    // With the interference in it, 5.5 µs with an interval of a tenth; the middle of the blocks has none.
    assert!(against.interference_corrected);
    assert!((net.value / 2e5 - 1.0).abs() < 0.015, "{net:?}");
    let [low, high] = net.ci95.expect("nine blocks");
    assert!(low < 2e5 && high > 2e5 && high / low < 1.06, "{net:?}");
}

#[test]
fn a_reference_in_windows_of_its_own_shows_no_interference_of_the_suts() {
    let blocks: Vec<[Scene; 3]> = [1.0, 1.4, 0.9, 1.2, 1.1]
        .into_iter()
        .map(|factor| [busy(0.6, 6.0), busy(0.98, 5.0), busy(0.98, 4.0 * factor)])
        .collect();
    let outcome = explain(&one_after_the_other(8, &blocks));
    let net = net(&outcome);
    assert!(!net.against_reference.as_ref().expect("measured").interference_corrected);
    assert!((net.value / 2e5 - 1.0).abs() < 1e-3, "{net:?}");
}

/// With twice as many asked trials as others, a block has two of them.
#[test]
fn blocks_are_left_out_whole() {
    // In the middle of the interference, or not: the cost part hears of the asked trials, and of the others.
    let scenes = |(asked, saturating): (f64, f64)| {
        [busy(0.6, 6.0 * asked), busy(0.98, 5.0 * saturating), busy(0.98, 4.0)]
    };
    let blocks: Vec<[Scene; 3]> =
        [(1.0, 1.03), (1.05, 0.99), (0.97, 1.0), (1.01, 1.02), (0.99, 0.98)].map(scenes).to_vec();
    let even = explain(&in_blocks(8, &blocks));
    let mut record = in_blocks(8, &blocks);
    let twice: Vec<_> = record.trials.iter().filter(|trial| trial.level == 0).cloned().collect();
    record.trials.extend(twice);
    record.trials.sort_by_key(|trial| (trial.observation.begin_ns, trial.level));
    let doubled = explain(&record);
    let cost = |outcome: &Outcome| {
        let part =
            outcome.figures.tare.iter().find(|part| part.cause == TareCause::Cost).expect("a cost part");
        let [low, high] = part.ci95.expect("five blocks");
        (part.ln_share, high - low)
    };
    let ((ln, width), (doubled_ln, doubled_width)) = (cost(&even), cost(&doubled));
    assert!(width > 0.02, "{width}");
    assert!(
        (ln - doubled_ln).abs() < 1e-9 && (width / doubled_width - 1.0).abs() < 1e-6,
        "{width} {doubled_width}"
    );
}

/// Of ten blocks that were planned and broken off after four, four are left out in turn.
#[test]
fn a_session_that_was_broken_off_has_the_blocks_it_had() {
    let scenes = |factor: f64| [busy(0.6, 6.0 * factor), busy(0.98, 5.0), busy(0.98, 4.0)];
    let whole = in_blocks(8, &[1.0, 1.02, 0.97, 1.01].map(scenes));
    let planned = |trials| {
        let mut record = whole.clone();
        if let tare_model::plan::Workload::Http(http) = &mut record.plan.workload {
            http.levels.iter_mut().for_each(|level| level.trials = trials);
        }
        // The last block has no trial interleaved.
        record.trials.retain(|trial| trial.level == 0 || trial.seq < 9);
        explain(&record)
    };
    let (ten, four) = (planned(10), planned(4));
    assert_eq!(ten.figures.tare, four.figures.tare);
    assert!(ten.figures.tare.iter().all(|part| part.ci95.is_some()), "{:?}", ten.figures.tare);
}

/// A server that answers on in the other's turns is not alone in its own.
#[test]
fn a_server_that_does_not_keep_to_its_turns_is_not_compared() {
    let always = |[asked, saturating, reference]: [Scene; 3]| {
        let mut twice = saturating.clone();
        twice.rate_hz *= 2.0;
        twice.threads.iter_mut().for_each(|thread| thread.run *= 2.0);
        [asked, twice, reference]
    };
    let outcome = explain(&in_blocks(8, &[always([busy(0.6, 6.0), busy(0.9, 5.0), busy(0.1, 4.0)])]));
    assert!(net(&outcome).against_reference.is_none(), "{:?}", outcome.figures.net);
}

#[test]
fn without_a_reference_there_is_no_ratio() {
    let outcome = explain(&with_saturating(8, &busy(0.6, 6.0), &busy(0.98, 5.0)));
    assert!(net(&outcome).against_reference.is_none());
    parts_are_the_whole(&outcome);
}

/// Three short trials that differ by a tenth, and three that agree: both have a net.
#[test]
fn few_trials_that_differ_have_a_net_of_their_session() {
    let run = |costs_us: [f64; 3]| {
        let blocks = costs_us.map(|cost_us| [busy(0.98, cost_us), busy(0.98, cost_us), busy(0.98, 4.0)]);
        explain(&one_after_the_other(8, &blocks))
    };
    let warned = |outcome: &Outcome| {
        outcome.verdict.warnings.iter().any(|warning| warning.id == "net-of-this-session")
    };
    let (apart, alike) = (run([5.0, 5.8, 4.4]), run([5.0, 5.02, 4.98]));
    let [low, high] = net(&apart).ci95.expect("three trials");
    assert!(high > 10.0 * low && warned(&apart), "{:?}", net(&apart));
    assert!((net(&apart).value * 5e-6 - 1.0).abs() < 0.05, "{:?}", net(&apart));
    assert!(!warned(&alike), "{:?}", net(&alike));
}

#[test]
fn one_block_gives_a_ratio_without_an_interval() {
    let outcome = explain(&in_blocks(8, &[[busy(0.6, 6.0), busy(0.98, 5.0), busy(0.98, 4.0)]]));
    let net = net(&outcome);
    let against = net.against_reference.as_ref().expect("measured");
    assert!((against.ratio - 0.8).abs() < 1e-6 && against.ci95.is_none() && !against.interference_corrected);
}

/// 4.3 µs and 20 µs a wake-up of its own, 3 µs for one of the generator: no level fills the server, the fit tells.
#[test]
fn the_fit_carries_wake_ups_of_both_sides() {
    let cost = |own: f64, load: f64| 4.3 + 20.0 * own + 3.0 * load;
    let scene = |own: f64, load: f64, run: f64| waking(run, cost(own, load), own, load);
    let outcome = explain(&with_saturating(4, &scene(0.3, 0.5, 0.5), &scene(0.06, 0.2, 0.85)));
    parts_are_the_whole(&outcome);
    let net = net(&outcome);
    assert!((net.value * 4.3e-6 - 1.0).abs() < 0.08, "{net:?}");
    let [low, high] = net.ci95.expect("three trials");
    assert!(low * 4.3e-6 < 1.0 && high * 4.3e-6 > 1.0 && high / low > 1.1, "wide: {net:?}");
    assert!(outcome.verdict.warnings.iter().any(|warning| warning.id == "cost-not-saturated"));
}

/// A full server that wakes eight generator threads is not at its cost of saturation.
#[test]
fn a_full_server_that_wakes_the_generator_has_a_cost_part() {
    let oversubscribed = waking(0.97, 8.6, 0.06, 1.04);
    let outcome = explain(&with_saturating(64, &oversubscribed, &waking(0.98, 5.4, 0.001, 0.01)));
    parts_are_the_whole(&outcome);
    assert!((net(&outcome).value * 5.4e-6 - 1.0).abs() < 0.01);
    assert!((part(&outcome, TareCause::Cost) - (8.6f64 / 5.4).ln()).abs() < 0.01);
    assert!(outcome.verdict.findings.iter().any(|finding| finding.cause == Cause::CrossCpuWakeups));
    // Alone it cannot be known how much of it wake-ups are.
    let alone = explain(&asked(&oversubscribed));
    let [low, high] = net(&alone).ci95.expect("three trials");
    assert!(high / low > 1.4, "{:?}", alone.figures.net);
}

/// A Go server is full, hands work from thread to thread, and answers so slowly that the generator sleeps after each answer. What a
/// request costs, 115 to 125 µs, differs by the host: no wake-up costs tens of microseconds.
#[test]
fn a_full_server_with_dear_requests_is_at_its_cost_of_saturation() {
    let full = |cost_us: f64| Scene { sut_idle_exits_hz: Some(100.0), ..waking(0.98, cost_us, 0.55, 1.0) };
    for (asked_us, saturating_us) in [(121.0, 115.0), (118.0, 125.0)] {
        let outcome = explain(&with_saturating(16, &full(asked_us), &full(saturating_us)));
        parts_are_the_whole(&outcome);
        let net = net(&outcome);
        assert!((net.value * saturating_us * 1e-6 - 1.0).abs() < 0.01, "{net:?}");
        let [low, high] = net.ci95.expect("three trials");
        assert!(high / low < 1.1, "{net:?}");
        let warned = outcome.verdict.warnings.iter().any(|warning| warning.id == "cost-not-saturated");
        assert!(!warned, "{:#?}", outcome.verdict.warnings);
    }
}

/// An event loop sleeps for a moment after every third request. Its CPU is as busy, and each of these sleeps is one that it is woken from.
#[test]
fn a_busy_loop_that_sleeps_often_is_not_at_its_cost_of_saturation() {
    let sleepy = || waking(0.98, 10.0, 0.3, 0.01);
    for exits_hz in [None, Some(0.3 * sleepy().rate_hz)] {
        let outcome = explain(&asked(&Scene { sut_idle_exits_hz: exits_hz, ..sleepy() }));
        let [low, high] = net(&outcome).ci95.expect("three trials");
        assert!(high / low > 1.4, "{:?}", outcome.figures.net);
        assert!(outcome.verdict.warnings.iter().any(|warning| warning.id == "cost-not-saturated"));
    }
}

/// A request seems to cost more than with more connections, by what the trials differ.
#[test]
fn what_the_trials_differ_by_is_no_cost_of_wake_ups() {
    let block = |asked_us: f64, saturating_us: f64| {
        [
            waking(0.98, asked_us, 0.001, 1.0),
            waking(0.98, saturating_us, 0.001, 1.0),
            waking(0.98, 4.0, 0.001, 0.01),
        ]
    };
    let found = |blocks: &[[Scene; 3]]| {
        let outcome = explain(&in_blocks(16, blocks));
        assert!(part(&outcome, TareCause::Cost) > 0.05, "{:?}", outcome.figures.tare);
        outcome.verdict.findings.iter().any(|finding| finding.cause == Cause::CrossCpuWakeups)
    };
    assert!(!found(&[block(260.0, 180.0), block(200.0, 230.0), block(230.0, 190.0), block(190.0, 210.0)]));
    assert!(found(&[block(53.0, 47.0), block(53.1, 47.1), block(53.2, 46.9), block(52.9, 47.0)]));
    // 30 us are more than one wake-up takes.
    assert!(!found(&[block(230.0, 200.0), block(231.0, 201.0), block(232.0, 199.0), block(229.0, 200.0)]));
}

#[test]
fn far_from_saturation_net_is_missing() {
    let outcome = explain(&asked_at(1, &waking(0.2, 28.0, 1.0, 1.0)));
    assert!(matches!(outcome.figures.net, NetOrMissing::Missing(_)), "{:?}", outcome.figures.net);
    assert!(outcome.figures.tare.is_empty());
}

/// A lock that two threads on two CPUs wait for half of the time each.
#[test]
fn a_lock_of_the_programs_own_caps_net() {
    let thread = |tid, cpu| tare_like(tid, cpu, [0.0, 1.0, 0.0, 0.0]);
    let scene =
        Scene { threads: vec![thread(4712, 0), thread(4713, 1)], rate_hz: 20_000.0, ..Scene::default() };
    for outcome in alone_and_interleaved(&scene) {
        parts_are_the_whole(&outcome);
        // Half of the time one waits while the other has it: the lock is nearly always taken.
        let net = net(&outcome);
        assert!(
            (15_000.0..22_000.0).contains(&net.value),
            "{net:?}, not the 40,000 that the CPUs have room for"
        );
    }
}

/// Threads that sleep for the program's own reasons more than half of the time: four on two CPUs do four at once.
#[test]
fn threads_that_wait_for_a_disk_are_a_stage_of_the_program() {
    let threads = (0..4).map(|index| crate::support::Thread {
        run: 0.1,
        ..tare_like(4712 + index, index % 2, [0.0, 0.0, 1.0, 0.0])
    });
    let scene = Scene { threads: threads.collect(), rate_hz: 4_000.0, ..Scene::default() };
    let outcome = explain(&asked(&scene));
    parts_are_the_whole(&outcome);
    // Each of the four is on a disk whenever it does not run.
    assert!((net(&outcome).value / 4_000.0 - 1.0).abs() < 0.01, "{:?}", outcome.figures.net);
}

/// One of three threads is full, and the others have time left.
#[test]
fn a_single_acceptor_caps_net() {
    let threads = [(0.98, 0), (0.3, 1), (0.3, 1)]
        .into_iter()
        .zip(4712..)
        .map(|((run, cpu), tid)| crate::support::Thread { run, ..tare_like(tid, cpu, [1.0, 0.0, 0.0, 0.0]) });
    let scene = Scene { threads: threads.collect(), rate_hz: 50_000.0, ..Scene::default() };
    for outcome in alone_and_interleaved(&scene) {
        parts_are_the_whole(&outcome);
        assert!((net(&outcome).value / (50_000.0 / 0.98) - 1.0).abs() < 0.02, "{:?}", outcome.figures.net);
    }
}

/// The same as the asked load, and as the saturating one interleaved with the reference.
fn alone_and_interleaved(scene: &Scene) -> [Outcome; 2] {
    [asked(scene), in_blocks(8, &[[scene.clone(), scene.clone(), busy(0.98, 4.0)]])]
        .map(|record| explain(&record))
}

fn tare_like(tid: u32, cpu: u32, samples: [f64; 4]) -> crate::support::Thread {
    crate::support::Thread {
        samples: Some(samples),
        ..crate::support::Thread::new(Role::Sut, "worker", tid, cpu, 0.5, 0.0)
    }
}

proptest! {
    #[test]
    fn parts_sum_and_are_numbers_whatever_the_blocks(
        blocks in prop::collection::vec(
            ((0.01..1.0f64, 1.0..50.0f64, 0.0..1.2f64, 0.0..1.2f64),
             (0.01..1.0f64, 1.0..50.0f64, 0.0..1.2f64, 0.0..1.2f64),
             0.5..3.0f64),
            1..6,
        ),
    ) {
        let scene = |(run, cost_us, own, peers): (f64, f64, f64, f64)| waking(run, cost_us, own, peers);
        let blocks: Vec<[Scene; 3]> = blocks
            .into_iter()
            .map(|(asked, saturating, factor)| [scene(asked), scene(saturating), busy(0.98, 4.0 * factor)])
            .collect();
        let outcome = explain(&in_blocks(4, &blocks));
        parts_are_the_whole(&outcome);
        if let NetOrMissing::Net(net) = &outcome.figures.net {
            prop_assert!(net.value.is_finite() && net.value > 0.0);
            let mut ends = net.ci95.into_iter().flatten();
            prop_assert!(ends.all(f64::is_finite));
            let against = net.against_reference.as_ref();
            prop_assert!(against.is_some_and(|against| against.ratio.is_finite() && against.ratio > 0.0));
        }
    }
}
