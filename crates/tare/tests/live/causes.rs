//! Causes that lie between generator and server, in the kernel or in a runtime, made for real: between two network namespaces,
//! in a group with little memory, by a runtime that collects.

use crate::hosts::Hosts;
use crate::support::{Server, Tare, alone, free_port, go_program, number};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const SHORT: &[&str] = &["--trials", "2", "-d", "1500ms", "-w", "300ms", "--no-reference"];

fn finding<'r>(result: &'r Value, cause: &str) -> Option<&'r Value> {
    result["findings"].as_array().unwrap().iter().find(|finding| finding["cause"] == cause)
}

/// With --nocapture this is the table of what each comes out as.
fn has_bottleneck(result: &Value, cause: &str) {
    let summary = finding(result, cause).map(|finding| finding["summary"].as_str().unwrap());
    println!(
        "{:22} gross {:>9.0}  {}",
        result["bottleneck"].as_str().unwrap(),
        number(result, "/gross/value"),
        summary.unwrap_or("-")
    );
    assert_eq!(
        result["bottleneck"], cause,
        "{:#}\n{:#}",
        result["findings"], result["accounting"]["sut"]["losses_cpus"]
    );
}

/// Whoever else uses the machine may be the bottleneck; what was found stays true.
fn finds(result: &Value, cause: &str) {
    let found = finding(result, cause).unwrap_or_else(|| panic!("{cause}: {:#}", result["findings"]));
    println!("{:22} {}", result["bottleneck"].as_str().unwrap(), found["summary"].as_str().unwrap());
}

fn between_hosts(disturb: impl Fn(&Hosts), path: &str) -> Value {
    let hosts = Hosts::new();
    let server = hosts.serve();
    disturb(&hosts);
    hosts.measure(&server, path, &[&["-c", "16"], SHORT].concat()).0
}

#[test]
fn a_link_with_little_bandwidth() {
    let _alone = alone();
    let slow = |hosts: &Hosts| {
        hosts.at_server(&[
            "tc", "qdisc", "add", "dev", "eth", "root", "tbf", "rate", "50mbit", "burst", "32kb", "latency",
            "300ms",
        ]);
    };
    let result = between_hosts(slow, "/bytes/20000");
    has_bottleneck(&result, "network-quota");
    let summary = finding(&result, "network-quota").and_then(|found| found["summary"].as_str()).unwrap();
    assert!(
        summary.contains("the server's eth tbf") && summary.contains("from the server to the generator"),
        "{summary}"
    );
    // 50 Mbit are 312 answers of 20 kB.
    let gross = number(&result, "/gross/value");
    assert!((250.0..330.0).contains(&gross), "{gross}");
}

#[test]
fn a_link_that_lets_few_packets_through() {
    let _alone = alone();
    let result = between_hosts(
        |hosts| hosts.drop_before_client("tcp flags & syn == 0 limit rate over 5000/second"),
        "/plaintext",
    );
    // With 16 connections most pauses are for short bursts: whether it is seen that packets are counted depends on chance.
    let named = result["bottleneck"].as_str().unwrap();
    assert!(["network-ceiling", "network-quota"].contains(&named), "{named}: {:#}", result["findings"]);
}

#[test]
fn a_link_that_loses_one_packet_in_a_hundred() {
    let _alone = alone();
    let result = between_hosts(
        |hosts| hosts.drop_before_client("tcp flags & syn == 0 numgen random mod 100 == 0"),
        "/plaintext",
    );
    finds(&result, "network-ceiling");
}

#[test]
fn a_link_that_nobody_disturbs() {
    let _alone = alone();
    let result = between_hosts(|_| {}, "/plaintext");
    for cause in [
        "network-ceiling",
        "network-quota",
        "delayed-ack",
        "softirq-saturated",
        "memory-pressure",
        "ports-exhausted",
    ] {
        assert!(
            result["bottleneck"] != cause && finding(&result, cause).is_none(),
            "{cause}: {:#}",
            result["findings"]
        );
    }
}

/// Writes head and body of an answer apart; `nodelay` sends them at once.
const TWO_WRITES: &str = r#"
import socket, sys, threading
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=256)
def serve(client):
    if "nodelay" in sys.argv:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        while client.recv(4096):
            client.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
            client.send(b"ok")
    except OSError:
        pass
    client.close()
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],)).start()
"#;

fn measure(server: &Server, path: &str, options: &[&str]) -> Value {
    let url = server.url(path);
    let run = ["run", "--json", "-q", "--load-cpus", "1"];
    // The profile after the trials takes three seconds of each run.
    let asks = options.iter().any(|option| option.starts_with("--stacks"));
    let none: &[&str] = if asks { &[] } else { &["--stacks=0"] };
    Tare::new().json(&[run.as_slice(), SHORT, none, options, &[&url]].concat()).0
}

#[test]
fn a_server_that_writes_its_answer_in_two_pieces() {
    let _alone = alone();
    let two_writes = |more: &[&str]| {
        let port = free_port();
        let server = Server::python(TWO_WRITES, port, &[&[port.to_string().as_str()], more].concat());
        measure(&server, "/", &["-c", "16"])
    };
    let result = two_writes(&[]);
    has_bottleneck(&result, "delayed-ack");
    // 16 connections, 25 answers a second each.
    assert!(number(&result, "/gross/value") < 600.0);
    let result = two_writes(&["nodelay"]);
    assert!(
        result["bottleneck"] != "delayed-ack" && finding(&result, "delayed-ack").is_none(),
        "{:#}",
        result["findings"]
    );
}

/// Serves with as many connections as it may have files, and tries again where it may have no more.
const FEW_FILES: &str = r#"
import resource, socket, sys, threading, time
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=256)
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), int(sys.argv[2])))
def serve(client):
    try:
        while client.recv(4096):
            client.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    except OSError:
        pass
    client.close()
while True:
    try:
        threading.Thread(target=serve, args=(listener.accept()[0],)).start()
    except OSError:
        time.sleep(0.05)
"#;

#[test]
fn a_server_that_may_open_few_files() {
    let _alone = alone();
    let with_limit = |limit: &str| {
        let port = free_port();
        let server = Server::python(FEW_FILES, port, &[&port.to_string(), limit]);
        measure(&server, "/", &["-c", "100", "-R", "200"])
    };
    let result = with_limit("40");
    has_bottleneck(&result, "open-files-exhausted");
    let result = with_limit("1000");
    assert!(finding(&result, "open-files-exhausted").is_none(), "{:#}", result["findings"]);
}

/// A control group with a limit of memory; removed when dropped, its processes moved back.
struct LittleMemory(PathBuf);

impl LittleMemory {
    fn of(bytes: u64, pid: u32) -> Self {
        let v1 = Path::new("/sys/fs/cgroup/memory");
        let v2 = Path::new("/sys/fs/cgroup");
        let is_v1 = v1.join("memory.limit_in_bytes").exists();
        let group = if is_v1 { v1 } else { v2 }.join(format!("tare-test-memory-{}", std::process::id()));
        if !is_v1 {
            std::fs::write(v2.join("cgroup.subtree_control"), "+memory").unwrap();
        }
        std::fs::create_dir(&group).expect("the tests need root and a writable memory controller");
        let little = LittleMemory(group);
        std::fs::write(
            little.0.join(if is_v1 { "memory.limit_in_bytes" } else { "memory.max" }),
            bytes.to_string(),
        )
        .unwrap();
        std::fs::write(little.0.join("cgroup.procs"), pid.to_string()).unwrap();
        little
    }
}

impl Drop for LittleMemory {
    fn drop(&mut self) {
        let parent = self.0.parent().unwrap().to_owned();
        for pid in std::fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default().lines() {
            std::fs::write(parent.join("cgroup.procs"), pid).ok();
        }
        for _ in 0..200 {
            if std::fs::remove_dir(&self.0).is_ok() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// Reads pieces of a file, each of which is asked for again and again.
const READER: &str = r#"
import os, random, socket, sys
size = 96 << 20
file = os.open(sys.argv[2], os.O_RDWR | os.O_CREAT)
for _ in range(size >> 20):
    os.write(file, os.urandom(1 << 20))
os.fsync(file)
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
clients = {listener.fileno(): listener}
import select
poll = select.epoll()
poll.register(listener, select.EPOLLIN)
while True:
    for number, _ in poll.poll():
        if number == listener.fileno():
            client, _ = listener.accept()
            clients[client.fileno()] = client
            poll.register(client, select.EPOLLIN)
            continue
        client = clients[number]
        try:
            if client.recv(4096):
                os.pread(file, 1 << 16, random.randrange(size >> 16) << 16)
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                continue
        except OSError:
            pass
        del clients[number]
        client.close()
"#;

#[test]
fn a_server_in_a_group_with_little_memory() {
    let _alone = alone();
    // Not below /tmp, which may be in memory itself.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let port = free_port();
    let file = dir.path().join("pieces");
    let server = Server::python(READER, port, &[&port.to_string(), file.to_str().unwrap()]);
    let before = measure(&server, "/", &["-c", "16"]);
    assert!(finding(&before, "memory-pressure").is_none(), "{:#}", before["findings"]);
    std::fs::File::open(&file).unwrap().sync_all().unwrap();
    // What it has read so far is charged to its old group: out with it.
    let forget =
        "import os, sys; f = os.open(sys.argv[1], 0); os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)";
    let _little = LittleMemory::of(48 << 20, server.pids[0]);
    assert!(Command::new("python3").args(["-c", forget]).arg(&file).status().unwrap().success());
    let result = measure(&server, "/", &["-c", "16", "--no-levels"]);
    finds(&result, "memory-pressure");
}

/// Keeps much, and leaves much behind for each request.
const GARBAGE: &str = r#"
package main
import ("net/http"; "os")
type node struct { left, right *node }
func tree(depth int) *node { if depth == 0 { return &node{} }; return &node{tree(depth-1), tree(depth-1)} }
var kept = tree(19)
func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { tree(10); w.Write([]byte("ok")) })
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
"#;

#[test]
fn a_go_server_that_collects_garbage() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let program = go_program(dir.path(), GARBAGE);
    let port = free_port();
    let mut command = Command::new("taskset");
    command.args(["-c", "0"]).arg(&program).arg(port.to_string()).env("GOMAXPROCS", "1").env("GOGC", "10");
    let server = Server::of(command, port);
    let seen = measure(&server, "/", &["-c", "16", "--stacks"]);
    finds(&seen, "gc-pauses");
    // Without stacks nobody can tell, and that is what is said.
    let blind = measure(&server, "/", &["-c", "16", "--stacks=0"]);
    assert!(finding(&blind, "gc-pauses").is_none());
    let warnings = blind["warnings"].as_array().unwrap();
    let said = |warning: &Value| warning["text"].as_str().unwrap().contains("gc-pauses");
    assert!(warnings.iter().any(said), "{warnings:#?}");
}
