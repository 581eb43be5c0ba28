//! `tare serve`, the real binary: what it says, what it serves, and how it ends.

use crate::serving::{Serve, ask};
use crate::support::alone;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

#[test]
fn it_says_what_it_is_and_at_the_end_what_it_did() {
    let _alone = alone();
    for (arch, threads, loops) in
        [("reactor", "1", "1 loop)"), ("shared-nothing", "2", "2 loops)"), ("dispatch", "2", "2 loops)")]
    {
        let backend = if threads == "1" { "io-uring" } else { "epoll" };
        let server = Serve::start(&["--arch", arch, "--threads", threads, "--backend", backend]);
        assert!(server.first_line.contains(&format!("({arch}, {backend}, {loops}")), "{}", server.first_line);
        for _ in 0..6 {
            assert!(server.get("/plaintext").ends_with("\r\n\r\nHello, World!"));
        }
        assert!(server.get("/nothing").starts_with("HTTP/1.1 404 "));
        let said = server.stop();
        let last = said.lines().rfind(|line| line.starts_with(if threads == "1" { "0" } else { "all" }));
        let numbers: Vec<&str> = last.unwrap().split_whitespace().rev().take(4).collect();
        assert_eq!(numbers, ["0", "1", "7", "7"], "{said}");
        assert_eq!(said.contains("the fullest loop was given"), threads == "2", "{said}");
    }
}

#[test]
fn a_folder_is_served_instead_of_the_test_bodies_and_counts_beside() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("index.html"), "<p>hello").unwrap();
    let root = folder.path().to_str().unwrap();
    let mut server = Serve::start(&["--root", root, "--metrics", "127.0.0.1:0", "--threads", "1"]);
    let metrics = server.metrics_address();
    assert!(server.get("/").ends_with("\r\n\r\n<p>hello"));
    assert!(server.get("/plaintext").starts_with("HTTP/1.1 404 "));
    assert!(server.get("/spin?ns=1").starts_with("HTTP/1.1 404 "), "no way to spend its time");
    crate::support::eventually("the answers are counted", || {
        let text = ask(metrics, "/metrics");
        text.contains("\ntare_serve_answers_2xx_total{thread=\"0\"} 1\n")
            && text.contains("\ntare_serve_answers_4xx_total{thread=\"0\"} 2\n")
    });
}

#[test]
fn every_option_reaches_the_server() {
    let _alone = alone();
    let server = Serve::start(&[
        "--cpus=0",
        "--threads=2",
        "--steer=cbpf",
        "--defer-accept=1s",
        "--busy-poll=50us",
        "--backlog=16",
        "--max-connections=2",
        "--max-head=200",
        "--max-target=50",
        "--max-fields=3",
        "--max-body=10",
        "--max-bodies=1000",
        "--head-timeout=300ms",
        "--body-timeout=300ms",
        "--write-timeout=1s",
        "--idle-timeout=300ms",
        "--linger-timeout=300ms",
        "--drain-timeout=1s",
    ]);
    assert!(server.first_line.contains("2 loops on CPU 0)"), "{}", server.first_line);
    let exchange = |request: &str| {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap_or("silence").to_owned()
    };
    let long = "x".repeat(300);
    for (request, status) in [
        (format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", &long[..60]), "414"),
        (format!("GET / HTTP/1.1\r\nHost: h\r\nA: {long}\r\n\r\n"), "431"),
        ("GET / HTTP/1.1\r\nHost: h\r\nA: a\r\nB: b\r\nC: c\r\n\r\n".to_owned(), "431"),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n".to_owned(), "413"),
        ("GET / HTTP/1.1\r\nHost:".to_owned(), "408"),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\na".to_owned(), "408"),
        ("GET /status/204 HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), "204"),
    ] {
        assert_eq!(exchange(&request), status, "{request:?}");
    }
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_served() {
    let _alone = alone();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (arguments, reported) in [
        (vec!["--root", "/etc/passwd"], "must be a folder"),
        (vec!["--cpus", "4000"], "cannot pin a thread to CPU 4000"),
        (vec!["--steer", "cbpf"], "give CPUs"),
        (vec!["--arch", "reactor", "--threads", "2"], "shared-nothing has as many"),
        (vec!["--metrics", &taken], "cannot listen on"),
        (vec!["--listen", "localhost:8081"], "as 127.0.0.1:8081, "),
        (vec!["--metrics", "localhost"], "as 127.0.0.1:8080, "),
        (vec!["--listen", &taken], "cannot listen on"),
        (vec!["--max-fields", "129"], "129"),
        (vec!["--idle-timeout", "0"], "longer than 0"),
        (vec!["--access-log", "/nowhere/log"], "cannot write /nowhere/log"),
        (
            vec!["--tls-cert", "/nowhere/cert", "--tls-key", "/nowhere/key"],
            "cannot use /nowhere/cert for TLS",
        ),
        (vec!["--tls-cert", "/nowhere/cert"], "--tls-key"),
        (vec!["--arch", "none"], "there are shared-nothing, reactor, dispatch"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_tare")).arg("serve").args(&arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(reported) && said.trim_end().lines().count() == 1, "{arguments:?}: {said}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_server_that_asks_another_answers_when_that_has() {
    let _alone = alone();
    let other = Serve::start(&["--threads", "1"]);
    let address = other.address.to_string();
    let server = Serve::start(&["--threads", "1", "--downstream", &address]);
    for _ in 0..3 {
        assert!(server.get("/downstream?us=1000").ends_with("done"), "by one connection that is kept");
    }
    assert!(server.get("/downstream").starts_with("HTTP/1.1 400 "));
    other.stop();
    assert!(server.get("/downstream?us=1").starts_with("HTTP/1.1 502 "), "there is nobody to ask");
    server.stop();
}

#[test]
fn more_connections_than_one_table_of_descriptors_has_room_for() {
    let _alone = alone();
    let server = Serve::start_limited(1000, &["--threads", "2", "--max-connections", "700"]);
    assert!(!server.first_line.contains("table of descriptors"), "{}", server.first_line);
    let more = ["--threads", "2", "--max-connections", "1400"];
    let server = Serve::start_limited(1000, &more);
    assert!(server.first_line.contains("each with its own table of descriptors"), "{}", server.first_line);
    assert!((0..20).all(|_| server.get("/fsync").ends_with("done")));
    server.stop();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("index.html"), "<p>hello").unwrap();
    let (root, log) = (folder.path().to_str().unwrap(), folder.path().join("log"));
    let served = ["--root", root, "--access-log", log.to_str().unwrap()];
    let server = Serve::start_limited(1000, &[more, served].concat());
    assert!((0..20).all(|_| server.get("/").ends_with("<p>hello")));
    server.stop();
    assert_eq!(std::fs::read_to_string(log).unwrap().lines().count(), 20);
    for (arch, threads, reported) in [
        ("shared-nothing", "2", "in 2 tables of 1000 descriptors (hint: shared-nothing with 3 threads has"),
        ("reactor", "1", "in 1 table of 1000 descriptors (hint: shared-nothing with 3 threads has"),
        ("dispatch", "2", "shared-nothing does not"),
    ] {
        let script = r#"ulimit -n 1000 && exec "$0" serve --max-connections 1800 "$@""#;
        let tare = ["-c", script, env!("CARGO_BIN_EXE_tare")];
        let how = ["--arch", arch, "--threads", threads];
        let output = Command::new("sh").args(tare).args(how).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arch}: {said}");
        assert!(said.contains(reported), "{arch}: {said}");
    }
}

#[test]
fn every_answer_is_in_the_access_log() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.log");
    let server = Serve::start(&["--threads", "2", "--access-log", file.to_str().unwrap()]);
    let count = 500;
    for i in 0..count {
        assert!(server.get(&format!("/bytes/{i}?a=%22")).starts_with("HTTP/1.1 200 OK"));
    }
    let answer = server.get("/a\"forged");
    assert!(answer.starts_with("HTTP/1.1 400 "));
    let (_, reason) = answer.split_once("\r\n\r\n").unwrap();
    let said = server.stop();
    assert!(!said.contains("access log lacks"), "{said}");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), count + 1);
    assert!(lines.iter().all(|line| line.starts_with("127.0.0.1 - - [")), "{}", lines[0]);
    let refused = format!(r#"] "GET /a\x22forged HTTP/1.1" 400 {}"#, reason.len());
    assert_eq!(lines.iter().filter(|line| line.ends_with(&refused)).count(), 1);
    lines.retain(|line| line.ends_with(r#"] "GET /bytes/321?a=%22 HTTP/1.1" 200 321"#));
    assert_eq!(lines.len(), 1);
}

/// Nobody reads the pipe: the log must cost lines, not answers.
#[test]
fn a_log_that_nobody_reads_holds_nobody_up() {
    let _alone = alone();
    let server = Serve::start(&["--threads", "1", "--access-log", "-", "--drain-timeout", "1s"]);
    answer_3000_lines(&server);
    let said = server.stop();
    let lacks: u64 =
        said.split("the access log lacks ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    let lines = said.lines().filter(|line| line.starts_with("127.0.0.1 - - [")).count() as u64;
    assert_eq!(lines + lacks, 3000, "{lacks} lines are said to be missing");
}

#[test]
fn a_log_that_nobody_reads_does_not_hold_up_the_end() {
    let _alone = alone();
    let mut server = Serve::start(&["--threads", "1", "--access-log", "-", "--drain-timeout", "1s"]);
    answer_3000_lines(&server);
    server.signal("TERM");
    crate::support::eventually("it ends", || server.child.try_wait().unwrap().is_some());
    assert!(server.child.wait().unwrap().success());
}

/// Lines of 3 MB: more than a pipe, and the two buffers of the log, take.
fn answer_3000_lines(server: &Serve) {
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let requests = format!("GET /status/204?{} HTTP/1.1\r\nHost: h\r\n\r\n", "q".repeat(900)).repeat(50);
    for _ in 0..60 {
        stream.write_all(requests.as_bytes()).unwrap();
        let mut answers = Vec::new();
        while answers.windows(4).filter(|w| w == b"\r\n\r\n").count() < 50 {
            let mut chunk = [0; 8192];
            let n = stream.read(&mut chunk).unwrap();
            assert!(n > 0);
            answers.extend_from_slice(&chunk[..n]);
        }
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let _alone = alone();
    let mut server = Serve::start(&["--threads", "1", "--drain-timeout", "1h", "--write-timeout", "1h"]);
    let mut deaf = TcpStream::connect(server.address).unwrap();
    deaf.write_all(b"GET /bytes/100000000 HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    deaf.read_exact(&mut [0; 100]).unwrap();
    server.signal("INT");
    crate::support::eventually("nobody new is taken in", || TcpStream::connect(server.address).is_err());
    assert!(server.child.try_wait().unwrap().is_none(), "an answer is under way");
    server.signal("INT");
    let status = server.child.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(2));
}
