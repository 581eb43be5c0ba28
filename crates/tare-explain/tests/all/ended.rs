//! Work of processes that end between two samples.

use crate::support::{Scene, Thread, generator, level, record, server};
use tare_explain::explain;
use tare_model::Record;
use tare_model::ended::Ended;
use tare_model::metric::Subject;
use tare_model::metrics::tasks;
use tare_model::observation::{Column, Role, Sample};
use tare_model::outcome::{Cause, Outcome};
use tare_model::plan::Purpose;

/// A server with a process for each request: it forks for 25 % of the time of CPU 0, its children take the rest of it.
fn forking(ended: Option<Vec<Ended>>) -> Scene {
    let parent = server(0.25, 0.05);
    Scene { threads: vec![parent, generator(0.3, 0.0)], rate_hz: 1000.0, ended, ..Scene::default() }
}

fn children(run_s: f64) -> Vec<Ended> {
    let ns = |seconds: f64| (seconds * 1e9) as u64;
    vec![Ended {
        name: "python3".to_owned(),
        role: Role::Sut,
        count: 2000,
        run_ns: ns(run_s),
        wait_ns: ns(run_s / 2.0),
        life_ns: ns(2.0 * run_s),
        user_ns: ns(run_s / 2.0),
        system_ns: ns(run_s / 2.0),
    }]
}

fn three(scene: &Scene) -> Record {
    record(vec![level(Purpose::Asked, 64)], &[(0, scene.clone()), (0, scene.clone()), (0, scene.clone())])
}

fn cost_ns(outcome: &Outcome) -> f64 {
    let sut = outcome.accounting.sut.as_ref().unwrap();
    1e9 * sut.busy_cpus / outcome.figures.gross.value().unwrap()
}

fn has_warning(outcome: &Outcome, id: &str) -> bool {
    outcome.verdict.warnings.iter().any(|warning| warning.id == id)
}

/// Counters of a machine or a task at the ends of each window.
fn add(record: &mut Record, metric: &str, subject: &Subject, values: [f64; 2]) {
    for trial in &mut record.trials {
        let stamps = [trial.observation.begin_ns, trial.observation.end_ns];
        let samples =
            stamps.iter().zip(values).map(|(at_ns, value)| Sample { at_ns: *at_ns, value }).collect();
        trial.observation.columns.push(Column {
            metric: metric.to_owned(),
            subject: subject.clone(),
            samples,
        });
    }
}

#[test]
fn children_that_ended_are_the_servers() {
    // 0.25 and 0.70 CPUs at 1000 requests a second.
    let outcome = explain(&three(&forking(Some(children(1.4)))));
    assert!((cost_ns(&outcome) - 950_000.0).abs() < 1000.0, "{}", cost_ns(&outcome));
    assert_eq!(outcome.verdict.bottleneck, Cause::ServerCpuBound, "{:#?}", outcome.verdict);
    assert!(outcome.verdict.valid, "{:#?}", outcome.verdict.warnings);
    assert!(outcome.verdict.findings.iter().all(|finding| finding.cause != Cause::CpuContended));
    let cpu = &outcome.accounting.cpus[0];
    assert!((cpu.sut - 0.95).abs() < 0.005 && cpu.others < 0.005, "{cpu:?}");
}

#[test]
fn where_no_end_is_reported_the_parents_times_count() {
    let mut scene = forking(Some(children(1.4)));
    scene.throttled.clear();
    let mut record = three(&scene);
    for trial in &mut record.trials {
        trial.observation.ended = None;
        trial.observation.tasks[0].tid = trial.observation.tasks[0].pid;
    }
    // Those that ended before the window are in the counter, too.
    add(&mut record, tasks::CHILDREN_USER_NS.id, &Subject::Task(0), [7.0e9, 7.9e9]);
    add(&mut record, tasks::CHILDREN_SYSTEM_NS.id, &Subject::Task(0), [2.0e9, 2.5e9]);
    let outcome = explain(&record);
    assert!((cost_ns(&outcome) - 950_000.0).abs() < 1000.0, "{}", cost_ns(&outcome));
    assert_eq!(outcome.verdict.bottleneck, Cause::ServerCpuBound, "{:#?}", outcome.verdict);
}

/// The kernel reports at an end what it had counted by then: of a child of half a millisecond, little. A parent that ignores SIGCHLD never learns the
/// rest.
#[test]
fn what_the_kernel_left_out_at_the_ends_is_theirs_where_nobody_waits_for_them() {
    let others =
        |count| Ended { name: "cron".to_owned(), role: Role::Other, count, ..children(0.01)[0].clone() };
    let explained = |beside: u64| {
        let mut scene = forking(Some(children(1.4)));
        scene.throttled.clear();
        let mut record = three(&scene);
        for trial in &mut record.trials {
            trial.observation.ended = Some([children(0.2), vec![others(beside)]].concat());
        }
        add(&mut record, tasks::OTHERS_RUN_NS.id, &Subject::Machine, [0.0, 0.002e9]);
        explain(&record)
    };
    let outcome = explained(2);
    // 0.95 CPUs less what others are known to have run, and a tick for each of two ends of theirs.
    assert!((cost_ns(&outcome) - 940_000.0).abs() < 1000.0, "{}", cost_ns(&outcome));
    assert_eq!(outcome.verdict.bottleneck, Cause::ServerCpuBound, "{:#?}", outcome.verdict);
    assert!(outcome.verdict.valid, "{:#?}", outcome.verdict.warnings);
    // As many of somebody else's ended: half of it may be theirs, and is nobody's.
    assert!(!explained(2000).verdict.valid);
}

#[test]
fn a_child_that_was_seen_does_not_count_twice_when_its_parent_waited_for_it() {
    let mut scene = forking(None);
    scene.throttled.clear();
    scene.threads.push(Thread { pid: 4800, tid: 4800, ..server(0.5, 0.0) });
    let mut record = three(&scene);
    for trial in &mut record.trials {
        trial.observation.tasks[0].tid = trial.observation.tasks[0].pid;
        trial.observation.tasks[2].present_at_end = false;
    }
    // The child had run for 5 s before the window and 1 s in it.
    add(&mut record, tasks::CHILDREN_USER_NS.id, &Subject::Task(0), [1.0e9, 7.0e9]);
    let outcome = explain(&record);
    assert!((cost_ns(&outcome) - 750_000.0).abs() < 2000.0, "{}", cost_ns(&outcome));
}

#[test]
fn the_usage_of_a_group_of_its_own_counts_where_nobody_waited() {
    let mut record = three(&forking(Some(children(1.4))));
    record.trials.iter_mut().for_each(|trial| trial.observation.ended = None);
    let outcome = explain(&record);
    assert!((cost_ns(&outcome) - 950_000.0).abs() < 1000.0, "{}", cost_ns(&outcome));
}

/// Beside a build: its processes end, each after a slice that no tick counted.
#[test]
fn the_last_slices_of_strangers_are_not_unclaimed() {
    let explained = |role: Role| {
        let mut scene = forking(Some(children(0.2)));
        scene.throttled.clear();
        let mut record = three(&scene);
        for trial in &mut record.trials {
            let compiler = Ended {
                name: "cc".to_owned(),
                role,
                count: 50,
                life_ns: 5_000_000_000,
                ..children(0.01)[0].clone()
            };
            trial.observation.ended = Some(vec![compiler]);
        }
        add(&mut record, tasks::OTHERS_RUN_NS.id, &Subject::Machine, [0.0, 0.002e9]);
        explain(&record)
    };
    let outcome = explained(Role::Other);
    assert!(!has_warning(&outcome, "cpu-time-unclaimed"), "{:#?}", outcome.verdict);
}

#[test]
fn what_nobody_claims_makes_the_result_invalid_and_is_said() {
    let unclaimed = |ended: f64| {
        let mut scene = forking(Some(children(ended)));
        scene.throttled.clear();
        let mut record = three(&scene);
        record.trials.iter_mut().for_each(|trial| trial.observation.ended = None);
        add(&mut record, tasks::OTHERS_RUN_NS.id, &Subject::Machine, [0.0, 0.002e9]);
        explain(&record)
    };
    let outcome = unclaimed(1.4);
    assert_ne!(outcome.verdict.bottleneck, Cause::CpuContended, "they may be its own");
    assert!(!outcome.verdict.valid && has_warning(&outcome, "cpu-time-unclaimed"), "{:#?}", outcome.verdict);
    // Three per cent of the server's own are what scans of many threads leave open.
    let outcome = unclaimed(0.015);
    assert!(outcome.verdict.valid && !has_warning(&outcome, "cpu-time-unclaimed"), "{:#?}", outcome.verdict);
}
