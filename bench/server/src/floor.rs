//! What both floors share: the bytes of an answer, which are those of `tare serve`, and how many are due.

use tare_http::status::Status;
use tare_http::write;
use tare_sys::time::{monotonic_ns, wall_s};

/// Most answers to one receive.
const ANSWERS_MAX: usize = 64;

/// Answers side by side, and the length of a request: learnt from the first one.
pub struct Floor {
    block: Vec<u8>,
    one: usize,
    request_bytes: usize,
    stamp_until_ns: u64,
}

impl Floor {
    pub fn new() -> Floor {
        let block = answers();
        let one = block.len() / ANSWERS_MAX;
        Floor { block, one, request_bytes: 0, stamp_until_ns: 0 }
    }

    /// Once a turn: the Date of a new second.
    pub fn stamp(&mut self) {
        let now_ns = monotonic_ns();
        if now_ns >= self.stamp_until_ns {
            self.block = answers();
            self.stamp_until_ns = now_ns + 1_000_000_000;
        }
    }

    /// The answers to what was received. Nothing of it is read but the end of the very first request.
    pub fn answer(&mut self, received: &[u8]) -> &[u8] {
        if self.request_bytes == 0 {
            let end = received.windows(4).position(|w| w == b"\r\n\r\n");
            self.request_bytes = end.map_or(0, |at| at + 4);
        }
        let count = received.len().checked_div(self.request_bytes).unwrap_or(0).min(ANSWERS_MAX);
        &self.block[..count * self.one]
    }
}

fn answers() -> Vec<u8> {
    let mut one = Vec::new();
    write::start(&mut one, &write::Stamp::new(wall_s()), Status::OK);
    write::static_field(&mut one, "Content-Type", "text/plain");
    write::content_length(&mut one, 13);
    if says_keep_alive() {
        write::static_field(&mut one, "Connection", "keep-alive");
    }
    one.extend_from_slice(b"\r\nHello, World!");
    one.repeat(ANSWERS_MAX)
}

/// The port that every server of this bench is given as its argument.
pub fn port() -> u16 {
    std::env::args().nth(1).and_then(|p| p.parse().ok()).expect("usage: NAME PORT")
}

/// With this word after the port the answer says that the connection stays open, which ab waits for.
fn says_keep_alive() -> bool {
    std::env::args().nth(2).is_some_and(|word| word == "keep-alive")
}
