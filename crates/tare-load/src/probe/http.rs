//! HTTP/1.1: a GET request, answered with a status below 400.

use super::client::Client;
use super::fault::ProbeFault;
use super::wire::Wire;
use crate::target::Target;
use crate::tls::Handshakes;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use tare_http::response::{Answer, AnswerReader, End, Heads, Step};

const PROTOCOL: &str = "HTTP/1.1";
/// Longest body that is read.
const BODY_BYTES_MAX: u64 = 64 << 20;
/// The first status that is a failure.
const ERRORS: u16 = 400;

/// A connection.
pub(super) struct Http {
    wire: Wire,
    request: Arc<[u8]>,
    /// The server keeps it open.
    is_kept: bool,
}

/// The request for a target.
pub(super) fn request(target: &Target) -> Arc<[u8]> {
    let text = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: tare-probe\r\nAccept: */*\r\n\r\n",
        target.path(),
        target.authority()
    );
    Arc::from(text.into_bytes())
}

impl Http {
    pub fn open(
        address: SocketAddr,
        request: Arc<[u8]>,
        tls: Option<&Handshakes>,
        deadline: Instant,
    ) -> Result<Http, ProbeFault> {
        let mut wire = Wire::open(address, deadline)?;
        if let Some(handshakes) = tls {
            wire = wire.secured(handshakes.context().client()?)?;
        }
        Ok(Http { wire, request, is_kept: true })
    }

    fn answer(&mut self) -> Result<Answer, ProbeFault> {
        let (mut heads, mut reader) = (Heads::new(false), AnswerReader::default());
        let mut body_bytes = 0;
        loop {
            let came = self.wire.came();
            let malformed = |why: tare_http::response::Malformed| ProbeFault::malformed(PROTOCOL, why.rule());
            match reader.read(&mut heads, came).map_err(malformed)? {
                Step::Answer { used, answer } => {
                    self.wire.used(used);
                    return Ok(answer);
                }
                Step::More { used } => {
                    body_bytes += used as u64;
                    self.wire.used(used);
                }
            }
            if body_bytes > BODY_BYTES_MAX {
                return Err(ProbeFault::malformed(PROTOCOL, "a body of more than 64 MiB"));
            }
            if !self.wire.more()? {
                return match reader.end(!self.wire.came().is_empty()) {
                    End::Answer(answer) => Ok(answer),
                    End::Between | End::Truncated => Err(ProbeFault::Closed),
                };
            }
        }
    }
}

impl Client for Http {
    fn ask(&mut self, deadline: Instant) -> Result<(), ProbeFault> {
        self.wire.until(deadline);
        self.wire.send(&self.request)?;
        let answer = self.answer()?;
        self.is_kept = answer.keep_alive;
        match answer.status {
            status if status < ERRORS => Ok(()),
            status => Err(ProbeFault::Refused(format!("status {status}"))),
        }
    }

    fn is_usable(&mut self) -> bool {
        self.is_kept && !self.wire.is_stale()
    }
}
