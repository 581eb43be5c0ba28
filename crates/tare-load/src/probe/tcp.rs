//! A connection that is opened and closed: the kernel answers it, no program takes part.

use super::client::Client;
use super::fault::ProbeFault;
use super::wire::Wire;
use std::net::SocketAddr;
use std::time::Instant;

/// Where to connect to.
pub(super) struct Tcp(pub SocketAddr);

impl Client for Tcp {
    fn ask(&mut self, deadline: Instant) -> Result<(), ProbeFault> {
        Wire::open(self.0, deadline).map(drop)
    }
}
