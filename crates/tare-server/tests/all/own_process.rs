//! A test in a process of its own: what it counts or changes is the whole process's.

use std::process::Command;

const INSIDE: &str = "TARE_TEST_IN_ITS_OWN_PROCESS";

/// Runs the test again in a process of its own, and waits for it. True in that process: the caller goes on there alone.
pub fn entered(module: &str, test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let (_crate, module) = module.split_once("::").unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("{module}::{test}"), "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}\n{stderr}");
    false
}
