//! A fuzzer of the connection state machine: requests are broken at random, and nothing may panic, grow without
//! bound, or depend on how the bytes arrive.
//!
//! Runs for a second, in `.ci/run` for 8; `TARE_FUZZ_SECONDS=300` makes it longer. A failure prints the bytes that
//! make it. 300 s on 2026-11-22: 10,574,078 broken requests, each three ways, nothing found.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::breaking::{self, Random};
use tare_http::limits::Limits;
use tare_http::request::Method;
use tare_server::connection::{Connection, Engine, Waiting};
use tare_server::routes::Routes;
use tare_server::{Request, Responder};

/// Two of them are more than may wait to be sent.
static BIG: [u8; 70_000] = [b'B'; 70_000];
/// That much may wait, and one answer more.
const OUT_BYTES_MAX: usize = 128 * 1024 + BIG.len() + 1024;

const SEEDS: &[&str] = &[
    "GET /a HTTP/1.1\r\nHost: h\r\n\r\n",
    "GET /a?q=1 HTTP/1.1\r\nHost: h:80\r\nAccept: */*\r\nConnection: keep-alive\r\n\r\n",
    "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
    "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;x=\"y\"\r\nabc\r\n0\r\nT: t\r\n\r\n",
    "POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
    "OPTIONS * HTTP/1.1\r\nHost: [::1]\r\n\r\n",
    "HEAD http://o/a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "GET /a HTTP/1.7\r\nHost: h\r\n\r\n",
    "GET /big HTTP/1.1\r\nHost: h\r\n\r\nGET /big HTTP/1.1\r\nHost: h\r\n\r\n",
    "\r\nDELETE /echo HTTP/1.1\r\nHost: h\r\n\r\n",
];

const PIECES: &[&str] = &[
    "\r\n",
    "\r",
    "\n",
    " ",
    "\t",
    ":",
    ";",
    "\0",
    "%",
    "0",
    "9",
    "f",
    "ffffffffffffffff",
    "chunked",
    "close",
    ",",
    "Content-Length: 3\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Host: x\r\n",
    "HTTP/1.1",
    "HTTP/2.0",
    "\u{e9}",
    "\"",
];

fn broken(random: &mut Random) -> Vec<u8> {
    let mut bytes = breaking::broken(random, SEEDS, PIECES);
    // Ends a head that was left open, so that a refusal is due however the bytes arrive.
    bytes.extend_from_slice(b"\r\n\r\n");
    bytes
}

/// Answers `pieces`; what was written is sent after each `sent_after` of them.
fn run(pieces: &[&[u8]], sent_after: usize) -> (Vec<String>, Waiting) {
    let mut routes = Routes::default();
    routes.add("/a", |_: &Request<'_>, answer: Responder<'_>| answer.ok().body(b"A"));
    routes.add("/big", |_: &Request<'_>, answer: Responder<'_>| answer.ok().body(&BIG));
    routes.add_for(
        &[Method::Get, Method::Post, Method::Delete],
        "/echo",
        |request: &Request<'_>, answer: Responder<'_>| {
            let fields: usize = request.head().fields().map(|(name, value)| name.len() + value.len()).sum();
            answer.ok().body(format!("{}+{fields}", request.body().len()).as_bytes())
        },
    );
    let limits =
        Limits { target_bytes: 60, head_bytes: 300, fields: 8, body_bytes: 50, chunk_overhead_bytes: 60 };
    let mut engine = Engine::new(Arc::new(routes), limits, 0);
    let (mut connection, mut out, mut sent) = (Connection::default(), Vec::new(), Vec::new());
    let mut send = |connection: &mut Connection, out: &mut Vec<u8>, engine: &mut Engine| {
        sent.append(out);
        while connection.is_held_back() {
            connection.resume(out, engine);
            sent.append(out);
        }
    };
    for (i, piece) in pieces.iter().enumerate() {
        connection.receive(piece, &mut out, &mut engine);
        assert!(out.len() < OUT_BYTES_MAX, "{} bytes wait", out.len());
        if i % sent_after == sent_after - 1 {
            send(&mut connection, &mut out, &mut engine);
        }
    }
    send(&mut connection, &mut out, &mut engine);
    let text = String::from_utf8(sent).unwrap().replace("HTTP/1.1 100 Continue\r\n\r\n", "");
    let answers: Vec<String> = text.split("HTTP/1.1 ").skip(1).map(str::to_owned).collect();
    assert_eq!(answers.len() as u64, engine.counts().answers(), "every answer is counted once");
    (answers, connection.waiting())
}

/// Answers are the same; of a last one that refuses, only that it does: which fault is seen first may differ.
fn assert_same(whole: &(Vec<String>, Waiting), cut: &(Vec<String>, Waiting)) {
    assert_eq!((whole.0.len(), whole.1), (cut.0.len(), cut.1));
    let refuses = |answer: &str| answer.starts_with(['4', '5']) && answer.contains("Connection: close");
    for (a, b) in whole.0.iter().zip(&cut.0) {
        assert!(a == b || (refuses(a) && refuses(b)), "{a:?}\n{b:?}");
    }
}

#[test]
fn broken_requests_do_no_harm() {
    let seconds = std::env::var("TARE_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(1.0);
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let mut random = Random(std::process::id() as u64 * 2 + 1);
    let mut runs = 0u64;
    while Instant::now() < end {
        let bytes = broken(&mut random);
        let (mut a, mut b) = (random.below(bytes.len()), random.below(bytes.len()));
        if a > b {
            (a, b) = (b, a);
        }
        let outcome = std::panic::catch_unwind(|| {
            let whole = run(&[&bytes], 1);
            assert_same(&whole, &run(&[&bytes[..a], &bytes[a..b], &bytes[b..]], 1));
            assert_same(&whole, &run(&bytes.chunks(1).collect::<Vec<_>>(), 1 + a));
        });
        assert!(outcome.is_ok(), "run {runs}, cut at {a} and {b}: {:?}", String::from_utf8_lossy(&bytes));
        runs += 1;
    }
    println!("{runs} broken requests");
}
