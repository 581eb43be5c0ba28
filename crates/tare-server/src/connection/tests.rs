use super::*;
use crate::handler::{Answer, Responder};

fn engine() -> Engine {
    let mut routes = Routes::default();
    routes.add("/a", |_: &Request<'_>, answer: Responder<'_>| answer.ok().body(b"A"));
    routes.add("/panic", |_: &Request<'_>, answer: Responder<'_>| -> Answer {
        let _half = answer.ok().content_type("text/plain");
        panic!("on purpose");
    });
    routes.add("/big", |_: &Request<'_>, answer: Responder<'_>| answer.ok().body(&[b'b'; 70_000]));
    routes.add("/fill", |_: &Request<'_>, answer: Responder<'_>| answer.ok().fill(10));
    routes.add_for(
        &[tare_http::request::Method::Post],
        "/echo",
        |request: &Request<'_>, answer: Responder<'_>| answer.ok().body(request.body()),
    );
    Engine::new(Arc::new(routes), Limits::default(), 0)
}

fn answers(connection: &mut Connection, engine: &mut Engine, bytes: &[u8]) -> String {
    let mut out = Vec::new();
    connection.receive(bytes, &mut out, engine);
    String::from_utf8(out).unwrap().replace("Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n", "")
}

#[test]
fn requests_are_answered_in_order_and_halves_are_kept() {
    let (mut connection, mut engine) = (Connection::default(), engine());
    let out =
        answers(&mut connection, &mut engine, b"GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHo");
    assert_eq!(out, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nA");
    assert_eq!(connection.waiting(), Waiting::Head);
    let out = answers(&mut connection, &mut engine, b"st: h\r\n\r\n");
    assert_eq!(
        out,
        "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nNot Found"
    );
    assert_eq!(connection.waiting(), Waiting::Request);
}

#[test]
fn an_empty_line_behind_a_request_begins_none() {
    let (mut connection, mut engine) = (Connection::default(), engine());
    for (bytes, waiting) in [
        (&b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n\r\n"[..], Waiting::Request),
        (b"\r", Waiting::Request),
        (b"\nGET", Waiting::Head),
        (b" /a HTTP/1.1\r\nHost: h\r\n\r\n\r\n", Waiting::Request),
    ] {
        answers(&mut connection, &mut engine, bytes);
        assert_eq!(connection.waiting(), waiting, "{bytes:?}");
    }
    let mut out = Vec::new();
    connection.time_out(&mut out, &mut engine);
    assert!(out.is_empty(), "there is nobody who waits for a 408");
    // A head that never begins has the time of a head.
    let mut flood = Connection::default();
    answers(&mut flood, &mut engine, b"\r\n\r\n\r\n");
    assert_eq!(flood.waiting(), Waiting::Head);
}

#[test]
fn a_panicking_handler_costs_one_500() {
    let (mut connection, mut engine) = (Connection::default(), engine());
    let out = answers(&mut connection, &mut engine, b"GET /panic HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(out.starts_with("HTTP/1.1 500 Internal Server Error\r\nConnection: close\r\n"), "{out}");
    assert!(!out.contains("200 OK"));
    assert_eq!((connection.waiting(), engine.counts().panics), (Waiting::End, 1));
}

#[test]
fn no_more_is_answered_than_the_output_may_hold() {
    let (mut connection, mut engine) = (Connection::default(), engine());
    let request = b"GET /big HTTP/1.1\r\nHost: h\r\n\r\n";
    let mut out = Vec::new();
    connection.receive(&request.repeat(5), &mut out, &mut engine);
    assert!(connection.is_held_back() && out.len() < OUT_BYTES_MAX + 80_000);
    let mut rounds = 1;
    while connection.is_held_back() {
        out.clear();
        connection.resume(&mut out, &mut engine);
        rounds += 1;
    }
    assert_eq!((rounds, engine.counts().answers()), (3, 5));
    assert_eq!(connection.waiting(), Waiting::Request);
}

#[test]
fn a_tail_holds_back_what_follows() {
    let (mut connection, mut engine) = (Connection::default(), engine());
    let two = b"GET /fill HTTP/1.1\r\nHost: h\r\n\r\nGET /a HTTP/1.1\r\nHost: h\r\n\r\n";
    assert!(answers(&mut connection, &mut engine, two).ends_with("Content-Length: 10\r\n\r\n"));
    assert!(connection.is_held_back());
    connection.tail = Tail::None;
    let mut out = Vec::new();
    connection.resume(&mut out, &mut engine);
    assert!(out.ends_with(b"\r\n\r\nA") && !connection.is_held_back());
}

/// As a layer does that opens one piece after the other, and only then sends.
#[test]
fn what_comes_while_the_output_waits_is_only_kept() {
    let (mut connection, mut engine) = (Connection::new(None, true), engine());
    let mut out = Vec::new();
    for piece in b"GET /fill HTTP/1.1\r\nHost: h\r\n\r\n".repeat(1000).chunks(20) {
        connection.receive(piece, &mut out, &mut engine);
    }
    assert!(connection.is_held_back() && engine.counts().answers() == 1, "{} bytes", out.len());
    for _ in 0..10_000 {
        out.clear();
        connection.resume(&mut out, &mut engine);
    }
    assert!(!connection.is_held_back() && engine.counts().answers() == 1000);
}

#[test]
fn a_client_that_waits_is_asked_to_go_on() {
    let (mut connection, mut engine) = (Connection::default(), engine());
    let head = b"POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    assert_eq!(answers(&mut connection, &mut engine, head), "HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(connection.waiting(), Waiting::Body);
    assert!(answers(&mut connection, &mut engine, b"abc").ends_with("\r\n\r\nabc"));
}

#[test]
fn a_late_request_is_answered_and_a_silent_connection_is_not() {
    let (mut connection, mut engine) = (Connection::default(), engine());
    answers(&mut connection, &mut engine, b"GET /a HT");
    let mut out = Vec::new();
    connection.time_out(&mut out, &mut engine);
    assert!(out.starts_with(b"HTTP/1.1 408 Request Timeout\r\n"));
    assert_eq!(connection.waiting(), Waiting::End);

    let mut silent = Connection::default();
    out.clear();
    silent.time_out(&mut out, &mut engine);
    assert!(out.is_empty() && silent.waiting() == Waiting::End);
}

#[test]
fn head_gets_no_body_whatever_goes_wrong() {
    let broken: [&[u8]; 5] = [
        b"HEAD /a HTTP/1.1\r\n\r\n",
        b"\r\nHEAD /a HTTP/1.1\r\nHost: h\r\nX : y\r\n\r\n",
        b"HEAD /a HTTP/1.1\r\nHost: h\r\nContent-Length: 9999999\r\n\r\n",
        b"HEAD /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nx",
        b"HEAD /panic HTTP/1.1\r\nHost: h\r\n\r\n",
    ];
    for request in broken {
        let (mut connection, mut engine) = (Connection::default(), engine());
        let out = answers(&mut connection, &mut engine, request);
        assert!(out.ends_with("\r\n\r\n") && !out.contains("Content-Length: 0"), "{out}");
        assert_eq!(connection.waiting(), Waiting::End);
    }
    for cut in [&b"HEAD /a"[..], b"HEAD /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n"] {
        let (mut connection, mut engine) = (Connection::default(), engine());
        let mut out = Vec::new();
        connection.receive(cut, &mut out, &mut engine);
        connection.time_out(&mut out, &mut engine);
        assert!(out.starts_with(b"HTTP/1.1 408 ") && out.ends_with(b"\r\n\r\n"));
    }
}
