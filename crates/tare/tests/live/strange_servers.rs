//! `tare load` against servers that die, refuse, cut off, lead elsewhere or accept nobody.

use crate::load::{load, warnings};
use crate::support::{Server, Tare, alone, eventually, free_port, number};
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Answers for 0.7 s from its first connection on, and ends.
const DIES: &str = r#"
import os, socket, sys, threading, time
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
def serve(client):
    while client.recv(4096):
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        time.sleep(0.001)
def end():
    time.sleep(0.7)
    os._exit(0)
begun = False
while True:
    client, _ = listener.accept()
    if client.recv(4096, socket.MSG_PEEK) and not begun and b"/load" in client.recv(4096, socket.MSG_PEEK):
        begun = True
        threading.Thread(target=end).start()
    threading.Thread(target=serve, args=(client,), daemon=True).start()
"#;

#[test]
fn a_server_that_dies_during_the_load_is_no_slow_one() {
    let _alone = alone();
    let port = free_port();
    let server = Server::python(DIES, port, &[&port.to_string()]);
    let (result, code) = load(&["-c4", "-t1", "-d3s"], &server.url("/load"));
    assert_eq!((code, result["valid"].as_bool()), (3, Some(false)), "{result:#}");
    assert!(warnings(&result).contains(&"server-gone"), "{:#}", result["warnings"]);
}

/// Reads some of each upload, and answers that it is too large, or says nothing; then it closes. What asks without a body gets an answer.
const REFUSES: &str = r#"
import socket, sys, threading
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=64)
def serve(client):
    head = client.recv(16384)
    if head.startswith(b"GET"):
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
    elif b"/early" in head:
        client.sendall(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        client.shutdown(socket.SHUT_WR)
        client.settimeout(0.05)
        try:
            client.recv(1000)
        except OSError:
            pass
    client.close()
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"#;

#[test]
fn uploads_that_are_refused_or_cut_off_are_counted() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let body = dir.path().join("body");
    std::fs::write(&body, vec![b'x'; 1_000_000]).unwrap();
    let port = free_port();
    let server = Server::python(REFUSES, port, &[&port.to_string()]);
    let upload = |path: &str| {
        let options = ["-c4", "-t1", "-d1s", "--method", "POST", "--body-file", body.to_str().unwrap()];
        load(&options, &server.url(path))
    };
    // Each is answered, and the answer is an error; a few may lose it to the reset of their connection.
    let (early, code) = upload("/early");
    assert_eq!((code, early["valid"].as_bool()), (4, Some(false)), "{early:#}");
    let [answers, status, malformed] = ["count", "errors/status", "errors/malformed"]
        .map(|what| number(&early, &format!("/requests/{what}")));
    assert!(answers > 0.0 && answers == status && malformed == 0.0, "{:#}", early["requests"]);
    assert_eq!(early["status_codes"]["413"], early["requests"]["count"], "{early:#}");
    let (cut, code) = upload("/cut");
    assert_eq!((code, number(&cut, "/requests/count")), (3, 0.0), "{cut:#}");
    assert!(number(&cut, "/requests/errors/io") > 0.0, "{:#}", cut["requests"]);
}

/// Answers each path in a way of its own; a reset is one before any answer.
const STRANGE: &str = r#"
import socket, struct, sys, threading
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=64)
ANSWERS = {
    b"/moved": b"301 Moved\r\nLocation: https://example.org/\r\nContent-Length: 0\r\n\r\n",
    b"/cached": b"304 Not Modified\r\n\r\n",
    b"/chunks": b"200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 bytes\r\nhello\r\n0\r\n\r\n",
    b"/": b"200 OK\r\nContent-Length: 2\r\n\r\nok",
}
def serve(client):
    while head := client.recv(4096):
        path = head.split(b" ")[1]
        if path == b"/reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            break
        client.sendall(b"HTTP/1.1 " + ANSWERS[path])
    client.close()
def begin(client):
    try:
        serve(client)
    except OSError:
        pass
while True:
    threading.Thread(target=begin, args=(listener.accept()[0],), daemon=True).start()
"#;

#[test]
fn loads_that_measured_something_else_say_what() {
    let _alone = alone();
    let port = free_port();
    let server = Server::python(STRANGE, port, &[&port.to_string()]);
    let text_of = |result: &serde_json::Value, id: &str| {
        let warnings = result["warnings"].as_array().unwrap();
        let text = warnings.iter().find(|warning| warning["id"] == id).map(|warning| &warning["text"]);
        text.unwrap_or_else(|| panic!("{id}: {result:#}")).as_str().unwrap().to_owned()
    };
    let options = ["-c4", "-t1", "-d1s"];
    let (moved, code) = load(&options, &server.url("/moved"));
    assert!(code == 0 && text_of(&moved, "only-redirects").contains("to https://example.org/"), "{moved:#}");
    let (cached, _) = load(&options, &server.url("/cached"));
    assert!(!warnings(&cached).contains(&"only-redirects"), "{cached:#}");
    let (reset, code) = load(&options, &server.url("/reset"));
    assert_eq!((code, reset["valid"].as_bool()), (3, Some(false)));
    assert!(text_of(&reset, "no-requests").ends_with("connections were reset by the server"), "{reset:#}");
    let (broken, code) = load(&options, &server.url("/chunks"));
    assert_eq!((code, broken["valid"].as_bool()), (3, Some(false)));
    let why = "white space after a chunk size or extension";
    assert!(text_of(&broken, "no-requests").contains(why), "{broken:#}");
    let errors = &broken["requests"]["errors"]["malformed"];
    assert_eq!(&broken["requests"]["error_reasons"]["malformed"][why], errors, "{broken:#}");
    let output = Tare::new().run(&[&["load", "-q"][..], &options, &[&server.url("/chunks")]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(&format!("malformed: {why} (")), "{text}");
}

/// A socket whose queue is full, and nobody who accepts.
const FULL: &str = r#"
import socket, sys, time
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen(0)
clients = []
try:
    while True:
        client = socket.socket(socket.AF_UNIX)
        client.setblocking(False)
        client.connect(sys.argv[1])
        clients.append(client)
except BlockingIOError:
    print("full", flush=True)
time.sleep(60)
"#;

#[test]
fn a_full_queue_of_a_unix_socket_is_waited_for_within_a_limit() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("full");
    let mut python = Command::new("python3");
    python.args(["-c", FULL]).arg(&path).stdout(Stdio::piped());
    let mut full = python.spawn().unwrap();
    let mut said = [0; 5];
    full.stdout.take().unwrap().read_exact(&mut said).unwrap();
    let tare = Tare::new();
    let run = |arguments: &[&str]| {
        let mut command = tare.command();
        command.args(arguments).arg("--unix").arg(&path).arg("http://localhost/");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let begun = Instant::now();
    let ended = run(&["run", "-q", "-d1s", "--timeout", "2s"]).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.code() == Some(3) && said.contains("nobody accepts"), "{}: {said}", ended.status);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    // Whoever has had enough need not wait for the limit.
    let waiting = run(&["run", "-q", "-d1s", "--timeout", "30s"]);
    eventually("it listens for SIGINT", || catches_int(waiting.id()));
    let begun = Instant::now();
    tare_sys::process::kill(waiting.id(), tare_sys::process::Signal::Int).unwrap();
    let ended = waiting.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", String::from_utf8_lossy(&ended.stderr));
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    full.kill().unwrap();
    full.wait().unwrap();
}

/// Whether a process has a handler for SIGINT, the second bit of those that it catches.
fn catches_int(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 2 != 0)
}
