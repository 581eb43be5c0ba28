//! One row for each rule of RFC 9110 and RFC 9112 that a server can keep or break on the wire.
//!
//! Every row is run whole, cut in two at every byte, byte by byte, and pipelined between two good requests: what
//! is answered must not depend on how the bytes arrive.

#![allow(clippy::unwrap_used)]

mod bodies;
mod heads;
mod semantics;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use tare_http::limits::Limits;
use tare_http::request::Method;
use tare_http::status::Status;
use tare_server::connection::{Connection, Engine, Waiting};
use tare_server::routes::Routes;
use tare_server::{BackendChoice, Config, Request, Responder, Server};

/// A rule and a request that tells whether it is kept. `⏎` stands for CR LF.
struct Row {
    /// Section, `9110 …` or `9112 …`.
    section: &'static str,
    rule: &'static str,
    request: String,
    /// Status and body of each answer, `Status` alone where the body does not matter.
    answers: &'static [&'static str],
    after: After,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    Stays,
    Closes,
}

fn stays(section: &'static str, rule: &'static str, request: &str, answers: &'static [&'static str]) -> Row {
    row(section, rule, request, answers, After::Stays)
}

fn closes(section: &'static str, rule: &'static str, request: &str, answers: &'static [&'static str]) -> Row {
    row(section, rule, request, answers, After::Closes)
}

fn row(
    section: &'static str,
    rule: &'static str,
    request: &str,
    answers: &'static [&'static str],
    after: After,
) -> Row {
    Row { section, rule, request: request.replace('⏎', "\r\n"), answers, after }
}

fn engine() -> Engine {
    Engine::new(Arc::new(routes()), LIMITS, 784_111_777)
}

const LIMITS: Limits =
    Limits { target_bytes: 100, head_bytes: 600, fields: 10, body_bytes: 64, chunk_overhead_bytes: 100 };

fn routes() -> Routes {
    let mut routes = Routes::default();
    routes.add("/a", |_: &Request<'_>, answer: Responder<'_>| answer.ok().body(b"A"));
    routes.add("/empty", |_: &Request<'_>, answer: Responder<'_>| answer.plain(Status::NO_CONTENT));
    routes.add("/same", |_: &Request<'_>, answer: Responder<'_>| answer.plain(Status::NOT_MODIFIED));
    routes.add("/reset", |_: &Request<'_>, answer: Responder<'_>| {
        answer.status(Status::RESET_CONTENT).body(b"not to be sent")
    });
    routes.add("/panic", |_: &Request<'_>, _: Responder<'_>| panic!("on purpose"));
    const ALL: &[Method] = &[
        Method::Get,
        Method::Head,
        Method::Post,
        Method::Put,
        Method::Delete,
        Method::Patch,
        Method::Options,
    ];
    routes.add_for(ALL, "/echo", |request: &Request<'_>, answer: Responder<'_>| {
        answer.ok().body(request.body())
    });
    routes.add_for(ALL, "/method", |request: &Request<'_>, answer: Responder<'_>| {
        answer.ok().body(request.method().name().as_bytes())
    });
    routes.add("/target*", |request: &Request<'_>, answer: Responder<'_>| {
        let t = request.head().target;
        let text = format!("{} {} {}", t.path, t.query.unwrap_or("-"), t.authority.unwrap_or("-"));
        answer.ok().body(text.as_bytes())
    });
    routes.add("/field", |request: &Request<'_>, answer: Responder<'_>| {
        answer.ok().body(request.field("x").unwrap_or(b"-"))
    });
    routes.add("/list", |request: &Request<'_>, answer: Responder<'_>| {
        let all: Vec<_> = request.head().list("x").collect();
        answer.ok().body(&all.join(&b'|'))
    });
    routes
}

/// What a connection answered to pieces, one string for each answer, and whether it stays.
fn run(pieces: &[&[u8]]) -> (Vec<String>, After, String) {
    let (mut engine, mut connection, mut out) = (engine(), Connection::default(), Vec::new());
    for piece in pieces {
        connection.receive(piece, &mut out, &mut engine);
        while connection.is_held_back() {
            connection.resume(&mut out, &mut engine);
        }
    }
    let after = if connection.waiting() == Waiting::End { After::Closes } else { After::Stays };
    let text = String::from_utf8(out).unwrap();
    (split_answers(&text), after, text)
}

/// A field that only this test knows marks HEAD: the body that Content-Length promises is missing.
fn split_answers(text: &str) -> Vec<String> {
    // Whether the body had begun decides whether the client is asked to go on.
    let text = text.replace("HTTP/1.1 100 Continue\r\n\r\n", "");
    let mut answers = Vec::new();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (head, after) = rest.split_once("\r\n\r\n").expect("an answer has a head");
        let status = &head["HTTP/1.1 ".len()..][..3];
        let length = head.lines().find_map(|l| l.strip_prefix("Content-Length: "));
        let length: usize = length.map_or(0, |l| l.parse().unwrap());
        let has_body = after.len() >= length && !after.starts_with("HTTP/1.1 ");
        let (body, after) = after.split_at(if has_body { length } else { 0 });
        answers.push(if has_body || length == 0 {
            format!("{status} {body}")
        } else {
            format!("{status} -")
        });
        rest = after;
    }
    answers
}

fn all_rows() -> Vec<Row> {
    [heads::rows(), bodies::rows(), semantics::rows()].into_iter().flatten().collect()
}

fn check(row: &Row, how: &str, pieces: &[&[u8]], before: usize, good_follows: bool) {
    let (answers, after, text) = run(pieces);
    let place = || format!("{} ({}), {how}:\n{:?}\n{text}", row.section, row.rule, row.request);
    let mut wanted: Vec<&str> = vec!["200 A"; before];
    wanted.extend(row.answers);
    if good_follows && row.after == After::Stays {
        wanted.push("200 A");
    }
    compare(&answers, &wanted, &place);
    assert_eq!(after, row.after, "{}", place());
}

fn compare(answers: &[String], wanted: &[&str], place: &dyn Fn() -> String) {
    assert_eq!(answers.len(), wanted.len(), "{}", place());
    for (answer, wanted) in answers.iter().zip(wanted) {
        let same = answer == wanted || (wanted.len() == 3 && answer.starts_with(wanted));
        assert!(same, "{answer:?}, not {wanted:?}: {}", place());
    }
}

#[test]
fn there_are_enough_rows_and_each_names_its_section() {
    let rows = all_rows();
    assert!(rows.len() >= 150, "{} rows", rows.len());
    for row in &rows {
        let (rfc, section) = row.section.split_once(' ').unwrap();
        assert!(matches!(rfc, "9110" | "9112") && section.starts_with(|c: char| c.is_ascii_digit()));
        assert!(!row.rule.is_empty());
    }
    let mut names: Vec<_> = rows.iter().map(|r| (r.section, r.rule)).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), rows.len(), "a rule stands there twice");
}

#[test]
fn every_row_holds_whole_and_cut_anywhere() {
    for row in all_rows() {
        let bytes = row.request.as_bytes();
        check(&row, "whole", &[bytes], 0, false);
        for at in 1..bytes.len() {
            check(&row, &format!("cut at {at}"), &[&bytes[..at], &bytes[at..]], 0, false);
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        check(&row, "byte by byte", &single, 0, false);
    }
}

#[test]
fn every_row_holds_between_other_requests() {
    let good = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
    for row in all_rows() {
        let mut all = good.to_vec();
        all.extend_from_slice(row.request.as_bytes());
        all.extend_from_slice(good);
        check(&row, "pipelined", &[&all], 1, true);
        for at in 1..all.len() {
            check(&row, &format!("pipelined, cut at {at}"), &[&all[..at], &all[at..]], 1, true);
        }
        let single: Vec<&[u8]> = all.chunks(1).collect();
        check(&row, "pipelined, byte by byte", &single, 1, true);
    }
}

#[test]
fn every_row_holds_on_sockets_of_every_backend() {
    for backend in [BackendChoice::Epoll, BackendChoice::IoUring] {
        let config = Config { backend, limits: LIMITS, ..Config::new("127.0.0.1:0".parse().unwrap()) };
        let server = Server::builder().routes(routes()).bind(config).unwrap();
        let (address, stop) = (server.local_addr(), server.stop_handle());
        let running = std::thread::spawn(move || server.run());
        for row in all_rows() {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            // Where the server closes first, what it does not want any more may be refused.
            let _ = stream.write_all(row.request.as_bytes());
            let _ = stream.shutdown(Shutdown::Write);
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            let place =
                || format!("{} ({}), {}:\n{:?}\n{text}", row.section, row.rule, backend.name(), row.request);
            compare(&split_answers(&text), row.answers, &place);
        }
        stop.stop();
        running.join().unwrap().unwrap();
    }
}
