//! The server that the rows are run against, and what it answers.

use std::sync::Arc;

use tare_http::limits::Limits;
use tare_http::request::Method;
use tare_http::status::Status;
use tare_server::connection::{Connection, Engine, Waiting};
use tare_server::routes::Routes;
use tare_server::{Request, Responder};

use super::row::After;

fn engine() -> Engine {
    Engine::new(Arc::new(routes()), LIMITS, 784_111_777)
}

pub const LIMITS: Limits =
    Limits { target_bytes: 100, head_bytes: 600, fields: 10, body_bytes: 64, chunk_overhead_bytes: 100 };

pub fn routes() -> Routes {
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
pub fn run(pieces: &[&[u8]]) -> (Vec<String>, After, String) {
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
pub fn split_answers(text: &str) -> Vec<String> {
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
