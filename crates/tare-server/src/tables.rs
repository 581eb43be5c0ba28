//! Tables of descriptors: one for the process, or one for each loop ([`crate::Config::own_tables`]).
//!
//! The limit on open files is one for each table ([`tare_sys::descriptors`]). A loop's own begins as a copy of the
//! process's: what handlers, logs and wakers had open keeps its number. Listeners change owners: each loop has its
//! own and closes its copies of all, and the process closes the ones that it opened when every loop has its own. Before
//! that no loop begins: a listener that is open in two tables does not end when one loop closes it, and what connects
//! to it then is reset.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use tare_sys::descriptors::OwnTable;

use crate::architecture::{Intake, Role};

/// What a server has open beside connections: standard input to error, folder, log, `/metrics`, what handlers opened.
const SPARE: usize = 128;
/// The same for each of its threads: waker, listener, epoll or ring, and connections that are answered with 503.
const SPARE_PER_THREAD: usize = 70;

/// Connections that a table of `limit` descriptors has room for, of a server with that many threads.
pub fn room(limit: u64, threads: usize) -> usize {
    let spare = SPARE.saturating_add(threads.saturating_mul(SPARE_PER_THREAD));
    usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(spare)
}

/// The fewest threads whose own tables of `limit` descriptors have room for all connections; `None`: no number is enough.
pub(crate) fn threads_for(connections: usize, limit: u64) -> Option<usize> {
    (1..=1024).find(|threads| room(limit, *threads) >= connections.div_ceil(*threads))
}

/// What a thread begins with.
pub(crate) enum Start {
    /// Its role, in the table of the process.
    Shared(Role),
    /// A listener, in a table of its own.
    Own(Moving),
}

impl Start {
    /// Called in the thread, before it opens anything.
    pub(crate) fn role(self) -> io::Result<Role> {
        match self {
            Start::Shared(role) => Ok(role),
            Start::Own(moving) => Ok(Role::Loop(Intake::Listener(moving.take()?))),
        }
    }
}

/// A listener on its way to a loop's own table.
pub(crate) struct Moving {
    index: usize,
    /// Owned by the process's table; [`Left`] is the last to let go of them.
    listeners: Arc<Vec<OwnedFd>>,
    /// Its end says that the loop has its own.
    taken: Sender<Infallible>,
    /// Ends when the process has closed its own.
    closed: Receiver<Infallible>,
}

impl Moving {
    fn take(self) -> io::Result<OwnedFd> {
        // Dropped from the last to the first where a step fails: `taken` ends after the listeners, so that `Left` is the
        // last to let go of them, in the table that they are open in.
        let Moving { index, taken, closed, listeners } = self;
        let table = OwnTable::take()?;
        let own = listeners[index].try_clone()?;
        let copies: Vec<BorrowedFd<'_>> = listeners.iter().map(OwnedFd::as_fd).collect();
        table.close(&copies)?;
        drop(listeners);
        drop(taken);
        // Nothing is ever sent: it returns when the other end is gone.
        let _ = closed.recv();
        Ok(own)
    }
}

/// The listeners in the process's table.
pub(crate) struct Left {
    listeners: Arc<Vec<OwnedFd>>,
    taken: Receiver<Infallible>,
    closing: Vec<Sender<Infallible>>,
}

impl Left {
    /// Waits until every loop has its own listener, or has failed; then closes these, and lets the loops begin.
    pub(crate) fn close(self) {
        let Left { listeners, taken, closing } = self;
        let _ = taken.recv();
        drop(listeners);
        drop(closing);
    }
}

/// Prepares what the threads begin with: those with a listener, which are all where connections stay with the thread
/// that accepted them, in tables of their own.
pub(crate) fn part(roles: Vec<Role>) -> (Vec<Start>, Left) {
    let (mut starts, mut listeners) = (Vec::new(), Vec::new());
    for role in roles {
        match role {
            Role::Loop(Intake::Listener(listener)) => listeners.push(listener),
            other => starts.push(Start::Shared(other)),
        }
    }
    let listeners = Arc::new(listeners);
    let (tell, taken) = channel();
    let mut closing = Vec::with_capacity(listeners.len());
    for index in 0..listeners.len() {
        let (close, closed) = channel();
        closing.push(close);
        let (listeners, taken) = (Arc::clone(&listeners), tell.clone());
        starts.push(Start::Own(Moving { index, listeners, taken, closed }));
    }
    (starts, Left { listeners, taken, closing })
}
