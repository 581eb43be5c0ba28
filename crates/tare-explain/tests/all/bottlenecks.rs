//! One record for each cause: the bottleneck comes out right, its finding carries the proof, and the accounting closes.

use crate::support::*;
use tare_explain::explain;
use tare_model::metric::Subject;
use tare_model::metrics::{cpus, tasks};
use tare_model::observation::{Column, Role, Sample};
use tare_model::outcome::{Cause, Finding, GrossIs, NetOrMissing, Outcome, TareCause};
use tare_model::trial::{ErrorKind, GeneratorReport, Measure};
use tare_model::{Missing, Reading};

fn narrows_to(outcome: &Outcome, cause: Cause) -> &Finding {
    assert_eq!(
        outcome.verdict.bottleneck, cause,
        "{:#?}\n{:#?}",
        outcome.verdict.findings, outcome.accounting
    );
    outcome
        .verdict
        .findings
        .iter()
        .find(|finding| finding.cause == cause)
        .expect("the bottleneck has its finding")
}

fn sound(outcome: &Outcome) {
    assert!(outcome.verdict.valid, "{:#?}", outcome.verdict.warnings);
    assert!(outcome.accounting.residual_ratio.expect("checked") < 0.01);
    let sut = outcome.accounting.sut.as_ref().expect("seen");
    let lost: f64 = sut.losses_cpus.values().sum();
    assert!((sut.entitled_cpus - sut.busy_cpus - lost).abs() < 0.01, "A = b + ΣL");
    for cpu in &outcome.accounting.cpus {
        let parts =
            cpu.sut + cpu.load + cpu.tare + cpu.others + cpu.throttled + cpu.steal + cpu.irq + cpu.idle;
        assert!((parts - 1.0).abs() < 0.01, "{cpu:?}");
    }
    if let NetOrMissing::Net(net) = &outcome.figures.net {
        let parts: f64 = outcome.figures.tare.iter().map(|part| part.ln_share).sum();
        assert!((parts - (net.value / outcome.figures.gross.value().expect("measured")).ln()).abs() < 1e-9);
        let [low, high] = net.ci95.expect("three trials");
        assert!(low <= net.value && net.value <= high, "{net:?}");
    }
}

#[test]
fn a_busy_server_is_the_bottleneck() {
    let outcome = explain(&asked(&Scene::default()));
    let finding = narrows_to(&outcome, Cause::ServerCpuBound);
    assert!(finding.confidence > 0.99);
    sound(&outcome);
    assert_eq!(outcome.figures.gross_is, GrossIs::Capacity);
}

#[test]
fn a_full_generator_is_the_bottleneck_of_an_idle_server() {
    let scene = Scene { threads: vec![server(0.6, 0.01), generator(0.97, 0.01)], ..Scene::default() };
    let outcome = explain(&asked(&scene));
    let finding = narrows_to(&outcome, Cause::LoadGeneratorBound);
    assert!(finding.summary.contains("tare-load"), "{}", finding.summary);
    assert_eq!(outcome.figures.gross_is, GrossIs::LowerBound);
    sound(&outcome);
}

#[test]
fn a_quota_on_the_group_or_its_parent_is_the_bottleneck() {
    for throttled in [vec![("/sut", 0.69), ("/", 0.0)], vec![("/a/sut", 0.0), ("/a", 0.69), ("/", 0.0)]] {
        let scene = Scene {
            threads: vec![server(0.30, 0.69), generator(0.2, 0.0)],
            throttled,
            quota: Some(("/sut", 0.3)),
            rate_hz: 30_000.0,
            ..Scene::default()
        };
        let outcome = explain(&asked(&scene));
        narrows_to(&outcome, Cause::CpuQuotaThrottled);
        assert!((loss(&outcome, "throttled") - 0.69).abs() < 0.01);
        sound(&outcome);
    }
}

/// The kernel counts waits and throttled time where they end: as counted, both are off by what was open at the edges.
#[test]
fn what_was_waited_before_a_window_began_or_is_still_waited_at_its_end_is_put_right() {
    for (counted, open_ns) in [(0.75, [0.12e9, 0.0]), (0.64, [0.02e9, 0.12e9])] {
        let scene = Scene {
            threads: vec![server(0.30, counted), generator(0.2, 0.0)],
            throttled: vec![("/sut", counted), ("/", 0.0)],
            quota: Some(("/sut", 0.3)),
            rate_hz: 30_000.0,
            ..Scene::default()
        };
        let mut record = asked(&scene);
        for observation in record.trials.iter_mut().map(|trial| &mut trial.observation) {
            let [begin, end] = [(observation.begin_ns, open_ns[0]), (observation.end_ns, open_ns[1])];
            let samples = [begin, end].map(|(at_ns, value)| Sample { at_ns, value }).to_vec();
            let metric = tasks::OPEN_WAIT_NS.id.to_owned();
            observation.columns.push(Column { metric, subject: Subject::Task(0), samples });
        }
        let outcome = explain(&record);
        narrows_to(&outcome, Cause::CpuQuotaThrottled);
        assert!((loss(&outcome, "throttled") - 0.69).abs() < 1e-6, "{:#?}", outcome.accounting.sut);
        sound(&outcome);
    }
}

#[test]
fn a_neighbour_on_the_servers_cpu_is_named() {
    let neighbour = Thread::new(Role::Other, "busyloop", 999, 0, 0.5, 0.49);
    let scene = Scene {
        threads: vec![server(0.49, 0.50), generator(0.3, 0.0), neighbour],
        rate_hz: 50_000.0,
        ..Scene::default()
    };
    let outcome = explain(&asked(&scene));
    let finding = narrows_to(&outcome, Cause::CpuContended);
    assert!(finding.evidence.iter().any(|number| number.name.contains("busyloop/999")), "{finding:#?}");
    sound(&outcome);
}

/// It is left so little of its CPU that it hardly ran on any: who ran there is still seen. Of several none is said to have done it all.
#[test]
fn neighbours_that_leave_the_server_next_to_nothing_are_named_together() {
    let builds = [("rustc", 991, 0.3), ("cc1", 992, 0.25), ("ld", 993, 0.2), ("as", 994, 0.15)];
    let mut threads = vec![server(0.03, 0.96), generator(0.01, 0.0)];
    threads.extend(builds.map(|(name, tid, run)| Thread::new(Role::Other, name, tid, 0, run, 0.6)));
    let outcome = explain(&asked(&Scene { threads, rate_hz: 300.0, ..Scene::default() }));
    let finding = narrows_to(&outcome, Cause::CpuContended);
    let said = "Other programs there (rustc/991 30 % of a CPU, cc1/992 25 % of a CPU, ld/993 20 % of a CPU, and 1 more) together";
    let summary = finding.summary.replace('\u{a0}', " ");
    assert!(summary.starts_with(said), "{summary}");
    sound(&outcome);
}

#[test]
fn a_generator_on_the_servers_cpu_is_a_placement_conflict() {
    // Waiting all the time, and sleeping interleaved with the generator: both are the layout's doing.
    for (wait, load_wait) in [(0.5, 0.49), (0.02, 0.02)] {
        let load = Thread { cpu: 0, ..generator(0.5, load_wait) };
        let scene = Scene { threads: vec![server(0.49, wait), load], rate_hz: 50_000.0, ..Scene::default() };
        let outcome = explain(&asked(&scene));
        narrows_to(&outcome, Cause::PlacementConflict);
        sound(&outcome);
    }
}

/// Both could run there, too, and then there would be no conflict.
#[test]
fn who_leaves_server_and_generator_one_cpu_is_named() {
    let load = Thread { cpu: 0, pinned: false, ..generator(0.5, 0.49) };
    let sut = Thread { pinned: false, ..server(0.49, 0.5) };
    let neighbour = Thread::new(Role::Other, "busyloop", 999, 1, 0.99, 0.0);
    let scene = Scene { threads: vec![sut, load, neighbour], rate_hz: 50_000.0, ..Scene::default() };
    let outcome = explain(&asked(&scene));
    let finding = narrows_to(&outcome, Cause::PlacementConflict);
    assert!(finding.summary.contains("but busyloop/999 kept it busy (99 % of its time)"), "{finding:#?}");
    assert!(
        finding.remedy.starts_with("stop busyloop/999 or move it away from CPU 1; or put"),
        "{finding:#?}"
    );
    assert!(finding.evidence.iter().any(|number| number.name == "busyloop/999 on CPU 1"), "{finding:#?}");
    assert!(outcome.accounting.cpus.iter().any(|cpu| cpu.cpu == 1 && cpu.others > 0.9), "{outcome:#?}");
    sound(&outcome);
}

#[test]
fn one_connection_is_too_little_concurrency() {
    let mut busy = server(0.4, 0.0);
    busy.voluntary_hz = 20_000.0;
    let scene = Scene { threads: vec![busy, generator(0.4, 0.0)], rate_hz: 20_000.0, ..Scene::default() };
    narrows_to(&explain(&asked_at(1, &scene)), Cause::TooLittleConcurrency);
    let outcome = explain(&with_saturating(1, &scene, &Scene::default()));
    let finding = narrows_to(&outcome, Cause::TooLittleConcurrency);
    assert_eq!(finding.confidence, 1.0);
    sound(&outcome);
}

/// Interleaved with the reference the saturating level has half of the time: its rate is that of its own half, without the 64 requests that may
/// be answered in the other half's turns of 20 ms.
#[test]
fn few_connections_are_seen_against_an_interleaved_level() {
    let level = |run, rate_hz| Scene {
        threads: vec![server(run, 0.0), generator(0.6, 0.0)],
        rate_hz,
        ..Scene::default()
    };
    let [asked, saturating, reference] = [level(0.6, 1e5), level(0.96, 1.6e5), level(0.96, 2e5)];
    let outcome = explain(&in_blocks(8, &[[asked, saturating, reference]]));
    let finding = narrows_to(&outcome, Cause::TooLittleConcurrency);
    assert_eq!(finding.confidence, 1.0);
    assert!(
        finding.summary.contains("at 64 connections it answered 156863 req/s or more"),
        "{}",
        finding.summary
    );
}

#[test]
fn a_low_fixed_rate_is_the_bottleneck_and_nothing_is_wrong() {
    let scene = Scene {
        threads: vec![server(0.05, 0.0), generator(0.99, 0.0)],
        rate_hz: 2_000.0,
        scheduled_hz: Some(2_000.0),
        ..Scene::default()
    };
    let outcome = explain(&asked(&scene));
    narrows_to(&outcome, Cause::OfferedLoad);
    assert_eq!(outcome.figures.gross_is, GrossIs::Offered);
    sound(&outcome);
}

#[test]
fn an_error_page_is_not_a_result() {
    let scene = Scene { errors: vec![(ErrorKind::Status, 200_000)], ..Scene::default() };
    let outcome = explain(&asked(&scene));
    narrows_to(&outcome, Cause::Errors);
    assert!(!outcome.verdict.valid);
}

#[test]
fn eight_generator_threads_on_one_cpu_are_oversubscribed() {
    let threads =
        (0..8).map(|i| Thread { name: "wrk", ..Thread::new(Role::Load, "wrk", 900 + i, 1, 0.12, 0.7) });
    let mut scene = Scene { threads: threads.collect(), ..Scene::default() };
    scene.threads.push(server(0.7, 0.0));
    let outcome = explain(&asked(&scene));
    narrows_to(&outcome, Cause::LoadGeneratorBound);
    let oversubscription =
        outcome.verdict.findings.iter().find(|finding| finding.cause == Cause::Oversubscribed).unwrap();
    assert!(
        oversubscription.summary.contains("generator (wrk) has 8 threads"),
        "{}",
        oversubscription.summary
    );
    // Seven slices of one 4 ms tick each.
    assert!(
        oversubscription
            .evidence
            .iter()
            .any(|number| number.unit == "s" && (number.value - 0.028).abs() < 1e-9)
    );
    sound(&outcome);
}

/// Others have the CPUs of both sides, and the generator waits longer; or its threads wait behind each other.
#[test]
fn a_generator_is_kept_off_by_others_and_not_by_its_own_threads() {
    let said = |threads: Vec<Thread>| {
        let outcome = explain(&asked(&Scene { threads, ..Scene::default() }));
        let summaries = outcome.verdict.findings.iter().map(|finding| finding.summary.clone());
        (outcome.verdict.bottleneck, summaries.collect::<Vec<_>>().join("\n"))
    };
    let other = |cpu, run| Thread::new(Role::Other, "yes", 70 + cpu, cpu, run, 0.0);
    let beside = vec![server(0.21, 0.38), generator(0.18, 0.45), other(0, 0.55), other(1, 0.75)];
    let (bottleneck, summaries) = said(beside);
    assert_eq!(bottleneck, Cause::LoadGeneratorBound, "{summaries}");
    assert!(summaries.contains("other programs kept it off its CPUs 45 %"), "{summaries}");
    let mut siblings: Vec<Thread> = (0..4)
        .map(|i| Thread { name: "wrk", ..Thread::new(Role::Load, "wrk", 900 + i, 1, 0.15, 0.4) })
        .collect();
    siblings.extend([server(0.5, 0.26), other(0, 0.3)]);
    let (_, summaries) = said(siblings);
    assert!(!summaries.contains("other programs kept it off"), "{summaries}");
}

#[test]
fn steal_is_the_bottleneck_where_the_hypervisor_took_most() {
    let scene =
        Scene { threads: vec![server(0.69, 0.0), generator(0.3, 0.0)], steal: 0.3, ..Scene::default() };
    let outcome = explain(&asked(&scene));
    narrows_to(&outcome, Cause::Steal);
    sound(&outcome);
}

#[test]
fn waits_for_itself_are_named_and_stay_in_net() {
    let mut locked = server(0.5, 0.0);
    locked.samples = Some([0.1, 0.9, 0.0, 0.0]);
    let scene = Scene { threads: vec![locked, generator(0.3, 0.0)], ..Scene::default() };
    let outcome = explain(&asked(&scene));
    narrows_to(&outcome, Cause::LockContended);
    sound(&outcome);
    let NetOrMissing::Net(net) = &outcome.figures.net else { panic!("{:?}", outcome.figures.net) };
    // 45 % of the time in its own lock caps it at 1 / (5 + 4.5 µs), not at 1 / 5 µs.
    assert!((net.value - 1e6 / 9.5).abs() < 0.02 * net.value, "{}", net.value);

    let mut sleepy = server(0.3, 0.0);
    sleepy.samples = Some([0.0, 0.0, 0.0, 1.0]);
    let scene = Scene { threads: vec![sleepy, generator(0.3, 0.0)], ..Scene::default() };
    // Its one worker sleeps in a timer while 64 requests are in flight.
    narrows_to(&explain(&asked(&scene)), Cause::WorkersExhausted);
}

#[test]
fn workers_that_sleep_in_a_futex_until_there_is_work_wait_for_no_lock() {
    let workers = (0..4).map(|nth| Thread {
        samples: Some([0.1, 0.9, 0.0, 0.0]),
        ..Thread::new(Role::Sut, "worker", 4712 + nth, nth % 2, 0.1, 0.0)
    });
    let mut scene = Scene { threads: workers.collect(), ..Scene::default() };
    scene.threads.push(Thread { cpu: 2, ..generator(0.97, 0.01) });
    let outcome = explain(&asked(&scene));
    narrows_to(&outcome, Cause::LoadGeneratorBound);
    assert!(outcome.verdict.findings.iter().all(|finding| finding.cause != Cause::LockContended));
    // Nobody has the lock that they all would wait for; where one of them is always about, somebody may.
    scene.threads[0].run = 0.9;
    scene.threads.pop();
    scene.threads.push(generator(0.3, 0.0));
    let outcome = explain(&asked(&scene));
    assert!(
        outcome.verdict.findings.iter().any(|finding| finding.cause == Cause::LockContended),
        "{:?}",
        outcome.verdict.bottleneck
    );
}

#[test]
fn one_full_thread_of_four_is_the_bottleneck() {
    let threads =
        [(0.97, 0), (0.1, 1), (0.1, 1), (0.1, 1)].into_iter().zip(4712..).map(|((run, cpu), tid)| Thread {
            pinned: false,
            ..Thread::new(Role::Sut, "worker", tid, cpu, run, 0.0)
        });
    let mut scene = Scene { threads: threads.collect(), ..Scene::default() };
    scene.threads.push(generator(0.5, 0.0));
    narrows_to(&explain(&asked(&scene)), Cause::OneThreadBound);
}

#[test]
fn open_accounting_gives_no_verdict() {
    let outcome = explain(&asked(&Scene { hidden: 0.03, ..Scene::default() }));
    assert!(outcome.verdict.warnings.iter().any(|warning| warning.id == "accounting-open"));
    let worse =
        Scene { threads: vec![server(0.8, 0.0), generator(0.6, 0.0)], hidden: 0.1, ..Scene::default() };
    let outcome = explain(&asked(&worse));
    assert_eq!((outcome.verdict.valid, outcome.verdict.bottleneck), (false, Cause::Unknown));
}

#[test]
fn an_unseen_server_is_judged_from_the_generator_alone() {
    let full = Scene { threads: vec![generator(0.97, 0.01)], ..Scene::default() };
    let outcome = explain(&asked(&full));
    narrows_to(&outcome, Cause::LoadGeneratorBound);
    assert!(outcome.verdict.warnings.iter().any(|warning| warning.id == "sut-unseen"));
    assert!(matches!(outcome.figures.net, NetOrMissing::Missing(_)));
    let half = Scene { threads: vec![generator(0.5, 0.01)], ..Scene::default() };
    narrows_to(&explain(&asked(&half)), Cause::Unknown);
}

#[test]
fn a_slow_clock_and_more_cpu_per_request_are_parts_of_the_tare() {
    let mut switching = server(0.5, 0.0);
    switching.voluntary_hz = 20_000.0;
    let slow = Scene {
        threads: vec![switching, generator(0.97, 0.0)],
        rate_hz: 40_000.0,
        clock_hz: Some(2.0e9),
        ..Scene::default()
    };
    let outcome = explain(&with_saturating(64, &slow, &Scene { clock_hz: Some(3.0e9), ..Scene::default() }));
    sound(&outcome);
    let part = |cause| outcome.figures.tare.iter().find(|part| part.cause == cause).unwrap().ln_share;
    assert!((part(TareCause::Clock) - 1.5f64.ln()).abs() < 1e-6);
    // 12.5 µs at 2 GHz against 9.7 µs at 3 GHz, in cycles.
    assert!((part(TareCause::Cost) - (25_000.0f64 / 29_100.0).ln()).abs() < 1e-3);
    assert!(outcome.verdict.findings.iter().any(|finding| finding.cause == Cause::ClockDropped));
}

#[test]
fn without_a_clock_costs_are_in_seconds() {
    let outcome = explain(&asked(&Scene { clock_hz: None, ..Scene::default() }));
    sound(&outcome);
    assert!(outcome.figures.tare.iter().all(|part| part.cause != TareCause::Clock));
    assert!(outcome.verdict.warnings.iter().any(|warning| warning.id == "clock-missing"));
    let NetOrMissing::Net(net) = &outcome.figures.net else { panic!("{:?}", outcome.figures.net) };
    assert_eq!(net.ref_clock_hz, None);
}

#[test]
fn of_two_nearly_full_sides_the_one_that_waits_less_is_the_bottleneck() {
    // The server 92 % busy, eight generator threads on a CPU without a moment to spare.
    let threads = (0..8).map(|i| Thread::new(Role::Load, "wrk", 900 + i, 1, 0.1245, 0.6));
    let mut scene = Scene { threads: threads.collect(), ..Scene::default() };
    scene.threads.push(server(0.92, 0.0));
    narrows_to(&explain(&asked(&scene)), Cause::LoadGeneratorBound);
    let even = Scene { threads: vec![server(0.97, 0.01), generator(0.98, 0.01)], ..Scene::default() };
    narrows_to(&explain(&asked(&even)), Cause::ServerCpuBound);
}

#[test]
fn time_stolen_from_an_idle_cpu_is_not_counted_twice() {
    // Run 0.3, idle 0.6, steal 0.3: at wake-ups the hypervisor took time that the guest took for idle.
    let scene = Scene {
        threads: vec![server(0.3, 0.0), generator(0.2, 0.0)],
        steal: 0.3,
        hidden: -0.2,
        scheduled_hz: Some(100_000.0),
        ..Scene::default()
    };
    let outcome = explain(&asked(&scene));
    narrows_to(&outcome, Cause::OfferedLoad);
    sound(&outcome);
    assert!((outcome.accounting.cpus[0].idle - 0.4).abs() < 1e-6);
    // More than the steal is a gap.
    let open = Scene { hidden: -0.5, ..scene };
    assert!(explain(&asked(&open)).accounting.residual_ratio.unwrap() > 0.19);
}

#[test]
fn what_the_idle_task_had_beyond_idle_time_is_interrupts_and_closes_the_accounting() {
    // A fifth of the CPU is in no counter, or in two.
    for (hidden, idle) in [(0.2, 0.5), (-0.2, 0.7)] {
        let threads = vec![server(0.3, 0.0), generator(0.2, 0.0)];
        let scene = Scene { threads, hidden, scheduled_hz: Some(100_000.0), ..Scene::default() };
        let with_idle_task = |share: f64| {
            let mut record = asked(&scene);
            for trial in &mut record.trials {
                let column = scene.column(&cpus::IDLE_TASK_NS, Subject::Cpu(0), 1e9 * share);
                trial.observation.columns.push(column);
            }
            explain(&record).accounting
        };
        assert!(explain(&asked(&scene)).accounting.residual_ratio.unwrap() > 0.19);
        let accounting = with_idle_task(0.7);
        assert!(accounting.residual_ratio.unwrap() < 1e-3, "{accounting:#?}");
        let cpu = &accounting.cpus[0];
        assert!((cpu.idle - idle).abs() < 1e-6 && (cpu.irq - (0.7 - idle)).abs() < 1e-6, "{cpu:#?}");
        assert_eq!(cpu.irq_error, None);
        // What neither a task nor the idle task was charged with is a gap.
        assert!((with_idle_task(0.6).residual_ratio.unwrap() - 0.1).abs() < 1e-3);
    }
}

#[test]
fn what_the_idle_task_may_have_run_unseen_is_no_gap() {
    let threads = vec![server(0.3, 0.0), generator(0.2, 0.0)];
    // Idle for 0.65 of the time and in interrupts for 0.05, of which the program at the switches saw 0.6 together.
    let scene = Scene { threads, hidden: 0.05, scheduled_hz: Some(100_000.0), ..Scene::default() };
    let with_unseen = |share: f64| {
        let mut record = asked(&scene);
        for trial in &mut record.trials {
            let columns = [(&cpus::IDLE_TASK_NS, 0.6), (&cpus::IDLE_TASK_UNSEEN_NS, share)];
            let columns = columns.map(|(metric, share)| scene.column(metric, Subject::Cpu(0), 1e9 * share));
            trial.observation.columns.extend(columns);
        }
        let accounting = explain(&record).accounting;
        (accounting.residual_ratio.unwrap(), accounting.cpus[0].idle, accounting.cpus[0].irq_error)
    };
    let close = |one: f64, other: f64| assert!((one - other).abs() < 1e-3, "{one} is not {other}");
    for (unseen, residual, idle, error) in [
        (0.0, 0.1, 0.6, 0.0),
        (0.04, 0.06, 0.64, 0.0),
        (0.05, 0.05, 0.65, 0.0),
        // Idle time is known, the rest within what was not seen.
        (0.07, 0.03, 0.65, 0.02),
        (0.08, 0.02, 0.65, 0.03),
        // So much is to be seen whatever may be unseen.
        (0.5, 0.02, 0.65, 0.45),
        (2.0, 0.02, 0.65, 0.65),
    ] {
        let found = with_unseen(unseen);
        close(found.0, residual);
        close(found.1, idle);
        close(found.2.unwrap_or(0.0), error);
    }
}

#[test]
fn a_schedule_that_was_missed_is_no_result() {
    let scene = |rate_hz| Scene { rate_hz, scheduled_hz: Some(100_000.0), ..Scene::default() };
    let missed = explain(&asked(&scene(90_000.0)));
    assert!(
        !missed.verdict.valid
            && missed.verdict.warnings.iter().any(|warning| warning.id == "schedule-missed")
    );
    assert!(explain(&asked(&scene(100_000.0))).verdict.valid);
}

#[test]
fn a_report_of_another_time_than_the_window_is_no_result() {
    // The windows are of 2 s.
    let reported = |said_s: f64, stderr: &str| {
        let mut record = asked(&Scene::default());
        for trial in &mut record.trials {
            let window_ns = Some((said_s * 1e9) as u64);
            trial.report = Some(Box::new(GeneratorReport { window_ns, stderr: stderr.to_owned() }));
        }
        explain(&record)
    };
    let warns = |outcome: &Outcome, id: &str| outcome.verdict.warnings.iter().any(|warning| warning.id == id);
    // A little less than the window, and a set-up more.
    for said_s in [1.5, 1.9, 2.1, 3.0] {
        let outcome = reported(said_s, "");
        assert!(outcome.verdict.valid && !warns(&outcome, "report-of-other-time"), "{said_s}");
        assert!(!warns(&outcome, "generator-complains"));
    }
    for said_s in [0.5, 1.2, 5.0] {
        let outcome = reported(said_s, "");
        assert!(!outcome.verdict.valid && warns(&outcome, "report-of-other-time"), "{said_s}");
    }
    // What it wrote is passed on, and does not make its counts wrong.
    let outcome = reported(2.0, "missing.lua: cannot open");
    let said = outcome.verdict.warnings.iter().find(|warning| warning.id == "generator-complains").unwrap();
    assert!(outcome.verdict.valid && said.text.ends_with("missing.lua: cannot open"), "{said:?}");
    let outcome = reported(2.0, "one\ntwo\nthree\nfour\nfive");
    let said = outcome.verdict.warnings.iter().find(|warning| warning.id == "generator-complains").unwrap();
    assert!(said.text.ends_with("one · two · three · 2 more lines"), "{said:?}");
}

#[test]
fn a_server_that_is_hardly_asked_is_still_there() {
    let scene = Scene {
        threads: vec![server(0.0005, 0.0), generator(0.01, 0.0)],
        rate_hz: 10.0,
        scheduled_hz: Some(10.0),
        ..Scene::default()
    };
    let outcome = explain(&asked(&scene));
    narrows_to(&outcome, Cause::OfferedLoad);
    assert!(outcome.verdict.warnings.iter().all(|warning| warning.id != "sut-unseen"));
}

#[test]
fn a_count_that_nobody_tells_is_missing_and_not_zero() {
    let mut record = asked(&Scene::default());
    for trial in &mut record.trials {
        if let Measure::Http(sample) = &mut trial.sample {
            sample.requests = Reading::Missing(Missing::new("the generator keeps it to itself"));
        }
    }
    let outcome = explain(&record);
    assert!(!outcome.verdict.valid && outcome.figures.gross.value().is_none(), "{:?}", outcome.figures.gross);
    assert!(outcome.verdict.warnings.iter().any(|warning| warning.id == "requests-unknown"));
    let json = serde_json::to_value(&outcome).unwrap();
    assert!(
        json["gross"]["missing"].is_string() && json["gross"].get("value").is_none(),
        "{}",
        json["gross"]
    );
    assert_eq!(json["gross"]["unit"], "req/s");
    let back: Outcome = serde_json::from_value(json).unwrap();
    assert_eq!(back.figures.gross, outcome.figures.gross);
}
