//! When trials end that nobody has counted: by what is known of gross, or by time.

use crate::support::*;
use tare_explain::explain;
use tare_explain::stopping::Interim;
use tare_model::Record;
use tare_model::comparison::Ended;
use tare_model::observation::Role;
use tare_model::outcome::{Stopped, Target};
use tare_model::plan::{Level, Plan, Purpose, Stopping, Workload};
use tare_model::trial::Measure;
use tare_stats::SplitMix64;

const SECOND_NS: u64 = 1_000_000_000;

/// Trials of a second with half a second after each; of those in `others` the figures are another level's.
fn session(rates: &[f64], others: &[usize], stopping: Option<Stopping>) -> Record {
    let levels =
        [Purpose::Asked, Purpose::Saturating].map(|purpose| Level { trials: 10_000, ..level(purpose, 64) });
    let scene = |(at, rate): (usize, &f64)| (u32::from(others.contains(&at)), Scene::default().scaled(*rate));
    let scenes: Vec<(u32, Scene)> = rates.iter().enumerate().map(scene).collect();
    let mut record = record(levels.to_vec(), &scenes);
    record.plan.stopping = stopping;
    for (at, trial) in (0..).zip(&mut record.trials) {
        trial.observation.begin_ns = at * SECOND_NS * 3 / 2;
        trial.observation.end_ns = trial.observation.begin_ns + SECOND_NS;
    }
    record
}

/// Rates that differ by so much at most.
fn rates(count: usize, by: f64) -> Vec<f64> {
    let mut random = SplitMix64::new(5);
    (0..count).map(|_| 1.0 + by * (2.0 * (random.next_u64() as f64 / u64::MAX as f64) - 1.0)).collect()
}

/// What is known after each block, asked again and again as while they run.
fn evaluations(record: &Record, block: usize) -> Vec<Stopped> {
    let mut interim = Interim::of(&record.plan, 0).unwrap();
    (block..=record.trials.len())
        .step_by(block)
        .map(|trials| {
            let so_far = Record { trials: record.trials[..trials].to_vec(), ..record.clone() };
            interim.evaluate(&so_far)
        })
        .collect()
}

fn until(precision: Option<f64>, budget_s: f64) -> Option<Stopping> {
    Some(Stopping { precision, budget_s })
}

#[test]
fn they_end_at_the_first_evaluation_that_is_precise() {
    let record = session(&rates(12, 0.0005), &[], until(Some(0.01), 60.0));
    let after = evaluations(&record, 1);
    assert!(after[..7].iter().all(|one| one.ended.is_none() && one.reached.is_none()), "{after:#?}");
    let first = after[7];
    assert_eq!((first.ended, first.trials), (Some(Ended::Precise), 8));
    assert!(first.reached.unwrap() <= 0.01 && first.detectable.unwrap() < 0.01, "{first:#?}");
    // Eight took 11.5 s, so that 41 fit into a minute.
    assert_eq!((first.elapsed_s, first.planned), (11.5, Some(41)));
    // Read from the record, it is the same, and so is the interval of gross.
    let outcome = explain(&Record { trials: record.trials[..8].to_vec(), ..record });
    assert_eq!(outcome.figures.stopping, Some(first));
    let (value, ci95) = (outcome.figures.gross.value().unwrap(), outcome.figures.gross.ci95().unwrap());
    assert!(((ci95[1] - ci95[0]) / 2.0 / value - first.reached.unwrap()).abs() < 1e-12);
    assert!(ci95[0] < value && value < ci95[1]);
}

#[test]
fn or_before_the_next_would_be_too_late() {
    for precision in [None, Some(0.01)] {
        let after = evaluations(&session(&rates(22, 0.1), &[], until(precision, 30.0)), 1);
        let end = after.iter().position(|one| one.ended.is_some()).unwrap();
        let last = after[end];
        assert_eq!((last.ended, last.elapsed_s <= 30.0), (Some(Ended::Budget), true), "{last:#?}");
        assert!(last.elapsed_s + 2.0 > 30.0 && last.reached.unwrap() > 0.01, "{last:#?}");
        // More trials would tell more: ±1 % is far off.
        assert!(last.one_percent_s.unwrap() > 60.0, "{last:#?}");
    }
}

#[test]
fn trials_of_other_levels_take_time_and_tell_nothing_of_gross() {
    let others: Vec<usize> = (0..24).filter(|at| at % 3 == 2).collect();
    let mut wild = rates(24, 0.001);
    others.iter().for_each(|at| wild[*at] = 2.0);
    let record = session(&wild, &others, until(None, 120.0));
    let after = evaluations(&record, 3);
    // 8 with 4 of the others among and behind them took 17.5 s.
    assert_eq!((after[2].planned, after[3].trials, after[3].planned), (None, 8, Some(54)));
    let last = after[7];
    assert!(last.reached.unwrap() < 0.01, "{last:#?}");
    assert_eq!(explain(&record).figures.stopping, Some(last), "whoever reads it plans as it was planned");
}

#[test]
fn too_few_tell_no_interval_and_that_is_said() {
    let outcome = explain(&session(&rates(5, 0.01), &[], until(None, 60.0)));
    let stopping = outcome.figures.stopping.unwrap();
    assert_eq!((stopping.trials, stopping.reached, stopping.ended), (5, None, None));
    assert_eq!(outcome.figures.gross.ci95(), None);
    assert!(
        outcome.verdict.warnings.iter().any(|warning| warning.id == "too-few-trials"),
        "{:#?}",
        outcome.verdict.warnings
    );
}

#[test]
fn plans_with_a_number_of_trials_are_as_they_were() {
    let record = session(&rates(5, 0.01), &[], None);
    let json = serde_json::to_value(&record.plan).unwrap();
    assert!(json.get("stopping").is_none());
    assert_eq!(serde_json::from_value::<Plan>(json).unwrap(), record.plan);
    let outcome = explain(&record);
    assert!(outcome.figures.stopping.is_none() && outcome.figures.gross.ci95().is_some());
}

/// Runs of a benchmark, each of two seconds, that printed this of each metric.
fn benchmarked(runs: &[[f64; 2]], stopping: Option<Stopping>) -> Record {
    let scene =
        Scene { threads: vec![Thread::new(Role::Sut, "bench", 4712, 0, 0.9, 0.0)], ..Scene::default() };
    // How long they took differs by far.
    let walls = runs.iter().zip([2.0, 3.0].into_iter().cycle());
    let mut record = commands(&walls.map(|(_, wall_s)| (wall_s, 0, scene.clone())).collect::<Vec<_>>());
    record.plan.stopping = stopping;
    if let Workload::Command(workload) = &mut record.plan.workload {
        workload.runs = 1000;
    }
    for ((at, trial), values) in (0..).zip(&mut record.trials).zip(runs) {
        trial.observation.begin_ns = at * 3 * SECOND_NS;
        trial.observation.end_ns = trial.observation.begin_ns + 2 * SECOND_NS;
        let metric = |(name, unit, value): (&str, &str, f64)| {
            serde_json::json!({
                "benchmark": "A", "name": name, "unit": unit, "better": "lower", "samples": [value], "launches": [0], "workers": [],
                "at_s": [], "is_target": true, "configuration": {}, "summary": {}, "estimate": null,
            })
        };
        let metrics = [("time", "s", values[0]), ("size", "B", values[1])].map(metric);
        let results = serde_json::json!({
            "schema": 2, "format": "go-bench", "metrics": metrics, "configuration": {}, "skipped": [], "skipped_count": 0,
            "warnings": [], "gets_wrong": [],
        });
        if let Measure::Command(run) = &mut trial.sample {
            run.results = Some(serde_json::from_value(results).unwrap());
        }
    }
    record
}

#[test]
fn results_of_a_benchmark_are_what_precision_is_for() {
    let steady: Vec<[f64; 2]> = rates(12, 0.0005).into_iter().map(|rate| [rate, 16.0]).collect();
    let first = evaluations(&benchmarked(&steady, until(Some(0.01), 60.0)), 1)[7];
    assert_eq!(
        (first.target, first.ended, first.trials),
        (Target::Results, Some(Ended::Precise), 8),
        "{first:#?}"
    );
    // The one that is known least counts.
    let mut random = rates(12, 0.4).into_iter();
    let uneven: Vec<[f64; 2]> = steady.iter().map(|run| [run[0], random.next().unwrap()]).collect();
    let last = evaluations(&benchmarked(&uneven, until(Some(0.01), 60.0)), 1)[11];
    assert!(last.ended.is_none() && last.reached.unwrap() > 0.05, "{last:#?}");
}

#[test]
fn results_that_never_differ_are_known() {
    let same = [[2.0, 16.0]; 12];
    let after = evaluations(&benchmarked(&same, until(Some(0.01), 60.0)), 1);
    assert!(after[..7].iter().all(|one| one.ended.is_none()), "{after:#?}");
    assert_eq!((after[7].ended, after[7].reached), (Some(Ended::Precise), Some(0.0)));
}
