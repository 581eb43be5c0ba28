//! Hardware events become instructions, cycles and misses of a request; without a PMU the clock stands in.

use crate::support::{Scene, asked};
use tare_model::metric::Subject;
use tare_model::metrics::{clock, pmu};
use tare_model::observation::Absence;
use tare_model::outcome::{CyclesFrom, Execution};
use tare_model::{Missing, Reading, Record};

const SERVER_RUN: f64 = 0.97;

/// The server's thread was on the PMU for `on_pmu` of its run, at `clock_hz`, with so many instructions a request.
fn counted(instructions: f64, clock_hz: f64, on_pmu: f64, of_run: f64) -> Record {
    let scene = Scene::default();
    let mut record = asked(&scene);
    for trial in &mut record.trials {
        let seen_s = SERVER_RUN * of_run;
        let rate_hz = 100_000.0 * on_pmu * of_run;
        let columns = [
            (&pmu::CORE_ENABLED_NS, seen_s * 1e9),
            (&pmu::CORE_RUNNING_NS, seen_s * on_pmu * 1e9),
            (&pmu::CYCLES, clock_hz * seen_s * on_pmu),
            (&pmu::INSTRUCTIONS, instructions * rate_hz),
            (&pmu::LLC_ENABLED_NS, seen_s * 1e9),
            (&pmu::LLC_RUNNING_NS, seen_s * on_pmu * 1e9),
            (&pmu::LLC_MISSES, 7.0 * rate_hz),
        ];
        let columns = columns.map(|(metric, per_second)| scene.column(metric, Subject::Task(0), per_second));
        trial.observation.columns.extend(columns);
    }
    record
}

fn execution(record: &Record) -> Execution {
    tare_explain::explain(record).accounting.sut.unwrap().execution.unwrap()
}

fn close(reading: &Reading<f64>, expected: f64) -> bool {
    reading.value().is_some_and(|value| (value / expected - 1.0).abs() < 0.005)
}

#[test]
fn events_are_put_to_requests_whatever_share_of_time_they_had() {
    for on_pmu in [1.0, 0.25] {
        let record = counted(20_000.0, 3e9, on_pmu, 1.0);
        let execution = execution(&record);
        assert_eq!(execution.cycles_from, CyclesFrom::Pmu);
        assert!(close(&execution.instructions_per_request, 20_000.0), "{execution:?}");
        assert!(close(&execution.cycles_per_request, SERVER_RUN * 3e9 / 1e5), "{execution:?}");
        assert!(close(&execution.ipc, 20_000.0 / (SERVER_RUN * 3e4)), "{execution:?}");
        assert!((execution.events_per_request["llc_misses"] - 7.0).abs() < 0.04, "{execution:?}");
        assert!((execution.on_pmu.unwrap() - on_pmu).abs() < 1e-6);
    }
}

#[test]
fn the_clock_is_the_counted_one() {
    let outcome = tare_explain::explain(&counted(20_000.0, 2.5e9, 1.0, 1.0));
    let clock_hz = outcome.trials[0].clock_hz.unwrap();
    assert!((clock_hz / 2.5e9 - 1.0).abs() < 1e-6, "{clock_hz}");
}

#[test]
fn aperf_and_mperf_tell_the_clock() {
    let scene = Scene::default();
    let mut record = asked(&scene);
    for trial in &mut record.trials {
        // Half idle, at three quarters of the fixed clock.
        let columns = [(&clock::TSC, 2.4e9), (&clock::MPERF, 1.2e9), (&clock::APERF, 0.9e9)];
        let columns = columns.map(|(metric, hz)| scene.column(metric, Subject::Cpu(0), hz));
        trial.observation.columns.extend(columns);
    }
    let clock_hz = tare_explain::explain(&record).trials[0].clock_hz.unwrap();
    assert!((clock_hz / 1.8e9 - 1.0).abs() < 1e-6, "{clock_hz}");
}

#[test]
fn a_part_of_the_run_is_scaled_and_a_small_part_is_nothing() {
    let most = execution(&counted(20_000.0, 3e9, 1.0, 0.95));
    assert!(close(&most.instructions_per_request, 20_000.0), "{most:?}");
    let half = execution(&counted(20_000.0, 3e9, 1.0, 0.5));
    let why = half.instructions_per_request.ok().unwrap_err().why;
    assert_eq!(why, "only 50 % of its run was counted");
    assert!(half.ipc.value().is_some(), "a ratio needs no whole");
}

#[test]
fn without_a_pmu_cycles_are_run_at_the_clock_and_the_rest_is_missing() {
    let mut record = asked(&Scene::default());
    let reason = Missing::with_remedy("this VM exposes no PMU", "measure on metal");
    for trial in &mut record.trials {
        let absence = Absence { metric: pmu::CYCLES.id.into(), subject: None, reason: reason.clone() };
        trial.observation.absences.push(absence);
    }
    let execution = execution(&record);
    assert_eq!(execution.cycles_from, CyclesFrom::Clock);
    assert!(close(&execution.cycles_per_request, SERVER_RUN * 3e9 / 1e5), "{execution:?}");
    assert_eq!(execution.ipc, Reading::Missing(reason.clone()));
    assert_eq!(execution.instructions_per_request, Reading::Missing(reason));
}

/// A neighbour on the sibling halves IPC at the same instructions: half the work for the same busy time.
#[test]
fn alone_against_together() {
    let account = |together: &Record| {
        let alone = counted(20_000.0, 3e9, 1.0, 1.0);
        let why = tare_explain::why::why(("alone.tare", &alone), ("together.tare", together)).unwrap();
        let parts = why.parts.ok().unwrap().into_iter().map(|part| (part.id.clone(), part));
        parts.collect::<std::collections::BTreeMap<_, _>>()
    };
    let parts = account(&counted(20_000.0, 6e9, 1.0, 1.0));
    assert!((parts["ipc"].ln + 2f64.ln()).abs() < 1e-6 && (parts["clock"].ln - 2f64.ln()).abs() < 1e-6);
    assert!(parts["instructions"].ln.abs() < 1e-6, "{parts:?}");
    assert!((parts["instructions"].from / 20_000.0 - 1.0).abs() < 1e-3, "{parts:?}");
    let blind = account(&asked(&Scene::default()));
    assert!(blind.contains_key("cost") && !blind.contains_key("ipc"), "{blind:?}");
}
