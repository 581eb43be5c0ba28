//! Readiness: epoll reports what can be done, and one system call does it.
//!
//! Edge-triggered, with one `recv` and one `send` for a request: a `recv` that did not fill the buffer has
//! emptied the socket, so no second one is made to learn that nothing is there.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use tare_sys::epoll::{self, Events, Interest, Waker};
use tare_sys::net;

use crate::architecture::Intake;
use crate::backend::driver::{Backend, Happening};
use crate::buffers::Pool;
use crate::connection::Engine;
use crate::peers::{Asked, Peer, Peers, Place};

const TOKEN_INTAKE: u64 = Place::TOKENS_END;
const TOKEN_WAKER: u64 = TOKEN_INTAKE + 1;

/// Events taken at once.
const EVENTS: usize = 512;
/// Bytes of one `recv`, for all connections of the thread, one after the other.
const RECEIVE_BYTES: usize = 64 * 1024;

pub(crate) struct Epoll {
    epoll: epoll::Epoll,
    events: Events,
    /// Events of the last wait that were handed out.
    handed_out: usize,
    input: Vec<u8>,
    /// Whether the intake is watched; `None` before it and the waker were added.
    open: Option<bool>,
}

impl Epoll {
    #[cold]
    fn change(&mut self, intake: &Intake, open: bool, waker: &Waker) -> io::Result<()> {
        let interest = if open { Interest::READ } else { Interest::NONE };
        let added = self.open.replace(open).is_some();
        if !added {
            self.epoll.add(waker, Interest::READ, TOKEN_WAKER)?;
        }
        match intake {
            Intake::Listener(listener) if added => self.epoll.modify(listener, interest, TOKEN_INTAKE),
            Intake::Listener(listener) => self.epoll.add(listener, interest, TOKEN_INTAKE),
            Intake::Queue(queue) if added => self.epoll.modify(&queue.waker, interest, TOKEN_INTAKE),
            Intake::Queue(queue) => self.epoll.add(&queue.waker, interest, TOKEN_INTAKE),
        }
    }
}

impl Backend for Epoll {
    fn new() -> io::Result<Epoll> {
        Ok(Epoll {
            epoll: epoll::Epoll::new()?,
            events: Events::with_capacity(EVENTS),
            handed_out: 0,
            input: vec![0; RECEIVE_BYTES],
            open: None,
        })
    }

    #[inline]
    fn watch(&mut self, intake: &Intake, open: bool, waker: &Waker) -> io::Result<()> {
        if self.open == Some(open) { Ok(()) } else { self.change(intake, open, waker) }
    }

    fn intake_rests(&self) -> bool {
        true
    }

    #[inline]
    fn wait(&mut self, patience: Option<Duration>) -> io::Result<()> {
        self.handed_out = 0;
        self.epoll.wait(&mut self.events, patience).map(|_| ())
    }

    #[inline]
    fn next(&mut self, peers: &mut Peers, _: &mut Engine) -> Option<Happening> {
        let event = self.events.get(self.handed_out)?;
        self.handed_out += 1;
        Some(match event.token {
            TOKEN_INTAKE => Happening::Intake,
            TOKEN_WAKER => Happening::Woken,
            token => {
                let place = Place::from_token(token);
                if let Some(peer) = peers.get(place) {
                    peer.readable |= event.readable();
                    peer.hung_up |= event.peer_closed();
                }
                Happening::Ready(place)
            }
        })
    }

    fn admit(&mut self, place: Place, peer: &mut Peer) -> io::Result<()> {
        self.epoll.add(&peer.fd, Interest::READ_WRITE.edge(), place.token())
    }

    #[inline]
    fn receive(&mut self, _: Place, peer: &mut Peer, _: &mut Pool) -> io::Result<&[u8]> {
        let n = net::recv(&peer.fd, &mut self.input)?;
        // An end that came with these bytes was reported with them and will not be reported again.
        peer.readable = n == self.input.len() || peer.hung_up;
        Ok(&self.input[..n])
    }

    #[inline]
    fn send(&mut self, _: Place, peer: &mut Peer, bytes: &[u8], more: bool) -> io::Result<usize> {
        if more { net::send_more(&peer.fd, bytes) } else { net::send(&peer.fd, bytes) }
    }

    fn await_room(&mut self, _: Place, _: &mut Peer) -> io::Result<()> {
        // Watched for it all the time.
        Ok(())
    }

    fn close(&mut self, _: Place, fd: OwnedFd, _: Asked) {
        // Closing the descriptor takes it out of the epoll set.
        drop(fd);
    }
}
