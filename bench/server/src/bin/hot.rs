//! The hot path without a socket: nanoseconds per request of the connection state machine, by pipeline depth.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use tare_server::connection::{Connection, Engine};
use tare_server::routes::Routes;
use tare_server::{Limits, Request, Responder};

fn main() {
    let mut routes = Routes::default();
    routes.add("/plaintext", |_: &Request<'_>, answer: Responder<'_>| {
        answer.ok().content_type("text/plain").body(b"Hello, World!")
    });
    let mut engine = Engine::new(Arc::new(routes), Limits::default(), 1_700_000_000);
    let mut connection = Connection::default();
    let mut out = Vec::with_capacity(128 * 1024);
    let same = b"GET /plaintext HTTP/1.1\r\nHost: 127.0.0.1:21101\r\n\r\n".to_vec();
    let other = b"GET /plaintext HTTP/1.1\r\nHost: 127.0.0.1:21102\r\n\r\n".to_vec();
    for (name, requests) in
        [("the same head again", [&same, &same]), ("never the same twice", [&same, &other])]
    {
        for depth in [2usize, 16] {
            let bytes = requests.map(|r| r.as_slice()).concat().repeat(depth / 2);
            let mut best = f64::MAX;
            for _ in 0..20 {
                let rounds = 200_000 / depth;
                let start = Instant::now();
                for _ in 0..rounds {
                    connection.receive(black_box(&bytes), &mut out, &mut engine);
                    black_box(&out);
                    out.clear();
                }
                best = best.min(start.elapsed().as_nanos() as f64 / (rounds * depth) as f64);
            }
            println!("{name}, depth {depth}: {best:.1} ns per request");
        }
    }
}
