//! Who works, how many can run at once, and what is a lock and what is not.

use crate::support::*;
use std::collections::BTreeMap;
use tare_explain::explain;
use tare_model::identity::{Identity, Program, Runtime, Setting};
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics::{connections, jvm, network, tasks};
use tare_model::observation::{Column, Observation, Role, Sample};
use tare_model::outcome::{Cause, Finding, NetOrMissing, Outcome};
use tare_model::plan::Purpose;
use tare_model::schedule::{LockHolder, ProgramLock, Schedule, ScheduleSource};
use tare_model::trial::{ErrorKind, Measure, Trial};
use tare_model::{Reading, Record};

/// A thread of the server that may use both CPUs.
fn free(name: &'static str, tid: u32, cpu: u32, run: f64) -> Thread {
    Thread { pinned: false, ..Thread::new(Role::Sut, name, tid, cpu, run, 0.0) }
}

fn scene(threads: Vec<Thread>) -> Scene {
    let threads = threads.into_iter().chain([generator(0.15, 0.0)]).collect();
    Scene { threads, rate_hz: 1000.0, ..Scene::default() }
}

fn each(mut record: Record, change: impl Fn(&mut Trial)) -> Record {
    record.trials.iter_mut().for_each(change);
    record
}

/// The same with a column of the machine, at both edges.
fn counted(record: Record, metric: &Descriptor, values: [f64; 2]) -> Record {
    each(record, |trial| {
        let Observation { begin_ns, end_ns, .. } = trial.observation;
        let sample = |(at_ns, value): (u64, f64)| Sample { at_ns, value };
        let samples = [begin_ns, end_ns].into_iter().zip(values).map(sample).collect();
        let columns = &mut trial.observation.columns;
        columns.retain(|column| column.metric != metric.id);
        columns.push(Column { metric: metric.id.to_owned(), subject: Subject::Machine, samples });
    })
}

/// The same in which what these threads were found waiting for was a futex that is no lock's.
fn parked(record: Record, of: &[u32]) -> Record {
    each(record, |trial| {
        for column in &mut trial.observation.columns {
            let mine = of.iter().any(|task| column.subject == Subject::Task(*task));
            if mine && column.metric == tasks::SAMPLES_EVENT.id {
                column.metric = tasks::SAMPLES_PARKED.id.to_owned();
            }
        }
    })
}

/// The same with samples of how many ran at once.
fn at_once(record: Record, counts: &[u64]) -> Record {
    each(record, |trial| {
        trial.observation.schedule = Some(Box::new(Schedule {
            source: ScheduleSource::Samples,
            not_traced: None,
            events_lost: 0,
            events: 0,
            threads: Vec::new(),
            held: Vec::new(),
            at_once: counts.to_vec(),
            locks: Vec::new(),
            kernel_locks: Vec::new(),
            locks_not_traced: None,
            downstream: Vec::new(),
        }));
    })
}

/// The same of a program at this path.
fn of_program(
    mut record: Record,
    path: &str,
    runtime: Option<Runtime>,
    environment: &[(&str, &str)],
) -> Record {
    let missing = || Reading::missing("not read");
    let variable = |(key, value): &(&str, &str)| ((*key).to_owned(), Setting::Clear((*value).to_owned()));
    let program = Program {
        role: Role::Sut,
        processes: 1,
        pids: vec![SUT_PID],
        path: Reading::Measured(path.to_owned()),
        size_bytes: Reading::missing("not read"),
        build_id: missing(),
        sha256: missing(),
        runtime,
        arguments: Reading::missing("not read"),
        environment: Reading::Measured(environment.iter().map(variable).collect::<BTreeMap<_, _>>()),
    };
    let known = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/records/nginx-undisturbed.tare");
    let identity = tare_store::read(known.as_ref()).expect("opens").identity.expect("knows who took part");
    record.identity = Some(Box::new(Identity { programs: vec![program], ..*identity }));
    record
}

fn named(record: &Record, cause: Cause) -> (Outcome, Finding) {
    let outcome = explain(record);
    let found = &outcome.verdict;
    assert_eq!(found.bottleneck, cause, "{:#?}\n{:#?}", found.findings, outcome.accounting);
    let finding =
        found.findings.iter().find(|finding| finding.cause == cause).expect("has its finding").clone();
    (outcome, finding)
}

fn entitled(outcome: &Outcome) -> f64 {
    outcome.accounting.sut.as_ref().expect("seen").entitled_cpus
}

fn net(outcome: &Outcome) -> f64 {
    match &outcome.figures.net {
        NetOrMissing::Net(net) => net.value,
        NetOrMissing::Missing(missing) => panic!("{missing}"),
    }
}

#[test]
fn helpers_of_an_event_loop_make_no_four_threads_and_no_lock() {
    let helpers = (2..6).map(|tid| free("node", SUT_PID + tid, 1, 0.02));
    let mut threads = vec![free("node", SUT_PID, 0, 0.97)];
    threads.extend(helpers.chain([free("DelayedTaskSche", SUT_PID + 9, 1, 0.002)]));
    let record = of_program(parked(asked(&scene(threads)), &[1, 2, 3, 4]), "/usr/bin/node", None, &[]);
    let (outcome, finding) = named(&record, Cause::OneThreadBound);
    assert!(finding.summary.contains("One thread does"), "{}", finding.summary);
    assert!((entitled(&outcome) - 1.08).abs() < 0.02, "one loop and what its helpers ran");
    assert!(net(&outcome) < 1150.0, "net is for one loop");
    assert!(!outcome.verdict.findings.iter().any(|finding| finding.cause == Cause::LockContended));
}

#[test]
fn a_loop_on_the_one_cpu_that_it_may_use_is_bound_by_that() {
    let threads = vec![server(0.97, 0.0), Thread { tid: 4720, ..server(0.004, 0.0) }];
    named(&asked(&scene(threads)), Cause::ServerCpuBound);
}

#[test]
fn go_runs_as_many_threads_as_its_setting_says() {
    let threads = (0..5).map(|at| free("hello", SUT_PID + at, at % 2, 0.19)).collect();
    let record = parked(asked(&scene(threads)), &[0, 1, 2, 3, 4]);
    let limited = of_program(record.clone(), "/srv/hello", Some(Runtime::Go), &[("GOMAXPROCS", "1")]);
    let (outcome, finding) = named(&limited, Cause::ParallelismLimited);
    assert!(finding.summary.contains("GOMAXPROCS is 1"), "{}", finding.summary);
    assert!((entitled(&outcome) - 1.0).abs() < 0.01 && net(&outcome) < 1100.0);
    // The same without it has two CPUs and did not use one of them: nobody knows why.
    let free = of_program(record, "/srv/hello", Some(Runtime::Go), &[]);
    assert_eq!(explain(&free).verdict.bottleneck, Cause::Unknown);
}

/// A second processor of Go's could use no more than the quota gives.
#[test]
fn a_limit_of_one_under_a_quota_of_one_cpu_keeps_nothing_unused() {
    let of = |quota| {
        let threads = (0..5).map(|at| free("hello", SUT_PID + at, at % 2, 0.19)).collect();
        let record = parked(asked(&Scene { quota, ..scene(threads) }), &[0, 1, 2, 3, 4]);
        let limited = of_program(record, "/srv/hello", Some(Runtime::Go), &[("GOMAXPROCS", "1")]);
        explain(&limited).verdict.bottleneck
    };
    assert_eq!(of(Some(("/sut", 1.0))), Cause::ServerCpuBound);
    assert_eq!(of(Some(("/sut", 1.4))), Cause::ParallelismLimited);
}

#[test]
fn pythons_threads_run_one_at_a_time() {
    let threads = (0..8).map(|at| free("python3", SUT_PID + at, at % 2, 0.125)).collect();
    let record = parked(asked(&scene(threads)), &[0, 1, 2, 3, 4, 5, 6, 7]);
    let record = of_program(record, "/usr/bin/python3.11", None, &[]);
    let (_, finding) = named(&record, Cause::ParallelismLimited);
    assert!(finding.summary.contains("interpreter lock"), "{}", finding.summary);
}

/// uWSGI and its like are named otherwise, and bring the interpreter along; what they also do may be no work of it.
#[test]
fn a_program_that_brought_an_interpreter_along_has_its_lock_where_threads_wait_for_each_other() {
    let threads = |run: f64| (0..4).map(|at| free("uwsgi", SUT_PID + at, at % 2, run)).collect();
    let of = |record| of_program(record, "/usr/bin/uwsgi-core", Some(Runtime::Python), &[]);
    let (_, finding) =
        named(&of(parked(asked(&scene(threads(0.25))), &[0, 1, 2, 3])), Cause::ParallelismLimited);
    assert!(finding.summary.contains("interpreter lock"), "{}", finding.summary);
    let outcome = explain(&of(parked(asked(&scene(threads(0.25))), &[0, 1, 2, 3])));
    // Go's runtime is asked for its own garbage collector, and no other's.
    assert!(
        !outcome.verdict.warnings.iter().any(|warning| warning.text.contains("gc-pauses")),
        "{outcome:#?}"
    );
    let outcome = explain(&of(asked(&scene(threads(0.25)))));
    assert!(!outcome.verdict.findings.iter().any(|finding| finding.cause == Cause::ParallelismLimited));
}

/// What computes outside of the interpreter's lock (hashes, compression) uses all CPUs.
#[test]
fn pythons_threads_may_run_outside_of_their_lock() {
    let threads = (0..8).map(|at| free("python3", SUT_PID + at, at % 2, 0.22)).collect();
    let record = parked(asked(&scene(threads)), &[0, 1, 2, 3, 4, 5, 6, 7]);
    let record = of_program(record, "/usr/bin/python3.11", None, &[]);
    let (outcome, _) = named(&record, Cause::ServerCpuBound);
    assert!(!outcome.verdict.findings.iter().any(|finding| finding.cause == Cause::ParallelismLimited));
}

#[test]
fn what_no_sample_saw_exceeded_is_a_limit_and_an_idle_pool_is_none() {
    let pool = |run: f64| (0..4).map(|at| free("worker", SUT_PID + at, at % 2, run)).collect();
    let record = |run, counts: &[u64]| at_once(parked(asked(&scene(pool(run))), &[0, 1, 2, 3]), counts);
    let (outcome, finding) = named(&record(0.245, &[2, 195, 3]), Cause::ParallelismLimited);
    assert!(finding.summary.contains("most of the time 1 of its threads ran at once"), "{}", finding.summary);
    assert!((entitled(&outcome) - 1.0).abs() < 0.01);
    for (run, counts) in [(0.02, [184, 15, 1]), (0.245, [60, 80, 60])] {
        let outcome = explain(&record(run, &counts));
        let names =
            [Cause::ParallelismLimited, Cause::LockContended, Cause::WorkersExhausted, Cause::OneThreadBound];
        assert!(!names.contains(&outcome.verdict.bottleneck), "{:?}", outcome.verdict.bottleneck);
        assert!(!outcome.verdict.findings.iter().any(|finding| names.contains(&finding.cause)));
    }
}

#[test]
fn two_threads_that_take_turns_at_a_mutex_are_serialized_by_it() {
    let locked = |tid, cpu| Thread { samples: Some([0.0, 1.0, 0.0, 0.0]), ..free("mutex", tid, cpu, 0.5) };
    let joins = free("mutex", SUT_PID, 0, 0.0);
    let scene =
        Scene { threads: vec![joins, locked(SUT_PID + 1, 0), locked(SUT_PID + 2, 1)], ..Scene::default() };
    let runs = [(2.0, 0, scene.clone()), (2.01, 0, scene.clone()), (1.99, 0, scene)];
    let record = at_once(parked(commands(&runs), &[0]), &[1, 197, 2]);
    let (outcome, finding) = named(&record, Cause::LockContended);
    assert!((entitled(&outcome) - 1.0).abs() < 0.01, "net is for one CPU");
    assert!(finding.summary.contains("1.00 CPUs were busy of 2"), "{}", finding.summary);

    // Traced, the lock has a name, somebody who had it, and a time.
    let traced = each(record, |trial| {
        let holder = |tid, count| LockHolder { name: "mutex".to_owned(), tid, count };
        trial.observation.schedule.as_mut().unwrap().locks = vec![ProgramLock {
            at: "cache_lock in /srv/app".to_owned(),
            count: 40,
            ns: 1_000_000_000,
            holds: 30,
            held_ns: 60_000_000,
            holders: vec![holder(SUT_PID + 1, 30), holder(SUT_PID + 2, 10)],
        }];
    });
    let (outcome, finding) = named(&traced, Cause::LockContended);
    let named = format!(
        "for cache_lock in /srv/app, held for 2.0 ms each time; mutex (thread {}) had it in 75 % of the cases.",
        SUT_PID + 1
    );
    assert!(finding.summary.contains(&named), "{}", finding.summary);
    let locks = &outcome.accounting.switches.as_ref().unwrap().locks;
    assert_eq!((locks.len(), locks[0].held_ns), (1, Some(2e6)));
}

/// Go moves work from thread to thread: one of them may be full all the time without being all that there is.
#[test]
fn a_mutex_of_gos_own_is_a_limit_of_a_server_and_one_goroutine_is_none_of_a_program() {
    let full = || free("hello", SUT_PID + 1, 0, 0.82);
    let helper = || free("hello", SUT_PID + 2, 1, 0.18);
    let go = |record| {
        of_program(at_once(parked(record, &[0, 1]), &[3, 170, 27]), "/srv/hello", Some(Runtime::Go), &[])
    };
    let (outcome, _) = named(&go(asked(&scene(vec![full(), helper()]))), Cause::ParallelismLimited);
    assert!((entitled(&outcome) - 1.0).abs() < 0.01);
    let program = Scene { threads: vec![full(), helper()], ..Scene::default() };
    let outcome = explain(&go(commands(&[(2.0, 0, program.clone()), (2.01, 0, program)])));
    assert!(!outcome.verdict.findings.iter().any(|finding| finding.cause == Cause::ParallelismLimited));
}

/// `go test -bench` of one goroutine: the runtime moves it from thread to thread, and none of them is full.
#[test]
fn a_benchmark_of_one_thread_is_its_own_limit_and_no_fault() {
    let moved = |at: u32, run: f64| free("bench.test", SUT_PID + at, at % 2, run);
    let scene = Scene { threads: vec![moved(1, 0.48), moved(2, 0.5)], ..Scene::default() };
    let runs = [(2.0, 0, scene.clone()), (2.01, 0, scene.clone()), (1.99, 0, scene)];
    let record = at_once(parked(commands(&runs), &[0, 1]), &[2, 190, 8]);
    for runtime in [Some(Runtime::Go), None] {
        let record = of_program(record.clone(), "/srv/bench.test", runtime, &[]);
        let (outcome, finding) = named(&record, Cause::ProgramCpuBound);
        assert!(
            finding.summary.contains("One thread works at a time: more of the 2 CPUs"),
            "{}",
            finding.summary
        );
        assert!(
            !outcome.verdict.findings.iter().any(|finding| finding.cause == Cause::ParallelismLimited),
            "{:#?}",
            outcome.verdict.findings
        );
    }
    // The setting of its environment is another matter: that can be raised.
    let limited = of_program(record, "/srv/bench.test", Some(Runtime::Go), &[("GOMAXPROCS", "1")]);
    named(&limited, Cause::ParallelismLimited);
    // A program that uses both CPUs has no such limit, and nothing is said of one.
    let both = Scene { threads: vec![moved(1, 0.97), moved(2, 0.97)], ..Scene::default() };
    let record = commands(&[(2.0, 0, both.clone()), (2.01, 0, both)]);
    let (_, finding) = named(&record, Cause::ProgramCpuBound);
    assert!(!finding.summary.contains("works"), "{}", finding.summary);
}

/// Two threads that wait for each other, as those of a sort do, beside builds: whether a wait of one delayed the end by all of it or by a part is
/// not known, and the interval of net says so. Nobody calls that a lock.
#[test]
fn net_of_threads_that_wait_for_each_other_is_no_more_exact_than_what_is_known() {
    let sorts = |at: u32, run: f64, wait: f64| Thread { wait, ..free("sort", SUT_PID + at, at % 2, run) };
    let build = |cpu: u32| Thread::new(Role::Other, "cc1", 900 + cpu, cpu, 0.4, 0.0);
    let beside = |threads: Vec<Thread>| {
        let scene =
            Scene { threads: threads.into_iter().chain([build(0), build(1)]).collect(), ..Scene::default() };
        let runs = [(2.0, 0, scene.clone()), (2.01, 0, scene.clone()), (1.99, 0, scene)];
        explain(&commands(&runs))
    };
    let bounds = |outcome: &Outcome| match &outcome.figures.net {
        NetOrMissing::Net(net) => (net.value, net.ci95.expect("three runs")),
        NetOrMissing::Missing(missing) => panic!("{missing}"),
    };
    let outcome = beside(vec![sorts(1, 0.2, 0.1), sorts(2, 0.5, 0.45)]);
    let (value, [low, high]) = bounds(&outcome);
    assert!(value > 1.05 && low < 0.95 && high > value, "{low} {value} {high}");
    let names = [Cause::LockContended, Cause::ParallelismLimited];
    assert!(!names.contains(&outcome.verdict.bottleneck), "{:?}", outcome.verdict.bottleneck);
    // Of one thread each wait delays the end by all of it.
    let (value, [low, _]) = bounds(&beside(vec![sorts(2, 0.5, 0.45)]));
    assert!(low > 0.97 * value, "{low} {value}");
}

/// Workers wait for the lock of an accept queue while there are fewer requests than workers.
#[test]
fn more_threads_in_a_lock_than_requests_wait_for_work() {
    let bottleneck = |connections| {
        let worker = |at| Thread {
            samples: Some([0.0, 1.0, 0.0, 0.0]),
            ..free("worker", SUT_PID + 1 + at, at % 2, 0.08)
        };
        let record = asked(&Scene { latency: false, ..scene((0..16).map(worker).collect()) });
        let with = |trial: &mut Trial| {
            let Measure::Http(sample) = &mut trial.sample else { unreachable!() };
            sample.connections = Reading::Measured(connections);
        };
        explain(&each(record, with)).verdict
    };
    assert_eq!(bottleneck(64).bottleneck, Cause::LockContended);
    let few = bottleneck(4);
    assert!(!few.findings.iter().any(|finding| finding.cause == Cause::LockContended), "{:#?}", few.findings);
}

#[test]
fn a_thread_that_waits_for_another_to_end_waits_for_no_lock() {
    let (main, worker) = (free("sysbench", SUT_PID, 0, 0.0), free("sysbench", SUT_PID + 1, 1, 0.99));
    let scene = Scene { threads: vec![main, worker], ..Scene::default() };
    let record = parked(commands(&[(2.0, 0, scene.clone()), (2.0, 0, scene)]), &[0]);
    let (outcome, _) = named(&record, Cause::ProgramCpuBound);
    assert!(!outcome.verdict.findings.iter().any(|finding| finding.cause == Cause::LockContended));
}

#[test]
fn workers_that_all_sleep_while_requests_wait_are_too_few() {
    let workers = |asleep: [f64; 4]| {
        let worker =
            move |at| Thread { samples: Some(asleep), ..free("pool", SUT_PID + 1 + at, at % 2, 0.004) };
        (0..4).map(worker).collect::<Vec<_>>()
    };
    let slow = |asleep| Scene { rate_hz: 200.0, latency: false, ..scene(workers(asleep)) };
    let (_, finding) = named(&asked_at(64, &slow([0.0, 0.0, 0.0, 1.0])), Cause::WorkersExhausted);
    assert!(
        finding.summary.contains("All 4 workers") && finding.summary.contains("20.0 ms"),
        "{}",
        finding.summary
    );
    // One of them hardly ran in a trial and was not seen there; one ended, and has a successor in the next.
    let asleep = [0.0, 0.0, 0.0, 1.0];
    let mut trials = vec![(0, slow(asleep)); 4];
    trials[1].1.threads.remove(0);
    trials[2].1.threads[0].tid += 20;
    let (_, finding) = named(&record(vec![level(Purpose::Asked, 64)], &trials), Cause::WorkersExhausted);
    assert!(
        finding.summary.contains("All 4 workers") && finding.summary.contains("20.0 ms"),
        "{}",
        finding.summary
    );
    // Half of their time they have nothing to do.
    for outcome in [
        explain(&asked_at(64, &slow([0.5, 0.0, 0.0, 0.5]))),
        explain(&asked_at(64, &slow([1.0, 0.0, 0.0, 0.0]))),
    ] {
        assert_ne!(outcome.verdict.bottleneck, Cause::WorkersExhausted);
        assert!(!outcome.verdict.findings.iter().any(|finding| finding.cause == Cause::WorkersExhausted));
    }
}

/// Eight threads of a JVM of which a monitor lets one through at a time: their sleep is that of threads without work.
#[test]
fn a_monitor_that_requests_pass_one_by_one_is_a_lock() {
    let tids: Vec<u32> = (1..9).map(|at| SUT_PID + 1 + at).collect();
    let record = |run: f64, samples: [f64; 4], contended: f64| {
        let pool =
            tids.iter().map(|tid| Thread { samples: Some(samples), ..free("pool", *tid, tid % 2, run) });
        let record = asked_at(16, &Scene { latency: false, ..scene(pool.collect()) });
        let record = if samples[0] == 1.0 { parked(record, &[0, 1, 2, 3, 4, 5, 6, 7]) } else { record };
        // 2,000 requests in two seconds.
        counted(record, &jvm::CONTENDED, [7.0, 7.0 + contended])
    };
    let without_work = [1.0, 0.0, 0.0, 0.0];
    let (_, finding) = named(&record(0.12, without_work, 1800.0), Cause::LockContended);
    assert!(finding.summary.contains("found it taken 0.9 times"), "{}", finding.summary);
    for (run, samples, contended) in [
        // Seldom taken.
        (0.12, without_work, 100.0),
        // As many run as there are CPUs.
        (0.24, without_work, 1800.0),
        // Hardly anybody does anything who could have it: requests are on the wire.
        (0.02, without_work, 1800.0),
        // All sleep outside of it, or wait for sockets.
        (0.05, [0.0, 0.0, 0.0, 1.0], 1800.0),
        (0.12, [0.999, 0.0, 0.0, 0.0], 1800.0),
    ] {
        let outcome = explain(&record(run, samples, contended));
        let is_lock = |finding: &Finding| finding.cause == Cause::LockContended;
        assert!(!outcome.verdict.findings.iter().any(is_lock), "{run} {samples:?} {contended}");
    }
}

/// Two workers of a runtime whose sleeps have no name of their own.
#[test]
fn a_server_that_leaves_connections_in_its_accept_queue_has_too_few_workers() {
    let worker = |at| Thread {
        samples: Some([0.2, 0.0, 0.0, 0.0]),
        ..free("unicorn", SUT_PID + 1 + at, at % 2, 0.02)
    };
    let scene = Scene { rate_hz: 95.0, latency: false, ..scene((0..2).map(worker).collect()) };
    let record = |waiting: f64, overflows: f64| {
        let record = counted(asked_at(16, &scene), &connections::WAITING, [waiting; 2]);
        counted(record, &network::LISTEN_OVERFLOWS, [0.0, overflows])
    };
    let (_, finding) = named(&record(14.0, 0.0), Cause::WorkersExhausted);
    assert!(
        finding.summary.contains("All 2 workers") && finding.summary.contains("21.1 ms"),
        "{}",
        finding.summary
    );
    // Nobody waited; or the queue was full, so that those who wait are not all that there are; or a few just came.
    for (waiting, overflows) in [(0.0, 0.0), (14.0, 20.0), (3.0, 0.0)] {
        let outcome = explain(&record(waiting, overflows));
        assert!(!outcome.verdict.findings.iter().any(|finding| finding.cause == Cause::WorkersExhausted));
    }
}

#[test]
fn two_threads_on_two_cpus_are_not_too_many() {
    let worker = |tid| Thread { pinned: false, ..Thread::new(Role::Sut, "nginx", tid, 0, 0.3, 0.2) };
    let load = generator(0.6, 0.0);
    let scene =
        Scene { threads: vec![worker(4712), worker(4713), load], rate_hz: 30_000.0, ..Scene::default() };
    let outcome = explain(&asked(&scene));
    assert_ne!(outcome.verdict.bottleneck, Cause::Oversubscribed);
    assert!(!outcome.verdict.findings.iter().any(|finding| finding.cause == Cause::Oversubscribed));
    assert!(loss(&outcome, "self-contention") == 0.0 && loss(&outcome, "placement") > 0.3);
}

#[test]
fn attempts_that_found_a_short_queue_full_are_named_with_its_length() {
    let scene = Scene {
        threads: vec![server(0.4, 0.0), generator(0.2, 0.0)],
        rate_hz: 1000.0,
        errors: vec![(ErrorKind::Timeout, 60)],
        listen_overflows: 50.0,
        ..Scene::default()
    };
    let with_backlog = |backlog: f64| {
        each(asked_at(100, &scene), move |trial| {
            let mut column = scene_column(&trial.observation);
            column.samples.iter_mut().for_each(|sample| sample.value = backlog);
            trial.observation.columns.push(column);
        })
    };
    let (_, finding) = named(&with_backlog(5.0), Cause::ListenOverflow);
    assert!(finding.summary.contains("room for 5"), "{}", finding.summary);
    // A queue that has room for all of them was filled by somebody else's connections.
    assert_eq!(explain(&with_backlog(511.0)).verdict.bottleneck, Cause::Errors);
}

fn scene_column(observation: &tare_model::observation::Observation) -> tare_model::observation::Column {
    let sample = tare_model::observation::Sample { at_ns: observation.end_ns, value: 0.0 };
    tare_model::observation::Column {
        metric: connections::BACKLOG.id.to_owned(),
        subject: Subject::Machine,
        samples: vec![sample],
    }
}
