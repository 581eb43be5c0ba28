//! Peers that mean no good. While each is at it, another client must be served.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use super::common::{Running, config, get, last_get, read_all, start_builtin, threads, until};
use tare_server::{Config, Limits, Timeouts};
use tare_sys::net;

fn assert_serves(server: &Running) {
    let answer = server.exchange(last_get("/plaintext").as_bytes());
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer:?}");
}

fn quick() -> Config {
    let short = Duration::from_millis(300);
    let timeouts = Timeouts { head: short, body: short, write: short, linger: short, ..Timeouts::default() };
    Config { timeouts, ..config() }
}

#[test]
fn slow_heads_and_bodies_are_cut_off_however_steadily_they_drip() {
    let server = start_builtin(quick());
    let starts = ["GET / HTTP/1.1\r\n", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n"];
    for start in starts {
        let mut stream = server.connect();
        stream.write_all(start.as_bytes()).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let mut answer = Vec::new();
        let mut chunk = [0; 1024];
        for _ in 0..2000 {
            // Once the server has closed, writing fails.
            let _ = stream.write_all(b"a");
            match stream.read(&mut chunk) {
                Ok(0) => break,
                Ok(n) => answer.extend_from_slice(&chunk[..n]),
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => break,
            }
        }
        assert!(answer.starts_with(b"HTTP/1.1 408 "), "{:?}", String::from_utf8_lossy(&answer));
        assert_serves(&server);
    }
}

#[test]
fn a_reader_that_hardly_reads_is_cut_off() {
    let server = start_builtin(quick());
    let mut stream = server.connect();
    stream.write_all(get("/bytes/1000000000").as_bytes()).unwrap();
    let mut byte = [0; 1];
    until("the connection is closed", || {
        let _ = stream.read(&mut byte);
        server.stop.report().threads[0].counts.timed_out == 1
    });
    assert_serves(&server);
}

#[test]
fn floods_of_fields_and_of_one_byte_pieces_end_at_the_limits() {
    let server = start_builtin(Config { limits: Limits::default(), ..config() });
    let many = format!("GET / HTTP/1.1\r\nHost: h\r\n{}", "a: b\r\n".repeat(5000));
    let long = format!("GET / HTTP/1.1\r\nHost: h\r\na: {}", "b".repeat(100_000));
    for flood in [many, long] {
        let mut stream = server.connect();
        // The server may answer and close before it has all.
        let _ = stream.write_all(flood.as_bytes());
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.starts_with(b"HTTP/1.1 431 "), "{:?}", String::from_utf8_lossy(&answer));
        assert_serves(&server);
    }
}

#[test]
fn half_a_request_and_then_the_end_is_only_closed() {
    let server = start_builtin(config());
    for half in ["GET / HT", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab"] {
        let mut stream = server.connect();
        stream.write_all(half.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_all(&mut stream), "");
    }
    assert_serves(&server);
}

#[test]
fn resets_in_the_middle_of_answers_leave_nothing_behind() {
    let server = start_builtin(config());
    for i in 0..50 {
        let mut stream = server.connect();
        stream.write_all(get("/bytes/50000000").as_bytes()).unwrap();
        stream.read_exact(&mut vec![0; 1000 * i + 1]).unwrap();
        net::set_reset_on_close(&stream).unwrap();
        drop(stream);
    }
    until("all are gone", || server.stop.report().threads[0].counts.open == 0);
    assert_serves(&server);
}

#[test]
fn thousands_of_silent_connections_cost_nothing_but_their_place() {
    let limit = tare_sys::process::raise_open_files_limit().unwrap();
    let count = (limit as usize / 2).saturating_sub(200).min(2000);
    let server = start_builtin(config());
    let idle: Vec<TcpStream> = (0..count).map(|_| server.connect()).collect();
    until("all are open", || server.stop.report().threads[0].counts.open as usize == count);
    assert_serves(&server);
    drop(idle);
    until("all are gone", || server.stop.report().threads[0].counts.open == 0);
}

#[test]
fn smuggled_requests_are_never_run() {
    let server = start_builtin(config());
    let smuggle = "POST /plaintext HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n\
                   0\r\n\r\nGET /json HTTP/1.1\r\nHost: h\r\n\r\n";
    let answer = server.exchange(smuggle.as_bytes());
    assert!(answer.starts_with("HTTP/1.1 400 ") && !answer.contains("200 OK"), "{answer}");
}

/// Memory for one body alone: who holds it slows other uploads, and nobody else.
#[test]
fn bodies_of_all_connections_take_no_more_memory_than_they_may() {
    const BYTES: usize = 1024 * 1024;
    let server = start_builtin(Config { bodies_bytes_max: 0, listening: threads(2), ..config() });
    let head = format!("POST /plaintext HTTP/1.1\r\nHost: h\r\nContent-Length: {BYTES}\r\n\r\n");
    let mut holder = server.connect();
    holder.write_all(head.as_bytes()).unwrap();
    holder.write_all(&vec![b'a'; BYTES - 1]).unwrap();
    let held = (head.len() + BYTES - 1) as u64;
    until("the body has come but for its last byte", || server.stop.report().sum().received_bytes == held);
    for begin in [head.as_str(), "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe"] {
        let mut stream = server.connect();
        stream.write_all(begin.as_bytes()).unwrap();
        let answer = read_all(&mut stream);
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("Connection: close"), "{answer}");
        assert!(answer.contains("all the memory that they may"), "{answer}");
    }
    assert_serves(&server);
    // A body that comes whole with its head is not kept at all.
    let whole = "POST /plaintext HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi";
    assert!(server.exchange(whole.as_bytes()).starts_with("HTTP/1.1 405 "));
    holder.write_all(b"a").unwrap();
    let mut begin = [0; 13];
    holder.read_exact(&mut begin).unwrap();
    assert_eq!(&begin, b"HTTP/1.1 405 ");
    // Counts are published a moment after the answers are sent.
    until("both are counted", || server.stop.report().sum().bodies_refused == 2);
    let received = || server.stop.report().sum().received_bytes;
    // What it held is there for the next one, which gives it back by going away.
    for _ in 0..3 {
        let mut stream = server.connect();
        let all = received() + held;
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&vec![b'a'; BYTES - 1]).unwrap();
        until("another body has come", || received() >= all);
        drop(stream);
        until("it is gone", || server.stop.report().sum().open == 1);
    }
    assert_eq!(server.finish().sum().bodies_refused, 2);
}
