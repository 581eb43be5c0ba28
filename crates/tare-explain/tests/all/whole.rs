//! Whole outcomes as a reader gets them.

use crate::support::*;
use tare_explain::explain;
use tare_model::observation::Role;

#[test]
fn a_generator_that_gives_out() {
    let mut server = server(0.62, 0.02);
    server.voluntary_hz = 9_000.0;
    let scene = Scene { threads: vec![server, generator(0.96, 0.02)], rate_hz: 90_000.0, ..Scene::default() };
    let full = Scene { rate_hz: 170_000.0, ..Scene::default() };
    insta::assert_snapshot!(sketch(&explain(&with_saturating(64, &scene, &full))));
}

#[test]
fn a_quota_on_the_parent() {
    let mut scene = Scene {
        threads: vec![server(0.30, 0.69), generator(0.2, 0.0)],
        throttled: vec![("/box/sut", 0.69), ("/box", 0.69), ("/", 0.0)],
        quota: Some(("/box", 0.3)),
        rate_hz: 30_000.0,
        ..Scene::default()
    };
    insta::assert_snapshot!(sketch(&explain(&asked(&scene))));
    // Two threads in one run queue: each waits all of the time that the queue is throttled, and the times of CPUs show it.
    let second = Thread { tid: 4713, ..scene.threads[0].clone() };
    scene.threads[0] = Thread { run: 0.15, wait: 0.85, ..scene.threads[0].clone() };
    scene.threads.push(Thread { run: 0.15, wait: 0.85, ..second });
    let outcome = explain(&asked(&scene));
    let sut = outcome.accounting.sut.unwrap();
    assert!((sut.entitled_cpus - 1.0).abs() < 1e-9);
    assert!((sut.losses_cpus["throttled"] - 0.69).abs() < 1e-6);
    assert!((sut.wait_s.throttled - 2.0 * 0.69 * 6.0).abs() < 1e-6, "an upper bound, thread by thread");
    assert!(
        (sut.wait_s.self_contention - 2.0 * 0.15 * 6.0).abs() < 1e-6,
        "each stood behind the other's run"
    );
}

#[test]
fn one_trial_of_an_error_page() {
    let scene = Scene {
        threads: vec![
            server(0.97, 0.0),
            generator(0.6, 0.0),
            Thread::new(Role::Other, "cron", 77, 0, 0.01, 0.0),
        ],
        errors: vec![(tare_model::trial::ErrorKind::Status, 200_000)],
        clock_hz: None,
        ..Scene::default()
    };
    let record = record(vec![level(tare_model::plan::Purpose::Asked, 64)], &[(0, scene)]);
    insta::assert_snapshot!(sketch(&explain(&record)));
}
