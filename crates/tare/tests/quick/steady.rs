//! `tare steady` on series whose steady state others have looked for, and on what is no series.
//!
//! The forks are a sample of the replication package of Traini et al., "Towards effective assessment of steady state
//! performance in Java software: Are we there yet?" (Empirical Software Engineering, 2022); labels are the study's.

use crate::support::schema;
use serde_json::Value;
use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};

const FORKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/forks.jsonl.gz");

fn tare() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tare"))
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| schema::read(&["steady"], line.as_bytes())).collect()
}

fn steady(input: &str, args: &[&str]) -> Output {
    let mut command = tare();
    command
        .args(["steady", "-"])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Whoever refuses a line need not read the rest.
    child.stdin.take().unwrap().write_all(input.as_bytes()).ok();
    child.wait_with_output().unwrap()
}

#[test]
fn forks_are_judged_as_by_those_who_studied_them() {
    let mut labelled = String::new();
    let file = std::fs::File::open(FORKS).unwrap();
    flate2::read::GzDecoder::new(file).read_to_string(&mut labelled).unwrap();
    let output = tare().args(["steady", "--json", FORKS]).output().unwrap();
    assert!(output.status.success());
    let labelled: Vec<Value> = labelled.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found = objects(std::str::from_utf8(&output.stdout).unwrap());
    assert_eq!(labelled.len(), found.len());
    let (mut agreed, mut all) = ([0.0, 0.0], [0.0, 0.0]);
    let mut apart: Vec<i64> = Vec::new();
    for (wanted, found) in labelled.iter().zip(&found) {
        let from = |object: &Value| object["steady_from"].as_i64().unwrap();
        let is_steady = from(wanted) >= 0;
        assert_eq!(from(found) >= 0, found["label"] == "steady");
        assert_eq!(found["state"] == "steady", found["label"] == "steady");
        all[usize::from(is_steady)] += 1.0;
        if is_steady == (from(found) >= 0) {
            agreed[usize::from(is_steady)] += 1.0;
            apart.extend(is_steady.then(|| (from(wanted) - from(found)).abs()));
        }
    }
    apart.sort_unstable();
    let balanced = 0.5 * (agreed[0] / all[0] + agreed[1] / all[1]);
    assert!(balanced >= 0.9 && apart[apart.len() / 2] <= 10, "{balanced:.3} agree, starts {apart:?} apart");
}

#[test]
fn numbers_a_line_are_one_series() {
    let warm_up = |at: usize| if at < 80 { 2.0 } else { 1.0 };
    let series: String =
        (0..500).map(|at| format!("{}\n", warm_up(at) + 0.001 * (at * 7919 % 101) as f64)).collect();
    let output = steady(&format!("# times\n\n{series}"), &["--json"]);
    let object = &objects(std::str::from_utf8(&output.stdout).unwrap())[0];
    assert_eq!(object["label"], "steady");
    // The last values before a change look wild from behind it.
    assert!((77..=80).contains(&object["steady_from"].as_i64().unwrap()), "{object}");
    let shown = String::from_utf8(steady(&series, &["--color", "never"]).stdout).unwrap();
    assert!(shown.contains("steady") && shown.contains("500"), "{shown}");
}

/// Only what is at one level is labelled steady, and the levels are as many as the state says.
#[test]
fn label_state_and_levels_never_contradict_each_other() {
    let noise = |at: usize| 0.001 * (at * 7919 % 101) as f64;
    type Level<'a> = &'a dyn Fn(usize) -> f64;
    let states: [(&str, &[f64], Level); 5] = [
        ("steady", &[1.05], &|_| 1.0),
        ("steady", &[1.05], &|at| if at < 100 { 3.0 } else { 1.0 }),
        ("bimodal", &[1.05, 1.35], &|at| if at * 31 % 10 < 4 { 1.3 } else { 1.0 }),
        ("drifting", &[], &|at| 1.0 + at as f64 / 100.0),
        ("never-steady", &[], &|at| if at < 360 { 1.0 } else { 2.0 }),
    ];
    for (state, levels, level) in states {
        let series: String = (0..400).map(|at| format!("{}\n", level(at) + noise(at))).collect();
        let output = steady(&series, &["--json"]);
        let object = &objects(std::str::from_utf8(&output.stdout).unwrap())[0];
        let label = if state == "steady" { "steady" } else { "not-steady" };
        assert_eq!((&object["state"], &object["label"]), (&state.into(), &label.into()), "{object}");
        assert_eq!(object["steady_from"] == -1, label == "not-steady", "{object}");
        let found: Vec<f64> = object["levels"].as_array().unwrap().iter().flat_map(Value::as_f64).collect();
        let is_level = |(found, level): (&f64, &f64)| (found - level).abs() < 0.01;
        assert!(found.len() == levels.len() && found.iter().zip(levels).all(is_level), "{object}");
        let shown = String::from_utf8(steady(&series, &["--color", "never"]).stdout).unwrap();
        assert!(shown.contains(&state.replace('-', " ")), "{shown}");
        // A mean of two modes is no level.
        assert_eq!(shown.contains(" and "), levels.len() == 2, "{shown}");
    }
}

#[test]
fn what_is_no_series_is_said_in_one_line() {
    let short = "1\n2\n3\n";
    let zero = "1\n".repeat(30) + "0\n";
    for (input, reported) in [
        ("", "no series"),
        ("1\nx\n", "line 2: 'x' is not a number"),
        (short, "3 values"),
        (&zero, "0 is not above zero"),
        ("{\"seconds\": 3}\n", "line 1: not a series"),
        ("{\"seconds\": [1.0]}\n", "1 values"),
        ("1\n{\"seconds\": [1.0]}\n", "line 2"),
    ] {
        let output = steady(input, &[]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{input:?}: {error}");
        assert!(error.lines().count() == 1 && error.contains(reported) && error.contains("hint"), "{error}");
    }
    let missing = tare().args(["steady", "/no/such/file"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(2));
}
