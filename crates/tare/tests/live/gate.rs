//! A gate on real runs: against a baseline, against a history, and what it makes of files that are neither.

use crate::support::{Tare, alone, http_in_python, number};
use serde_json::Value;
use std::path::{Path, PathBuf};

const SPIN: &str = "/spin?ns=20000";
/// A request that costs very much more than any neighbour could make it.
const SPIN_MORE: &str = "/spin?ns=400000";

/// Measures the built-in server into a record of this name.
fn measure(tare: &Tare, name: &str, path: &str) -> PathBuf {
    let file = tare.state.path().join(name);
    let port = crate::support::free_port();
    let url = format!("http://127.0.0.1:{port}{path}");
    let sut = format!("{} serve --listen 127.0.0.1:{port} --threads 1", env!("CARGO_BIN_EXE_tare"));
    let output = tare
        .command()
        .args(["run", "-q", "--no-levels", "-c", "8", "-w", "200ms", "-d", "1s", "--trials", "3"])
        .args(["--sut-cpus", "0", "--load-cpus", "1", "--sut", &sut, "-o"])
        .args([file.to_str().unwrap(), &url])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    file
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn effect<'g>(gate: &'g Value, figure: &str) -> &'g Value {
    gate["effects"].as_array().unwrap().iter().find(|effect| effect["figure"] == figure).unwrap()
}

fn warned(gate: &Value, id: &str) -> bool {
    gate["warnings"].as_array().unwrap().iter().any(|warning| warning["id"] == id)
}

/// A history of the same run at other times, some of them with slightly more CPU per request.
fn copies(line: &str, count: u32) -> String {
    let copy = |at: u32| {
        let mut run: Value = serde_json::from_str(line).unwrap();
        run["time_unix_s"] = (1000 + at).into();
        run["label"] = format!("c{at}").into();
        let cost_s = number(&run, "/figures/cpu_per_request/value");
        run["figures"]["cpu_per_request"]["value"] = (cost_s * (1.0 + 0.001 * f64::from(at % 3))).into();
        format!("{run}\n")
    };
    (0..count).map(copy).collect()
}

#[test]
fn a_program_with_more_cpu_fails_the_gate_and_the_same_one_does_not() {
    let _alone = alone();
    let tare = Tare::new();
    let base = measure(&tare, "base.tare", SPIN);
    let again = measure(&tare, "again.tare", SPIN);
    let costlier = measure(&tare, "costlier.tare", SPIN_MORE);
    let cost = ["--fail-if", "cpu_per_request > 100%", "--json"];
    let (gate, code) = tare.json(&[&["gate", text(&again), "--baseline", text(&base)][..], &cost].concat());
    assert_eq!(code, 0, "{gate:#}");
    // The port of a server that tare starts is no part of the question.
    assert!(!warned(&gate, "other-plan"), "{gate:#}");
    let (gate, code) =
        tare.json(&[&["gate", text(&costlier), "--baseline", text(&base)][..], &cost].concat());
    assert_eq!(code, 1, "{gate:#}");
    assert!(warned(&gate, "other-plan"), "{gate:#}");
    let costlier_demand = effect(&gate, "cpu_per_request");
    assert_eq!(
        (&costlier_demand["verdict"], &costlier_demand["of_reference"]),
        (&"slower".into(), &false.into())
    );
    assert!(number(costlier_demand, "/change/value") > 1.0);
    let shown = tare.run(&[
        "gate",
        text(&costlier),
        "--baseline",
        text(&base),
        "--fail-if",
        "cpu_per_request > 100%",
    ]);
    let said = String::from_utf8(shown.stdout).unwrap();
    assert!(said.contains("is worse than") && said.contains("proven: this fails the gate"), "{said}");
    compared(&tare, &base, &again, &costlier);
    with_history(&tare, &base, &again, &costlier);
}

/// `tare compare` tells the same of records, of each against the first.
fn compared(tare: &Tare, base: &Path, again: &Path, costlier: &Path) {
    let compare = |more: &[&str]| {
        tare.json(&[&["compare", "--json", text(base), text(again), text(costlier)][..], more].concat())
    };
    let (pairs, code) = compare(&[]);
    let pairs = pairs.as_array().unwrap();
    assert_eq!((code, pairs.len()), (0, 2), "{pairs:#?}");
    assert!(pairs.iter().all(|pair| pair["conditions"].as_array().unwrap().is_empty()), "{pairs:#?}");
    assert_eq!(effect(&pairs[1], "cpu_per_request")["verdict"], "slower");
    assert_eq!(compare(&["--fail-if", "cpu_per_request > 100%"]).1, 1);
    let twice = tare.run(&["compare", text(base), text(base)]);
    let said = String::from_utf8(twice.stderr).unwrap();
    assert!(twice.status.code() == Some(2) && said.contains("nothing can differ"), "{said}");
}

fn with_history(tare: &Tare, base: &Path, again: &Path, costlier: &Path) {
    let history = tare.state.path().join("main.jsonl");
    let gate = |new: &Path, more: &[&str]| {
        let fixed =
            ["gate", text(new), "--history", text(&history), "--json", "--fail-if", "cpu_per_request > 100%"];
        tare.json(&[&fixed[..], more].concat())
    };
    let (first, code) = gate(base, &["--keep", "--label", "c0"]);
    assert_eq!((code, number(effect(&first, "cpu_per_request"), "/runs_missing")), (0, 5.0), "{first:#}");
    let (twice, code) = gate(base, &["--keep"]);
    assert!(code == 0 && warned(&twice, "not-kept"), "{twice:#}");
    let line = std::fs::read_to_string(&history).unwrap();
    assert_eq!(line.lines().count(), 1);
    // Cut short in the middle of its last line, as when a disk was full.
    let kept = copies(line.trim(), 8) + &line[..line.len() / 2];
    std::fs::write(&history, kept).unwrap();
    let (same, code) = gate(again, &["--keep", "--label", "c9"]);
    assert_eq!(code, 0, "{same:#}");
    assert!(
        warned(&same, "history-line") && same["change_points"].as_array().unwrap().is_empty(),
        "{same:#}"
    );
    assert_eq!(effect(&same, "cpu_per_request")["runs"], 8);
    let read = std::fs::read_to_string(&history).unwrap();
    let last: Value = serde_json::from_str(read.lines().last().unwrap()).unwrap();
    assert!(last["label"] == "c9" && read.ends_with('\n'), "{read}");
    // Another question is none of this history's.
    let (other, code) = gate(costlier, &[]);
    assert_eq!((code, &other["against"]["history"]["other_plans"]), (0, &9.into()), "{other:#}");
    // A branch whose CPU per request grew long ago gets a warning.
    let dear = copies(line.trim(), 20).lines().enumerate().fold(String::new(), |all, (at, line)| {
        let mut run: Value = serde_json::from_str(line).unwrap();
        let cost_s = number(&run, "/figures/cpu_per_request/value") * if at < 12 { 0.5 } else { 1.0 };
        run["figures"]["cpu_per_request"]["value"] = cost_s.into();
        format!("{all}{run}\n")
    });
    std::fs::write(&history, dear).unwrap();
    let (shifted, code) = gate(again, &[]);
    assert_eq!(code, 0, "{shifted:#}");
    let shift = &shifted["change_points"][0];
    assert_eq!(
        (&shift["figure"], &shift["since"]),
        (&"cpu_per_request".into(), &"c12".into()),
        "{shifted:#}"
    );
}

#[test]
fn both_builds_are_measured_where_both_are_there() {
    let _alone = alone();
    let tare = Tare::new();
    let costly = tare.state.path().join("costly.py");
    // It takes many times as much CPU for an answer as the built-in server.
    std::fs::write(&costly, http_in_python("", "pass")).unwrap();
    let new = format!("python3 {} {{port}}", costly.display());
    let old = format!("{} serve --listen 127.0.0.1:{{port}} --threads 1", env!("CARGO_BIN_EXE_tare"));
    let asked = ["--fail-if", "cpu_per_request > 50%", "--budget", "8s", "--json", "-q", "/plaintext"];
    let (gate, code) = tare.json(&[&["gate", "--sut", &new, "--against", &old][..], &asked].concat());
    assert_eq!(code, 1, "{gate:#}");
    assert_eq!((&gate["new"]["label"], &gate["against"]["interleaved"]["label"]), (&new.into(), &old.into()));
    let cost = effect(&gate, "cpu_per_request");
    assert!(cost["verdict"] == "slower" && number(cost, "/change/value") > 1.0, "{cost:#}");
    // Commands, by what is asked for where nothing is.
    let commands = |new: &str| {
        tare.json(&["gate", "--command", new, "--against", "sleep 0.02", "--budget", "5s", "--json", "-q"])
    };
    let (gate, code) = commands("sleep 0.06");
    assert_eq!((code, &gate["conditions"][0]["state"]), (1, &"proven".into()), "{gate:#}");
    let (gate, code) = commands("sleep 0.01");
    assert_eq!((code, &effect(&gate, "time")["verdict"]), (0, &"faster".into()), "{gate:#}");
}

#[test]
fn what_is_no_record_and_no_history_is_reported() {
    let _alone = alone();
    let tare = Tare::new();
    let file = tare.state.path().join("words");
    std::fs::write(&file, "words\n").unwrap();
    for (arguments, wanted) in [
        (vec!["gate", "new.tare"], "--baseline"),
        (vec!["gate", "--sut", "./new {port}", "--baseline", "base.tare"], "--against"),
        (vec!["gate", "new.tare", "--against", "./old {port}"], "--sut"),
        (vec!["gate", "--command", "true", "--against", "true", "--fail-if", "net < -2%"], "cpu_time"),
        (vec!["gate", "absent.tare", "--baseline", "other.tare"], "absent.tare"),
        (vec!["gate", text(&file), "--history", "main.jsonl"], "words"),
        (
            vec!["gate", "new.tare", "--baseline", "base.tare", "--history", "main.jsonl"],
            "cannot be used with",
        ),
        (vec!["gate", "new.tare", "--baseline", "base.tare", "--keep"], "--keep"),
        (vec!["gate", "new.tare", "--history", "main.jsonl", "--label", "a\nb"], "one line"),
        (vec!["gate", "new.tare", "--history", "main.jsonl", "--fail-if", "speed < 1%"], "cpu_per_request"),
    ] {
        let output = tare.run(&arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(wanted) && said.lines().count() == 1, "{arguments:?}: {said}");
    }
    // Nothing is asked of a command, so it has no net.
    let commands = ["--command", "true", "--command", "true"];
    let output = tare.run(&[["compare", "--fail-if", "net < -2%"].as_slice(), &commands].concat());
    assert_eq!(output.status.code(), Some(2));
}
