//! How a server is set up.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tare_http::limits::Limits;
use tare_sys::{affinity, process};

use crate::access_log::AccessLog;
use crate::architecture::{self, Architecture};
use crate::error::ServerError;
use crate::listening::{Listening, Steering};
use crate::tables;
#[cfg(feature = "tls")]
use crate::tls::Tls;

/// [`Config::bodies_bytes_max`] by default.
pub(crate) const BODIES_BYTES_MAX: usize = 256 * 1024 * 1024;

/// How a server is set up. [`Config::new`] has a default for everything but the address.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it listens, and how connections come to its threads.
    pub listening: Listening,
    /// How connections are spread over threads; see [`architecture::ARCHITECTURES`].
    pub architecture: &'static dyn Architecture,
    /// What moves the bytes of connections.
    pub backend: BackendChoice,
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
    /// Most bytes of memory for bodies that come in pieces, over all connections and threads; one more is answered with 503. At
    /// least one body of the size that `limits` allow has room.
    pub bodies_bytes_max: usize,
    /// How long to wait for a peer.
    pub timeouts: Timeouts,
}

impl Config {
    /// One unpinned thread, each with its own listener on `listen`.
    pub fn new(listen: SocketAddr) -> Config {
        Config {
            listening: Listening::on(listen),
            architecture: architecture::DEFAULT,
            backend: BackendChoice::Auto,
            connections_max: 65_536,
            own_tables: false,
            metrics: None,
            busy_poll: Duration::ZERO,
            access_log: None,
            #[cfg(feature = "tls")]
            tls: None,
            limits: Limits::default(),
            bodies_bytes_max: BODIES_BYTES_MAX,
            timeouts: Timeouts::default(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), ServerError> {
        let Listening { threads, steering, ref cpus, .. } = self.listening;
        if !(1..=1024).contains(&threads) {
            return Err(ServerError::Threads { threads });
        }
        if self.connections_max == 0 {
            return Err(ServerError::NoConnections);
        }
        if self.own_tables {
            self.check_tables()?;
        }
        if steering != Steering::Hash && (cpus.is_empty() || self.architecture.name() != "shared-nothing") {
            return Err(ServerError::Steering);
        }
        // What cannot be asked here is found out when the threads start.
        let allowed = affinity::get(0).unwrap_or_else(|_| cpus.clone());
        match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
            Some(cpu) => Err(ServerError::Cpu { cpu: *cpu, source: io::ErrorKind::InvalidInput.into() }),
            None => Ok(()),
        }
    }

    fn check_tables(&self) -> Result<(), ServerError> {
        if !self.architecture.keeps_connections() {
            return Err(ServerError::OneTable { name: self.architecture.name() });
        }
        let limit = process::open_files_limit().map_err(|source| ServerError::Table { source })?;
        let (connections, threads) = (self.connections_max, self.listening.threads);
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

/// How long a peer may take, to about half a second.
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
