//! The connection state machine: bytes in, answers out, no I/O. Every backend drives this one.

use std::fmt::Display;
use std::mem::take;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tare_http::chunked::{Bounds, Decoder, Progress};
use tare_http::limits::Limits;
use tare_http::memo::Memo;
use tare_http::refusal::Refusal;
use tare_http::request::{Framing, Head, higher_minor_version_at, parse_head};
use tare_http::status::Status;
use tare_http::write::Stamp;

use crate::access_log::{Asked, Line, LogWriter};
use crate::body::{Body, BodyMemory};
use crate::buffers::Pool;
use crate::config::{BODIES_BYTES_MAX, Config};
use crate::counters::Counts;
use crate::handler::{Answer, Manner, Request, Responder};
use crate::rest::Rest;
use crate::routes::Routes;
use crate::tail::Tail;

/// No further request is answered while this much of earlier answers has not been taken away, in bytes.
const OUT_BYTES_MAX: usize = 128 * 1024;

/// Two ends of lines.
const EMPTY_LINES_BYTES: usize = 4;
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// What the connections of one thread share.
pub struct Engine {
    routes: Arc<Routes>,
    limits: Limits,
    bodies: Arc<BodyMemory>,
    /// Taken out while what it remembers is answered.
    memo: Option<Box<Memo>>,
    pub(crate) stamp: Stamp,
    pub(crate) pool: Pool,
    pub(crate) counts: Counts,
    pub(crate) log: Option<LogWriter>,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<crate::tls::Tls>,
    /// Every answer is the last one of its connection.
    pub(crate) draining: bool,
}

impl Engine {
    /// An engine that answers by `routes` and stamps answers with a second of the wall clock.
    pub fn new(routes: Arc<Routes>, limits: Limits, unix_s: u64) -> Engine {
        Engine {
            routes,
            limits,
            bodies: Arc::new(BodyMemory::new(BODIES_BYTES_MAX, &limits)),
            memo: Some(Box::default()),
            stamp: Stamp::new(unix_s),
            pool: Pool::default(),
            counts: Counts::default(),
            log: None,
            #[cfg(feature = "tls")]
            tls: None,
            draining: false,
        }
    }

    /// An engine of a server that is set up so.
    pub(crate) fn of_server(routes: Arc<Routes>, config: &Config, bodies: Arc<BodyMemory>) -> Engine {
        Engine {
            bodies,
            log: config.access_log.as_ref().map(|log| log.writer()),
            #[cfg(feature = "tls")]
            tls: config.tls.clone(),
            ..Engine::new(routes, config.limits, 0)
        }
    }

    /// Writes a line for an answer, where there is a log.
    #[cold]
    fn log(&mut self, line: &Line<'_>) {
        let written = self.log.as_mut().is_none_or(|log| log.write(line, self.stamp.unix_s()));
        self.counts.log_lines_dropped += u64::from(!written);
    }

    /// What was done so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }
}

/// What a connection waits for, when it waits for its peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// The first byte of a request.
    Request,
    /// The rest of a head.
    Head,
    /// The rest of a body.
    Body,
    /// Nothing: no further request is read, and what was written is the last.
    End,
}

/// One connection.
#[derive(Debug, Default)]
pub struct Connection {
    phase: Phase,
    /// Bytes received and not yet used: a head that is cut, or requests that wait for the output to drain.
    inbox: Vec<u8>,
    /// Bytes of the inbox in which no end of a head was found.
    searched: usize,
    /// The head of a request whose body is coming, and that body.
    head: Vec<u8>,
    body: Body,
    /// Rest of the last answer, to be sent after the output.
    pub(crate) tail: Tail,
    /// What of the last answer comes after its tail.
    rest: Option<Box<Rest>>,
    /// A layer changes the bytes: nothing may go past the output, so there is never a tail.
    sealed: bool,
    /// Where the peer is, if somebody wants to know.
    from: Option<IpAddr>,
    /// The inbox may hold whole requests, which wait for the output and the tail to be sent.
    held_back: bool,
    /// A request was answered since somebody last asked.
    answered: bool,
}

#[derive(Debug, Default, Clone, Copy)]
enum Phase {
    #[default]
    Head,
    Length(u64),
    Chunked(Decoder),
    End,
}

impl Connection {
    /// A connection from `from`, where that is to be logged; with `sealed` everything goes through the output.
    pub(crate) fn new(from: Option<IpAddr>, sealed: bool) -> Connection {
        Connection { from, sealed, ..Connection::default() }
    }

    /// Takes bytes that the peer sent and appends to `out` what is to be sent to it.
    ///
    /// When [`Connection::is_held_back`] says so afterwards, send `out` (and the tail), then call
    /// [`Connection::resume`]; what is received before that is only kept.
    #[inline]
    pub fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>, engine: &mut Engine) {
        engine.counts.received_bytes += bytes.len() as u64;
        if self.inbox.is_empty() {
            let used = self.consume(bytes, out, engine);
            if used < bytes.len() {
                self.inbox = engine.pool.copy_of(&bytes[used..]);
            }
        } else {
            self.inbox.extend_from_slice(bytes);
            if !self.is_held_back() {
                self.resume(out, engine);
            }
        }
    }

    /// Goes on: with the rest of the last answer, else with what was received before.
    pub fn resume(&mut self, out: &mut Vec<u8>, engine: &mut Engine) {
        if let Some(mut rest) = self.rest.take() {
            match rest.next(out, self.sealed) {
                Ok(Some(tail)) => (self.tail, self.rest) = (tail, Some(rest)),
                Ok(None) => {}
                // The body is shorter than was promised: only the end of the connection can tell.
                Err(_) => self.phase = Phase::End,
            }
            return;
        }
        let mut inbox = take(&mut self.inbox);
        let used = self.consume(&inbox, out, engine);
        if used == inbox.len() {
            engine.pool.give(inbox);
        } else {
            inbox.drain(..used);
            self.inbox = inbox;
        }
    }

    /// Whether more is to be written once the output and the tail are sent: the rest of an answer, or answers to
    /// whole requests that wait.
    #[inline]
    pub fn is_held_back(&self) -> bool {
        self.held_back || self.rest.is_some()
    }

    /// What comes next from the peer.
    #[inline]
    pub fn waiting(&self) -> Waiting {
        match self.phase {
            // An empty line before a request belongs to none (RFC 9112, 2.2): clients send one behind a body. Many are a head without an end.
            Phase::Head if is_empty_line(&self.inbox) => Waiting::Request,
            Phase::Head => Waiting::Head,
            Phase::Length(_) | Phase::Chunked(_) => Waiting::Body,
            Phase::End => Waiting::End,
        }
    }

    /// Whether a request was answered since this was last asked.
    #[inline]
    pub(crate) fn take_answered(&mut self) -> bool {
        take(&mut self.answered)
    }

    /// The peer took too long: 408 to a request that had begun; then nothing more is read.
    pub fn time_out(&mut self, out: &mut Vec<u8>, engine: &mut Engine) {
        let begun = match self.waiting() {
            Waiting::Head => Some(take(&mut self.inbox)),
            Waiting::Body => Some(take(&mut self.head)),
            Waiting::Request | Waiting::End => None,
        };
        self.phase = Phase::End;
        if let Some(bytes) = begun {
            let late = "the request took too long to come";
            self.answer_error((Status::REQUEST_TIMEOUT, &late), Asked::begins(&bytes), out, engine);
            engine.pool.give(bytes);
        }
    }

    /// Answers 503: the server is full.
    pub fn turn_away(&mut self, out: &mut Vec<u8>, engine: &mut Engine) {
        let full = "too many connections are open";
        self.answer_error((Status::SERVICE_UNAVAILABLE, &full), Asked::Unknown, out, engine);
    }

    /// Gives the buffers back.
    pub(crate) fn retire(mut self, pool: &mut Pool) {
        self.body.retire(pool);
        for buffer in [&mut self.inbox, &mut self.head] {
            pool.give(take(buffer));
        }
    }

    /// Uses as much of the input as can be used now; how much that was.
    #[inline]
    fn consume(&mut self, input: &[u8], out: &mut Vec<u8>, engine: &mut Engine) -> usize {
        let mut at = 0;
        self.held_back = false;
        while at < input.len() {
            if self.must_send_first(out) {
                self.held_back = true;
                break;
            }
            match self.phase {
                Phase::Head => match self.read_head(&input[at..], out, engine) {
                    Some(used) => at += used,
                    None => break,
                },
                Phase::Length(_) | Phase::Chunked(_) => at += self.read_body(&input[at..], out, engine),
                Phase::End => return input.len(),
            }
        }
        at
    }

    /// Answers requests for as long as they are the one that is remembered; how much of the input that was.
    #[inline]
    fn answer_remembered(&mut self, input: &[u8], out: &mut Vec<u8>, engine: &mut Engine) -> usize {
        let Some(memo) = engine.memo.take() else { return 0 };
        let mut used = 0;
        if let Some(head) = memo.recall(input) {
            self.searched = 0;
            loop {
                self.answer(&head, b"", out, engine);
                used += head.len;
                let goes_on = matches!(self.phase, Phase::Head) && !self.must_send_first(out);
                if !goes_on || !memo.begins(&input[used..]) {
                    break;
                }
            }
        }
        engine.memo = Some(memo);
        used
    }

    /// Whether what was written has to be sent before more is.
    #[inline]
    fn must_send_first(&self, out: &[u8]) -> bool {
        !matches!(self.tail, Tail::None) || self.rest.is_some() || out.len() >= OUT_BYTES_MAX
    }

    /// One request, or the head of one whose body is still coming; `None` when the head is not complete.
    #[inline]
    fn read_head(&mut self, input: &[u8], out: &mut Vec<u8>, engine: &mut Engine) -> Option<usize> {
        let used = self.answer_remembered(input, out, engine);
        if used > 0 {
            return Some(used);
        }
        // A head that comes in pieces is parsed again only where a line ends, or can end no more: else a peer that sends
        // single bytes would make this quadratic. It has no more lines than fields are allowed.
        if self.searched > 0 {
            let news = &input[self.searched.saturating_sub(1).min(input.len())..];
            if !has_line_end(news) && input.len() <= engine.limits.head_bytes {
                self.searched = input.len();
                return None;
            }
        }
        match parse_head(input, &engine.limits) {
            Ok(None) => {
                self.searched = input.len();
                None
            }
            Ok(Some(head)) => {
                self.searched = 0;
                if head.framing == Framing::None {
                    engine.memo.get_or_insert_default().learn(&head, input);
                    self.answer(&head, b"", out, engine);
                    return Some(head.len);
                }
                Some(self.begin_body(&head, input, out, engine))
            }
            Err(refusal) => self.refuse_head(refusal, input, out, engine),
        }
    }

    #[cold]
    fn refuse_head(
        &mut self,
        refusal: Refusal,
        input: &[u8],
        out: &mut Vec<u8>,
        engine: &mut Engine,
    ) -> Option<usize> {
        self.searched = 0;
        match higher_minor_version_at(input) {
            Some(at) if refusal == Refusal::Version => {
                let mut patched = engine.pool.copy_of(input);
                patched[at] = b'1';
                let used = self.read_head(&patched, out, engine);
                engine.pool.give(patched);
                used
            }
            _ => {
                self.answer_error((refusal.status(), &refusal), Asked::begins(input), out, engine);
                Some(input.len())
            }
        }
    }

    /// A head is there and a body follows. The usual small one came along and is used in place.
    fn begin_body(&mut self, head: &Head<'_>, input: &[u8], out: &mut Vec<u8>, engine: &mut Engine) -> usize {
        let after = &input[head.len..];
        if let Framing::Length(bytes) = head.framing {
            if bytes > engine.limits.body_bytes {
                let refusal = Refusal::BodyTooLarge;
                self.answer_error((refusal.status(), &refusal), Asked::by(head), out, engine);
                return input.len();
            }
            if let Some(body) = usize::try_from(bytes).ok().and_then(|n| after.get(..n)) {
                self.answer(head, body, out, engine);
                return head.len + body.len();
            }
        }
        let Some(body) = Body::begin(&mut engine.pool, &engine.bodies) else {
            self.refuse_body(Asked::by(head), out, engine);
            return input.len();
        };
        self.body = body;
        self.phase = match head.framing {
            Framing::Length(bytes) => Phase::Length(bytes),
            _ => Phase::Chunked(Decoder::default()),
        };
        // RFC 9110, 10.1.1: not needed once the body has begun to come.
        if head.expect_continue && after.is_empty() {
            out.extend_from_slice(CONTINUE);
        }
        self.head = engine.pool.copy_of(&input[..head.len]);
        head.len
    }

    fn read_body(&mut self, input: &[u8], out: &mut Vec<u8>, engine: &mut Engine) -> usize {
        let (body, most, mut fits) = (&mut self.body, engine.limits.body_bytes, true);
        let progress = match &mut self.phase {
            Phase::Length(left) => {
                let here = input.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                fits = body.push(&input[..here], most);
                *left -= here as u64;
                Ok(Progress { consumed: here, done: *left == 0 })
            }
            Phase::Chunked(decoder) => {
                let keep = |data: &[u8]| fits = fits && body.push(data, most);
                decoder.read(input, &Bounds::from(&engine.limits), keep).map_err(Refusal::from)
            }
            Phase::Head | Phase::End => return 0,
        };
        match progress {
            Ok(Progress { consumed, done }) if fits => {
                if done {
                    self.end_body(out, engine);
                }
                return consumed;
            }
            Ok(_) => {
                let head = take(&mut self.head);
                self.refuse_body(Asked::begins(&head), out, engine);
                engine.pool.give(head);
            }
            Err(refusal) => {
                let head = take(&mut self.head);
                self.answer_error((refusal.status(), &refusal), Asked::begins(&head), out, engine);
                engine.pool.give(head);
            }
        }
        input.len()
    }

    /// Answers 503: the bodies of all connections take as much memory as they may.
    #[cold]
    fn refuse_body(&mut self, asked: Asked<'_>, out: &mut Vec<u8>, engine: &mut Engine) {
        engine.counts.bodies_refused += 1;
        let full = "the request bodies that are under way take all the memory that they may";
        self.answer_error((Status::SERVICE_UNAVAILABLE, &full), asked, out, engine);
    }

    fn end_body(&mut self, out: &mut Vec<u8>, engine: &mut Engine) {
        let (head_bytes, mut body) = (take(&mut self.head), take(&mut self.body));
        self.phase = Phase::Head;
        match parse_head(&head_bytes, &engine.limits) {
            Ok(Some(head)) => self.answer(&head, body.bytes(), out, engine),
            // It was complete and good when the body began.
            Ok(None) | Err(_) => {
                let asked = Asked::begins(&head_bytes);
                self.answer_error((Status::INTERNAL_SERVER_ERROR, &"its head was lost"), asked, out, engine);
            }
        }
        engine.pool.give(head_bytes);
        body.retire(&mut engine.pool);
    }

    #[inline]
    fn answer(&mut self, head: &Head<'_>, body: &[u8], out: &mut Vec<u8>, engine: &mut Engine) {
        let stays = head.persistent && !engine.draining;
        let start = out.len();
        self.answered = true;
        let request = Request { head, body, rest: "" };
        let result = catch_unwind(AssertUnwindSafe(|| {
            engine.routes.answer(request, Responder::new(out, &engine.stamp, Manner::of(head, stays)))
        }));
        match result {
            Ok(Answer { status, body_bytes, tail, rest }) => {
                (self.tail, self.rest) = (tail, rest);
                if self.sealed {
                    self.seal();
                }
                engine.counts.answered(status);
                if engine.log.is_some() {
                    let (asked, status) = (Asked::by(head), status.code());
                    engine.log(&Line { from: self.from, asked, status, bytes: body_bytes });
                }
                if !stays {
                    self.phase = Phase::End;
                }
            }
            Err(_) => {
                out.truncate(start);
                engine.counts.panics += 1;
                let failed = "the handler failed";
                self.answer_error((Status::INTERNAL_SERVER_ERROR, &failed), Asked::by(head), out, engine);
            }
        }
    }

    /// Makes the tail a part of the rest, which goes through the output.
    fn seal(&mut self) {
        if self.tail.left() > 0 {
            self.rest.get_or_insert_default().begin_with(take(&mut self.tail));
        }
    }

    /// The last answer of a connection whose next request could not be found: it says why, and lets go of a body. Also this one
    /// has no body where HEAD was asked (RFC 9110, 9.3.2).
    #[cold]
    fn answer_error(
        &mut self,
        (status, why): (Status, &dyn Display),
        asked: Asked<'_>,
        out: &mut Vec<u8>,
        engine: &mut Engine,
    ) {
        let manner = Manner::last(asked.is_head());
        let answer = Responder::new(out, &engine.stamp, manner).status(status).reason_and(why);
        engine.counts.answered(answer.status);
        let (status, bytes) = (answer.status.code(), answer.body_bytes);
        engine.log(&Line { from: self.from, asked, status, bytes });
        self.body.retire(&mut engine.pool);
        self.phase = Phase::End;
    }
}

/// Whether a line ends in `bytes`, or a CR stands where none may.
fn has_line_end(bytes: &[u8]) -> bool {
    bytes.contains(&b'\n') || bytes.windows(2).any(|pair| pair[0] == b'\r')
}

/// Nothing, or one or two ends of lines.
#[inline]
fn is_empty_line(inbox: &[u8]) -> bool {
    inbox.len() <= EMPTY_LINES_BYTES && inbox.iter().all(|byte| matches!(byte, b'\r' | b'\n'))
}

#[cfg(test)]
mod tests;
