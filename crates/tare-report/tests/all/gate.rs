//! What `tare gate` prints, as snapshots.

use tare_model::Missing;
use tare_model::Reading;
use tare_model::comparison::{BenchmarkEffect, Change, Figure, Verdict};
use tare_model::gate::{Against, ChangePoint, Effect, FigureValue, Gate, Judged, Run, SCHEMA, State};
use tare_model::outcome::{Better, Warning};
use tare_report::{Style, gate};

fn run(label: &str) -> Run {
    let measured = |value| FigureValue { value, half_ln: Some(0.01), trials: 5 };
    Run {
        schema: SCHEMA,
        label: label.into(),
        time_unix_s: 1_763_870_400,
        length_s: Some(10.0),
        plan: "http://127.0.0.1:8080/, 64 connections, server on CPU 0, generator on CPU 1".into(),
        machine: "AMD EPYC, 2 CPUs".into(),
        kernel: "6.18.0".into(),
        valid: true,
        figures: [
            (Figure::Net, Reading::Measured(measured(170_000.0))),
            (Figure::P999, Reading::missing("a trial has too few answers for it")),
        ]
        .into(),
        against_reference: [(Figure::Net, measured(0.61))].into(),
    }
}

fn effect(figure: Figure, ends: [f64; 2], verdict: Verdict) -> Effect {
    let value = 0.5 * (ends[0] + ends[1]);
    Effect {
        figure,
        of_reference: figure == Figure::Net,
        baseline: Some(if figure == Figure::Net { 0.66 } else { 5.5e-4 }),
        value: Some(if figure == Figure::Net { 0.61 } else { 5.6e-4 }),
        runs: 12,
        runs_missing: 0,
        change: Reading::Measured(Change { value, interval: ends }),
        detectable: Some(0.8 * (ends[1] - ends[0])),
        verdict,
    }
}

pub(crate) fn worse() -> Gate {
    let missing = Missing::with_remedy("the generator gave out first", "go by net");
    let lacking = Effect {
        change: Reading::Missing(missing),
        value: None,
        baseline: None,
        ..effect(Figure::Throughput, [0.0, 0.0], Verdict::CannotTell)
    };
    Gate {
        schema: SCHEMA,
        new: run("3f2a1bc"),
        against: Against::History { runs: 20, other_plans: 3 },
        margin: 0.02,
        valid: true,
        effects: vec![
            lacking,
            effect(Figure::Net, [-0.091, -0.061], Verdict::Slower),
            effect(Figure::P99, [-0.01, 0.015], Verdict::NoDifference),
        ],
        benchmarks: Vec::new(),
        change_points: vec![
            ChangePoint {
                figure: Figure::Net,
                since: "aaaaaaa".into(),
                time_unix_s: 1_763_000_000,
                change: 0.2,
                runs: 3,
            },
            ChangePoint {
                figure: Figure::Net,
                since: "bbbbbbb".into(),
                time_unix_s: 1_763_400_000,
                change: -0.03,
                runs: 12,
            },
        ],
        conditions: vec![
            Judged { condition: "net < -5%".into(), figure: Figure::Net, state: State::Proven },
            Judged {
                condition: "throughput < -5%".into(),
                figure: Figure::Throughput,
                state: State::CannotTell,
            },
        ],
        method: "95 % intervals that hold together".into(),
        warnings: vec![Warning {
            id: "other-machine".into(),
            text: "3 of 20 runs are from other machines".into(),
            hint: "keep a history for each kind".into(),
        }],
    }
}

fn shown(of: &Gate) -> String {
    gate::report(of).terminal(Style { color: false, width: 120, unicode: true })
}

#[test]
fn a_gate_that_fails() {
    insta::assert_snapshot!("gate-fails", shown(&worse()));
}

pub(crate) fn against_a_record() -> Gate {
    let mut of = worse();
    of.against = Against::Baseline(run("base.tare"));
    of.effects.retain(|effect| effect.verdict == Verdict::NoDifference);
    of.change_points.clear();
    of.warnings.clear();
    of.conditions =
        vec![Judged { condition: "p99 > 5%".into(), figure: Figure::P99, state: State::NotProven }];
    of
}

#[test]
fn a_gate_against_a_record() {
    insta::assert_snapshot!("gate-baseline", shown(&against_a_record()));
}

#[test]
fn benchmarks_of_builds_are_said_first() {
    let mut of = worse();
    of.against = Against::Interleaved(run("./old.test"));
    (of.conditions, of.change_points, of.warnings) = (Vec::new(), Vec::new(), Vec::new());
    of.benchmarks = vec![BenchmarkEffect {
        program: "B".into(),
        benchmark: "BenchmarkSort-2".into(),
        name: "ns/op".into(),
        unit: "s/op".into(),
        better: Some(Better::Lower),
        baseline: 1e-6,
        value: 1.2e-6,
        change: Reading::Measured(Change { value: 0.2, interval: [0.18, 0.22] }),
        aa_control: Some(Change { value: 0.001, interval: [-0.01, 0.01] }),
        verdict: Verdict::Slower,
    }];
    insta::assert_snapshot!("gate-benchmarks", shown(&of));
    let csv = gate::report(&of).csv();
    assert!(csv.contains("BenchmarkSort-2 ns/op"), "{csv}");
}

#[test]
fn what_cannot_be_judged_says_why() {
    let mut of = worse();
    of.effects.retain(|effect| effect.verdict == Verdict::CannotTell);
    assert!(shown(&of).contains("It is not known whether 3f2a1bc differs from the branch."));
    of.effects[0].runs_missing = 2;
    assert!(shown(&of).contains("3f2a1bc cannot be judged yet: the history lacks 2 more runs."));
    of.valid = false;
    assert!(shown(&of).contains("a result is not valid"));
}

/// The keys that scripts rely on.
#[test]
fn the_json_form_is_a_contract() {
    let text = gate::json(&worse()).unwrap_or_default();
    insta::assert_snapshot!("gate-json", text);
    assert_eq!(serde_json::from_str::<Gate>(&text).ok(), Some(worse()));
}
