//! Whatever a record holds, explaining it ends, does not panic, and yields numbers that are numbers.

use crate::support::*;
use proptest::prelude::*;
use tare_explain::explain;
use tare_explain::gate::{self, Asked};
use tare_model::gate::Run;
use tare_model::metric::Subject;
use tare_model::metrics;
use tare_model::observation::{Absence, Column, Observation, Role, Sample, Task};
use tare_model::outcome::{NetOrMissing, Outcome};
use tare_model::plan::*;
use tare_model::schedule::{
    Behind, Blocked, Downstream, Held, KernelLock, LockHolder, ProgramLock, Schedule, ScheduleSource, Sleep,
    ThreadSchedule,
};
use tare_model::trial::*;
use tare_model::{Missing, Reading, Record};

fn any_reading<T: Clone + std::fmt::Debug + 'static>(
    value: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<Reading<T>> {
    prop_oneof![
        3 => value.prop_map(Reading::Measured),
        1 => Just(Reading::missing("not there")),
        1 => Just(Reading::NotApplicable { not_applicable: "no".to_owned() }),
    ]
    .boxed()
}

/// Values that a broken reader could have stored, and plausible ones.
fn any_value() -> impl Strategy<Value = f64> {
    prop_oneof![prop::num::f64::ANY, 0.0..1e10f64, Just(0.0), Just(f64::MAX), Just(9.2e18)]
}

fn any_stamp() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0..4_000_000_000u64, Just(0), Just(2_000_000_000)]
}

fn any_subject() -> impl Strategy<Value = Subject> {
    prop_oneof![
        Just(Subject::Machine),
        (0..3u32).prop_map(Subject::Cpu),
        (0..5u32).prop_map(Subject::Task),
        any::<u32>().prop_map(Subject::Cpu),
        prop::sample::select(vec!["/a", "/", "/b"]).prop_map(|path| Subject::Group(path.to_owned())),
    ]
}

fn any_metric() -> impl Strategy<Value = String> {
    let ids: Vec<String> =
        metrics::ALL.iter().flat_map(|group| group.iter()).map(|d| d.id.to_owned()).collect();
    prop_oneof![9 => prop::sample::select(ids), 1 => Just("tasks.unheard_of".to_owned())]
}

fn any_column() -> impl Strategy<Value = Column> {
    let sample = (any_stamp(), any_value()).prop_map(|(at_ns, value)| Sample { at_ns, value });
    (any_metric(), any_subject(), prop::collection::vec(sample, 0..4), any::<bool>()).prop_map(
        |(metric, subject, mut samples, sort)| {
            if sort {
                samples.sort_by_key(|sample| sample.at_ns);
            }
            Column { metric, subject, samples }
        },
    )
}

fn any_task() -> impl Strategy<Value = Task> {
    let role = prop::sample::select(vec![Role::Sut, Role::Load, Role::Tare, Role::Other]);
    let cpus = any_reading(prop::collection::vec(0..3u32, 0..3));
    (0..3u32, 0..4u32, role, cpus, any::<bool>(), any::<bool>()).prop_map(
        |(pid, tid, role, allowed_cpus, present_at_begin, present_at_end)| Task {
            pid,
            tid,
            name: format!("thread{tid}"),
            role,
            allowed_cpus,
            present_at_begin,
            present_at_end,
        },
    )
}

/// Of the threads that there may be, with any times at all.
fn any_schedule() -> impl Strategy<Value = Option<Box<Schedule>>> {
    let ns = || prop_oneof![any::<u64>(), 0..3_000_000_000u64];
    let sleep = prop::sample::select(Sleep::ALL.to_vec());
    let blocked = (sleep, ns(), any::<u64>()).prop_map(|(why, ns, count)| Blocked { why, ns, count });
    let behind =
        (0..3u32, ns()).prop_map(|(tid, ns)| Behind { name: "x".into(), tid, role: Role::Other, ns });
    let thread = (
        0..4u32,
        [ns(), ns(), ns(), ns()],
        prop::collection::vec(blocked, 0..3),
        prop::collection::vec(behind, 0..3),
    );
    let thread =
        thread.prop_map(|(tid, [run_ns, unknown_ns, held_ns, delay_ns], blocked, behind)| ThreadSchedule {
            tid,
            run_ns,
            unknown_ns,
            blocked,
            behind,
            held_ns,
            delay_ns,
            wait_edges_ns: i64::try_from(held_ns).ok().map(|ns| ns - 5_000_000),
            waits: vec![1; 70],
            ..ThreadSchedule::default()
        });
    let held = (0..3u32, ns()).prop_map(|(cpu, ns)| Held { cpu, ns });
    let lock = (any::<bool>(), ns()).prop_map(|(spins, ns)| KernelLock {
        at: "lock_sock_nested".into(),
        spins,
        in_interrupt: false,
        locks: 1,
        count: ns,
        ns,
    });
    let program_lock = (ns(), ns(), 0..3u64).prop_map(|(count, ns, holds)| ProgramLock {
        at: "cache_lock in /srv/app".into(),
        count,
        ns,
        holds,
        held_ns: ns,
        holders: vec![LockHolder { name: "worker".into(), tid: 1, count }],
    });
    let parts = (
        prop::collection::vec(thread, 0..4),
        prop::collection::vec(program_lock, 0..3),
        prop::collection::vec(held, 0..3),
        prop::collection::vec(lock, 0..3),
        prop::collection::vec(any::<u64>(), 0..4),
    );
    let schedule = parts.prop_map(|(threads, locks, held, kernel_locks, at_once)| {
        Box::new(Schedule {
            source: ScheduleSource::Tracepoints,
            not_traced: None,
            events_lost: 0,
            events: 0,
            threads,
            held,
            at_once,
            locks,
            kernel_locks,
            locks_not_traced: None,
            downstream: vec![Downstream { peer: "127.0.0.1:1".into(), ns: 0, count: 0 }],
        })
    });
    prop::option::of(schedule)
}

fn any_observation() -> impl Strategy<Value = Observation> {
    let groups = prop::collection::vec(prop::sample::select(vec!["/a", "/", "/b"]), 0..3);
    let absence = (any_metric(), prop::option::of(any_subject())).prop_map(|(metric, subject)| Absence {
        metric,
        subject,
        reason: Missing::new("no privilege"),
    });
    (
        (any_stamp(), any_stamp()),
        prop::collection::vec(any_task(), 0..5),
        groups,
        any::<bool>(),
        prop::collection::vec(any_column(), 0..60),
        prop::collection::vec(absence, 0..3),
        any_schedule(),
    )
        .prop_map(
            |((begin_ns, end_ns), tasks, groups, sut_group_is_own, columns, absences, schedule)| {
                Observation {
                    begin_ns,
                    end_ns,
                    tasks,
                    idle: Vec::new(),
                    sut_groups: groups.into_iter().map(str::to_owned).collect(),
                    sut_group_is_own,
                    columns,
                    absences,
                    stacks: None,
                    downstream: Vec::new(),
                    schedule,
                    ended: None,
                }
            },
        )
}

fn any_http_sample() -> impl Strategy<Value = Measure> {
    let count = || prop_oneof![any::<u64>(), Just(0u64), 1..1_000_000u64];
    let kinds = prop::sample::select(vec![ErrorKind::Connect, ErrorKind::Status, ErrorKind::Timeout]);
    let errors = prop::collection::btree_map(kinds, count(), 0..3);
    let printed = prop::collection::vec((any_value(), any::<u64>()), 0..3);
    (count(), any_reading(count()), errors, printed, prop::option::of(count())).prop_map(
        |(elapsed_ns, requests, errors, printed_quantiles_ns, scheduled)| {
            Measure::Http(HttpSample {
                elapsed_ns,
                requests,
                errors,
                latency: Reading::missing("none"),
                printed_quantiles_ns,
                bytes_in: Reading::missing("none"),
                in_flight: Reading::missing("none"),
                connections: Reading::missing("none"),
                scheduled,
                lateness: None,
                slices: Vec::new(),
                detail: None,
            })
        },
    )
}

fn any_command_sample() -> impl Strategy<Value = Measure> {
    (0..3u32, any::<u64>(), any::<u64>(), any::<u64>(), prop::option::of(any::<i32>())).prop_map(
        |(command, wall_ns, user_ns, system_ns, exit_code)| {
            Measure::Command(CommandSample {
                command,
                wall_ns,
                user_ns,
                system_ns,
                voluntary_switches: 1,
                involuntary_switches: 1,
                rss_bytes_max: 1,
                exit_code,
                signal: None,
                results: None,
                unobserved: false,
            })
        },
    )
}

fn any_workload() -> impl Strategy<Value = Workload> {
    let purpose = prop::sample::select(vec![Purpose::Asked, Purpose::Saturating, Purpose::Reference]);
    let stage = prop::option::of((any::<f64>(), any::<f64>()));
    let levels = (purpose, any::<u32>(), 0..3u32, stage).prop_map(|(purpose, connections, arms, stage)| {
        let stage = stage.map(|(from_hz, to_hz)| PlannedStage { from_hz, to_hz });
        Level { arms, stage, ..level(purpose, connections) }
    });
    let levels = prop::collection::vec(levels, 0..3);
    prop_oneof![
        levels.prop_map(|levels| Workload::Http(http(levels))),
        prop::collection::vec("[a-c]{1,3}", 0..3).prop_map(|commands| Workload::Command(CommandWorkload {
            commands,
            runs: 1,
            warmup: 0,
            shell: None,
            interleaved: false,
            start_up: None
        })),
    ]
}

fn any_record() -> impl Strategy<Value = Record> {
    let sample = prop_oneof![any_http_sample(), any_command_sample()];
    let trial = (0..3u32, sample, any_observation()).prop_map(|(level, sample, observation)| Trial {
        seq: 0,
        level,
        sample,
        observation,
        report: None,
    });
    (
        any_workload(),
        prop::collection::vec(trial, 0..4),
        prop::option::of(any_value()),
        any_reading(any::<bool>()),
        prop::option::of((prop::option::of(any_value()), any_value())),
    )
        .prop_map(|(workload, trials, ref_clock_hz, regime, stopping)| {
            let mut machine = machine();
            machine.regime.irq_time_accounting = regime.clone();
            machine.regime.paravirt_time_accounting = regime;
            let mut plan = plan(workload);
            plan.ref_clock_hz = ref_clock_hz;
            plan.stopping = stopping.map(|(precision, budget_s)| Stopping { precision, budget_s });
            Record {
                machine,
                plan,
                trials,
                profile: Vec::new(),
                notices: Vec::new(),
                identity: None,
                intervention: None,
            }
        })
}

/// A likely record with a few columns lost and others broken.
fn damaged_record() -> impl Strategy<Value = Record> {
    let scene = (0.0..1.2f64, 0.0..1.2f64, 0.0..1.2f64, 0.0..1.2f64, 0.0..2e5f64).prop_map(
        |(run, wait, load_run, throttled, rate_hz)| Scene {
            threads: vec![server(run, wait), generator(load_run, 0.1)],
            throttled: vec![("/sut", throttled), ("/", 0.0)],
            rate_hz,
            latency: false,
            ..Scene::default()
        },
    );
    (scene.clone(), scene, prop::collection::vec((any::<prop::sample::Index>(), any_value()), 0..6)).prop_map(
        |(asked, saturating, damage)| {
            let mut record = with_saturating(8, &asked, &saturating);
            for (which, value) in damage {
                let trial = which.index(record.trials.len());
                let columns = &mut record.trials[trial].observation.columns;
                let place = which.index(columns.len());
                if value.is_sign_negative() {
                    columns.swap_remove(place);
                } else if let Some(sample) = columns[place].samples.last_mut() {
                    sample.value = value;
                }
            }
            record
        },
    )
}

fn holds(outcome: &Outcome) -> Result<(), TestCaseError> {
    let text = format!("{outcome:?}");
    for word in text.split(|letter: char| !letter.is_ascii_alphanumeric()) {
        prop_assert!(word != "NaN" && word != "inf", "a number is none: {text}");
    }
    prop_assert!(outcome.verdict.findings.iter().any(|finding| finding.cause == outcome.verdict.bottleneck));
    prop_assert!(!outcome.verdict.valid || outcome.figures.gross.value().is_some_and(|value| value > 0.0));
    prop_assert!(outcome.verdict.findings.iter().all(|finding| (0.0..=1.0).contains(&finding.confidence)));
    if let (NetOrMissing::Net(net), Some(gross)) =
        (&outcome.figures.net, outcome.figures.gross.value().filter(|value| *value > 0.0))
    {
        let ratio = (net.value / gross).ln();
        let whole = if outcome.workload == "http" { ratio } else { -ratio };
        let parts: f64 = outcome.figures.tare.iter().map(|part| part.ln_share).sum();
        prop_assert!((parts - whole).abs() < 1e-9 * (1.0 + whole.abs()), "{parts} against {whole}");
    }
    let json = serde_json::to_string(outcome).map_err(|error| TestCaseError::fail(error.to_string()))?;
    let back: Outcome =
        serde_json::from_str(&json).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(back.verdict.bottleneck, outcome.verdict.bottleneck);
    Ok(())
}

/// A gate makes no number of it that is none.
fn is_judged(record: &Record) -> Result<(), TestCaseError> {
    let asked = Asked { margin: 0.02, conditions: None };
    let Ok(run) = gate::run(record, "any") else { return Ok(()) };
    let past: Vec<Run> = (1..7).map(|time_unix_s| Run { time_unix_s, ..run.clone() }).collect();
    for gate in
        [gate::against_baseline(run.clone(), run.clone(), &asked), gate::against_history(run, &past, &asked)]
    {
        for change in gate.effects.iter().filter_map(|effect| effect.change.value()) {
            prop_assert!(change.value.is_finite() && change.interval.iter().all(|end| end.is_finite()));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_records_are_explained(record in any_record()) {
        holds(&explain(&record))?;
        is_judged(&record)?;
    }

    #[test]
    fn damaged_records_are_explained(record in damaged_record()) {
        holds(&explain(&record))?;
        is_judged(&record)?;
    }

    #[test]
    fn the_accounting_closes_for_any_true_shares(
        run in 0.02..1.0f64, wait in 0.0..1.0f64, throttled in 0.0..1.0f64, load in 0.02..0.99f64,
    ) {
        let wait = wait * (1.0 - run);
        let throttled = throttled * wait;
        let scene = Scene {
            threads: vec![server(run, wait), generator(load, 0.0)],
            throttled: vec![("/sut", throttled), ("/", 0.0)],
            latency: false,
            ..Scene::default()
        };
        let outcome = explain(&asked(&scene));
        let sut = outcome.accounting.sut.as_ref().ok_or_else(|| TestCaseError::fail("seen"))?;
        let lost: f64 = sut.losses_cpus.values().sum();
        prop_assert!((sut.entitled_cpus - sut.busy_cpus - lost).abs() < 1e-6);
        prop_assert!((loss(&outcome, "throttled") - throttled).abs() < 1e-6);
        let waits = sut.wait_s.throttled + sut.wait_s.preempted + sut.wait_s.self_contention + sut.wait_s.scheduler;
        let blocked: f64 = sut.blocked_s.values().sum();
        prop_assert!((sut.run_s + waits + blocked - sut.wall_s).abs() < 1e-6);
        for cpu in &outcome.accounting.cpus {
            let parts = cpu.sut + cpu.load + cpu.tare + cpu.others + cpu.throttled + cpu.steal + cpu.irq + cpu.idle;
            prop_assert!((parts - 1.0).abs() < 1e-6);
        }
    }
}

#[test]
fn nothing_at_all_is_explained_as_unknown() {
    for workload in [
        Workload::Http(http(Vec::new())),
        Workload::Command(CommandWorkload {
            commands: Vec::new(),
            runs: 0,
            warmup: 0,
            shell: None,
            interleaved: false,
            start_up: None,
        }),
    ] {
        let record = Record {
            machine: machine(),
            plan: plan(workload),
            trials: Vec::new(),
            profile: Vec::new(),
            notices: Vec::new(),
            identity: None,
            intervention: None,
        };
        let outcome = explain(&record);
        assert!(!outcome.verdict.valid);
        assert!(outcome.verdict.warnings.iter().any(|warning| warning.id == "no-trials"));
        assert!(holds(&outcome).is_ok());
    }
    let empty = Scene { threads: Vec::new(), rate_hz: 0.0, ..Scene::default() };
    assert!(holds(&explain(&asked(&empty))).is_ok());
}
