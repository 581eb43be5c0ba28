//! `tare ceiling` on this machine: what is measured, what is kept for later runs, and that nothing is left, whatever the end.

use crate::support::{Tare, alive, alone, eventually, left_running};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Stdio};
use tare_sys::process::{Signal, kill};

const SOME: &str = "system-call,loopback-flows-64,loopback-bytes,fsync,random-read,reference-depth-1";

fn names_in(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn what_was_measured_is_kept_for_the_runs_of_this_boot() {
    let _alone = alone();
    let (tare, folder) = (Tare::new(), tempfile::tempdir().unwrap());
    let run = ["run", "--json", "-w200ms", "-d300ms", "--trials", "2", "--no-levels", "--no-reference"];
    let (before, _) = tare.json(&run);
    assert_eq!(before["ceiling"]["missing"], "no ceilings are kept for this boot", "{:#}", before["ceiling"]);
    assert_eq!(before["ceiling"]["remedy"], "run tare ceiling");
    let dir = folder.path().to_str().unwrap();
    let (found, code) = tare.json(&["ceiling", "--json", "--budget", "5s", "--only", SOME, "--dir", dir]);
    assert!(code == 0 && found["kept"] == true, "{found:#}");
    let ceilings = found["ceilings"].as_array().unwrap();
    assert_eq!(ceilings.len(), 6);
    let measured = |one: &Value| one["estimate"]["value"].as_f64().is_some_and(|value| value > 0.0);
    assert!(ceilings.iter().all(measured), "{found:#}");
    assert_eq!(names_in(folder.path()), 0);
    let (after, _) = tare.json(&run);
    let share = &after["ceiling"];
    assert!(share["share"].as_f64().is_some_and(|share| share > 0.0), "{share:#}");
    let bounds: Vec<&str> =
        share["bounds"].as_array().unwrap().iter().filter_map(|bound| bound["name"].as_str()).collect();
    assert!(
        bounds.contains(&share["tightest"].as_str().unwrap()) && bounds.contains(&"reference-depth-1"),
        "{share:#}"
    );
    let (program, _) = tare.json(&["run", "--json", "--trials", "1", "--", "true"]);
    assert!(
        program["ceiling"]["missing"].as_str().is_some_and(|why| why.contains("program")),
        "{:#}",
        program["ceiling"]
    );
}

/// Begun, and in the middle of its samples.
fn begun(tare: &Tare, folder: &Path) -> Child {
    let mut command = tare.command();
    command.args(["ceiling", "--budget", "60s", "--dir", folder.to_str().unwrap(), "-q"]);
    command.args(["--only", "random-read,fsync,reference-depth-1"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // Itself is one of them.
    eventually("the reference server runs", || left_running(tare.state.path()).len() > 1);
    child
}

#[test]
fn nothing_is_left_whatever_the_end() {
    let _alone = alone();
    for signal in [Signal::Int, Signal::Kill] {
        let (tare, folder) = (Tare::new(), tempfile::tempdir().unwrap());
        let mut child = begun(&tare, folder.path());
        let served = left_running(tare.state.path());
        kill(child.id(), signal).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(names_in(folder.path()), 0);
        match signal {
            Signal::Int => assert_eq!(status.code(), Some(130)),
            _ => assert!(tare.run(&["recover"]).status.success()),
        }
        eventually("the reference server has ended", || served.iter().all(|pid| !alive(*pid)));
        // What was interrupted is not kept.
        assert!(!tare.state.path().join("ceilings.json").exists());
    }
}

#[test]
fn a_folder_that_may_not_be_used_is_missing_and_the_others_are_measured() {
    let _alone = alone();
    let tare = Tare::new();
    let (found, code) = tare.json(&[
        "ceiling",
        "--json",
        "--budget",
        "3s",
        "--only",
        "fsync,system-call",
        "--dir",
        "/proc/1",
    ]);
    assert_eq!(code, 0);
    let of =
        |name: &str| found["ceilings"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap();
    assert!(
        of("fsync")["estimate"]["missing"].as_str().is_some_and(|why| why.contains("/proc/1")),
        "{found:#}"
    );
    assert!(of("system-call")["estimate"]["value"].is_f64(), "{found:#}");
}
