//! Places for requests in flight: one for each connection, or for each stream of one.

use crate::request::Written;
use tare_http::response::AnswerReader;

/// When a request was (to be) sent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sent {
    /// Latency counts from here: the intended time in an open loop.
    pub(super) origin_ns: u64,
    /// The timeout counts from here.
    pub(super) sent_ns: u64,
    pub(super) written: Written,
}

#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) reader: AnswerReader,
    /// The unfinished head that the last piece ended with: seldom anything.
    pub(super) carry: Vec<u8>,
    /// Where the current request stands in the connection's ring, and how many are in flight.
    pub(super) first: u32,
    pub(super) in_flight: u32,
    /// Bytes of requests in flight, and of those the ones that the socket has not taken.
    pub(super) outstanding: usize,
    pub(super) unsent: usize,
    /// The requests in flight, where they are not constant.
    pub(super) out: Vec<u8>,
    pub(super) open: bool,
    /// When the first part of an answer came whose end has not; 0: no such answer.
    pub(super) first_ns: u64,
    /// In the queue of free connections (perhaps from before it was closed).
    pub(super) queued: bool,
    pub(super) users: Users,
    /// Failures in a row without an answer between them.
    pub(super) failures: u32,
}

/// Users of a place who pause before their next request.
#[derive(Debug, Default)]
pub(super) struct Users {
    pub(super) thinking: u32,
    /// Whether any ever paused.
    pub(super) thought: bool,
}

/// All places of a thread, with a ring of `depth` stamps for each.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) all: Vec<Place>,
    pub(super) rings: Vec<Sent>,
    pub(super) depth: u32,
}

impl Places {
    /// So many places for `depth` requests each.
    pub(super) fn new(count: u32, depth: u32) -> Self {
        Places {
            all: (0..count).map(|_| Place::default()).collect(),
            rings: vec![Sent::default(); count as usize * depth as usize],
            depth,
        }
    }

    #[inline]
    pub(super) fn at(&self, c: u32) -> &Place {
        &self.all[c as usize]
    }

    #[inline]
    pub(super) fn at_mut(&mut self, c: u32) -> &mut Place {
        &mut self.all[c as usize]
    }

    /// Whether place `c` has as many requests in flight as it may have.
    #[inline]
    pub(super) fn is_full(&self, c: u32) -> bool {
        self.at(c).in_flight == self.depth
    }

    /// The first request in flight of place `c`.
    #[inline]
    pub(super) fn current(&self, c: u32) -> Sent {
        self.rings[(c * self.depth + self.at(c).first) as usize]
    }

    /// The current request of place `c`, if any of it left: a server may answer before it has read all (413), and may cut it off.
    #[inline]
    pub(super) fn begun(&self, c: u32) -> Option<Sent> {
        let place = self.at(c);
        (place.in_flight > 0 && place.outstanding > place.unsent).then(|| self.current(c))
    }

    /// Whether the current request of place `c`, which has one, left whole.
    #[inline]
    pub(super) fn left_whole(&self, c: u32) -> bool {
        let place = self.at(c);
        place.outstanding - place.unsent >= self.current(c).written.len()
    }

    /// More of the current request of place `c` left at `now_ns`.
    pub(super) fn went_on(&mut self, c: u32, now_ns: u64) {
        let at = (c * self.depth + self.at(c).first) as usize;
        self.rings[at].sent_ns = now_ns;
    }

    /// What is in flight at place `c` is sent again, at `now_ns`.
    pub(super) fn resend(&mut self, c: u32, now_ns: u64) {
        let place = &mut self.all[c as usize];
        place.open = true;
        place.unsent = place.outstanding;
        for k in 0..place.in_flight {
            self.rings[(c * self.depth + (place.first + k) % self.depth) as usize].sent_ns = now_ns;
        }
    }

    /// One more request in flight at place `c`; there is room for it.
    #[inline]
    pub(super) fn push(&mut self, c: u32, sent: Sent) {
        let place = &mut self.all[c as usize];
        let mut slot = place.first + place.in_flight;
        if slot >= self.depth {
            slot -= self.depth;
        }
        self.rings[(c * self.depth + slot) as usize] = sent;
        place.in_flight += 1;
        place.outstanding += sent.written.len();
        place.unsent += sent.written.len();
    }

    /// Takes the first request in flight of place `c` out; there is one.
    #[inline]
    pub(super) fn pop(&mut self, c: u32) -> Sent {
        let sent = self.current(c);
        let place = &mut self.all[c as usize];
        place.first = if place.first + 1 == self.depth { 0 } else { place.first + 1 };
        place.in_flight -= 1;
        place.outstanding -= sent.written.len();
        place.unsent = place.unsent.min(place.outstanding);
        if place.outstanding == 0 {
            place.out.clear();
        } else if !place.out.is_empty() {
            place.out.drain(..sent.written.len());
        }
        sent
    }

    /// Failures at place `c` in a row, one more.
    pub(super) fn count_failure(&mut self, c: u32) {
        let failures = &mut self.at_mut(c).failures;
        *failures = failures.saturating_add(1);
    }

    /// Requests in flight at all places.
    pub(super) fn in_flight(&self) -> u64 {
        self.all.iter().map(|place| u64::from(place.in_flight)).sum()
    }
}
