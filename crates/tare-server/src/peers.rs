//! The open connections of one loop, in slots that are used again.

use std::os::fd::OwnedFd;

use tare_sys::net;

use crate::buffers::Pool;
use crate::connection::{Connection, Engine, Waiting};
use crate::connections::Admission;
use crate::patience::Patience;
use crate::tail::Tail;
#[cfg(feature = "tls")]
use crate::tls::{Heard, Layer};

/// A peer must take this much of an answer within the write timeout.
const WRITE_PROGRESS_BYTES: usize = 16 * 1024;

/// A connection and its socket. Between the two may stand a layer that changes the bytes (TLS): [`Peer::receive`] and
/// [`Peer::resume`] see all that the socket brings and write all that it is to get, and a connection below a layer
/// has no [`Tail`].
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) fd: OwnedFd,
    /// What it is open for.
    pub(crate) admission: Admission,
    pub(crate) connection: Connection,
    /// What changes the bytes between the two.
    #[cfg(feature = "tls")]
    layer: Option<Box<Layer>>,
    pub(crate) outbox: Outbox,
    /// The socket may have something to read (edge-triggered readiness is reported once).
    pub(crate) readable: bool,
    /// The peer has closed its sending side; set by the event, before the end was read.
    pub(crate) hung_up: bool,
    /// The end was read: nothing more comes.
    pub(crate) ended: bool,
    /// Our sending side is closed; what still comes is thrown away.
    pub(crate) lingering: bool,
    /// What the deadline is for.
    pub(crate) patience: Patience,
    /// Bytes that the socket took since the write deadline was set.
    pub(crate) sent_since_deadline: usize,
    /// What the kernel was asked for.
    pub(crate) asked: Asked,
    /// Bytes that came while they could not be used.
    pub(crate) aside: Vec<u8>,
}

/// Bytes that the socket did not take yet.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub(crate) bytes: Vec<u8>,
    /// How many of them it took since.
    sent: usize,
}

impl Outbox {
    pub(crate) fn new(bytes: Vec<u8>) -> Outbox {
        Outbox { bytes, sent: 0 }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.len() == self.sent
    }

    /// What is still to be sent.
    #[inline]
    pub(crate) fn left(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// So many bytes were sent; a buffer that is done with goes back.
    pub(crate) fn advance(&mut self, bytes: usize, pool: &mut Pool) {
        self.sent += bytes;
        if self.is_empty() {
            pool.give(std::mem::take(&mut self.bytes));
            self.sent = 0;
        }
    }
}

/// What the kernel was asked for on behalf of a connection and has not ended yet (completions only).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Asked {
    pub(crate) receive: bool,
    pub(crate) send: bool,
    pub(crate) room: bool,
}

impl Peer {
    pub(crate) fn new(fd: OwnedFd, admission: Admission, engine: &Engine) -> Peer {
        // Asked for only where it is wanted: it is a system call.
        let from = engine.log.as_ref().and_then(|_| net::peer_addr(&fd).ok()).map(|address| address.ip());
        #[cfg(feature = "tls")]
        let layer = engine.tls.as_ref().and_then(Layer::of).map(Box::new);
        #[cfg(feature = "tls")]
        let (sealed, ended) = (layer.is_some(), engine.tls.is_some() && layer.is_none());
        #[cfg(not(feature = "tls"))]
        let (sealed, ended) = (false, false);
        Peer {
            fd,
            admission,
            connection: Connection::new(from, sealed),
            #[cfg(feature = "tls")]
            layer,
            outbox: Outbox::default(),
            readable: false,
            hung_up: false,
            ended,
            lingering: false,
            patience: Patience::Idle,
            sent_since_deadline: 0,
            asked: Asked::default(),
            aside: Vec::new(),
        }
    }

    /// Takes what the socket brought; appends to `out` what it is to get.
    #[inline]
    pub(crate) fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>, engine: &mut Engine) {
        #[cfg(feature = "tls")]
        if let Some(layer) = &mut self.layer {
            // After the end of TLS nothing follows.
            self.ended |= layer.receive(&mut self.connection, bytes, out, engine) == Heard::End;
            return;
        }
        self.connection.receive(bytes, out, engine);
    }

    /// Goes on with what was received before.
    pub(crate) fn resume(&mut self, out: &mut Vec<u8>, engine: &mut Engine) {
        #[cfg(feature = "tls")]
        if let Some(layer) = &mut self.layer {
            return layer.resume(&mut self.connection, out, engine);
        }
        self.connection.resume(out, engine);
    }

    /// Whether nothing can be done before something happens.
    #[inline]
    pub(crate) fn is_at_rest(&self) -> bool {
        !self.readable
            && !self.ended
            && !self.has_unsent()
            && !self.connection.is_held_back()
            && self.waiting() != Waiting::End
    }

    /// Answers 503: the server is full. A peer whose layer has not begun is only closed.
    pub(crate) fn turn_away(&mut self, out: &mut Vec<u8>, engine: &mut Engine) {
        self.connection.turn_away(out, engine);
        #[cfg(feature = "tls")]
        if self.layer.is_some() {
            out.clear();
        }
    }

    /// The peer took too long.
    pub(crate) fn time_out(&mut self, out: &mut Vec<u8>, engine: &mut Engine) {
        #[cfg(feature = "tls")]
        if let Some(layer) = &mut self.layer {
            return layer.time_out(&mut self.connection, out, engine);
        }
        self.connection.time_out(out, engine);
    }

    /// What comes next from the peer.
    #[inline]
    pub(crate) fn waiting(&self) -> Waiting {
        let waiting = self.connection.waiting();
        #[cfg(feature = "tls")]
        if waiting == Waiting::Request && self.layer.as_ref().is_some_and(|layer| layer.is_unanswered()) {
            return Waiting::Head;
        }
        waiting
    }

    /// What the peer is waited for now, if its deadline is to be set anew: idle begins anew with each answer, writing
    /// with each piece taken; a head and a body run from their start, which is a new one after an answer (a client that
    /// sends requests without a pause may never be seen between two of them).
    #[inline]
    pub(crate) fn renew_patience(&mut self) -> Option<Patience> {
        let patience = if self.lingering {
            Patience::Linger
        } else if self.has_unsent() {
            Patience::Write
        } else {
            match self.waiting() {
                Waiting::Request => Patience::Idle,
                Waiting::Head => Patience::Head,
                Waiting::Body => Patience::Body,
                Waiting::End => Patience::Linger,
            }
        };
        let progress = patience == Patience::Write && self.sent_since_deadline >= WRITE_PROGRESS_BYTES;
        let another = self.connection.take_answered() && matches!(patience, Patience::Head | Patience::Body);
        if patience == self.patience && patience != Patience::Idle && !progress && !another {
            return None;
        }
        self.patience = patience;
        self.sent_since_deadline = 0;
        Some(patience)
    }

    /// Whether a part of an answer waits for the socket to take it.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        !self.outbox.is_empty() || !matches!(self.connection.tail, Tail::None)
    }
}

/// A place in [`Peers`]; it no longer matches once another connection has taken it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) index: u32,
    generation: u32,
}

impl Place {
    /// All tokens are below: the upper bits are for those of the backends themselves.
    pub(crate) const TOKENS_END: u64 = 1 << 59;

    const GENERATION_MAX: u32 = ((Self::TOKENS_END - 1) >> 32) as u32;

    /// As a token of a backend.
    pub(crate) fn token(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    pub(crate) fn from_token(token: u64) -> Place {
        Place { index: token as u32, generation: (token >> 32) as u32 }
    }
}

/// The connections. Deadlines lie side by side, so that a search for late ones costs little.
#[derive(Default)]
pub(crate) struct Peers {
    slots: Vec<Slot>,
    deadlines_ns: Vec<u64>,
    free: Vec<u32>,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    peer: Option<Peer>,
}

/// The deadline of an empty slot.
const NEVER_NS: u64 = u64::MAX;

impl Peers {
    pub(crate) fn insert(&mut self, peer: Peer, deadline_ns: u64) -> Place {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.deadlines_ns.push(NEVER_NS);
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.peer = Some(peer);
        self.deadlines_ns[index as usize] = deadline_ns;
        Place { index, generation: slot.generation }
    }

    #[inline]
    pub(crate) fn get(&mut self, place: Place) -> Option<&mut Peer> {
        let slot = self.slots.get_mut(place.index as usize)?;
        if slot.generation == place.generation { slot.peer.as_mut() } else { None }
    }

    pub(crate) fn remove(&mut self, place: Place) -> Option<Peer> {
        let slot = self.slots.get_mut(place.index as usize)?;
        if slot.generation != place.generation {
            return None;
        }
        let peer = slot.peer.take()?;
        slot.generation = (slot.generation + 1) & Place::GENERATION_MAX;
        self.deadlines_ns[place.index as usize] = NEVER_NS;
        self.free.push(place.index);
        Some(peer)
    }

    #[inline]
    pub(crate) fn set_deadline(&mut self, place: Place, deadline_ns: u64) {
        if let Some(slot) = self.deadlines_ns.get_mut(place.index as usize) {
            *slot = deadline_ns;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The first connection at or after slot `from` whose deadline is at or before `now_ns`.
    pub(crate) fn next_late(&self, from: u32, now_ns: u64) -> Option<Place> {
        let at = self.deadlines_ns.get(from as usize..)?.iter().position(|d| *d <= now_ns)?;
        Some(self.place(from + at as u32))
    }

    /// The first open connection at or after slot `from`.
    pub(crate) fn next_open(&self, from: u32) -> Option<Place> {
        let at = self.slots.get(from as usize..)?.iter().position(|s| s.peer.is_some())?;
        Some(self.place(from + at as u32))
    }

    fn place(&self, index: u32) -> Place {
        Place { index, generation: self.slots[index as usize].generation }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    use tare_http::limits::Limits;

    use crate::routes::Routes;

    #[test]
    fn each_head_and_each_body_has_a_time_of_its_own() {
        let mut engine = Engine::new(Arc::new(Routes::default()), Limits::default(), 0);
        let (socket, _other) = UnixStream::pair().unwrap();
        let mut peer = Peer::new(socket.into(), Admission::Served, &engine);
        let mut after = |bytes: &str| {
            peer.receive(bytes.as_bytes(), &mut Vec::new(), &mut engine);
            peer.renew_patience()
        };
        let (head, rest) = ("GET /a HTTP/1.1\r\nHo", "st: h\r\n\r\n");
        assert_eq!(after(head), Some(Patience::Head));
        assert_eq!(after("st:"), None, "a head that drips");
        assert_eq!(after(&format!(" h\r\n\r\n{head}")), Some(Patience::Head), "the head of the next request");
        assert_eq!(after("s"), None);
        let post = "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nx";
        assert_eq!(after(&format!("{}{post}", &rest[1..])), Some(Patience::Body));
        assert_eq!(after(&format!("x{post}")), Some(Patience::Body), "the body of the next request");
        assert_eq!(after("x"), Some(Patience::Idle));
    }
}
