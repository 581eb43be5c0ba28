//! Programs that the SUT calls: part of the system where they share its CPUs, the bottleneck where most requests wait for them, and nobody's
//! fault where they do not.

use crate::support::*;
use tare_explain::explain;
use tare_model::Record;
use tare_model::downstream::{DownstreamLimit, DownstreamSeen};
use tare_model::observation::Role;
use tare_model::outcome::{Cause, NetOrMissing, Outcome};

const BACKEND_PID: u32 = 900;

/// A thread of the backend as somebody else's: what it is follows from who is called.
fn backend(cpu: u32, run: f64, wait: f64) -> Thread {
    Thread { pid: BACKEND_PID, ..Thread::new(Role::Other, "app", BACKEND_PID, cpu, run, wait) }
}

fn on(cpu: u32, thread: Thread) -> Thread {
    Thread { cpu, ..thread }
}

/// The last two of three trials say who is called: 64 requests are in flight, `waiting` of them at the backend.
fn calls(scene: &Scene, waiting: u64, unsure: u64) -> Record {
    let mut record = asked(scene);
    let seen = DownstreamSeen {
        name: "app".to_owned(),
        at: vec!["127.0.0.1:22201".to_owned()],
        pids: vec![BACKEND_PID],
        samples: 10,
        open: 640,
        waiting: 10 * waiting,
        unsure: 10 * unsure,
        sends_hz: Some(scene.rate_hz),
        ..DownstreamSeen::default()
    };
    record.trials.iter_mut().skip(1).for_each(|trial| trial.observation.downstream = vec![seen.clone()]);
    record
}

/// Net over gross; `None` where it is missing: far from saturation nothing is known of the cost there.
fn net(outcome: &Outcome) -> Option<f64> {
    match &outcome.figures.net {
        NetOrMissing::Net(net) => Some(net.value / 100_000.0),
        NetOrMissing::Missing(_) => None,
    }
}

#[test]
fn a_backend_on_the_same_full_cpu_is_part_of_the_system() {
    let threads = vec![server(0.52, 0.3), backend(0, 0.45, 0.4), generator(0.5, 0.0)];
    let outcome = explain(&calls(&Scene { threads, ..Scene::default() }, 30, 0));
    let causes: Vec<Cause> = outcome.verdict.findings.iter().map(|finding| finding.cause).collect();
    assert_eq!(outcome.verdict.bottleneck, Cause::ServerCpuBound, "{causes:?}");
    assert!(!causes.contains(&Cause::CpuContended), "{:#?}", outcome.verdict.findings);
    let finding = &outcome.verdict.findings[0];
    assert!(finding.summary.contains("app 45 %"), "{}", finding.summary);
    assert!((loss(&outcome, "downstream-cpu") - 0.45).abs() < 0.01, "{:?}", outcome.accounting.sut);
    assert!(loss(&outcome, "preempted") < 0.01);
    let cpu = &outcome.accounting.cpus[0];
    assert!((cpu.downstream - 0.45).abs() < 0.01 && cpu.others < 0.01, "{cpu:?}");
    let rows = outcome.accounting.threads_of(Role::Downstream);
    assert_eq!(rows.iter().map(|row| row.pid).collect::<Vec<_>>(), [BACKEND_PID]);
    // What the system does on this CPU: there are three per cent left of it.
    assert!((net(&outcome).unwrap() - 1.03).abs() < 0.03, "{:?}", net(&outcome));
}

#[test]
fn a_backend_that_sleeps_is_what_an_event_loop_waits_for() {
    let threads = vec![server(0.3, 0.0), backend(1, 0.05, 0.0), generator(0.4, 0.0)];
    let outcome = explain(&calls(&Scene { threads, ..Scene::default() }, 60, 0));
    assert_eq!(outcome.verdict.bottleneck, Cause::BlockedOnDownstream, "{:#?}", outcome.verdict.findings);
    let summary = &outcome.verdict.findings[0].summary;
    assert!(summary.contains("app (127.0.0.1:22201)") && summary.contains("94 %"), "{summary}");
    assert!(summary.contains("time to spare"), "{summary}");
    let called = &outcome.accounting.downstream[0];
    assert!((called.calls_per_request.unwrap() - 1.0).abs() < 0.01);
    assert!((called.wait_s_per_request.unwrap() - 0.6e-3).abs() < 1e-5);
    // Its own CPU could do more of this, with more of it at once.
    assert!(net(&outcome).is_none_or(|net| net > 2.0), "{:?}", net(&outcome));
}

#[test]
fn a_backend_that_is_full_is_named_with_what_it_has_no_more_of() {
    let threads = vec![server(0.4, 0.02), backend(1, 0.99, 0.0), on(0, generator(0.3, 0.02))];
    let outcome = explain(&calls(&Scene { threads, ..Scene::default() }, 55, 0));
    assert_eq!(outcome.verdict.bottleneck, Cause::BlockedOnDownstream, "{:#?}", outcome.verdict.findings);
    let summary = &outcome.verdict.findings[0].summary;
    assert!(summary.contains("app's one working thread (its event loop) is busy 99 %"), "{summary}");
    assert_eq!(outcome.accounting.downstream[0].limit, DownstreamLimit::OneThread);
    assert!(net(&outcome).is_none_or(|net| (net - 1.01).abs() < 0.02), "{:?}", net(&outcome));
}

/// Few connections to a database that are all in use: the other requests wait for one of them, which nobody outside sees.
#[test]
fn a_full_pool_of_connections_is_what_requests_wait_for() {
    let of = |open: u64, waiting: u64, busy: f64| {
        let threads = vec![server(0.1, 0.0), backend(1, busy, 0.0), on(0, generator(0.1, 0.0))];
        let mut record =
            calls(&Scene { threads, rate_hz: 1000.0, latency: false, ..Scene::default() }, waiting, 0);
        let seen = record.trials.iter_mut().flat_map(|trial| &mut trial.observation.downstream);
        seen.for_each(|seen| seen.open = 10 * open);
        explain(&record).verdict
    };
    for (busy, limit) in [(0.1, "time to spare"), (0.97, "one working thread")] {
        let verdict = of(2, 2, busy);
        assert_eq!(verdict.bottleneck, Cause::BlockedOnDownstream, "{:#?}", verdict.findings);
        let summary = &verdict.findings[0].summary;
        assert!(summary.contains("one of few connections to app") && summary.contains("100 %"), "{summary}");
        assert!(summary.contains("2.00 ms for each request") && summary.contains(limit), "{summary}");
    }
    assert!(of(2, 2, 0.1).findings[0].remedy.contains("open more connections to app"));
    // Half of them are free.
    assert_ne!(of(4, 2, 0.1).bottleneck, Cause::BlockedOnDownstream);
}

/// Connections that live for one call are in use as long as they are there; a pool beside is not what most requests wait for.
#[test]
fn connections_in_use_are_no_full_pool_where_each_call_has_its_own_or_most_requests_are_elsewhere() {
    let scene = || {
        let threads = vec![server(0.1, 0.0), backend(1, 0.1, 0.0), on(0, generator(0.1, 0.0))];
        Scene { threads, rate_hz: 1000.0, latency: false, ..Scene::default() }
    };
    let with = |waiting, change: &dyn Fn(&mut Vec<DownstreamSeen>)| {
        let mut record = calls(&scene(), waiting, 0);
        let seen = record.trials.iter_mut().map(|trial| &mut trial.observation.downstream);
        seen.filter(|seen| !seen.is_empty()).for_each(change);
        explain(&record).verdict
    };
    let for_one_call = with(3, &|seen: &mut Vec<DownstreamSeen>| {
        (seen[0].open, seen[0].sends_hz) = (30, None);
    });
    assert_ne!(for_one_call.bottleneck, Cause::BlockedOnDownstream, "{:#?}", for_one_call.findings);
    let beside = with(50, &|seen: &mut Vec<DownstreamSeen>| {
        let (name, at) = ("auth".to_owned(), vec!["127.0.0.1:9".to_owned()]);
        seen.push(DownstreamSeen { name, at, pids: vec![901], open: 10, waiting: 10, ..seen[0].clone() });
    });
    let summary = &beside.findings[0].summary;
    assert!(summary.contains("wait for app") && !summary.contains("auth"), "{summary}");
}

/// A server that has nothing left itself, a generator that has not, a rate that is reached, few requests at it, or nobody who is known to
/// wait.
#[test]
fn a_backend_that_few_wait_for_is_blamed_for_nothing() {
    let named = |scene: Scene, waiting, unsure| explain(&calls(&scene, waiting, unsure)).verdict.bottleneck;
    let of = |threads| Scene { threads, ..Scene::default() };
    let idle = || backend(1, 0.0, 0.0);
    assert_eq!(named(of(vec![server(0.97, 0.0), idle(), generator(0.5, 0.0)]), 0, 64), Cause::ServerCpuBound);
    let full = || vec![server(0.4, 0.0), idle(), generator(0.97, 0.0)];
    assert_eq!(named(of(full()), 20, 0), Cause::LoadGeneratorBound);
    let spare = || vec![server(0.2, 0.0), backend(1, 0.2, 0.0), generator(0.2, 0.0)];
    let given = Scene { scheduled_hz: Some(100_000.0), ..of(spare()) };
    assert_eq!(named(given, 60, 0), Cause::OfferedLoad);
    for (waiting, unsure) in [(10, 0), (10, 50)] {
        assert_ne!(named(of(spare()), waiting, unsure), Cause::BlockedOnDownstream);
    }
}
