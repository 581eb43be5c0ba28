//! Subjects that look like another cause than theirs.

use crate::support::*;
use tare_explain::explain;
use tare_model::observation::Role;
use tare_model::outcome::{Cause, GrossIs, Outcome};

/// A thread of the server that may use both CPUs, asleep for event, lock, disk and timer in these shares.
fn free(name: &'static str, at: u32, cpu: u32, run: f64, asleep: [f64; 4]) -> Thread {
    let thread = Thread::new(Role::Sut, name, SUT_PID + at, cpu, run, 0.0);
    Thread { pinned: false, samples: Some(asleep), ..thread }
}

const EVENT: [f64; 4] = [1.0, 0.0, 0.0, 0.0];
const DISK: [f64; 4] = [0.0, 0.0, 1.0, 0.0];
const TIMER: [f64; 4] = [0.0, 0.0, 0.0, 1.0];

fn loaded_by(load: f64, threads: Vec<Thread>) -> Scene {
    let threads = threads.into_iter().chain([generator(load, 0.0)]).collect();
    Scene { threads, rate_hz: 20_000.0, ..Scene::default() }
}

/// The cause is named, and the other one is in no finding.
fn is_not(outcome: &Outcome, cause: Cause, other: Cause) {
    let found = &outcome.verdict;
    assert_eq!(found.bottleneck, cause, "{:#?}\n{:#?}", found.findings, outcome.accounting);
    assert!(!found.findings.iter().any(|finding| finding.cause == other), "{:#?}", found.findings);
}

#[test]
fn a_server_that_spins_while_it_waits_is_not_full() {
    let waiting = Thread { voluntary_hz: 16_000.0, ..generator(0.3, 0.0) };
    let threads = vec![Thread { voluntary_hz: 10.0, ..server(0.97, 0.0) }, waiting];
    let spinning = Scene { rate_hz: 16_000.0, threads, ..Scene::default() };
    let record = with_saturating(1, &spinning, &Scene::default());
    is_not(&explain(&record), Cause::TooLittleConcurrency, Cause::ServerCpuBound);
    is_not(&explain(&record), Cause::TooLittleConcurrency, Cause::CrossCpuWakeups);
    // One that does a little more for each wake-up with more of them was full.
    let batched = Scene { rate_hz: 85_000.0, ..Scene::default() };
    let outcome = explain(&with_saturating(8, &batched, &Scene::default()));
    assert_eq!(outcome.verdict.bottleneck, Cause::ServerCpuBound);
}

#[test]
fn a_thread_that_wakes_up_by_the_clock_is_no_worker() {
    let ticker = free("ticker", 9, 1, 0.06, TIMER);
    for (run, load, cause) in [(0.97, 0.5, Cause::OneThreadBound), (0.6, 0.97, Cause::LoadGeneratorBound)] {
        let scene = loaded_by(load, vec![free("loop", 1, 0, run, EVENT), ticker.clone()]);
        is_not(&explain(&asked(&scene)), cause, Cause::WorkersExhausted);
    }
}

#[test]
fn a_thread_that_writes_a_log_to_disk_holds_nobody_back() {
    for (run, load, cause) in [(0.97, 0.5, Cause::OneThreadBound), (0.6, 0.97, Cause::LoadGeneratorBound)] {
        let fsync = free("bio_aof", 9, 1, 0.002, DISK);
        let scene = loaded_by(load, vec![free("loop", 1, 0, run, EVENT), fsync]);
        is_not(&explain(&asked(&scene)), cause, Cause::BlockedOnDisk);
    }
    // Whatever such a thread runs, requests queue in front of the loop.
    let busier = free("writer", 9, 1, 0.05, DISK);
    let scene = loaded_by(0.5, vec![free("loop", 1, 0, 0.97, EVENT), busier]);
    assert_eq!(explain(&asked(&scene)).verdict.bottleneck, Cause::OneThreadBound);
    // Workers that write themselves do wait for the disk.
    let workers = (0..4).map(|at| free("writer", at, at % 2, 0.05, DISK)).collect();
    assert_eq!(explain(&asked(&loaded_by(0.3, workers))).verdict.bottleneck, Cause::BlockedOnDisk);
}

#[test]
fn idle_workers_queue_for_the_lock_of_an_accept_queue() {
    let pool = |run: f64, lock: f64| -> Vec<Thread> {
        (0..8).map(|at| free("pool", at, 0, run, [1.0 - lock, lock, 0.0, 0.0])).collect()
    };
    let outcome = explain(&asked(&loaded_by(0.97, pool(0.0875, 0.94))));
    is_not(&outcome, Cause::LoadGeneratorBound, Cause::LockContended);
    // Somebody who works has the lock of these.
    let outcome = explain(&asked(&loaded_by(0.3, pool(0.12, 1.0))));
    assert_eq!(outcome.verdict.bottleneck, Cause::LockContended);
}

#[test]
fn a_generator_that_ran_while_the_server_slept_took_nothing_where_a_cpu_was_free() {
    let placement = |pinned: bool| {
        let sut = Thread { pinned, ..free("redis", 1, 0, 0.6, EVENT) };
        let load = Thread { cpu: 0, pinned: false, ..generator(0.39, 0.0) };
        let outcome = explain(&asked(&Scene { threads: vec![sut, load], ..Scene::default() }));
        loss(&outcome, "placement")
    };
    assert!(placement(true) > 0.3, "its only CPU");
    assert!(placement(false) < 0.01, "it could have used another");
}

/// Transactions that wait for each other's rows sleep as idle ones do. Nobody tried more of them.
#[test]
fn requests_that_wait_for_each_other_in_a_database_are_not_too_few() {
    let backends = (0..8).map(|at| free("postgres", at, at % 2, 0.01, EVENT)).collect();
    let locked = Scene { rate_hz: 180.0, latency: false, ..loaded_by(0.05, backends) };
    let outcome = explain(&asked_at(8, &locked));
    is_not(&outcome, Cause::Unknown, Cause::TooLittleConcurrency);
    assert_eq!(outcome.figures.gross_is, GrossIs::LowerBound);
    let summary = &outcome.verdict.findings[0].summary;
    assert!(summary.starts_with("A request takes 44.5 ms, of which 723 µs is CPU time"), "{summary}");
    // Short ones are sent one after the other, and each backend waits for the next.
    let backends = (0..2).map(|at| free("postgres", at, at % 2, 0.3, EVENT)).collect();
    let idle = Scene { rate_hz: 10_000.0, latency: false, ..loaded_by(0.3, backends) };
    let outcome = explain(&asked_at(2, &idle));
    assert_eq!(outcome.verdict.bottleneck, Cause::TooLittleConcurrency);
    assert!(outcome.verdict.findings[0].confidence < 0.8, "nobody tried");
}

/// A thread that tidies up is as full as a loop, and requests do not queue in front of it.
#[test]
fn workers_wait_for_the_disk_whatever_another_thread_runs() {
    let writers = (0..8).map(|at| free("writer", at, 0, 0.05, DISK));
    let threads = writers.chain([free("compact", 20, 1, 0.95, EVENT)]).collect();
    let scene = Scene { rate_hz: 800.0, ..loaded_by(0.02, threads) };
    assert_eq!(explain(&asked(&scene)).verdict.bottleneck, Cause::BlockedOnDisk);
}

/// Eight connections that were spread by chance fill one worker; what they cost is what they cost with more.
#[test]
fn a_full_worker_among_idle_ones_does_not_spin() {
    let level = |other: f64, rate_hz: f64| {
        let threads = vec![free("worker", 1, 0, 0.95, EVENT), free("worker", 2, 1, other, EVENT)];
        let load = Thread { run: 0.02, ..generator(0.0, 0.0) };
        Scene { threads: threads.into_iter().chain([load]).collect(), rate_hz, ..Scene::default() }
    };
    let outcome = explain(&with_saturating(8, &level(0.2, 115_000.0), &level(0.95, 190_000.0)));
    assert!(outcome.verdict.findings.iter().any(|finding| finding.cause == Cause::OneThreadBound));
}

/// What the program lets on at once answers at the same rate however many wait; only the last requests of a turn come in the next one's.
#[test]
fn a_server_that_lets_few_requests_on_at_once_has_connections_enough() {
    let level = |run: f64, rate_hz: f64| {
        let threads = vec![free("pool-1", 1, 0, run, EVENT), free("pool-2", 2, 1, run, EVENT)];
        let threads = threads.into_iter().chain([generator(0.02, 0.0)]).collect();
        Scene { threads, rate_hz, ..Scene::default() }
    };
    let reference = Scene { rate_hz: 1.5e5, ..Scene::default() };
    let held = |asked: Scene, more: Scene| explain(&in_blocks(16, &[[asked, more, reference.clone()]]));
    let outcome = held(level(0.5, 490.0), level(0.6, 590.0));
    is_not(&outcome, Cause::Unknown, Cause::TooLittleConcurrency);
    assert_eq!(outcome.figures.gross_is, GrossIs::Capacity, "more connections were tried");
    let slow = Scene { latency: false, ..level(0.05, 490.0) };
    let summary = held(slow, level(0.06, 590.0)).verdict.findings[0].summary.clone();
    assert!(summary.contains("; 64 connections brought 20 % more at most"), "{summary}");
    // Where four times as many bring three times the rate they were too few; two were, where thirty-two times as many bring twice the rate.
    let outcome = held(level(0.02, 490.0), level(0.06, 1_500.0));
    assert_eq!(outcome.verdict.bottleneck, Cause::TooLittleConcurrency);
    let [asked, more] = [level(0.02, 200.0), level(0.04, 420.0)];
    let outcome = explain(&in_blocks(2, &[[asked, more, reference.clone()]]));
    assert_eq!(outcome.verdict.bottleneck, Cause::TooLittleConcurrency);
}
