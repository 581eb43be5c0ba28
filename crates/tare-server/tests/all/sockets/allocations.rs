//! A warm thread allocates nothing: every allocation of this process is counted.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::common::{config, start_builtin};
use crate::{HEAP, own_process};

const REQUESTS: &[u8] = b"GET /plaintext HTTP/1.1\r\nHost: h\r\n\r\n\
    GET /json HTTP/1.1\r\nHost: h\r\nAccept: */*\r\n\r\n\
    GET /bytes/3000 HTTP/1.1\r\nHost: h\r\n\r\n\
    HEAD /plaintext HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello\
    GET /plaintext HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n\
    GET /status/404 HTTP/1.1\r\nHost: h\r\n\r\n\
    GET /bytes/300000 HTTP/1.1\r\nHost: h\r\n\r\n";

/// Sends the requests in two pieces and reads all that is answered.
fn turn(stream: &mut TcpStream, cut: usize, buffer: &mut [u8], answer_bytes: usize) {
    stream.write_all(&REQUESTS[..cut]).unwrap();
    stream.write_all(&REQUESTS[cut..]).unwrap();
    stream.read_exact(&mut buffer[..answer_bytes]).unwrap();
}

#[test]
fn a_warm_server_allocates_nothing() {
    if !own_process::entered(module_path!(), "a_warm_server_allocates_nothing") {
        return;
    }
    let server = start_builtin(config());
    let mut streams: Vec<TcpStream> = (0..20).map(|_| server.connect()).collect();
    streams.iter().for_each(|s| s.set_nodelay(true).unwrap());
    let mut buffer = vec![0; 1 << 20];

    let last = super::common::last_get("/plaintext").into_bytes();
    let answer_bytes = server.exchange(&[REQUESTS, &last].concat()).len() - server.exchange(&last).len();
    let mut all = |turns: usize| {
        for i in 0..turns {
            for stream in &mut streams {
                turn(stream, i * 7 % REQUESTS.len(), &mut buffer, answer_bytes);
            }
        }
    };
    // Warm is who has met the worst that the scheduler deals out: a server that allocates for requests never is.
    let mut in_a_pass = || {
        let before = HEAP.allocations();
        all(50);
        HEAP.allocations() - before
    };
    let passes: Vec<u64> = (0..20).map(|_| in_a_pass()).take_while(|count| *count > 0).collect();
    assert!(passes.len() < 20, "allocations by a thousand requests each: {passes:?}");
}
