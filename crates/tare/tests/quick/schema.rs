//! Every output that needs no load fits its schema; so do results of records of 0.1.0.

use crate::support::{self, Tare, schema};
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tare-store/tests/fixtures/0.1.0");
    folder.join(name).display().to_string()
}

fn records() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(Path::new(&fixture("http.tare")).parent().unwrap()).unwrap();
    let paths = folder.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "tare")).collect()
}

#[test]
fn results_of_old_records_fit() {
    let tare = Tare::new();
    let records = records();
    assert!(records.len() > 10);
    for record in records {
        let record = record.display().to_string();
        let (result, _) = tare.json(&["show", "--json", &record]);
        assert_eq!(result["schema"], 2);
        assert!(!result["metrics"].as_array().unwrap().is_empty(), "{record}");
        let threads = support::threads_of(&result, "sut").len();
        assert!(threads > 0 || result["accounting"]["sut"].is_null(), "{record}");
        tare.json(&["why", "--json", &record]);
    }
}

#[test]
fn what_is_said_of_two_records_fits() {
    let (tare, a, b) = (Tare::new(), fixture("http.tare"), fixture("trace.tare"));
    tare.json(&["why", "--json", &a, &b]);
    tare.json(&["gate", "--json", &a, "--baseline", &b]);
    tare.json(&["gate", "--json", &a, "--history", &fixture("history.jsonl")]);
    tare.json(&["compare", "--json", &a, &b]);
}

#[test]
fn a_history_of_old_lines_goes_on() {
    let (tare, record) = (Tare::new(), fixture("http.tare"));
    let history = tare.state.path().join("main.jsonl").display().to_string();
    std::fs::copy(fixture("history.jsonl"), &history).unwrap();
    let (gate, _) = tare.json(&["gate", "--json", &record, "--history", &history, "--keep"]);
    let known = &gate["against"]["history"];
    assert_eq!(known["runs"].as_u64().unwrap() + known["other_plans"].as_u64().unwrap(), 3, "{gate:#}");
    let skipped = |warning: &serde_json::Value| warning["id"] == "history-line";
    assert!(!gate["warnings"].as_array().unwrap().iter().any(skipped), "{gate:#}");
    assert_eq!(std::fs::read_to_string(&history).unwrap().lines().count(), 4);
}

#[test]
fn what_is_said_of_the_machine_fits() {
    let tare = Tare::new();
    tare.json(&["doctor", "--json", "--no-probes"]);
    tare.json(&["calibrate", "--json", "--list"]);
    let (ceilings, _) = tare.json(&["ceiling", "--json", "--list"]);
    assert!(ceilings.as_array().unwrap().len() > 25, "{ceilings:#}");
    let (zoo, code) = tare.json(&["calibrate", "--json", "--zoo", "--list"]);
    assert!(code == 0 && zoo["subjects"].as_array().unwrap().len() >= 14, "{zoo:#}");
}

#[test]
fn schemas_are_printed() {
    let tare = Tare::new();
    let names = String::from_utf8(tare.run(&["schema"]).stdout).unwrap();
    for output in tare_model::schema::OUTPUTS {
        assert!(names.lines().any(|line| line.starts_with(output.name)), "{names}");
        assert_eq!(tare.run(&["schema", output.name]).stdout, output.text.as_bytes());
    }
    assert_eq!(tare.run(&["schema", "nothing"]).status.code(), Some(2));
    // A key that no schema knows is found.
    let known = serde_json::json!({"name": "x", "label": "steady", "state": "steady", "steady_from": 0, "levels": [1.0], "values": 9, "wild": 0, "segments": []});
    schema::check(&["steady"], &known);
    let mut other = known.clone();
    other["label2"] = 1.into();
    assert!(std::panic::catch_unwind(|| schema::check(&["steady"], &other)).is_err());
}
