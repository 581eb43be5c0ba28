//! Nets of different sessions are stated at one level of the reference server, so that what a host does to every program is tare.

use crate::support::*;
use tare_explain::{explain, reference_level, stopping};
use tare_model::Record;
use tare_model::comparison::Ended;
use tare_model::observation::Role;
use tare_model::outcome::{Net, NetOrMissing, Outcome, TareCause, Target};
use tare_model::plan::{Stopping, Workload};
use tare_model::reference_level::{KnownReference, ReferenceHistory, ReferenceLevel};

/// A server that costs `cost_us` a request, busy for `run` of its CPU.
fn busy(run: f64, cost_us: f64) -> Scene {
    Scene {
        threads: vec![server(run, 0.0), generator(0.6, 0.0)],
        rate_hz: run / cost_us * 1e6,
        ..Scene::default()
    }
}

const LEVEL: ReferenceLevel =
    ReferenceLevel { cost_s: 4e-6, clock_hz: Some(3.0e9), half_ln: 0.015, spread_ln: 0.0, sessions: 40 };

/// Blocks of a server of 5 µs and the reference of 4 µs, both so many times as much; the SUT a thousandth more or less.
fn session(factors: &[f64], known: Option<ReferenceLevel>, scene: impl Fn(f64, f64) -> Scene) -> Record {
    let blocks: Vec<[Scene; 3]> = factors
        .iter()
        .zip([1.001, 0.999].into_iter().cycle())
        .map(|(factor, own)| {
            [scene(0.6, 6.0 * factor), scene(0.98, 5.0 * factor * own), busy(0.98, 4.0 * factor)]
        })
        .collect();
    let mut record = in_blocks(8, &blocks);
    let Workload::Http(http) = &mut record.plan.workload else { unreachable!() };
    http.reference = Some(KnownReference { level: known });
    record
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
    let parts: f64 = outcome.figures.tare.iter().map(|part| part.ln_share).sum();
    let whole = (net(outcome).value / outcome.figures.gross.value().unwrap()).ln();
    assert!((parts - whole).abs() < 1e-9, "{:?}", outcome.figures.tare);
}

#[test]
fn sessions_that_a_host_disturbed_unlike_have_one_net_and_a_named_part() {
    for factor in [0.97, 1.0, 1.12, 1.3] {
        let outcome = explain(&session(&[factor; 5], Some(LEVEL), busy));
        parts_are_the_whole(&outcome);
        let net = net(&outcome);
        assert!((net.value / 2e5 - 1.0).abs() < 2e-3, "{factor}: {net:?}");
        assert!((part(&outcome, TareCause::Interference) - factor.ln()).abs() < 2e-3, "{factor}");
        // 6 µs instead of 5 whatever the host does.
        assert!((part(&outcome, TareCause::Cost) - 1.2f64.ln()).abs() < 2e-3, "{factor}");
        let [low, high] = net.ci95.unwrap();
        let half = 0.5 * (high / low).ln();
        // How well the level is known; of a strong interference, that it may not meet both alike.
        let unlike = 0.25 * (factor.ln().abs() - 0.15).max(0.0);
        assert!((half / 0.015f64.hypot(unlike) - 1.0).abs() < 0.05, "{factor}: {half}");
        assert_eq!(net.against_reference.as_ref().unwrap().level, Some(LEVEL));
    }
}

/// Where the reference itself differs from one session to another, another program differs from it.
#[test]
fn on_a_host_that_disturbs_every_session_net_is_known_less_well() {
    let half = |spread_ln| {
        let level = ReferenceLevel { spread_ln, ..LEVEL };
        let [low, high] = net(&explain(&session(&[1.0; 5], Some(level), busy))).ci95.unwrap();
        0.5 * (high / low).ln()
    };
    assert!((half(0.13) / 0.015f64.hypot(0.4 * 0.13) - 1.0).abs() < 0.05, "{}", half(0.13));
    assert!(half(0.01) < 0.017);
}

#[test]
fn a_throttled_server_has_cold_caches() {
    // Of the time that it has work it may run three tenths: under a saturating load it is held back or runs.
    let throttled = |run: f64, cost_us: f64| Scene {
        threads: vec![server(0.3 * run, 0.7 * run), generator(0.3, 0.0)],
        rate_hz: 0.3 * run / cost_us * 1e6,
        throttled: vec![("/sut", 0.7 * run), ("/", 0.0)],
        quota: Some(("/sut", 0.3)),
        ..Scene::default()
    };
    let record = session(&[1.13; 4], Some(LEVEL), throttled);
    let outcome = explain(&record);
    parts_are_the_whole(&outcome);
    assert!((part(&outcome, TareCause::ColdAfterThrottling) - 1.13f64.ln()).abs() < 0.01);
    assert_eq!(part(&outcome, TareCause::Interference), 0.0);
    // Nothing of it is taken for what the machine does undisturbed.
    assert_eq!(reference_level::blocks(&record), []);
}

/// Three workers that sleep for 10 ms in each request, and a thread that hands out the requests. What the machine does to CPU time is no
/// matter; nor that leftovers of a turn make the interleaved level faster.
#[test]
fn workers_that_sleep_have_the_net_of_their_sleep() {
    let worker = |at: u32| Thread {
        samples: Some([0.0, 0.0, 0.0, 1.0]),
        ..Thread::new(Role::Sut, "worker", SUT_PID + 10 + at, 0, 0.02, 0.0)
    };
    let sleeping = |run: f64, cost_us: f64| {
        let leftovers = if run > 0.9 { 1.3 } else { 1.0 };
        let rate_hz = 294.0 * leftovers;
        let hands_out = Thread { run: cost_us * 1e-6 * rate_hz, ..server(0.0, 0.0) };
        let threads = (0..3).map(worker).chain([hands_out, generator(0.02, 0.0)]).collect();
        Scene { threads, rate_hz, ..Scene::default() }
    };
    let outcome = explain(&session(&[1.3; 5], Some(LEVEL), sleeping));
    parts_are_the_whole(&outcome);
    let net = net(&outcome).value;
    assert!((net / 294.0 - 1.0).abs() < 0.03, "{net}");
    assert!(part(&outcome, TareCause::Interference) < 0.02, "{:?}", outcome.figures.tare);
}

/// One thread that looks for requests every so often, and sleeps in between: few requests, and many where it is loaded.
#[test]
fn a_server_that_polls_is_not_held_by_its_sleeps() {
    let polling = |run: f64, cost_us: f64| {
        // Of the levels the asked one leaves it idle for most of the time.
        let run = if run < 0.9 { 0.01 } else { run };
        let samples = Some([0.0, 0.0, 0.0, 1.0]);
        let threads = vec![Thread { samples, ..server(run, 0.0) }, generator(0.1, 0.0)];
        Scene { threads, rate_hz: run / cost_us * 1e6, ..Scene::default() }
    };
    let outcome = explain(&session(&[1.0; 5], Some(LEVEL), polling));
    let (net, gross) = (net(&outcome).value, outcome.figures.gross.value().unwrap());
    assert!(net > 50.0 * gross, "{net} and {gross}: it could do a hundred times as much");
}

#[test]
fn the_first_session_has_its_own_level_and_hands_it_on() {
    let record = session(&[1.0, 1.02, 1.3, 1.01, 1.0], None, busy);
    let outcome = explain(&record);
    parts_are_the_whole(&outcome);
    let first = net(&outcome).against_reference.as_ref().unwrap().level.unwrap();
    let [low, high] = net(&outcome).ci95.unwrap();
    assert!(first.sessions == 1 && first.half_ln > 0.03 && (high / low).ln() > 2.0 * first.half_ln * 0.99);
    let history = reference_level::kept(ReferenceHistory::default(), reference_level::blocks(&record));
    assert_eq!(history.level, Some(first));
    let later = explain(&session(&[1.2; 5], history.level, busy));
    assert!((net(&later).value / net(&outcome).value - 1.0).abs() < 3e-3, "{:?}", net(&later));
}

#[test]
fn without_a_reference_net_is_known_as_far_as_sessions_repeat() {
    let with = session(&[1.0, 1.05, 0.97, 1.02, 1.0], Some(LEVEL), busy);
    let mut without = with.clone();
    without.trials.retain(|trial| trial.level < 2);
    let Workload::Http(http) = &mut without.plan.workload else { unreachable!() };
    http.levels.truncate(2);
    http.levels[1].arms = 1;
    http.reference = None;
    for trial in without.trials.iter_mut().filter(|trial| trial.level == 1) {
        trial.level = 1;
    }
    let width = |outcome: &Outcome| net(outcome).ci95.map(|[low, high]| (high / low).ln());
    let (with, without) = (explain(&with), explain(&without));
    if let NetOrMissing::Net(_) = &without.figures.net {
        assert!(width(&without).unwrap() > 2.0 * width(&with).unwrap(), "{:?}", without.figures.net);
    }
}

#[test]
fn trials_end_once_net_is_known_however_the_host_moves_gross() {
    let factors = [1.0, 1.4, 0.92, 1.5, 1.05, 1.45, 1.0, 1.2, 0.95, 1.4];
    let mut record = session(&factors, Some(LEVEL), busy);
    // As many as the budget has room for.
    let Workload::Http(http) = &mut record.plan.workload else { unreachable!() };
    http.levels.iter_mut().for_each(|level| level.trials = 10_000);
    record.plan.stopping = Some(Stopping { precision: Some(0.02), budget_s: 200.0 });
    assert_eq!(stopping::target(&record.plan), Target::Net);
    let outcome = explain(&record);
    let stopped = outcome.figures.stopping.unwrap();
    assert_eq!((stopped.target, stopped.ended), (Target::Net, Some(Ended::Precise)), "{stopped:#?}");
    assert!(stopped.reached.unwrap() <= 0.02 && stopped.trials == 10, "{stopped:#?}");
    // What two such runs would show is a matter of the share alone: both are stated at one level.
    assert!(stopped.detectable.unwrap() < 0.01, "{stopped:#?}");
    let gross = outcome.figures.gross;
    let [low, high] = gross.ci95().unwrap();
    assert!((high - low) / gross.value().unwrap() > 0.2, "{gross:?}");
    // Beside a record that knew of no level, it is gross, as it was.
    let Workload::Http(http) = &mut record.plan.workload else { unreachable!() };
    http.reference = None;
    assert_eq!(explain(&record).figures.stopping.unwrap().target, Target::Gross);
}
