//! A fuzzer of the answer reader: answers are broken at random, and nothing may panic, keep more than an unfinished
//! head, stand still, or depend on how the bytes arrive.
//!
//! Runs for a second; `TARE_FUZZ_SECONDS=300` makes it longer. A failure prints the bytes that make it.

use crate::breaking::{self, Random};
use std::time::{Duration, Instant};
use tare_http::response::{Answer, AnswerReader, End, HEAD_BYTES_MAX, Heads, Malformed, Step};

const SEEDS: &[&str] = &[
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=\"b\"\r\nhello\r\n0\r\nT: t\r\n\r\n",
    "HTTP/1.0 404 Not Found\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
    "HTTP/1.1 200 OK\r\n\r\nuntil the end",
    "HTTP/1.1 304 Not Modified\r\nContent-Length: 7, 7\r\n\r\n",
];

const PIECES: &[&str] = &[
    "\r\n",
    "\r",
    "\n",
    " ",
    ":",
    ";",
    "\0",
    "0",
    "9",
    "f",
    "ffffffffffffffff",
    "18446744073709551615",
    "chunked",
    "close",
    ",",
    "Content-Length: 3\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: x\r\n",
    "HTTP/1.1",
    "HTTP/2",
    "101",
    "000",
    "\u{e9}",
];

fn broken(random: &mut Random) -> Vec<u8> {
    let mut bytes = breaking::broken(random, SEEDS, PIECES);
    if random.below(50) == 0 {
        bytes.splice(
            0..0,
            "HTTP/1.1 200 OK\r\n".bytes().chain("X: y\r\n".repeat(random.below(9000)).into_bytes()),
        );
    }
    bytes
}

type Outcome = (Vec<Answer>, Result<End, Malformed>);

/// Reads `bytes` in pieces no longer than `next` says, as a client does.
fn read(bytes: &[u8], mut next: impl FnMut() -> usize) -> Outcome {
    let (mut heads, mut reader) = (Heads::new(false), AnswerReader::default());
    let (mut carry, mut answers, mut rest) = (Vec::new(), Vec::new(), bytes);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(next().clamp(1, rest.len()));
        rest = after;
        carry.extend_from_slice(piece);
        let mut at = 0;
        loop {
            match reader.read(&mut heads, &carry[at..]) {
                Ok(Step::Answer { used, answer }) => {
                    assert!(used > 0 && at + used <= carry.len(), "it stands still");
                    answers.push(answer);
                    at += used;
                }
                Ok(Step::More { used }) => {
                    at += used;
                    break;
                }
                Err(error) => return (answers, Err(error)),
            }
            if at == carry.len() {
                break;
            }
        }
        carry.drain(..at);
        assert!(carry.len() < HEAD_BYTES_MAX, "{} bytes are kept", carry.len());
    }
    (answers, Ok(reader.end(!carry.is_empty())))
}

#[test]
fn broken_answers() {
    let seconds = std::env::var("TARE_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let end = Instant::now() + Duration::from_secs(seconds);
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let mut random = Random(seed | 1);
    while Instant::now() < end {
        let bytes = broken(&mut random);
        let outcomes = std::panic::catch_unwind(|| {
            let whole = read(&bytes, || usize::MAX);
            let single = read(&bytes, || 1);
            let mut pieces = Random(seed ^ bytes.len() as u64 | 1);
            (whole, single, read(&bytes, || 1 + pieces.below(30)))
        });
        let shown = || String::from_utf8_lossy(&bytes).chars().take(4000).collect::<String>();
        let Ok((whole, single, random_pieces)) = outcomes else { panic!("panicked on {:?}", shown()) };
        // How much of a head was there when it was found out may differ, not what came before, nor that it was.
        let same = |other: &Outcome| other.0 == whole.0 && other.1.is_ok() == whole.1.is_ok();
        assert!(
            same(&single) && same(&random_pieces),
            "{whole:?}\n{single:?}\n{random_pieces:?}\n{:?}",
            shown()
        );
    }
}
