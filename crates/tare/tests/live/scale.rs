//! `tare scale` on real processes: what is refused, what is measured, what is kept.

use crate::support::{alone, eventually, left_running};
use std::path::Path;
use std::process::{Command, Output};

fn tare(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tare"))
        .args(args)
        .env("TARE_STATE_DIR", dir)
        .current_dir(dir)
        .output()
        .unwrap()
}

#[test]
fn what_cannot_be_varied_gets_one_line_and_starts_nothing() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    for (args, wanted) in [
        (&["--n", "1,2", "--", "touch", "started"][..], "nothing contains {n}"),
        (&["--n", "4", "--", "touch", "{n}"], "nothing is varied"),
        (&["--n", "1,2", "--cpus", "1,2", "--", "touch", "{n}"], "one factor is varied at a time"),
        (&["--connections", "1,2", "--load", "touch started"], "cannot be used with"),
        (&["--cpus", "1,100000"], "100000 is more than"),
        (&["--connections", "8..1"], "does not go up"),
        (&["--instances", "1", "--", "touch", "started"], "has no other beside it"),
        (&["--instances", "2", "--cpus-each", "4096", "--", "touch", "started"], "CPUs that there are"),
        (&["--instances", "2", "http://127.0.0.1:1/"], "none is named that can be started"),
        (&["--instances", "2", "--sut", "touch started", "http://127.0.0.1:1/"], "listen on the same port"),
    ] {
        let output = tare(dir.path(), &[&["scale"], args].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(wanted), "{args:?}: {said}");
    }
    assert!(!dir.path().join("started").exists());
}

/// Each run sleeps for as long as its level says, so that there is a curve whose order luck cannot turn round.
#[test]
fn each_level_is_measured_once_in_each_block_and_kept() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "scale", "--n", "1,8", "--blocks", "2", "--budget", "1s", "--seed", "7", "-q", "--json", "-o", "kept",
    ];
    let output = tare(dir.path(), &[&args[..], &["--", "sleep 0.{n}"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let result = crate::support::schema::read(&["scale"], &output.stdout);
    assert_eq!(
        (&result["factor"], &result["blocks"], &result["seed"]),
        (&"{n}".into(), &2.into(), &7.into())
    );
    let levels = result["levels"].as_array().unwrap();
    let n: Vec<f64> = levels.iter().map(|level| level["n"].as_f64().unwrap()).collect();
    assert_eq!(n, [1.0, 8.0]);
    assert!(levels.iter().all(|level| level["samples"].as_array().unwrap().len() == 2), "{levels:?}");
    let rate = |at: usize| levels[at]["estimate"]["value"].as_f64().unwrap();
    // No sleep is shorter than it was asked for, and 0.8 s are longer than 0.1 s on any machine that ends this test.
    assert!(rate(0) <= 10.0 && rate(1) <= 1.25, "{levels:?}");
    assert_eq!(levels[0]["estimate"]["unit"], "runs/s");
    let warned = |id: &str| result["warnings"].as_array().unwrap().iter().any(|warning| warning["id"] == id);
    assert!(warned("few-blocks"), "{result}");
    let kept = std::fs::read_dir(dir.path().join("kept")).unwrap().count();
    assert_eq!(kept, 4);
    assert!(left_running(dir.path()).is_empty());
}

/// Both have one CPU between them, so each does about half of its work whatever else happens, and the CPU is what took the rest.
#[test]
fn two_programs_on_one_cpu_take_the_cpu_from_each_other() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let work = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let output = Command::new("taskset")
        .args(["-c", "0", env!("CARGO_BIN_EXE_tare"), "scale", "--instances", "2", "--blocks", "2"])
        .args(["--budget", "2s", "-q", "--json", "-o", "kept", "--", work])
        .env("TARE_STATE_DIR", dir.path())
        .current_dir(dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let result = crate::support::schema::read(&["scale"], &output.stdout);
    assert_eq!(result["factor"], "instances");
    let instances = result["instances"].as_array().unwrap();
    assert_eq!(instances.len(), 2, "{result}");
    for instance in instances {
        assert_eq!((&instance["cpus"][0], &instance["shared_cpus"][0]), (&0.into(), &0.into()));
        let kept = instance["kept"]["value"].as_f64().unwrap();
        assert!(kept < 0.85, "{instance:#}");
        assert_eq!(instance["taken"][0]["by"], "cpu", "{instance:#}");
        assert!(instance["alone"]["ipc"]["missing"].is_string() || instance["alone"]["ipc"].is_number());
    }
    let warned = |id: &str| result["warnings"].as_array().unwrap().iter().any(|warning| warning["id"] == id);
    assert!(warned("instances-share-cpus"), "{result}");
    // The first run, and in each block two alone and two together.
    assert_eq!(std::fs::read_dir(dir.path().join("kept")).unwrap().count(), 9);
    assert!(left_running(dir.path()).is_empty());
}

#[test]
fn servers_run_at_once_each_with_its_own_load() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "scale",
        "--instances",
        "1..2",
        "--connections",
        "4",
        "--blocks",
        "1",
        "-d",
        "300ms",
        "-q",
        "--json",
    ];
    let server = ["--sut", "tare serve --listen 127.0.0.1:{port}", "http://127.0.0.1:{port}/plaintext"];
    let output = tare(dir.path(), &[&args[..], &server].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let result = crate::support::schema::read(&["scale"], &output.stdout);
    let n: Vec<f64> =
        result["levels"].as_array().unwrap().iter().map(|level| level["n"].as_f64().unwrap()).collect();
    assert_eq!(n, [1.0, 2.0]);
    for instance in result["instances"].as_array().unwrap() {
        for state in ["alone", "together"] {
            let estimate = &instance[state]["estimate"];
            assert!(estimate["value"].as_f64().unwrap() > 0.0 && estimate["unit"] == "req/s", "{instance:#}");
        }
    }
    assert_eq!(result["fairness"][0]["n"], 2.0);
    assert!(left_running(dir.path()).is_empty());
}

/// Who is killed says nothing any more: its instances hear that, and stop what they started.
#[test]
fn instances_end_with_whoever_started_them() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_tare"))
        .args(["scale", "--instances", "2", "-q", "--", "sleep", "60"])
        .env("TARE_STATE_DIR", dir.path())
        .current_dir(dir.path())
        .spawn()
        .unwrap();
    // tare, the process of an instance, and the program.
    eventually("an instance runs", || left_running(dir.path()).len() >= 3);
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("nothing is left", || left_running(dir.path()).is_empty());
}
