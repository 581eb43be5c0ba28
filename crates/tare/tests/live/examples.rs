//! The projects in `examples/`: each script runs as it stands there, and a service that does twenty times the work fails its gate.

use crate::support::{Tare, alone};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// So much that two launches prove it, even of a JVM of which one was not warm: an interval of two is 13 standard errors to each side.
const WORK: &str = "20";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs the script of a project in a copy of its own: it builds where it stands.
fn measure(project: &str, budget: &str) {
    let tare = Tare::new();
    let folder = tare.state.path().join(project);
    let from = root().join("examples").join(project);
    assert!(Command::new("cp").arg("-r").args([&from, &folder]).status().unwrap().success());
    let path = format!("{}:/usr/local/go/bin:/usr/sbin", std::env::var("PATH").unwrap());
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go");
    let mut script = Command::new(folder.join("measure"));
    script.envs([("PATH", path.as_str()), ("WORK", WORK), ("BUDGET", budget), ("GOTOOLCHAIN", "local")]);
    script.env("TARE", env!("CARGO_BIN_EXE_tare")).env("TARE_STATE_DIR", tare.state.path());
    script.env("GOCACHE", kept).env("NO_COLOR", "1").stdin(Stdio::null());
    let output = script.output().unwrap();
    let [shown, said] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert_eq!(output.status.code(), Some(1), "{shown}\n{said}");
    assert!(shown.contains("proven: this fails the gate"), "{shown}\n{said}");
    for figure in ["throughput", "CPU time of a request", "p99"] {
        assert!(shown.contains(figure), "{figure}: {shown}");
    }
}

#[test]
fn a_go_service_that_does_more_work_fails_its_gate() {
    let _alone = alone();
    measure("go", "20s");
}

#[test]
fn a_java_service_that_does_more_work_fails_its_gate() {
    let _alone = alone();
    // Each launch is loaded until it is warm, for three tenths of the budget at most, and two launches have to fit in a bad minute, too.
    measure("java", "90s");
}

#[test]
fn a_node_service_that_does_more_work_fails_its_gate() {
    let _alone = alone();
    measure("node", "45s");
}
