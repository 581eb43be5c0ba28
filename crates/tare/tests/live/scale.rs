//! `tare scale` on real processes: what is refused, what is measured, what is kept.

use crate::support::{alone, left_running};
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
