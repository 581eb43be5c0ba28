//! `tare load` with more connections than a process may have files open, against `tare serve` that may have no more.

use crate::serving::{Serve, memory_bytes, metric};
use crate::support::{alone, number};
use std::process::{Command, Stdio};

const CONNECTIONS: usize = 50_000;
const OPEN_FILES_MAX: u64 = 20_000;
/// What both processes may take of memory, the kernel's not counted.
const BYTES_MAX: u64 = 2_000_000_000;

/// `tare load` with that many connections and threads, few requests, and no more open files than the server has.
fn load(threads: &str, url: &str) -> Command {
    let mut command = Command::new("sh");
    let script = format!("ulimit -n {OPEN_FILES_MAX} && exec \"$0\" \"$@\"");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_tare"), "load", "-q", "--json", "-R1000", "-d3s"]);
    command.args(["--timeout", "30s", "-c", &CONNECTIONS.to_string(), "-t", threads, url]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn fifty_thousand_connections_are_open_at_once() {
    let _alone = alone();
    let room = ["--threads", "3", "--max-connections", "55000", "--metrics", "127.0.0.1:0"];
    let mut server = Serve::start_limited(OPEN_FILES_MAX, &room);
    let metrics = server.metrics_address();
    let url = format!("http://{}/plaintext", server.address);

    let refused = load("2", &url).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(2) && said.contains("-t 3"), "{said}");

    let generator = load("3", &url).spawn().unwrap();
    crate::support::eventually("all are open", || metric(metrics, "open") == CONNECTIONS as u64);
    let bytes = memory_bytes(generator.id(), "VmHWM") + memory_bytes(server.child.id(), "VmHWM");
    let output = generator.wait_with_output().unwrap();
    let result: serde_json::Value = crate::support::schema::read(&["load"], &output.stdout);
    assert!(number(&result, "/requests/count") > 1000.0, "{result:#}");
    let errors = result["requests"]["errors"].as_object().unwrap();
    assert!(errors.values().all(|count| count == 0), "{errors:?}");
    println!("{CONNECTIONS} connections: {} MB for both", bytes / 1_000_000);
    assert!(bytes < BYTES_MAX, "{bytes}");
    crate::support::eventually("all are closed", || metric(metrics, "open") == 0);
}
