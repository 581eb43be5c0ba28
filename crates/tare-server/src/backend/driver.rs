//! What a loop asks of a backend, and what the backend reports.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use tare_sys::epoll::Waker;

use crate::architecture::Intake;
use crate::buffers::Pool;
use crate::connection::Engine;
use crate::peers::{Asked, Peer, Peers, Place};

/// Something that a loop has to look at.
pub(crate) enum Happening {
    /// Connections wait in the intake.
    Intake,
    /// A connection was accepted, or accepting failed.
    Accepted(io::Result<OwnedFd>),
    /// The loop was woken: it looks at its stop flag in each turn anyway.
    Woken,
    /// This connection may get further.
    Ready(Place),
    /// This connection is lost.
    Lost(Place),
}

/// Watches sockets and moves their bytes, for one thread.
pub(crate) trait Backend: Sized {
    /// A backend that watches nothing yet.
    fn new() -> io::Result<Self>;

    /// Makes sure that `waker` is watched, and `intake` if it is `open` now. Called in each turn.
    fn watch(&mut self, intake: &Intake, open: bool, waker: &Waker) -> io::Result<()>;

    /// Whether nothing more can come by [`Happening::Accepted`] until the intake is opened.
    fn intake_rests(&self) -> bool;

    /// Waits until something happens or `patience` has passed (`None`: without end).
    fn wait(&mut self, patience: Option<Duration>) -> io::Result<()>;

    /// The next of what happened, until none is left. What the kernel reports of a connection is noted in its peer.
    fn next(&mut self, peers: &mut Peers, engine: &mut Engine) -> Option<Happening>;

    /// Begins to watch a connection.
    fn admit(&mut self, place: Place, peer: &mut Peer) -> io::Result<()>;

    /// The next bytes of a connection that is `readable`, none at the end of the stream; clears `readable` where
    /// it knows that nothing more is there. `WouldBlock`: there was nothing.
    fn receive(&mut self, place: Place, peer: &mut Peer, pool: &mut Pool) -> io::Result<&[u8]>;

    /// Sends; how much of it was taken. `more`: the rest follows at once.
    fn send(&mut self, place: Place, peer: &mut Peer, bytes: &[u8], more: bool) -> io::Result<usize>;

    /// The socket took less than it was given: [`Happening::Ready`] is to report when it has room.
    fn await_room(&mut self, place: Place, peer: &mut Peer) -> io::Result<()>;

    /// Ends what was begun for a connection and closes it.
    fn close(&mut self, place: Place, fd: OwnedFd, asked: Asked);
}
