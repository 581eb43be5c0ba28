//! One thread's requests and answers, without I/O: pacing, protocol and counting meet here, once.
//!
//! An engine owns the sockets. It says what came ([`Client::received`], [`Client::ended`],
//! [`Client::broke`], [`Client::opened`]) and sends what it is given ([`Client::unsent`]). Requests on a
//! connection are answered in order, so the first in flight is the current one: when a connection fails, that
//! request failed, and those behind it are sent again on the next connection with the stamps they had.

mod alike;
mod lacking;
mod places;
#[cfg(feature = "http2")]
mod streams;
#[cfg(test)]
mod tests;

use crate::fault::Fault;
use crate::inspect::Inspect;
use crate::pacing::Schedule;
use crate::quota::Quota;
use crate::request::Requests;
use crate::spec::LoadSpec;
use crate::tally::Tally;
use alike::Alike;
use places::{Places, Sent};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use tare_http::response::{Answer, AnswerReader, End, HEAD_BYTES_MAX, Heads, Step};
use tare_model::trial::ErrorKind;

/// What to do with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Go on.
    Keep,
    /// Close it and open it again.
    Reopen,
}

/// One thread's connections and what they wait for.
pub(crate) struct Client {
    places: Places,
    requests: Requests,
    /// Where all requests are the same one and answers are not inspected.
    alike: Option<Alike>,
    /// Answers to each kind of request have heads of their own, that repeat.
    heads: Vec<Heads>,
    inspect: Option<Box<Inspect>>,
    statuses: Vec<u16>,
    /// Connections with room for another request, while none is due: each at most once.
    free: VecDeque<u32>,
    timeout_ns: u64,
    keep_alive: bool,
    quota: Quota,
    schedule: Schedule,
    /// Whether the last answer is in one count alone, from which it can be taken.
    counts_once: bool,
    pub(crate) tally: Box<Tally>,
}

impl Client {
    /// All memory that a run without failures needs is allocated here. `spec` has been validated.
    pub(crate) fn new(
        spec: &LoadSpec,
        connections: u32,
        requests: Requests,
        quota: Quota,
        to_head: &[bool],
    ) -> Self {
        let inspect = Inspect::new(spec, connections);
        let plain = inspect.is_none() && spec.expect.statuses.is_empty() && spec.keep_alive;
        Client {
            places: Places::new(connections, spec.depth()),
            alike: requests.constant_bytes().filter(|_| plain).map(Alike::new),
            requests,
            heads: to_head.iter().map(|to_head| Heads::new(*to_head)).collect(),
            inspect,
            statuses: spec.expect.statuses.clone(),
            free: VecDeque::with_capacity(connections as usize),
            timeout_ns: spec.timeout_ns,
            keep_alive: spec.keep_alive,
            quota,
            schedule: Schedule::Held,
            counts_once: false,
            tally: Box::new(Tally::new()),
        }
    }

    /// Sending may begin: connections that are free take what `schedule` has for them.
    pub(crate) fn begin(&mut self, schedule: Schedule, now_ns: u64) {
        self.schedule = schedule;
        if matches!(self.schedule, Schedule::Thinking(_)) {
            while let Some(c) = self.free.pop_front() {
                self.places.at_mut(c).queued = false;
                self.leave(c, now_ns);
            }
        }
    }

    /// Connection `c` is there: what was in flight on the one before it goes first.
    pub(crate) fn opened(&mut self, c: u32, now_ns: u64) {
        self.places.resend(c, now_ns);
        self.fill(c, now_ns);
    }

    /// Puts the start of an unfinished head back in front of what will be read; its length.
    #[inline]
    pub(crate) fn restore(&mut self, c: u32, buffer: &mut [u8]) -> usize {
        let carry = &mut self.places.at_mut(c).carry;
        let len = carry.len();
        if len > 0 {
            buffer[..len].copy_from_slice(carry);
            carry.clear();
        }
        len
    }

    /// Connection `c` brought `bytes` (with what was restored before them, `fresh` of them new) by `now_ns`.
    #[inline]
    pub(crate) fn received(&mut self, c: u32, bytes: &[u8], fresh: usize, now_ns: u64) -> Verdict {
        self.tally.bytes_in += fresh as u64;
        let before = self.tally.answers;
        let verdict = self.read(c, bytes, now_ns);
        self.settle(before, now_ns);
        verdict
    }

    /// What was answered since the count was `before` goes into the histograms.
    #[inline]
    fn settle(&mut self, before: u64, now_ns: u64) {
        self.tally.settle();
        if self.is_out_of_turn(now_ns) {
            self.tally.out_of_turn += self.tally.answers - before;
        }
    }

    #[inline]
    fn read(&mut self, c: u32, bytes: &[u8], now_ns: u64) -> Verdict {
        let mut at = match self.alike {
            Some(alike) => {
                alike.read(&mut self.places, c, &mut self.heads[0], &mut self.tally, (bytes, now_ns))
            }
            None => 0,
        };
        if at > 0 {
            self.counts_once = true;
        }
        while at < bytes.len() {
            // What comes now is of a request behind the one that could not be sent.
            if self.is_lacking(c) {
                return self.fail(c, Fault::request_file());
            }
            let Some(current) = self.places.begun(c) else {
                // No request is in flight: the answer before this was longer than it said, and so was none.
                if self.counts_once {
                    self.tally.take_back();
                }
                return self.fail(c, Fault::malformed("bytes that no request asked for"));
            };
            let connection = self.places.at_mut(c);
            let heads = &mut self.heads[current.written.heads()];
            let step = match &mut self.inspect {
                None => connection.reader.read(heads, &bytes[at..]),
                Some(inspect) => connection.reader.read_to(heads, &bytes[at..], &mut inspect.listener(c)),
            };
            match step {
                Ok(Step::Answer { used, answer }) => {
                    at += used;
                    if self.answered(c, answer, now_ns) == Verdict::Reopen {
                        return Verdict::Reopen;
                    }
                }
                Ok(Step::More { used }) => {
                    connection.carry.extend_from_slice(&bytes[at + used..]);
                    if connection.first_ns == 0 {
                        connection.first_ns = now_ns;
                    }
                    break;
                }
                Err(malformed) => return self.fail(c, Fault::from(malformed)),
            }
        }
        Verdict::Keep
    }

    #[inline]
    fn answered(&mut self, c: u32, answer: Answer, now_ns: u64) -> Verdict {
        // The rest of a request that is answered already can only be left out with its connection.
        let may_go_on = answer.keep_alive && self.keep_alive && self.places.left_whole(c);
        let sent = self.places.pop(c);
        self.tally.answered(sent.origin_ns, now_ns, answer.status);
        let is_judged = answer.status >= 400 || !self.statuses.is_empty() || self.inspect.is_some();
        if is_judged {
            self.judge(c, &answer);
        }
        let connection = self.places.at_mut(c);
        connection.failures = 0;
        self.counts_once = !is_judged && connection.first_ns == 0;
        if connection.first_ns != 0 {
            self.tally.came_apart(sent.origin_ns, connection.first_ns, now_ns);
            connection.first_ns = 0;
        }
        if may_go_on {
            return Verdict::Keep;
        }
        self.close(c);
        Verdict::Reopen
    }

    /// Counts an answer that is not as it must be.
    fn judge(&mut self, c: u32, answer: &Answer) {
        let fits = self.inspect.as_mut().is_none_or(|inspect| inspect.judge(c, answer));
        let listed = self.statuses.contains(&answer.status);
        if !fits || !(listed || self.statuses.is_empty()) {
            self.tally.failed(ErrorKind::Unexpected);
        } else if answer.status >= 400 && !listed {
            self.tally.failed(ErrorKind::Status);
        }
    }

    /// An answer that was read elsewhere leads there.
    #[cfg(feature = "http2")]
    pub(crate) fn saw_redirect(&mut self, location: &[u8]) {
        if let Some(heads) = self.heads.first_mut() {
            heads.saw_redirect(Some(location));
        }
    }

    /// Where the first redirect led to, if one said so.
    pub(crate) fn redirected_to(&self) -> Option<String> {
        self.heads.iter().find_map(|heads| heads.redirected_to.clone())
    }

    /// Nothing came after what was restored.
    pub(crate) fn keep(&mut self, c: u32, restored: &[u8]) {
        self.places.at_mut(c).carry.extend_from_slice(restored);
    }

    /// The server closed connection `c`, perhaps in the middle of a head.
    pub(crate) fn ended(&mut self, c: u32, in_head: bool, now_ns: u64) -> Verdict {
        let connection = self.places.at_mut(c);
        match connection.reader.end(in_head) {
            End::Answer(answer) if connection.in_flight > 0 => {
                let before = self.tally.answers;
                let verdict = self.answered(c, answer, now_ns);
                self.settle(before, now_ns);
                verdict
            }
            end => self.broke(c, Fault::closed(end == End::Truncated)),
        }
    }

    /// Connection `c` failed while reading or writing. Servers may drop one that waits for nothing: that is
    /// no error, and it is not opened again at once.
    pub(crate) fn broke(&mut self, c: u32, fault: impl Into<Fault>) -> Verdict {
        if self.places.begun(c).is_some() {
            return self.fail(c, fault);
        }
        self.close(c);
        self.places.count_failure(c);
        Verdict::Reopen
    }

    /// A connection with these places could not be opened. A request that was to have it for itself has failed.
    pub(crate) fn refused(&mut self, places: Range<u32>, fault: Fault) {
        if !self.keep_alive && self.places.at(places.start).in_flight > 0 {
            self.places.pop(places.start);
        }
        self.tally.failed(fault);
        places.for_each(|c| self.places.count_failure(c));
    }

    /// The current request of `c` failed, and the connection with it.
    fn fail(&mut self, c: u32, fault: impl Into<Fault>) -> Verdict {
        if self.places.at(c).in_flight > 0 {
            self.places.pop(c);
        }
        self.tally.failed(fault);
        self.places.count_failure(c);
        self.close(c);
        Verdict::Reopen
    }

    fn close(&mut self, c: u32) {
        let connection = self.places.at_mut(c);
        connection.open = false;
        connection.unsent = 0;
        connection.first_ns = 0;
        connection.carry.clear();
        connection.reader = AnswerReader::default();
        if let Some(inspect) = &mut self.inspect {
            inspect.closed(c);
        }
    }

    /// Fails what has waited too long on connection `c`.
    pub(crate) fn expire(&mut self, c: u32, now_ns: u64) -> Verdict {
        let connection = self.places.at(c);
        if !connection.open || connection.in_flight == 0 || !self.current_is_late(c, now_ns) {
            return Verdict::Keep;
        }
        let verdict = self.fail(c, ErrorKind::Timeout);
        while self.places.at(c).in_flight > 0 && self.current_is_late(c, now_ns) {
            self.places.pop(c);
            self.tally.failed(ErrorKind::Timeout);
        }
        verdict
    }

    fn current_is_late(&self, c: u32, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.places.current(c).sent_ns) > self.timeout_ns
    }

    /// Failures of `c` in a row, without an answer between them.
    pub(crate) fn failures(&self, c: u32) -> u32 {
        self.places.at(c).failures
    }

    /// Fills connection `c` with what is due by `now_ns`, and remembers it as free if there is room left.
    #[inline]
    pub(crate) fn fill(&mut self, c: u32, now_ns: u64) {
        if let Some(alike) = self.alike
            && self.schedule.is_closed()
        {
            if !alike.fill(&mut self.places, c, &mut self.quota, now_ns) {
                self.leave(c, now_ns);
            }
            return;
        }
        while !self.places.is_full(c) {
            let Some(origin_ns) = self.take(now_ns) else { return self.leave(c, now_ns) };
            self.push(c, origin_ns, now_ns);
        }
    }

    /// Connection `c` has room, and nothing is due.
    #[inline]
    fn leave(&mut self, c: u32, now_ns: u64) {
        let depth = self.places.depth;
        let connection = self.places.at_mut(c);
        if let Schedule::Thinking(thoughts) = &mut self.schedule {
            while connection.in_flight + connection.users.thinking < depth {
                thoughts.pause(c, now_ns, !connection.users.thought);
                connection.users.thinking += 1;
            }
            connection.users.thought = true;
        } else if !connection.queued {
            connection.queued = true;
            self.free.push_back(c);
        }
    }

    /// Whether connection `c`, which carries one request and is closed, is to be opened: it has one, or one is due.
    pub(crate) fn has_request(&mut self, c: u32, now_ns: u64) -> bool {
        self.fill(c, now_ns);
        self.places.at(c).in_flight > 0
    }

    /// One request that may be sent by `now_ns`, out of those that may be sent at all: where its latency counts from.
    #[inline]
    fn take(&mut self, now_ns: u64) -> Option<u64> {
        if !self.quota.spend() {
            self.schedule.end();
            return None;
        }
        let origin_ns = self.schedule.take(now_ns);
        if origin_ns.is_none() {
            self.quota.give_back();
        }
        origin_ns
    }

    /// Gives what is due by `now_ns` to the connection that has been free for longest; that connection, which
    /// then has something to send. `None` when nothing is due or no connection is free.
    #[inline]
    pub(crate) fn assign(&mut self, now_ns: u64) -> Option<u32> {
        if let Schedule::Thinking(thoughts) = &mut self.schedule {
            let c = thoughts.take(now_ns)?;
            self.places.at_mut(c).users.thinking -= 1;
            if !self.quota.spend() {
                self.schedule.end();
                return None;
            }
            self.push(c, now_ns, now_ns);
            return Some(c);
        }
        let depth = self.places.depth;
        loop {
            let c = *self.free.front()?;
            let connection = self.places.at_mut(c);
            if (!connection.open && self.keep_alive) || connection.in_flight == depth {
                connection.queued = false;
                self.free.pop_front();
                continue;
            }
            let origin_ns = self.take(now_ns)?;
            self.places.at_mut(c).queued = false;
            self.free.pop_front();
            self.push(c, origin_ns, now_ns);
            if self.schedule.is_closed() {
                self.fill(c, now_ns);
            } else if !self.places.is_full(c) {
                self.places.at_mut(c).queued = true;
                self.free.push_back(c);
            }
            return Some(c);
        }
    }

    #[inline]
    fn push(&mut self, c: u32, origin_ns: u64, now_ns: u64) {
        let captured = self.inspect.as_ref().map_or(&[][..], |inspect| inspect.captured(c));
        let written = self.requests.write(&mut self.places.at_mut(c).out, captured);
        self.places.push(c, Sent { origin_ns, sent_ns: now_ns, written });
        if self.schedule.is_open() {
            self.tally.times.lateness.record(now_ns.saturating_sub(origin_ns));
        }
    }

    /// What connection `c` has to send now; an error where a file that it is in no longer has it.
    #[inline]
    pub(crate) fn unsent(&mut self, c: u32) -> io::Result<&[u8]> {
        if self.is_lacking(c) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let connection = self.places.at(c);
        self.requests.tail(&connection.out, (connection.outstanding, connection.unsent))
    }

    /// Whether connection `c` has anything to send.
    #[inline]
    pub(crate) fn has_unsent(&self, c: u32) -> bool {
        self.places.at(c).unsent > 0 || self.is_lacking(c)
    }

    /// Whether requests are as long as a file, so that sending one takes time.
    #[inline]
    pub(crate) fn uploads(&self) -> bool {
        self.requests.are_uploads()
    }

    /// Some of the upload of connection `c` was taken at `now_ns`: the server is at work, and has its time from here on.
    pub(crate) fn went_on(&mut self, c: u32, now_ns: u64) {
        if self.places.at(c).in_flight > 0 {
            self.places.went_on(c, now_ns);
        }
    }

    /// The socket of `c` took `bytes` of [`Client::unsent`].
    #[inline]
    pub(crate) fn sent(&mut self, c: u32, bytes: usize) {
        let unsent = &mut self.places.at_mut(c).unsent;
        *unsent = unsent.saturating_sub(bytes);
        self.tally.bytes_out += bytes as u64;
    }

    /// Requests sent, or due, and unanswered by `now_ns`.
    pub(crate) fn in_flight(&mut self, now_ns: u64) -> u64 {
        self.places.in_flight() + self.schedule.due(now_ns).map_or(0, |due| due.unsent)
    }

    /// Whether all requests that may be sent have been, and none is unanswered.
    #[inline]
    pub(crate) fn finished(&self) -> bool {
        self.quota.is_spent() && self.places.all.iter().all(|connection| connection.in_flight == 0)
    }

    /// When the next request will be due; `None`: not by any clock.
    #[inline]
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        // No clock need wake this thread while every connection waits for its answer: what is due then waits for one of them.
        let by_clock = matches!(self.schedule, Schedule::Interleaved(_) | Schedule::Open(_));
        if by_clock && self.free.is_empty() { None } else { self.schedule.next_due_ns() }
    }

    /// Whether it is the turn of other loops to send.
    #[inline]
    pub(crate) fn is_out_of_turn(&mut self, now_ns: u64) -> bool {
        match &mut self.schedule {
            Schedule::Interleaved(clock) => !clock.is_ours(now_ns),
            _ => false,
        }
    }

    /// In the turns of other loops: until when no answer needs to wake this thread, and how many are still to come.
    #[inline]
    pub(crate) fn sleeps_until_ns(&mut self, now_ns: u64) -> Option<(u64, u32)> {
        let Schedule::Interleaved(clock) = &mut self.schedule else { return None };
        let until_ns = clock.sleeps_until_ns(now_ns)?;
        Some((until_ns, self.places.in_flight() as u32))
    }

    /// Sends nothing more.
    pub(crate) fn end(&mut self) {
        self.quota.end();
    }

    /// Whether sending has not begun.
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.schedule, Schedule::Held)
    }

    /// Open loop: arrivals due since the beginning.
    pub(crate) fn scheduled(&mut self, now_ns: u64) -> Option<u64> {
        self.schedule.due(now_ns).map(|due| due.scheduled)
    }
}

/// Least size of a buffer for [`Client::restore`] and what is read behind it.
pub(crate) const BUFFER_BYTES_MIN: usize = 2 * HEAD_BYTES_MAX;
