//! Where a server listens, and how connections come to its threads.

use std::net::SocketAddr;
use std::time::Duration;

/// The listeners and the threads that they feed.
#[derive(Debug, Clone)]
pub struct Listening {
    /// Where to listen; port 0 takes a free one ([`crate::Server::local_addr`] tells which).
    pub address: SocketAddr,
    /// Event loops, 1 to 1024.
    pub threads: usize,
    /// Loop `i` is pinned to CPU `cpus[i % cpus.len()]`; empty: not pinned.
    pub cpus: Vec<u32>,
    /// Length of each listener's accept queue, in connections; the kernel caps it at `net.core.somaxconn`.
    pub backlog: u32,
    /// How the kernel distributes connections to the listeners of `shared-nothing`.
    pub steering: Steering,
    /// Connections are handed over when their first bytes are there, or after this (whole seconds): good where
    /// clients speak first and connections are short. Zero: at once.
    pub defer_accept: Duration,
}

impl Listening {
    /// One unpinned thread with a listener on `address`.
    pub fn on(address: SocketAddr) -> Listening {
        Listening {
            address,
            threads: 1,
            cpus: Vec::new(),
            backlog: 4096,
            steering: Steering::Hash,
            defer_accept: Duration::ZERO,
        }
    }

    /// The CPU of loop `i`, if loops are pinned.
    pub(crate) fn cpu_of(&self, thread: usize) -> Option<u32> {
        self.cpus.get(thread.checked_rem(self.cpus.len())?).copied()
    }
}

/// How the kernel distributes new connections to several listeners on one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steering {
    /// By the hash of their addresses: even in the mean.
    Hash,
    /// To the listener of the CPU that handles their packets, where there is one (`SO_INCOMING_CPU`): no packet
    /// crosses CPUs, where the network card spreads connections evenly.
    IncomingCpu,
    /// The same by a program for the whole group (`SO_ATTACH_REUSEPORT_CBPF`): on every kernel since 4.5, also
    /// for CPUs without a listener.
    CpuProgram,
}
