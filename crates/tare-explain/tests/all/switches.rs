//! What the switches show is taken where it closes the accounting of a thread; where it does not, samples stand.

use crate::support::*;
use tare_explain::explain;
use tare_model::Record;
use tare_model::observation::Role;
use tare_model::outcome::{Cause, Outcome, ServingAccounting};
use tare_model::schedule::{Blocked, Schedule, ScheduleSource, Sleep, ThreadSchedule};

/// A server that runs for a fifth of its time and sleeps on another for the rest; its switches tell of `reported` of that.
/// Samples found it waiting for a disk. Its main thread waits for it in a futex.
fn traced(reported: f64) -> Record {
    let mut worker = server(0.2, 0.0);
    worker.samples = Some([0.0, 0.0, 1.0, 0.0]);
    let mut main = Thread::new(Role::Sut, "nginx", SUT_PID, 0, 0.0, 0.0);
    main.samples = Some([0.0, 1.0, 0.0, 0.0]);
    let threads = vec![worker, main, generator(0.1, 0.0)];
    let mut record = asked(&Scene { threads, rate_hz: 1000.0, ..Scene::default() });
    let thread = |tid, why, ns| ThreadSchedule {
        tid,
        blocked: vec![Blocked { why, ns, count: 1 }],
        ..ThreadSchedule::default()
    };
    let slept_ns = (1.6e9 * reported) as u64;
    for trial in &mut record.trials {
        trial.observation.schedule = Some(Box::new(Schedule {
            source: ScheduleSource::Tracepoints,
            not_traced: None,
            events_lost: 0,
            events: 0,
            threads: vec![
                thread(4712, Sleep::Downstream, slept_ns),
                thread(SUT_PID, Sleep::Lock, 2_000_000_000),
            ],
            held: Vec::new(),
            at_once: Vec::new(),
            locks: Vec::new(),
            kernel_locks: Vec::new(),
            locks_not_traced: None,
            downstream: Vec::new(),
        }));
    }
    record
}

fn serving(outcome: &Outcome) -> (&ServingAccounting, f64) {
    let accounting = &outcome.accounting;
    (
        &accounting.sut.as_ref().expect("seen").serving,
        accounting.switches.as_ref().expect("reported").sampled_share,
    )
}

#[test]
fn the_main_thread_that_only_waits_is_accounted_for_but_serves_nobody() {
    let outcome = explain(&traced(1.0));
    let (serving, sampled_share) = serving(&outcome);
    assert_eq!((serving.threads, sampled_share), (1, 0.0));
    assert!(serving.blocked_s["lock"] == 0.0 && (serving.blocked_s["downstream"] - 4.8).abs() < 1e-6);
    assert!((outcome.accounting.sut.as_ref().expect("seen").blocked_s["lock"] - 6.0).abs() < 1e-6);
    assert_eq!(outcome.verdict.bottleneck, Cause::BlockedOnDownstream);
}

#[test]
fn switches_that_show_too_little_leave_the_samples_and_a_verdict() {
    let outcome = explain(&traced(0.97));
    let (_, sampled_share) = serving(&outcome);
    assert_eq!((outcome.verdict.bottleneck, sampled_share), (Cause::BlockedOnDownstream, 0.0));
    assert!(
        (outcome.accounting.residual_ratio.expect("checked") - 0.024).abs() < 1e-3,
        "{:#?}",
        outcome.accounting
    );

    for reported in [0.5, 0.0, 2.0] {
        let outcome = explain(&traced(reported));
        let (serving, sampled_share) = serving(&outcome);
        assert_eq!((outcome.verdict.bottleneck, sampled_share), (Cause::BlockedOnDisk, 1.0), "{reported}");
        assert!((serving.blocked_s["disk"] - 4.8).abs() < 1e-6);
        assert!(outcome.accounting.residual_ratio.expect("checked") < 0.01);
    }
}

#[test]
fn who_goes_to_sleep_does_so_before_the_switch_is_stamped() {
    // 48 ms of 2 s are known by nothing but the run up to the switches.
    let residual = |sleeps, run_ns| {
        let mut record = traced(0.97);
        for trial in &mut record.trials {
            let worker = &mut trial.observation.schedule.as_mut().expect("traced").threads[0];
            (worker.blocked[0].count, worker.run_ns) = (sleeps, run_ns);
        }
        explain(&record).accounting.residual_ratio.expect("checked")
    };
    assert!(residual(20_000, 448_000_000) < 1e-3);
    // No switch takes so long; and what the run does not tell stays open.
    assert!((residual(6_000, 448_000_000) - 0.012).abs() < 1e-3);
    assert!((residual(20_000, 400_000_000) - 0.024).abs() < 1e-3);
}
