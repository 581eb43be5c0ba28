//! `tare probe` on real servers, one of which stands still for nine tenths of a state.

use crate::support::{Server, Tare, alone, eventually, free_port, left_running, number};
use std::process::{Child, Command, Stdio};

struct Redis(Child, u16);

impl Redis {
    fn start() -> Redis {
        let port = free_port();
        let arguments = ["--port", &port.to_string(), "--save", "", "--requirepass", "secret"];
        let child =
            Command::new("redis-server").args(arguments).current_dir("/tmp").stdout(Stdio::null()).spawn();
        let child = child.expect("redis-server is installed by tests/run");
        eventually("redis listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Redis(child, port)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Rounds in which the host itself stands still may hide what was found: so often it is measured anew.
const ATTEMPTS: usize = 3;

/// A service that is stopped for 400 ms of each 440 answers late, whatever else the machine does; its port is the kernel's, and Redis
/// another program. In a bad minute nobody may be named, and never somebody else; in one of three tries it is named.
#[test]
fn who_stands_still_is_named_and_nobody_else() {
    let _alone = alone();
    let (server, redis) = (Server::embedded(), Redis::start());
    let named = (0..ATTEMPTS).any(|_| measured(&server, &redis)["culprit"] == "svc");
    assert!(named, "nobody was named in {ATTEMPTS} tries");
}

/// One result, with all of it that holds in any minute.
fn measured(server: &Server, redis: &Redis) -> serde_json::Value {
    let pid = server.pids[0];
    let stops = format!(
        "sh -c 'trap \"kill -CONT {pid}; exit\" TERM; while :; do kill -STOP {pid}; sleep 0.4; kill -CONT {pid}; sleep 0.04; done'"
    );
    let probes = [
        format!("svc={}", server.url("/plaintext")),
        format!("cache=redis://127.0.0.1:{}", redis.1),
        format!("net=tcp://127.0.0.1:{}", server.port),
    ];
    let tare = Tare::new();
    let mut command = tare.command();
    command.args(["probe", "-q", "--json", "--rounds", "3", "--window", "700ms", "--settle", "50ms"]);
    command.args(probes.iter().flat_map(|probe| ["--probe", probe]));
    command.args(["--state", "idle=", "--state", &format!("stopped={stops}")]).env("REDISCLI_AUTH", "secret");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && !text.contains("secret"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let result: serde_json::Value = serde_json::from_str(&text).unwrap();
    crate::support::schema::check(&["probe"], &result);
    let named = result["culprit"].as_str();
    assert!(named.is_none_or(|named| named == "svc"), "{result:#}");
    // Of nine tenths of the time half or more is waited for; without load an answer takes less than that on any machine that lives.
    assert_eq!(result["table"][1]["state"], "stopped");
    assert!(number(&result, "/table/1/median/value") > 0.1, "{:#}", result["table"]);
    assert!(number(&result, "/table/1/ratio/value") > 2.0, "{:#}", result["table"]);
    assert_eq!((result["table"].as_array().unwrap().len(), &result["rounds_done"]), (6, &3.into()));
    assert_eq!(left_running(tare.state.path()), [0; 0]);
    result
}
