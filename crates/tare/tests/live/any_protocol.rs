//! A server of another protocol than HTTP under its own load generator, without a URL: it is found by the generator's connections.

use crate::support::{Quota, Tare, alive, alone, eventually, free_port};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Operations of each run of the generator: some seconds of load, more than it takes to find what an idle period costs.
const OPERATIONS: u64 = 400_000;

/// Redis, without a file on disk, stopped when dropped.
struct Redis {
    child: Child,
    port: u16,
    dir: tempfile::TempDir,
}

impl Redis {
    fn start() -> Redis {
        let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
        let socket = dir.path().join("socket");
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--save", "", "--unixsocket"])
            .arg(&socket)
            .current_dir(dir.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is installed by tests/run");
        eventually("redis listens", || socket.exists());
        Redis { child, port, dir }
    }

    fn socket(&self) -> String {
        self.dir.path().join("socket").display().to_string()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Above this the accounting is open, and there is no verdict. What opens it by less is the host, which no test can keep away.
const OPEN: f64 = 0.05;

fn generator(to: &str) -> String {
    format!("redis-benchmark {to} -t get -n {OPERATIONS} -c 50")
}

/// The threads of a role, busiest first.
fn threads_of<'r>(result: &'r Value, role: &str) -> Vec<&'r Value> {
    let threads = result["accounting"]["threads"].as_array().unwrap();
    threads.iter().filter(|thread| thread["role"] == role).collect()
}

/// What must hold whatever else the machine does: the server is the one that was loaded, its operations are counted by the
/// generator's own result, the accounting closes, and a bottleneck is named.
fn check(result: &Value, trials: u64, server: Option<u32>) {
    assert_eq!(result["gross"]["unit"], "op/s", "{result:#}");
    assert!(result["gross"]["value"].as_f64().unwrap() > 0.0);
    assert_eq!(result["requests"]["count"].as_u64(), Some(trials * OPERATIONS));
    assert!(result["latency_ns"]["p50"].as_f64().unwrap() > 0.0);
    assert!(result["accounting"]["residual_ratio"].as_f64().unwrap() < OPEN, "{result:#}");
    // What a host does to its CPUs is in no thread's account.
    let residuals = result["accounting"]["residuals"].as_object().unwrap();
    for (of, residual) in residuals.iter().filter(|(of, _)| !of.starts_with("cpu ")) {
        assert!(residual.as_f64().unwrap() < 0.01, "{of}: {residuals:#?}");
    }
    // Which one it is, other programs on these CPUs decide as well.
    assert!(result["bottleneck"].is_string(), "{result:#}");
    let threads = threads_of(result, "sut");
    assert!(threads.iter().any(|thread| thread["name"] == "redis-server"), "{threads:#?}");
    if let Some(server) = server {
        assert!(threads.iter().all(|thread| thread["pid"] == server), "{threads:#?}");
    }
    let load = threads_of(result, "load");
    assert!(load.iter().any(|thread| thread["name"] == "redis-benchmark"), "{load:#?}");
}

#[test]
fn a_server_that_is_started_is_measured_without_a_url() {
    let _alone = alone();
    let (tare, port) = (Tare::new(), free_port());
    let (sut, load) = (format!("redis-server --port {port} --save ''"), generator(&format!("-p {port}")));
    let record = tare.state.path().join("redis.tare");
    let arguments = ["run", "-q", "--json", "--trials", "2", "--sut", &sut, "--load", &load, "-o"];
    let output = tare.command().args(arguments).arg(&record).output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    check(&result, 2, None);
    // It was tare's to stop.
    let pid = threads_of(&result, "sut")[0]["pid"].as_u64().unwrap() as u32;
    assert!(!alive(pid));
    let shown = tare.run(&["show", record.to_str().unwrap()]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("op/s") && shown.contains("Operations"), "{shown}");
}

#[test]
fn a_server_that_runs_is_named_or_found_by_the_generators_connections() {
    let _alone = alone();
    let (tare, redis) = (Tare::new(), Redis::start());
    let (pid, load) = (redis.child.id(), generator(&format!("-p {}", redis.port)));
    let named = ["run", "-q", "--json", "--trials", "1", "--sut-pid", &pid.to_string(), "--load", &load];
    check(&tare.json(&named).0, 1, Some(pid));
    // More than there are CPUs: a group that holds nobody back.
    let group = Quota::of(400);
    group.hold(&[pid], true);
    let above = group.group(false);
    let name = above.file_name().unwrap().to_str().unwrap();
    let grouped = ["run", "-q", "--json", "--trials", "1", "--sut-group", name, "--load", &load];
    check(&tare.json(&grouped).0, 1, Some(pid));
    drop(group);
    let found = ["run", "-q", "--json", "--trials", "1", "--load", &load];
    check(&tare.json(&found).0, 1, Some(pid));
    let over_unix = generator(&format!("-s {}", redis.socket()));
    let found = ["run", "-q", "--json", "--trials", "1", "--load", &over_unix];
    check(&tare.json(&found).0, 1, Some(pid));
    assert!(alive(pid), "it was running before");
}

#[test]
fn without_a_result_that_can_be_read_cpu_time_stands_alone() {
    let _alone = alone();
    let (tare, redis) = (Tare::new(), Redis::start());
    let load = format!("redis-cli -p {} -r 100000 ping", redis.port);
    let (result, code) = tare.json(&["run", "-q", "--json", "--trials", "1", "--load", &load]);
    let warnings = result["warnings"].as_array().unwrap();
    let warns = |id: &str| warnings.iter().any(|warning| warning["id"] == id);
    // Others' short processes (a compiler's) may be the server's, for all that is known.
    let valid = !warns("cpu-time-unclaimed");
    assert_eq!((code, result["valid"].as_bool()), (if valid { 0 } else { 4 }, Some(valid)), "{result:#}");
    assert_eq!(result["gross"]["missing"], "nobody counted the operations");
    assert!(result["accounting"]["residual_ratio"].as_f64().unwrap() < OPEN);
    let threads = threads_of(&result, "sut");
    assert!(threads.iter().any(|thread| thread["run"].as_f64().unwrap() > 0.0), "{threads:#?}");
    assert!(warns("operations-unknown"), "{warnings:#?}");
}

#[test]
fn what_went_wrong_is_said_with_what_to_do() {
    let _alone = alone();
    let (tare, redis) = (Tare::new(), Redis::start());
    let fails = |arguments: &[&str]| {
        let output = tare.run(&[&["run", "-q", "--trials", "1"], arguments].concat());
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = fails(&["--load", "sleep 1"]);
    assert!(code == 3 && said.contains("no connection of it to a server was seen"), "{code} {said}");
    assert!(said.contains("hint"), "{said}");
    let (code, said) = fails(&["--load", "false"]);
    assert!(code == 3 && said.contains("failed: exit status 1"), "{code} {said}");
    let (code, said) = fails(&["--sut", "sleep 0.2", "--load", "sleep 1"]);
    assert!(code == 3 && said.contains("died: exit status 0"), "{code} {said}");
    // Started is one server, loaded is another.
    let (port, load) = (free_port(), generator(&format!("-p {}", redis.port)));
    let (code, said) = fails(&["--sut", &format!("redis-server --port {port} --save ''"), "--load", &load]);
    assert!(code == 2 && said.contains("is connected to") && said.contains("redis-server"), "{code} {said}");
    assert!(Path::new(&redis.socket()).exists());
}
