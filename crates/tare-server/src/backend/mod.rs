//! Backends: how a loop hears of its sockets and moves their bytes. Each is a file here; what a connection is
//! about is decided in [`crate::event_loop`], the same for all of them.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use tare_sys::epoll::Waker;

use crate::architecture::Intake;
use crate::peers::{Peer, Peers, Place};

pub(crate) mod epoll;

/// Bytes received at once, at most.
pub(crate) const RECEIVE_BYTES: usize = 64 * 1024;

/// Something that a loop has to look at.
pub(crate) enum Happening {
    /// Connections wait in the intake.
    Intake,
    /// The loop was woken: it looks at its stop flag in each turn anyway.
    Woken,
    /// This connection may get further.
    Ready(Place),
}

/// Hears of sockets and moves their bytes, for one thread.
pub(crate) trait Backend: Sized {
    /// A backend that watches `intake` and `waker`.
    fn new(intake: &Intake, waker: &Waker) -> io::Result<Self>;

    /// Waits until something happens or `patience` has passed (`None`: for ever).
    fn wait(&mut self, patience: Option<Duration>) -> io::Result<()>;

    /// The next of what happened, until none is left. What it is told of a connection is written down in its peer.
    fn next(&mut self, peers: &mut Peers) -> Option<Happening>;

    /// Whether [`Happening::Intake`] is told of.
    fn watch_intake(&mut self, intake: &Intake, on: bool) -> io::Result<()>;

    /// Begins to watch a connection.
    fn admit(&mut self, place: Place, peer: &mut Peer) -> io::Result<()>;

    /// The next bytes of a connection that is `readable`, none at the end of the stream; clears `readable` where
    /// it knows that nothing more is there. `WouldBlock`: there was nothing.
    fn receive(&mut self, peer: &mut Peer) -> io::Result<&[u8]>;

    /// Sends; how much of it was taken. `more`: the rest follows at once.
    fn send(&mut self, peer: &mut Peer, bytes: &[u8], more: bool) -> io::Result<usize>;

    /// Ends what was begun for a connection and closes it.
    fn close(&mut self, place: Place, fd: OwnedFd);
}
