//! Three explanations for a server that is slower than its CPUs: each is supported, refuted or not visible by its figure.

use crate::support::*;
use tare_explain::explain;
use tare_model::metrics::cpus;
use tare_model::outcome::{Hypothesis, Judged, Standing};
use tare_model::schedule::{Blocked, KernelLock, Schedule, ScheduleSource, Sleep, ThreadSchedule, Wakers};
use tare_model::{Missing, Reading, Record};

/// Two seconds of 100,000 requests a second.
const REQUESTS: u64 = 200_000;

fn traced(scene: &Scene) -> Record {
    let mut record = asked(scene);
    for trial in &mut record.trials {
        trial.observation.schedule = Some(Box::new(Schedule {
            source: ScheduleSource::Tracepoints,
            not_traced: None,
            events_lost: 0,
            events: 0,
            threads: Vec::new(),
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

fn with(mut record: Record, change: impl Fn(&mut Schedule)) -> Record {
    record
        .trials
        .iter_mut()
        .filter_map(|trial| trial.observation.schedule.as_mut())
        .for_each(|one| change(one));
    record
}

fn judged(record: &Record, hypothesis: Hypothesis) -> Judged {
    let all = explain(record).accounting.switches.expect("seen").hypotheses;
    assert_eq!(all.len(), 3);
    all.into_iter().find(|one| one.hypothesis == hypothesis).expect("each is judged")
}

/// The server contended for a lock there, for so much of its time.
fn contended(at: &str, share: f64) -> Record {
    with(traced(&Scene::default()), |schedule| {
        schedule.kernel_locks = vec![KernelLock {
            at: at.to_owned(),
            spins: true,
            in_interrupt: false,
            locks: 1,
            count: 1000,
            ns: (2e9 * share) as u64,
        }];
    })
}

#[test]
fn sockets_locks() {
    let of = |record: &Record| judged(record, Hypothesis::SocketLock);
    let found = of(&contended("lock_sock_nested", 0.2));
    assert_eq!(found.standing, Standing::Supported);
    assert!(found.figure.value().is_some_and(|share| (share - 0.2).abs() < 1e-6), "{found:?}");
    assert_eq!(of(&contended("ep_poll", 0.2)).standing, Standing::Refuted, "whose lock it was is known");
    assert_eq!(of(&traced(&Scene::default())).standing, Standing::Refuted);
    assert_eq!(of(&contended("lock_sock_nested", 0.008)).standing, Standing::NotVisibleHere);

    type Unseen<'a> = (&'a dyn Fn(&mut Schedule), &'a str);
    let unseen: [Unseen; 3] = [
        (&|schedule| schedule.events_lost = 7, "events were lost"),
        (&|schedule| schedule.locks_not_traced = Some(Missing::new("an old kernel")), "an old kernel"),
        (
            &|schedule| {
                schedule.source = ScheduleSource::Samples;
                schedule.not_traced = Some(Missing::with_remedy("not permitted", "run tare as root"));
            },
            "not permitted",
        ),
    ];
    for (change, words) in unseen {
        let found = of(&with(traced(&Scene::default()), change));
        assert_eq!(found.standing, Standing::NotVisibleHere);
        assert!(found.figure.ok().is_err_and(|missing| missing.why.contains(words)), "{words}");
    }
    let lost = with(contended("lock_sock_nested", 0.2), |schedule| schedule.events_lost = 7);
    assert_eq!(of(&lost).standing, Standing::Supported, "what was lost could only add to it");
}

#[test]
fn soft_interrupts_on_busy_cpus() {
    // Of the busy time, a fifth as the scene has it.
    let of = |part: f64| {
        let mut record = traced(&Scene::default());
        let columns = record.trials.iter_mut().flat_map(|trial| &mut trial.observation.columns);
        for column in columns.filter(|column| column.metric == cpus::SOFTIRQ_NS.id) {
            let first = column.samples[0].value;
            column.samples.iter_mut().for_each(|one| one.value = first + part * (one.value - first));
        }
        judged(&record, Hypothesis::SoftirqOnBusyCpus)
    };
    let found = of(1.0);
    assert_eq!(found.standing, Standing::Supported);
    assert!(found.figure.value().is_some_and(|share| (share - 0.2).abs() < 1e-3), "{found:?}");
    assert_eq!(of(0.4).standing, Standing::NotVisibleHere);
    assert_eq!(of(0.1).standing, Standing::Refuted);

    let mut blind = traced(&Scene::default());
    for trial in &mut blind.trials {
        trial.observation.columns.retain(|column| !column.metric.starts_with("cpus."));
    }
    let found = judged(&blind, Hypothesis::SoftirqOnBusyCpus);
    assert!(
        found.standing == Standing::NotVisibleHere && matches!(found.figure, Reading::Missing(_)),
        "{found:?}"
    );
}

#[test]
fn wake_ups_across_cpus() {
    // Of the server's thread, and sleeps of the generator on this CPU.
    let of = |a_request: f64, sleeps_hz: f64, load_cpu: u32| {
        let mut load = Thread { cpu: load_cpu, ..generator(0.02, 0.0) };
        load.voluntary_hz = sleeps_hz;
        let scene = Scene { threads: vec![server(0.9, 0.0), load], ..Scene::default() };
        let record = with(traced(&scene), |schedule| {
            let cross_cpu = (a_request * REQUESTS as f64) as u64;
            let woken_by = Wakers { load: cross_cpu, cross_cpu, ..Wakers::default() };
            schedule.threads = vec![ThreadSchedule { tid: 4712, woken_by, ..ThreadSchedule::default() }];
        });
        judged(&record, Hypothesis::CrossCpuWakeups)
    };
    let found = of(1.0, 0.0, 1);
    assert_eq!(found.standing, Standing::Supported);
    assert!(found.figure.value().is_some_and(|count| (count - 1.0).abs() < 0.01), "{found:?}");
    assert_eq!(of(0.0, 90_000.0, 1).standing, Standing::Supported, "who answers wakes the generator");
    assert_eq!(of(0.0, 90_000.0, 0).standing, Standing::Refuted, "on its own CPU that is none across CPUs");
    assert_eq!(of(0.1, 0.0, 1).standing, Standing::NotVisibleHere);
    assert_eq!(of(0.01, 0.0, 1).standing, Standing::Refuted);

    // A CPU whose wake-ups are not reported makes none that are counted: few that were seen refute nothing.
    let unseen = |woken: u64| {
        let record = with(traced(&Scene::default()), |schedule| {
            let blocked = vec![Blocked { why: Sleep::Event, ns: 1, count: 1000 }];
            let woken_by = Wakers { interrupt: woken, ..Wakers::default() };
            let thread = ThreadSchedule { tid: 4712, blocked, woken_by, ..ThreadSchedule::default() };
            schedule.threads = vec![thread];
        });
        judged(&record, Hypothesis::CrossCpuWakeups).standing
    };
    assert_eq!((unseen(990), unseen(500)), (Standing::Refuted, Standing::NotVisibleHere));

    let looked = with(traced(&Scene::default()), |schedule| schedule.source = ScheduleSource::Samples);
    let found = judged(&looked, Hypothesis::CrossCpuWakeups);
    assert!(
        found.standing == Standing::NotVisibleHere && matches!(found.figure, Reading::Missing(_)),
        "{found:?}"
    );
}
