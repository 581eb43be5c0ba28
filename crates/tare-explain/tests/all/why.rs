//! The account of the difference between two records with a known truth.

use crate::support::{Scene, asked, commands, generator, record, server};
use tare_explain::why::why;
use tare_model::figure::Figure;
use tare_model::metric::Subject;
use tare_model::metrics::core_latency::TRANSFER_NS;
use tare_model::observation::{Column, Sample};
use tare_model::plan::Workload;
use tare_model::why::{Kind, Part, Why};
use tare_model::{Reading, Record};

fn account(a: &Record, b: &Record) -> Why {
    let why = why(("a.tare", a), ("b.tare", b)).unwrap();
    if let (Some(parts), Some(rate)) = (why.parts.value(), why.rate.value()) {
        let sum: f64 = parts.iter().map(|part| part.ln).sum();
        assert!((sum - rate.ln).abs() < 1e-9, "{sum} {}", rate.ln);
    }
    why
}

fn part<'w>(why: &'w Why, id: &str) -> &'w Part {
    why.parts
        .value()
        .unwrap()
        .iter()
        .find(|part| part.id == id)
        .unwrap_or_else(|| panic!("no {id}: {why:#?}"))
}

fn base() -> Scene {
    Scene { threads: vec![server(0.97, 0.0), generator(0.6, 0.0)], rate_hz: 100_000.0, ..Scene::default() }
}

#[test]
fn a_quota_is_the_difference_and_a_difference() {
    let held = Scene {
        threads: vec![server(0.485, 0.49), generator(0.3, 0.0)],
        rate_hz: 50_000.0,
        throttled: vec![("/sut", 0.48), ("/", 0.0)],
        quota: Some(("/sut", 0.5)),
        ..base()
    };
    let why = account(&asked(&base()), &asked(&held));
    let throttled = part(&why, "throttled");
    let rate = why.rate.value().unwrap();
    assert!((throttled.ln / rate.ln) > 0.9, "{why:#?}");
    assert_eq!(why.parts.value().unwrap()[0].id, "throttled");
    let [low, high] = throttled.ci95.unwrap();
    assert!(low <= throttled.ln && throttled.ln <= high && high < 0.0);
    assert!(
        why.differences.iter().any(|difference| difference.kind == Kind::Quota && difference.a.is_none())
    );
    assert!(why.generator.is_none());
}

#[test]
fn more_cpu_per_request_and_a_slower_clock_are_two_things() {
    let costlier = Scene { rate_hz: 80_000.0, ..base() };
    let why = account(&asked(&base()), &asked(&costlier));
    assert!((part(&why, "cost").ln - 0.8f64.ln()).abs() < 1e-6, "{why:#?}");
    assert!(part(&why, "clock").ln.abs() < 1e-9);
    let slower = Scene { rate_hz: 80_000.0, clock_hz: Some(2.4e9), ..base() };
    let why = account(&asked(&base()), &asked(&slower));
    assert!((part(&why, "clock").ln - 0.8f64.ln()).abs() < 1e-6, "{why:#?}");
    assert!(part(&why, "cost").ln.abs() < 1e-6);
}

/// A figure is the part's where both are in seconds: a fifth less of the rate is a quarter more of the CPU time.
#[test]
fn the_figures_say_what_the_parts_say() {
    let why = account(&asked(&base()), &asked(&Scene { rate_hz: 80_000.0, clock_hz: None, ..base() }));
    let figure = |figure: Figure| why.figures.iter().find(|effect| effect.figure == figure).unwrap();
    let change = |of: Figure| figure(of).change.value().unwrap();
    let (rate, cost) = (change(Figure::Throughput), change(Figure::CpuPerRequest));
    assert!((rate.value + 0.2).abs() < 1e-6 && (cost.value - 0.25).abs() < 1e-6, "{:#?}", why.figures);
    let [low, high] = part(&why, "cost").ci95.unwrap();
    let is_near = |one: f64, other: f64| (one - other).abs() < 1e-9;
    assert!(is_near(cost.interval[0], (-high).exp_m1()) && is_near(cost.interval[1], (-low).exp_m1()));
    assert!(
        is_near(rate.interval[0], why.rate.value().unwrap().ci95.unwrap()[0].exp_m1()),
        "{:#?}",
        why.figures
    );
    let command = commands(&[(1.0, 0, Scene::default()), (1.0, 0, Scene::default())]);
    assert!(account(&command, &command).figures.is_empty());
}

#[test]
fn without_a_clock_on_one_side_cost_is_in_seconds_and_said_so() {
    let why = account(&asked(&base()), &asked(&Scene { rate_hz: 80_000.0, clock_hz: None, ..base() }));
    assert_eq!(part(&why, "cost").unit, "s");
    assert!(why.parts.value().unwrap().iter().all(|part| part.id != "clock"));
    assert!(why.warnings.iter().any(|warning| warning.id == "no-clock"), "{:#?}", why.warnings);
}

#[test]
fn a_generator_with_nothing_left_is_named() {
    let no_work =
        Scene { threads: vec![server(0.3, 0.0), generator(0.99, 0.0)], rate_hz: 31_000.0, ..base() };
    let why = account(&asked(&base()), &asked(&no_work));
    assert_eq!(why.parts.value().unwrap()[0].id, "no-work");
    let generator = why.generator.unwrap();
    assert!(generator.contains("In B the generator had nothing left: it ran on 0.99"), "{generator}");
}

#[test]
fn programs_are_compared_by_runs_per_second() {
    let run = |wall_s: f64| {
        let scene = Scene { seconds: wall_s, threads: vec![server(0.99, 0.0)], ..Scene::default() };
        (wall_s, 0, scene)
    };
    let (fast, slow) =
        (commands(&[run(1.0), run(1.002), run(0.998)]), commands(&[run(2.0), run(2.004), run(1.996)]));
    let why = account(&fast, &slow);
    assert!((part(&why, "cost").ln - 0.5f64.ln()).abs() < 0.01, "{why:#?}");
    assert_eq!(why.rate.value().unwrap().unit, "runs/s");
}

#[test]
fn what_has_no_logarithm_or_no_counterpart_is_said() {
    let nothing = account(&asked(&base()), &asked(&Scene { rate_hz: 0.0, ..base() }));
    assert!(matches!(&nothing.parts, Reading::Missing(missing) if missing.why.contains('B')), "{nothing:#?}");
    let unseen = account(&asked(&Scene { threads: vec![generator(0.5, 0.0)], ..base() }), &asked(&base()));
    assert!(
        matches!(&unseen.parts, Reading::Missing(missing) if missing.why.contains("in A")),
        "{unseen:#?}"
    );
    let none = record(Vec::new(), &[]);
    assert!(account(&none, &asked(&base())).parts.value().is_none());
    let command = commands(&[(1.0, 0, Scene::default())]);
    assert!(why(("a", &command), ("b", &asked(&base()))).is_err());
}

#[test]
fn one_trial_has_no_interval() {
    let one = |scene: &Scene| {
        let mut record = asked(scene);
        record.trials.truncate(1);
        record
    };
    let why = account(&one(&base()), &one(&Scene { rate_hz: 80_000.0, ..base() }));
    assert!(why.parts.value().unwrap().iter().all(|part| part.ci95.is_none()));
    assert!(why.warnings.iter().any(|warning| warning.id == "no-intervals"));
}

#[test]
fn other_machines_loads_and_places_are_listed() {
    let a = asked(&base());
    let mut b = asked(&base());
    b.machine.kernel = "6.1.0".to_owned();
    b.machine.cpu_model = Reading::Measured("another CPU".to_owned());
    b.machine.governor = Reading::Measured("powersave".to_owned());
    if let Workload::Http(http) = &mut b.plan.workload {
        http.url = Some("http://127.0.0.1:9090/other".to_owned());
        http.levels[0].connections = 8;
    }
    for trial in &mut b.trials {
        trial.observation.tasks[0].allowed_cpus = Reading::Measured(vec![0, 1]);
    }
    let why = account(&a, &b);
    let found: Vec<(Kind, &str)> =
        why.differences.iter().map(|difference| (difference.kind, difference.name.as_str())).collect();
    for wanted in [
        (Kind::Kernel, "the kernel"),
        (Kind::Machine, "the processor"),
        (Kind::Request, "the path that is asked for"),
        (Kind::Load, "connections"),
        (Kind::Placement, "the program's CPUs"),
        (Kind::Placement, "program and generator"),
    ] {
        assert!(found.contains(&wanted), "{wanted:?}: {found:#?}");
    }
    assert!(why.differences.iter().all(|difference| !difference.matters.is_empty()));
    // One side is not known; nobody is said to differ.
    assert!(
        why.uncompared.iter().any(|missing| missing.why.contains("governor: not known of A")),
        "{why:#?}"
    );
    assert!(why.warnings.iter().any(|warning| warning.id == "other-machine"));
    assert!(account(&a, &a).differences.is_empty());
    assert!(account(&a, &a).per_core.is_none(), "one machine");
}

#[test]
fn machines_are_compared_core_by_core() {
    let a = asked(&base());
    // Half the rate though the server is as busy, and a quarter of it where a quota takes half of the CPU too.
    let held = Scene {
        threads: vec![server(0.485, 0.49), generator(0.3, 0.0)],
        rate_hz: 25_000.0,
        throttled: vec![("/sut", 0.48), ("/", 0.0)],
        quota: Some(("/sut", 0.5)),
        ..base()
    };
    for slower in [Scene { rate_hz: 50_000.0, ..base() }, held] {
        let mut b = asked(&slower);
        b.machine.cpu_model = Reading::Measured("another CPU".to_owned());
        let why = account(&a, &b);
        let per_core = why.per_core.as_ref().expect("two machines");
        assert!((per_core.ln + 2f64.ln()).abs() < 0.02, "{per_core:?}");
        assert!((per_core.from - 100_000.0 / 0.97).abs() < 2_000.0, "{per_core:?}");
        let parts = why.parts.value().unwrap().iter().filter(|part| part.is_per_core());
        assert!((parts.map(|part| part.ln).sum::<f64>() - per_core.ln).abs() < 1e-9, "{why:#?}");
        let [low, high] = per_core.ci95.unwrap();
        assert!(low <= per_core.ln && per_core.ln <= high && high < 0.0, "{per_core:?}");
    }
}

/// Puts what a cache line takes between program and generator into a trial.
fn apart(record: &mut Record, trial: usize, ns: f64) {
    let samples = [1, 2].map(|at_ns| Sample { at_ns, value: ns }).to_vec();
    let metric = TRANSFER_NS.id.to_owned();
    record.trials[trial].observation.columns.push(Column { metric, subject: Subject::Cpu(0), samples });
}

#[test]
fn cpus_that_a_hypervisor_moved_are_a_difference_and_a_warning() {
    let far_in = |far: &[usize]| {
        let mut record = asked(&base());
        for trial in 0..record.trials.len() {
            apart(&mut record, trial, if far.contains(&trial) { 199.0 } else { 22.0 + trial as f64 });
        }
        record
    };
    let near = far_in(&[]);
    let all: Vec<usize> = (0..near.trials.len()).collect();
    let why = account(&near, &far_in(&all));
    let line = why.differences.iter().find(|found| found.name.starts_with("a cache line")).unwrap();
    assert_eq!((line.kind, line.b.as_deref()), (Kind::Placement, Some("199 ns")), "{line:?}");
    assert!(account(&near, &near).differences.is_empty());
    let moved = |record: &Record| {
        let outcome = tare_explain::explain(record);
        let warning = outcome.verdict.warnings.into_iter().find(|warning| warning.id == "cpus-moved");
        warning.map(|warning| warning.text)
    };
    let text = moved(&far_in(&[0])).unwrap();
    assert!(text.contains(&format!("199 ns elsewhere (1 of {} trials)", all.len())), "{text}");
    // In one place all the time, near or far, they were not moved.
    assert_eq!((moved(&near), moved(&far_in(&all)), moved(&asked(&base()))), (None, None, None));
}

/// What was not interleaved with the reference server is known less well the further the two lie apart.
#[test]
fn net_allows_for_the_interference_between_two_runs() {
    let a = asked(&base());
    let half_ln = |later_s: u64| {
        let mut b = asked(&base());
        b.plan.started_unix_s += later_s;
        let why = account(&a, &b);
        let [low, high] = why.net.value().unwrap().ci95.unwrap();
        assert!(low < 0.0 && high > 0.0, "{:#?}", why.net);
        0.5 * (high - low)
    };
    let (next, hour) = (half_ln(6), half_ln(3600));
    assert!(hour > 1.5 * next && hour < 5.0 * next, "{next} {hour}");
}
