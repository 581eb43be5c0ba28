//! may_minihttp with one worker. Usage: `peer-may-minihttp PORT`.

use std::io;

use may_minihttp::{HttpServer, HttpService, Request, Response};

#[derive(Clone)]
struct Plaintext;

impl HttpService for Plaintext {
    fn call(&mut self, _: Request, answer: &mut Response) -> io::Result<()> {
        answer.header("Content-Type: text/plain").body("Hello, World!");
        Ok(())
    }
}

fn main() {
    let port: u16 =
        std::env::args().nth(1).and_then(|p| p.parse().ok()).expect("usage: peer-may-minihttp PORT");
    may::config().set_workers(1);
    HttpServer(Plaintext)
        .start(("127.0.0.1", port))
        .expect("a free port")
        .join()
        .expect("a server that runs");
}
