//! The bench's short form runs to its end: it can fail on errors, never on luck.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so

use std::path::Path;
use std::process::Command;

#[test]
fn the_short_form_compares_servers_with_themselves_and_keeps_nothing() {
    let bench = Path::new(env!("CARGO_BIN_EXE_bench-trust"));
    // A test of the whole workspace has built it; one of this package alone has not.
    let tare = bench.with_file_name("tare");
    if !tare.exists() {
        let built = Command::new(env!("CARGO")).args(["build", "-p", "tare"]).status().unwrap();
        assert!(built.success());
    }
    let folder = tempfile::tempdir().unwrap();
    let kept = |name: &str| folder.path().join(name);
    let output = Command::new(bench)
        .args(["--short", "--only", "aa", "--tare"])
        .arg(&tare)
        .arg("--json")
        .arg(kept("trust.json"))
        .arg("--markdown")
        .arg(kept("trust.md"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("| against itself, 20 s | all | ") && table.contains(" | 2 | "), "{table}");
    assert!(!kept("trust.json").exists() && !kept("trust.md").exists());
}
