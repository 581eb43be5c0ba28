//! Every result in every form: laid out once, so that no command has a renderer of its own.

use insta::assert_snapshot;
use tare_model::check::{Area, Check, Level};
use tare_model::comparison::Comparison;
use tare_report::steady::Examined;
use tare_report::{Report, Style, calibration, comparison, doctor, gate, load, steady, study, why, zoo};

const STYLE: Style = Style { color: false, width: 120, unicode: true };

/// All five forms as snapshots; of the page what is behind its style sheet.
fn forms(name: &str, report: &Report, json: Result<String, serde_json::Error>) {
    assert_snapshot!(format!("{name}-terminal"), report.terminal(STYLE));
    assert_snapshot!(format!("{name}-markdown"), report.markdown());
    assert_snapshot!(format!("{name}-csv"), report.csv());
    assert_snapshot!(format!("{name}-json"), json.unwrap());
    let page = report.html();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "{name}: {page}");
    assert!(!page.contains("<script"), "{name}");
    let (_, body) = page.split_once("</style>").unwrap();
    assert_snapshot!(format!("{name}-html"), body);
}

fn compared() -> Comparison {
    let program = |name: &str| serde_json::json!({ "name": name, "command": format!("./{name} --port {{port}}"), "url": "http://127.0.0.1:{port}/" });
    let effect = |figure: &str, change: f64, verdict: &str| {
        serde_json::json!({
            "program": "B", "figure": figure, "baseline": 1000.0, "value": 1000.0 * (1.0 + change), "launches": 40,
            "change": { "value": change, "interval": [change - 0.01, change + 0.01] },
            "aa_control": { "value": 0.001, "interval": [-0.005, 0.007] },
            "verdict": verdict, "detectable": 0.0125, "one_percent_s": 90.0,
        })
    };
    serde_json::from_value(serde_json::json!({
        "schema": 2, "argv": ["tare", "compare"], "programs": [program("A"), program("B")], "seed": 1, "budget_s": 60.0,
        "precision": 0.01, "margin": 0.02, "planned": 40, "turn_ns": 1_000_000, "sut_cpus": [0], "load_cpus": [1],
        "ended": "budget", "elapsed_s": 58.5, "launches": [],
        "effects": [effect("throughput", -0.1, "slower"), effect("p99", 0.001, "no-difference")],
        "not_known": [{ "program": "B", "figure": "p99.9", "missing": "too few answers", "remedy": "a longer --window" }],
        "warnings": [{ "id": "not-busy", "text": "the servers were idle, at times", "hint": "more connections" }],
    }))
    .unwrap()
}

#[test]
fn a_comparison() {
    forms("comparison", &comparison::report(&compared()), comparison::json(&compared()));
}

#[test]
fn a_gate_and_several() {
    let judged = crate::gate::worse();
    let of = gate::report(&judged);
    forms("gate", &of, gate::json(&judged));
    let twice = Report::joined([of.clone(), of.clone()]);
    let lines = |report: &Report| report.csv().lines().count();
    assert_eq!(lines(&twice), 2 * lines(&of) - 1, "one header for both");
    assert_eq!(twice.terminal(STYLE).matches("is worse than").count(), 2);
}

#[test]
fn a_difference_and_a_story() {
    let of = crate::why::throttled();
    forms("why", &why::report(&of), why::json(&of));
    let (record, outcome) = (crate::support::record(), crate::support::throttled());
    forms("why-story", &why::story(&record, &outcome), tare_report::json(&outcome));
}

#[test]
fn an_examination() {
    let check = |id: &str, level: Level| Check {
        id: id.into(),
        area: Area::Processor,
        level,
        found: format!("{id}, as it is"),
        effect: "figures vary by 10 %".into(),
        fix: "set it, then look again".into(),
        setting: None,
    };
    let checks = vec![check("governor", Level::Warn), check("cpu-quota", Level::Ok)];
    // The object that holds them is a snapshot of the command line's tests, for every made-up machine.
    forms("doctor", &doctor::report(&checks, true), serde_json::to_string_pretty(&checks));
}

#[test]
fn series() {
    let values: Vec<f64> =
        (0..200).map(|at| if at < 50 { 2.0 } else { 1.0 } + 0.001 * f64::from(at % 7)).collect();
    let found = tare_stats::steadiness(&values).unwrap();
    let all = [Examined { name: "a, b".into(), values: 200, seconds: true, found }];
    forms("steady", &steady::report(&all), steady::json(&all));
}

#[test]
fn a_plan() {
    let rate = |value: f64| serde_json::json!({ "value": value, "ci95": [0.99 * value, 1.01 * value], "unit": "1/s" });
    let cell = |name: &str, value: f64| {
        serde_json::json!({
            "name": name, "baseline": null, "blocks": 3, "valid": 3,
            "figures": { "throughput": rate(value), "p99": null },
            "bottlenecks": ["server-cpu-bound", "server-cpu-bound", "too-noisy"], "expectations": [],
        })
    };
    let mut other = cell("one", 90e3);
    other["baseline"] = "two".into();
    other["changes"] = serde_json::json!({
        "throughput": { "ratio": { "value": 0.9, "ci95": [0.87, 0.93] } },
        "p99": { "nothing": "no p99 in a result" },
    });
    other["expectations"] = serde_json::json!([
        { "expected": "throughput down", "verdict": "held", "seen": { "ratio": { "value": 0.9, "ci95": [0.88, 0.92] } } },
        { "expected": "p99 up", "verdict": "could-not-tell", "seen": { "nothing": "no p99 in a result" } },
    ]);
    let plan = serde_json::json!({
        "schema": 2, "name": "layouts", "seed": 7, "blocks": 16, "measured_again": 1,
        "disturbed": [{ "block": 2, "by": ["steal"] }], "cells": [cell("two", 100e3), other], "left_out": { "eight": 9 },
    });
    let plan = serde_json::from_value(plan).unwrap();
    forms("plan", &study::report(&plan), study::json(&plan));
}

#[test]
fn a_load() {
    let load = serde_json::from_str(include_str!("load.json")).unwrap();
    forms("load", &load::report(&load, true), load::json(&load));
}

/// A run that was right, one that was not, and one that failed.
#[test]
fn a_calibration() {
    let run = |injection: &str, found: &str, right: bool| {
        serde_json::json!({
            "injection": injection, "begin_s": 1.0, "took_s": 7.0, "result": "measured", "bottleneck": found,
            "first_finding": null, "found": found, "right": right, "alarms": [], "gross": 1000.0, "net": 1200.0,
            "findings": [{ "cause": found, "effect_ln": 0.1 }], "right_as_listed": right,
        })
    };
    let failed = serde_json::json!({
        "injection": "loss", "begin_s": 15.0, "took_s": 1.0, "result": "failed", "why": "no nft here",
    });
    let injection = |name: &str, expected: &str| {
        serde_json::json!({
            "name": name, "about": format!("{name}, by hand"), "expected": [expected], "undisturbed": false,
            "leaves_net": true, "not_here": null,
        })
    };
    let calibration = serde_json::json!({
        "schema": 2, "argv": ["tare", "calibrate"], "started_unix_s": 1_795_000_000, "took_s": 16.0, "seed": 7,
        "repeats": 1, "complete": true, "machine": { "kernel": "6.18", "cpu_model": "A CPU", "cpus": 2 },
        "injections": [
            injection("quota", "cpu-quota-throttled"), injection("lock", "lock-contended"),
            injection("loss", "network-ceiling"),
        ],
        "runs": [run("quota", "cpu-quota-throttled", true), run("lock", "server-cpu-bound", false), failed],
        "summary": {
            "runs": 3, "right": 1, "right_as_listed": 1, "undisturbed": 0, "false_alarms": 0, "disturbed": 0,
            "confusion": { "quota": { "cpu-quota-throttled": 1 }, "lock": { "server-cpu-bound": 1 } },
        },
        "comparisons": [],
    });
    let calibration = serde_json::from_value(calibration).unwrap();
    forms("calibration", &calibration::report(&calibration), calibration::json(&calibration));
}

/// A real result, with its first runs alone. It is kept beside the test: what the bench shows next time changes no test.
#[test]
fn the_zoo() {
    let zoo: tare_model::zoo::Zoo = serde_json::from_str(include_str!("zoo.json")).unwrap();
    let [text, page] = [false, true].map(|is_page| zoo::report(&zoo, is_page));
    forms("zoo", &text, zoo::json(&zoo));
    assert!(page.markdown().contains("| true | "), "the matrix is turned round on a page");
}
