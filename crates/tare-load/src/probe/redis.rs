//! Redis: `PING`, after `AUTH` where there is a password (RESP2, <https://redis.io/docs/latest/develop/reference/protocol-spec/>).

use super::client::Client;
use super::fault::ProbeFault;
use super::login::Login;
use super::wire::Wire;
use std::net::SocketAddr;
use std::time::Instant;

const PROTOCOL: &str = "the protocol of Redis";
/// Longest line that is a simple answer.
const LINE_BYTES_MAX: usize = 1024;

/// A connection that is logged in.
pub(super) struct Redis(Wire);

impl Redis {
    pub fn open(address: SocketAddr, login: &Login, deadline: Instant) -> Result<Redis, ProbeFault> {
        let mut redis = Redis(Wire::open(address, deadline)?);
        if let Some(password) = &login.password {
            let words: Vec<&[u8]> = match &login.user {
                Some(user) => vec![b"AUTH", user.as_bytes(), password.as_bytes()],
                None => vec![b"AUTH", password.as_bytes()],
            };
            redis.command(&words, b"OK")?;
        }
        Ok(redis)
    }

    fn command(&mut self, words: &[&[u8]], expected: &[u8]) -> Result<(), ProbeFault> {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend(format!("${}\r\n", word.len()).into_bytes());
            bytes.extend_from_slice(word);
            bytes.extend(b"\r\n");
        }
        self.0.send(&bytes)?;
        let line = self.line()?;
        match line.split_first() {
            Some((b'+', answer)) if answer == expected => Ok(()),
            Some((b'-', said)) => Err(ProbeFault::said(said)),
            _ => Err(ProbeFault::malformed(PROTOCOL, super::fault::printable(&line))),
        }
    }

    fn line(&mut self) -> Result<Vec<u8>, ProbeFault> {
        loop {
            if let Some(end) = self.0.came().windows(2).position(|pair| pair == b"\r\n") {
                let line = self.0.came()[..end].to_vec();
                self.0.used(end + 2);
                return Ok(line);
            }
            if self.0.came().len() > LINE_BYTES_MAX {
                return Err(ProbeFault::malformed(PROTOCOL, "a line without an end"));
            }
            if !self.0.more()? {
                return Err(ProbeFault::Closed);
            }
        }
    }
}

impl Client for Redis {
    fn ask(&mut self, deadline: Instant) -> Result<(), ProbeFault> {
        self.0.until(deadline);
        self.command(&[b"PING"], b"PONG")
    }

    fn is_usable(&mut self) -> bool {
        !self.0.is_stale()
    }
}
