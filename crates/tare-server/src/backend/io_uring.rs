//! Completions: io_uring accepts and receives on its own, and sends what is small.
//!
//! One system call a turn gives the kernel all answers of the last turn and brings all requests of the next. An
//! answer is copied to where the kernel finds it; how its send went is known at the start of the next turn, and until
//! then nothing else is done for that connection. Large answers, files and what had no room go out as with epoll,
//! by a system call each when there is room.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use tare_sys::epoll::Waker;
use tare_sys::net;
use tare_sys::uring::{Completion, Outcome, Readiness, Ring, RingError, RingSizes};

use crate::architecture::Intake;
use crate::backend::driver::{Backend, Happening};
use crate::buffers::Pool;
use crate::connection::Engine;
use crate::peers::{Asked, Outbox, Peer, Peers, Place};

const TOKEN_INTAKE: u64 = Place::TOKENS_END;
const TOKEN_WAKER: u64 = TOKEN_INTAKE + 1;

/// 128 buffers of 4 KiB: the kernel reports about 20 connections at a time, and few buffers stay in the caches. It
/// may fill 32 of them from one connection before it asks: as much as a peer that never reads can have lying aside.
const SIZES: RingSizes = RingSizes {
    requests: 512,
    completions: 4096,
    buffers: 128,
    buffer_bytes: 4 * 1024,
    outgoing_bytes: 512 * 1024,
};

/// Answers up to this size are sent by the ring, in bytes: for larger ones a copy costs more than a system call.
const RING_SEND_BYTES_MAX: usize = 16 * 1024;

/// A connection whose bytes cannot be used now is received from until this much of them lies aside.
const ASIDE_BYTES_MAX: usize = 64 * 1024;

pub(crate) struct IoUring {
    ring: Ring,
    /// The connection whose bytes the ring holds.
    current: Option<Place>,
    /// Bytes that lay aside, while they are used.
    input: Vec<u8>,
    accepting: bool,
    /// The end of accepting was asked for.
    ending: bool,
    waker_watched: bool,
}

/// Whether this kernel lets this process have such a ring.
///
/// Tried in a thread of its own: some time after a ring was closed, the kernel interrupts system calls of the thread
/// that had it.
pub(crate) fn probe() -> Result<(), RingError> {
    let tried = std::thread::Builder::new().spawn(|| Ring::new(SIZES).map(drop));
    let ended = tried.map(|thread| thread.join().unwrap_or_else(|_| Err(no_thread())));
    ended.unwrap_or_else(|source| Err(RingError::Resources { source }))
}

fn no_thread() -> RingError {
    RingError::Resources { source: io::Error::other("the thread that tried it panicked") }
}

impl IoUring {
    /// The bytes of the last completion, if nobody has used them.
    #[inline]
    fn put_aside(&mut self, peers: &mut Peers, pool: &mut Pool) {
        if let Some(place) = self.current.take() {
            self.put_aside_for(place, peers, pool);
        }
    }

    #[cold]
    fn put_aside_for(&mut self, place: Place, peers: &mut Peers, pool: &mut Pool) {
        let Some(peer) = peers.get(place) else { return };
        if peer.aside.capacity() == 0 {
            peer.aside = pool.take();
        }
        peer.aside.extend_from_slice(self.ring.bytes());
        // A connection whose answers have no room is not received from: its requests wait in the kernel.
        let enough = peer.asked.room || peer.aside.len() > ASIDE_BYTES_MAX;
        if enough && peer.asked.receive {
            // It goes on when what lies aside was used. Where there is no room for this, the next piece asks again.
            let _ = self.ring.end_receiving(place.token());
        }
    }

    fn intake_reported(&mut self, more: bool) {
        self.accepting = more;
        self.ending &= more;
    }

    #[inline]
    fn received(&mut self, place: Place, peer: &mut Peer, outcome: Outcome, more: bool) {
        peer.readable = true;
        peer.asked.receive = more;
        match outcome.count() {
            Ok(1..) => self.current = Some(place),
            // A connection that broke is one that ends.
            Ok(0) | Err(_) => peer.hung_up |= !outcome.may_begin_again(),
        }
    }

    /// A send is over: what was not taken goes to the outbox.
    #[inline]
    fn sent(
        &self,
        place: Place,
        peer: &mut Peer,
        engine: &mut Engine,
        count: io::Result<usize>,
    ) -> Option<Happening> {
        peer.asked.send = false;
        let unsent = self.ring.bytes();
        if unsent.is_empty() && count.is_ok() {
            return (!peer.is_at_rest()).then_some(Happening::Ready(place));
        }
        match count {
            Err(e) if e.kind() != io::ErrorKind::WouldBlock => Some(Happening::Lost(place)),
            _ => {
                engine.counts.sent_bytes -= unsent.len() as u64;
                peer.outbox = Outbox::new(engine.pool.copy_of(unsent));
                Some(Happening::Ready(place))
            }
        }
    }
}

impl Backend for IoUring {
    fn new() -> io::Result<IoUring> {
        Ok(IoUring {
            ring: Ring::new(SIZES)?,
            current: None,
            input: Vec::new(),
            accepting: false,
            ending: false,
            waker_watched: false,
        })
    }

    #[inline]
    fn watch(&mut self, intake: &Intake, open: bool, waker: &Waker) -> io::Result<()> {
        if !self.waker_watched {
            self.ring.watch(waker, Readiness::Readable, TOKEN_WAKER)?;
            self.waker_watched = true;
        }
        if open && !self.accepting {
            match intake {
                Intake::Listener(listener) => self.ring.accept(listener)?,
                Intake::Queue(queue) => self.ring.watch(&queue.waker, Readiness::Readable, TOKEN_INTAKE)?,
            }
            self.accepting = true;
        }
        if !open && self.accepting && !self.ending {
            match intake {
                Intake::Listener(_) => self.ring.end_accepting()?,
                Intake::Queue(_) => self.ring.end_watching(TOKEN_INTAKE)?,
            }
            self.ending = true;
        }
        Ok(())
    }

    fn intake_rests(&self) -> bool {
        !self.accepting
    }

    #[inline]
    fn wait(&mut self, patience: Option<Duration>) -> io::Result<()> {
        self.ring.wait(patience)
    }

    #[inline]
    fn next(&mut self, peers: &mut Peers, engine: &mut Engine) -> Option<Happening> {
        self.put_aside(peers, &mut engine.pool);
        loop {
            let happening = match self.ring.next()? {
                Completion::Received { token, outcome, more } => {
                    let place = Place::from_token(token);
                    // Of a connection that is closed: its buffer goes back.
                    let Some(peer) = peers.get(place) else { continue };
                    self.received(place, peer, outcome, more);
                    Some(Happening::Ready(place))
                }
                Completion::Sent { token, outcome } => {
                    let place = Place::from_token(token);
                    let Some(peer) = peers.get(place) else { continue };
                    self.sent(place, peer, engine, outcome.count())
                }
                Completion::Accepted { socket, more } => {
                    self.intake_reported(more);
                    match socket {
                        Err(outcome) if outcome.may_begin_again() => None,
                        Err(outcome) => outcome.count().err().map(|e| Happening::Accepted(Err(e))),
                        Ok(socket) => Some(Happening::Accepted(Ok(socket))),
                    }
                }
                Completion::Ready { token: TOKEN_WAKER, more } => {
                    self.waker_watched = more;
                    Some(Happening::Woken)
                }
                Completion::Ready { token: TOKEN_INTAKE, more } => {
                    self.intake_reported(more);
                    Some(Happening::Intake)
                }
                Completion::Ready { token, .. } => {
                    let place = Place::from_token(token);
                    let Some(peer) = peers.get(place) else { continue };
                    peer.asked.room = false;
                    Some(Happening::Ready(place))
                }
            };
            if happening.is_some() {
                return happening;
            }
        }
    }

    fn admit(&mut self, place: Place, peer: &mut Peer) -> io::Result<()> {
        self.ring.receive(&peer.fd, place.token())?;
        peer.asked.receive = true;
        Ok(())
    }

    #[inline]
    fn receive(&mut self, place: Place, peer: &mut Peer, pool: &mut Pool) -> io::Result<&[u8]> {
        if !peer.aside.is_empty() {
            let used = std::mem::replace(&mut self.input, std::mem::take(&mut peer.aside));
            pool.give(used);
            return Ok(&self.input);
        }
        if self.current == Some(place) {
            self.current = None;
            peer.readable = peer.hung_up || !peer.asked.receive;
            return Ok(self.ring.bytes());
        }
        if peer.hung_up {
            return Ok(&[]);
        }
        if !peer.asked.receive {
            self.admit(place, peer)?;
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    #[inline]
    fn send(&mut self, place: Place, peer: &mut Peer, bytes: &[u8], more: bool) -> io::Result<usize> {
        if more {
            return net::send_more(&peer.fd, bytes);
        }
        if bytes.len() > RING_SEND_BYTES_MAX || !self.ring.send(&peer.fd, bytes, place.token())? {
            return net::send(&peer.fd, bytes);
        }
        peer.asked.send = true;
        Ok(bytes.len())
    }

    fn await_room(&mut self, place: Place, peer: &mut Peer) -> io::Result<()> {
        if !peer.asked.room {
            self.ring.watch(&peer.fd, Readiness::Writable, place.token())?;
            peer.asked.room = true;
        }
        Ok(())
    }

    fn close(&mut self, place: Place, fd: OwnedFd, asked: Asked) {
        self.ring.close(fd, place.token(), asked.receive, asked.room);
    }
}
