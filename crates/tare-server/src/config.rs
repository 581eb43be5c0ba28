//! What a server is told, and what can go wrong with it.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tare_http::limits::Limits;
use tare_sys::{affinity, process};

use crate::access_log::AccessLog;
use crate::architecture::{self, Architecture};
use crate::tables;
#[cfg(feature = "tls")]
use crate::tls::Tls;

/// How a server is set up. [`Config::new`] has a default for everything but the address.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen; port 0 takes a free one ([`crate::Server::local_addr`] tells which).
    pub listen: SocketAddr,
    /// How connections are spread over threads; see [`architecture::ARCHITECTURES`].
    pub architecture: &'static dyn Architecture,
    /// What moves the bytes of connections.
    pub backend: BackendChoice,
    /// Event loops, 1 to 1024.
    pub threads: usize,
    /// Loop `i` is pinned to CPU `cpus[i % cpus.len()]`; empty: not pinned.
    pub cpus: Vec<u32>,
    /// Length of each listener's accept queue, in connections; the kernel caps it at `net.core.somaxconn`.
    pub backlog: u32,
    /// Open connections over all threads; one more is answered with 503.
    pub connections_max: usize,
    /// Each loop takes a table of descriptors of its own, so that the limit on open files bounds each of them and not
    /// the process: for more connections than that limit ([`crate::tables::room`]). Not with `dispatch`.
    ///
    /// For handlers: what was open when [`crate::Server::run`] was called can be used in all of them, and stays open
    /// until the server ends. A descriptor that one thread opened later is another one, or none, in another thread.
    pub own_tables: bool,
    /// Where `/metrics` is served as Prometheus text, by a thread of its own; `None`: nowhere.
    pub metrics: Option<SocketAddr>,
    /// How the kernel deals connections to the listeners of `shared-nothing`.
    pub steering: Steering,
    /// Connections are handed over when their first bytes are there, or after this (whole seconds): good where
    /// clients speak first and connections are short. Zero: at once.
    pub defer_accept: Duration,
    /// A loop that was just busy looks for more events for this long before it sleeps: takes the wake-up (20 µs
    /// and more on a virtual machine) off the latency of few connections, and costs CPU time instead. Zero: it
    /// sleeps at once.
    pub busy_poll: Duration,
    /// Where a line for each answer goes; `None`: nowhere.
    pub access_log: Option<AccessLog>,
    /// The certificate of a server that speaks TLS; `None`: it does not.
    #[cfg(feature = "tls")]
    pub tls: Option<Tls>,
    /// Bounds on a request.
    pub limits: Limits,
    /// How long to wait for a peer.
    pub timeouts: Timeouts,
}

impl Config {
    /// One unpinned thread, each with its own listener on `listen`.
    pub fn new(listen: SocketAddr) -> Config {
        Config {
            listen,
            architecture: architecture::DEFAULT,
            backend: BackendChoice::Auto,
            threads: 1,
            cpus: Vec::new(),
            backlog: 4096,
            connections_max: 65_536,
            own_tables: false,
            metrics: None,
            steering: Steering::Hash,
            defer_accept: Duration::ZERO,
            busy_poll: Duration::ZERO,
            access_log: None,
            #[cfg(feature = "tls")]
            tls: None,
            limits: Limits::default(),
            timeouts: Timeouts::default(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), ServerError> {
        if !(1..=1024).contains(&self.threads) {
            return Err(ServerError::Threads { threads: self.threads });
        }
        if self.connections_max == 0 {
            return Err(ServerError::NoConnections);
        }
        if self.own_tables {
            self.check_tables()?;
        }
        if self.steering != Steering::Hash
            && (self.cpus.is_empty() || self.architecture.name() != "shared-nothing")
        {
            return Err(ServerError::Steering);
        }
        // What cannot be asked here is found out when the threads start.
        let allowed = affinity::get(0).unwrap_or_else(|_| self.cpus.clone());
        match self.cpus.iter().find(|cpu| !allowed.contains(cpu)) {
            Some(cpu) => Err(ServerError::Cpu { cpu: *cpu, source: io::ErrorKind::InvalidInput.into() }),
            None => Ok(()),
        }
    }

    fn check_tables(&self) -> Result<(), ServerError> {
        if !self.architecture.keeps_connections() {
            return Err(ServerError::OneTable { name: self.architecture.name() });
        }
        let limit = process::open_files_limit().map_err(|source| ServerError::Table { source })?;
        let (connections, threads) = (self.connections_max, self.threads);
        match tables::room(limit, threads) >= connections.div_ceil(threads) {
            true => Ok(()),
            false => Err(ServerError::NoRoom {
                connections,
                threads,
                limit,
                enough: tables::threads_for(connections, limit),
            }),
        }
    }

    /// The CPU of loop `i`, if loops are pinned.
    pub(crate) fn cpu_of(&self, thread: usize) -> Option<u32> {
        self.cpus.get(thread.checked_rem(self.cpus.len())?).copied()
    }
}

/// What moves the bytes of connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BackendChoice {
    /// io_uring, which costs less at every number of connections that was measured (see `bench/server`); where it
    /// cannot be had, epoll, which every kernel has.
    #[default]
    Auto,
    /// Readiness, and a system call for each receive and each send.
    Epoll,
    /// Completions: one system call for all of a turn (Linux 6.1). Where it cannot be had, epoll stands in, and
    /// [`crate::Server::backend`] says why.
    IoUring,
}

impl BackendChoice {
    /// Every choice, the default first.
    pub const ALL: &[BackendChoice] = &[BackendChoice::Auto, BackendChoice::Epoll, BackendChoice::IoUring];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            BackendChoice::Auto => "auto",
            BackendChoice::Epoll => "epoll",
            BackendChoice::IoUring => "io-uring",
        }
    }

    /// The choice of that name.
    pub fn find(name: &str) -> Option<BackendChoice> {
        BackendChoice::ALL.iter().copied().find(|b| b.name() == name)
    }
}

/// How the kernel deals new connections to several listeners on one port.
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

/// How long a peer may take. Kept to about half a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// From the first byte of a head to its last (408).
    pub head: Duration,
    /// From the end of the head to the end of the body (408).
    pub body: Duration,
    /// For the peer to take 16 KiB of an answer, or what is left of it.
    pub write: Duration,
    /// Between an answer and the next request.
    pub idle: Duration,
    /// For the peer to close after the last answer.
    pub linger: Duration,
    /// For everything that is under way when the server is stopped.
    pub drain: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            head: Duration::from_secs(10),
            body: Duration::from_secs(30),
            write: Duration::from_secs(30),
            idle: Duration::from_secs(75),
            linger: Duration::from_secs(2),
            drain: Duration::from_secs(10),
        }
    }
}

/// Why a server cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source} (hint: is another server there? port 0 takes a free one)")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// A thread could not be started or bound to its CPU.
    #[error("cannot start thread {thread}: {source}")]
    Thread {
        /// Which loop.
        thread: usize,
        /// What the kernel said.
        source: io::Error,
    },
    /// A CPU that this process may not use.
    #[error("cannot pin a thread to CPU {cpu}: {source} (hint: see Cpus_allowed_list in /proc/self/status)")]
    Cpu {
        /// The CPU asked for.
        cpu: u32,
        /// What the kernel said.
        source: io::Error,
    },
    /// An event loop failed.
    #[error("an event loop ended: {source}")]
    Loop {
        /// What the kernel said.
        source: io::Error,
    },
    /// A folder whose files cannot be served.
    #[error("cannot serve {}: {source} (hint: it must be a folder that this user may read)", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A certificate or key that cannot be used.
    #[cfg(feature = "tls")]
    #[error("cannot use {} for TLS: {why} (hint: PEM files, the server's own certificate first, and its key)", file.display())]
    Tls {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A number of threads out of range.
    #[error("{threads} threads (hint: 1 to 1024; one for each CPU of the server is best)")]
    Threads {
        /// The number asked for.
        threads: usize,
    },
    /// More threads than the architecture has.
    #[error("architecture {name} has one loop, not {threads} (hint: shared-nothing has as many as you like)")]
    OneLoop {
        /// The architecture.
        name: &'static str,
        /// The number asked for.
        threads: usize,
    },
    /// Tables of their own for threads that hand connections to each other.
    #[error(
        "{name} hands connections from thread to thread, so that one table of descriptors holds them all (hint: shared-nothing does not; or raise ulimit -n)"
    )]
    OneTable {
        /// The architecture.
        name: &'static str,
    },
    /// More connections than the loops' tables of descriptors have room for.
    #[error("{connections} connections have no room in {} of {limit} descriptors (hint: {}raise ulimit -n)",
            count_of(*threads, "table"), enough.map_or_else(String::new, |n| format!("shared-nothing with {n} threads has; or ")))]
    NoRoom {
        /// The number asked for.
        connections: usize,
        /// The number of loops, each with a table.
        threads: usize,
        /// The limit on open files.
        limit: u64,
        /// Threads that would be enough; `None`: no number is.
        enough: Option<usize>,
    },
    /// A thread cannot have a table of descriptors of its own.
    #[error("a thread cannot have a table of descriptors of its own: {source} (hint: Linux 5.9 has it)")]
    Table {
        /// What the kernel said.
        source: io::Error,
    },
    /// Steering by CPU without pinned listeners.
    #[error("steering by CPU needs shared-nothing with pinned threads (hint: give CPUs)")]
    Steering,
    /// An option of a listener that this kernel does not take.
    #[error("cannot set {option}: {source}")]
    Option {
        /// Which one.
        option: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// A server that may hold no connection.
    #[error("a server needs room for at least one connection")]
    NoConnections,
}

/// `1 table`, `2 tables`.
fn count_of(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}
