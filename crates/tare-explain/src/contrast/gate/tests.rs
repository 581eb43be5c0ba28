//! Made-up runs and histories, judged.

use super::judge::*;
use tare_model::Reading;
use tare_model::comparison::{Figure, Verdict};
use tare_model::gate::{
    Against, BLIND, ChangePoint, Effect, FigureValue, Gate, RUNS_MIN, Run, SCHEMA, State,
};
use tare_stats::SplitMix64;

const PLAN: &str = "http://127.0.0.1/, 64 connections";
const MACHINE: &str = "a processor, 2 CPUs";

fn measured(value: f64) -> FigureValue {
    FigureValue { value, half_ln: Some(0.01), trials: 5 }
}

/// A run whose program is so much faster than the first, on a machine with such a drift.
fn run(label: &str, speed: f64, drift: f64) -> Run {
    let rate = 1e5 * speed * drift;
    let figures = [
        (Figure::Throughput, rate),
        (Figure::Net, rate),
        (Figure::CpuPerRequest, 1.0 / rate),
        (Figure::P50, 64.0 / rate),
        (Figure::P99, 200.0 / rate),
    ];
    let mut figures: std::collections::BTreeMap<_, _> =
        figures.map(|(figure, value)| (figure, Reading::Measured(measured(value)))).into();
    figures.insert(Figure::P999, Reading::missing("too few answers"));
    Run {
        schema: SCHEMA,
        label: label.into(),
        time_unix_s: label.bytes().map(u64::from).sum(),
        length_s: Some(10.0),
        plan: PLAN.into(),
        machine: MACHINE.into(),
        kernel: "6.18".into(),
        valid: true,
        figures,
        against_reference: [(Figure::Net, measured(speed)), (Figure::CpuPerRequest, measured(1.0 / speed))]
            .into(),
    }
}

fn without_reference(mut run: Run) -> Run {
    run.against_reference.clear();
    run
}

/// So many runs of a branch: the machine drifts by some per cent, the program by less than one from run to run.
fn branch(runs: usize, seed: u64, speed: impl Fn(usize) -> f64) -> Vec<Run> {
    let mut random = SplitMix64::new(seed);
    let mut even = move || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
    let one = |at: usize| run(&format!("c{at}"), speed(at) * (1.0 + 0.015 * even()), 1.0 + 0.1 * even());
    (0..runs).map(one).collect()
}

fn asked(conditions: &[&str]) -> Asked {
    let given = conditions.iter().map(|text| text.parse().expect("a condition")).collect();
    Asked { margin: 0.02, conditions: (!conditions.is_empty()).then_some(given) }
}

fn effect(gate: &Gate, figure: Figure) -> &Effect {
    gate.effects.iter().find(|effect| effect.figure == figure).expect("all figures are there")
}

fn states(gate: &Gate) -> Vec<State> {
    gate.conditions.iter().map(|judged| judged.state).collect()
}

fn warned(gate: &Gate, id: &str) -> bool {
    gate.warnings.iter().any(|warning| warning.id == id)
}

#[test]
fn a_pair_is_held_against_each_other_without_the_machines_drift() {
    let gate = against_baseline(run("new", 0.9, 1.3), run("base", 1.0, 1.0), &asked(&[]));
    assert_eq!(gate.conditions[0].condition, "net < -5%");
    assert_eq!(states(&gate), [State::Proven]);
    let net = effect(&gate, Figure::Net);
    assert!(net.of_reference && net.verdict == Verdict::Slower, "{net:?}");
    assert!((net.change.value().expect("an interval").value + 0.1).abs() < 1e-9);
    assert_eq!(effect(&gate, Figure::CpuPerRequest).verdict, Verdict::Slower);
    // What the machine does is in the rate.
    assert_eq!(effect(&gate, Figure::Throughput).verdict, Verdict::Faster);
    let missing = effect(&gate, Figure::P999);
    assert!(missing.change.value().is_none() && missing.verdict == Verdict::CannotTell);
    let same =
        against_baseline(run("new", 1.0, 1.0), run("base", 1.0, 1.0), &asked(&["net < -4%", "p99.9 > 9%"]));
    assert_eq!(states(&same), [State::NotProven, State::CannotTell]);
    assert_eq!(effect(&same, Figure::Net).verdict, Verdict::NoDifference);
    assert!(same.warnings.is_empty() && same.valid, "{:?}", same.warnings);
}

/// What the machine's interference does within a run it does between runs, and more so the further they lie apart. Interleaved with the
/// reference it is in both.
#[test]
fn runs_further_apart_are_distinguished_less_well_but_for_what_was_interleaved() {
    let width = |figure: Figure, apart_s: u64| {
        let base = run("base", 1.0, 1.0);
        let new = Run { time_unix_s: base.time_unix_s + apart_s, ..run("new", 1.0, 1.0) };
        let gate = against_baseline(new, base, &asked(&[]));
        let [low, high] = effect(&gate, figure).change.value().expect("an interval").interval;
        high - low
    };
    let [next, hour] = [10, 3600].map(|apart_s| width(Figure::Throughput, apart_s));
    assert!(next < 0.6 * hour && next > 1.5 * width(Figure::Net, 10), "{next} {hour}");
    assert!((width(Figure::Net, 10) / width(Figure::Net, 3600) - 1.0).abs() < 1e-9);
}

#[test]
fn another_machine_is_compared_through_the_reference_or_not_at_all() {
    let elsewhere = |run: Run| Run { machine: "another, 2 CPUs".into(), kernel: "6.1".into(), ..run };
    let gate = against_baseline(elsewhere(run("new", 0.9, 2.0)), run("base", 1.0, 1.0), &asked(&[]));
    assert_eq!(states(&gate), [State::Proven]);
    assert!(warned(&gate, "other-machine") && warned(&gate, "other-kernel"));
    let rate = effect(&gate, Figure::Throughput);
    assert!(rate.change.value().is_none() && rate.verdict == Verdict::CannotTell, "{rate:?}");
    let bare = without_reference(elsewhere(run("new", 0.9, 2.0)));
    let gate = against_baseline(bare, run("base", 1.0, 1.0), &asked(&[]));
    assert_eq!(states(&gate), [State::CannotTell]);
    assert!(gate.effects.iter().all(|effect| effect.verdict == Verdict::CannotTell));
}

#[test]
fn other_plans_single_trials_and_invalid_results_are_warned_of() {
    let other = Run { plan: "another".into(), ..run("new", 1.0, 1.0) };
    let gate = against_baseline(other.clone(), run("base", 1.0, 1.0), &asked(&[]));
    assert!(warned(&gate, "other-plan") && gate.valid);
    let gate = against_history(other, &branch(20, 1, |_| 1.0), &asked(&[]));
    assert!(warned(&gate, "other-plan") && states(&gate) == [State::TooFewRuns]);
    assert_eq!(gate.against, Against::History { runs: 0, other_plans: 20 });
    let mut lone = run("new", 1.0, 1.0);
    lone.against_reference.values_mut().for_each(|measured| measured.half_ln = None);
    let gate = against_baseline(lone, run("base", 1.0, 1.0), &asked(&["net < -1%", "throughput < -9%"]));
    assert_eq!(states(&gate), [State::CannotTell, State::NotProven]);
    let invalid = Run { valid: false, ..run("new", 1.0, 1.0) };
    let gate = against_baseline(invalid, run("base", 1.0, 1.0), &asked(&[]));
    assert!(warned(&gate, "not-valid") && !gate.valid);
    // Without net the rate is what is left.
    let netless = |mut run: Run| {
        run.figures.insert(Figure::Net, Reading::missing("far from saturation"));
        without_reference(run)
    };
    let gate = against_baseline(netless(run("new", 0.9, 1.0)), netless(run("base", 1.0, 1.0)), &asked(&[]));
    assert_eq!(gate.conditions[0].condition, "throughput < -5%");
    assert_eq!(states(&gate), [State::Proven]);
}

#[test]
fn a_planted_step_is_found_and_in_the_same_history_without_it_none() {
    for seed in 0..20 {
        let level = branch(24, seed, |_| 1.0);
        let gate = against_history(run("new", 1.0, 1.0), &level, &asked(&["net < -2%"]));
        assert!(gate.change_points.is_empty(), "{seed}: {:?}", gate.change_points);
        assert_eq!(effect(&gate, Figure::Net).runs, 24);
        let step = branch(24, seed, |at| if at < 14 { 1.0 } else { 0.92 });
        let gate = against_history(run("new", 0.92, 1.0), &step, &asked(&["net < -5%"]));
        let net: Vec<&ChangePoint> =
            gate.change_points.iter().filter(|change| change.figure == Figure::Net).collect();
        assert!(net.len() == 1 && ["c13", "c14", "c15"].contains(&net[0].since.as_str()), "{seed}: {net:?}");
        assert!((net[0].change + 0.08).abs() < 0.01, "{net:?}");
        // What the branch has come to is what a run is held against, not what it once was.
        assert_eq!(states(&gate), [State::NotProven]);
        assert_ne!(effect(&gate, Figure::Net).verdict, Verdict::Slower, "{seed}");
        let worse = against_history(run("new", 0.82, 1.0), &step, &asked(&["net < -5%"]));
        assert_eq!(states(&worse), [State::Proven], "{seed}");
    }
}

#[test]
fn a_short_history_says_what_it_lacks() {
    for kept in 0..RUNS_MIN {
        let gate = against_history(run("new", 0.5, 1.0), &branch(kept, 3, |_| 1.0), &asked(&[]));
        let net = effect(&gate, Figure::Net);
        assert_eq!((net.runs as usize, net.runs_missing as usize), (kept, RUNS_MIN - kept));
        assert_eq!((net.verdict, states(&gate)), (Verdict::CannotTell, vec![State::TooFewRuns]));
    }
    let gate = against_history(run("new", 0.5, 1.0), &branch(RUNS_MIN, 3, |_| 1.0), &asked(&[]));
    assert_eq!(states(&gate), [State::Proven]);
    // Two runs after a step are no level yet.
    let step = branch(22, 3, |at| if at < 20 { 1.0 } else { 0.6 });
    let gate = against_history(run("new", 0.6, 1.0), &step, &asked(&[]));
    let net = effect(&gate, Figure::Net);
    assert_eq!((net.runs, net.runs_missing), (2, 3), "{net:?}");
}

#[test]
fn a_record_is_not_judged_by_itself() {
    let history = branch(8, 5, |_| 1.0);
    let again = Run { label: "again".into(), ..history[7].clone() };
    assert!(is_kept(&again, &history) && !is_kept(&run("new", 1.0, 1.0), &history));
    let gate = against_history(again, &history, &asked(&[]));
    assert_eq!(effect(&gate, Figure::Net).runs, 7);
}

#[test]
fn runs_of_other_machines_count_through_the_reference() {
    let mut history = branch(12, 6, |_| 1.0);
    history.iter_mut().skip(4).for_each(|run| run.machine = "another, 2 CPUs".into());
    let gate = against_history(run("new", 1.0, 1.0), &history, &asked(&[]));
    assert_eq!((effect(&gate, Figure::Net).runs, effect(&gate, Figure::Throughput).runs), (12, 4));
    assert!(warned(&gate, "other-machine"));
    assert_eq!(effect(&gate, Figure::Throughput).runs_missing, 1);
}

/// One more run of the same program is called different in 5 of 100 gates at most.
#[test]
fn one_more_run_of_the_same_is_seldom_called_different() {
    let gates = 400;
    let reported = (0..gates).filter(|seed| {
        let mut runs = branch(13, 1000 + seed, |_| 1.0);
        let new = runs.pop().expect("thirteen runs");
        let gate = against_history(new, &runs, &asked(&[]));
        gate.effects.iter().any(|effect| matches!(effect.verdict, Verdict::Faster | Verdict::Slower))
    });
    let reported = reported.count();
    // 5 % and three standard deviations.
    assert!(reported as f64 <= 0.083 * gates as f64, "{reported} of {gates}");
}

#[test]
fn what_anybody_wrote_into_a_history_is_no_number() {
    let mut history = branch(8, 7, |_| 1.0);
    for (at, value) in [0.0, -1.0, 1e308, 1e-308].into_iter().enumerate() {
        history[at]
            .against_reference
            .insert(Figure::Net, FigureValue { value, half_ln: Some(-1.0), trials: 0 });
        history[at]
            .figures
            .insert(Figure::P50, Reading::Measured(FigureValue { value, half_ln: None, trials: 1 }));
    }
    let gate = against_history(run("new", 1.0, 1.0), &history, &asked(&["net < -5%", "p50 > 5%"]));
    let numbers = gate.effects.iter().filter_map(|effect| effect.change.value());
    assert!(numbers.flat_map(|change| change.interval).all(f64::is_finite), "{gate:#?}");
    assert!(!states(&gate).contains(&State::Proven));
}

#[test]
fn a_gate_says_what_it_would_have_found() {
    let pair = |of: fn(Run) -> Run, conditions: &[&str]| {
        against_baseline(of(run("new", 1.0, 1.0)), of(run("base", 1.0, 1.0)), &asked(conditions))
    };
    let sharp = pair(|run| run, &["net < -5%"]);
    let shown = |gate: &Gate| effect(gate, Figure::Net).detectable.unwrap();
    let [low, high] = effect(&sharp, Figure::Net).change.value().unwrap().interval;
    assert!(shown(&sharp) > 0.5 * (high - low) && shown(&sharp) < 0.05, "{sharp:#?}");
    assert!(!warned(&sharp, BLIND));
    // The same spread of trials says less of runs whose interference nobody took out.
    let blunt = pair(without_reference, &["net < -5%"]);
    assert!(shown(&blunt) > 1.5 * shown(&sharp) && shown(&blunt) < 1.0, "{blunt:#?}");
    let bound = format!("net < -{}%", 50.0 * shown(&blunt));
    assert!(warned(&pair(without_reference, &[&bound]), BLIND), "{bound}");
    assert!(!warned(&pair(without_reference, &["net < -90%"]), BLIND));
    // What was proven was found.
    let proven = against_baseline(run("new", 0.5, 1.0), run("base", 1.0, 1.0), &asked(&["net < -0.1%"]));
    assert!(states(&proven) == [State::Proven] && !warned(&proven, BLIND), "{proven:#?}");
}
