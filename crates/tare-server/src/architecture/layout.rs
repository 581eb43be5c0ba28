//! What an architecture is asked for, and what the threads of a server do.

use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tare_sys::net::{self, ListenOptions, Sharing};
use tare_sys::steer;

use crate::architecture::queue::Queue;
use crate::error::ServerError;
use crate::listening::Listening;

/// A way to spread connections over threads.
pub trait Architecture: Debug + Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// What it is good for, in one line.
    fn help(&self) -> &'static str;

    /// Whether a connection stays with the thread that accepted it: then threads may have tables of descriptors of
    /// their own.
    fn keeps_connections(&self) -> bool {
        true
    }

    /// Opens the listeners and says what each thread does. Thread `i` of the result that is a loop is pinned to
    /// the `i`-th CPU.
    fn threads(&self, listening: &Listening) -> Result<Layout, ServerError>;
}

/// The threads of a server and the address that they serve.
#[derive(Debug)]
pub struct Layout {
    pub(crate) address: SocketAddr,
    pub(crate) roles: Vec<Role>,
}

/// What one thread does.
#[derive(Debug)]
pub(crate) enum Role {
    /// Runs an event loop over the connections that it takes in.
    Loop(Intake),
    /// Accepts connections and hands them to the queues, one after the other.
    Acceptor { listener: OwnedFd, queues: Vec<Arc<Queue>> },
}

/// Where a loop gets its connections from.
#[derive(Debug)]
pub(crate) enum Intake {
    /// Its listener.
    Listener(OwnedFd),
    /// An acceptor.
    Queue(Arc<Queue>),
}

/// A listener and the address it got.
pub(super) fn listen(
    address: SocketAddr,
    listening: &Listening,
    sharing: Sharing,
) -> Result<(OwnedFd, SocketAddr), ServerError> {
    let open = || -> io::Result<(OwnedFd, SocketAddr)> {
        let listener = net::listen(address, ListenOptions { sharing, backlog: listening.backlog })?;
        // Accepted sockets inherit it, which saves a call for each.
        net::set_nodelay(&listener, true)?;
        if !listening.defer_accept.is_zero() {
            let seconds = u32::try_from(listening.defer_accept.as_secs()).unwrap_or(u32::MAX).max(1);
            steer::set_defer_accept(&listener, seconds)?;
        }
        let bound = net::local_addr(&listener)?;
        Ok((listener, bound))
    };
    open().map_err(|source| ServerError::Listen { address, source })
}
