//! What load to make: plain data, checked (`check`) before anything is started.

use super::pacing::Pacing;
use super::tls::Tls;
use crate::host_port::HostPort;
use crate::message::{Capture, Expect, WeightedUrl};
use crate::target::Target;
use std::net::IpAddr;
use std::path::PathBuf;

/// Connections of a load unless given: several requests are always due.
pub const CONNECTIONS_DEFAULT: u32 = 64;
/// Most connections of one generator: more than one address has ports for.
pub const CONNECTIONS_MAX: u32 = 1 << 20;
/// Most threads of one generator.
pub const THREADS_MAX: u32 = 1024;
/// Most requests in flight on one connection.
pub const PIPELINE_MAX: u32 = 1024;
/// Most requests in flight on all connections: each has a stamp in memory.
pub(crate) const IN_FLIGHT_MAX: u64 = 1 << 24;
/// Most bodies that are sent from a file at once by HTTP/2: each has a piece in memory.
pub(crate) const UPLOADS_MAX: u64 = 1 << 14;

/// What moves the bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// Io_uring for closed loops of plain connections that are kept, where the kernel has it: it takes less CPU time for
    /// a request the more of them one pass of its event loop brings (`bench/load` has the figures). Else epoll, which sends each request of an
    /// open loop as it falls due, and opens and closes connections for less.
    #[default]
    Auto,
    /// Readiness by epoll: every kernel; in an open loop each request leaves as it falls due.
    Epoll,
    /// Batched submission by io_uring: Linux 6.1, plain connections. Requests leave at the end of a pass of the
    /// event loop, and latency counts from before all sends of that pass.
    IoUring,
}

/// What is spoken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2: on `https` by ALPN, on `http` at once (prior knowledge). Needs the feature `http2`.
    Http2,
}

/// What load to make.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadSpec {
    /// Where it goes.
    pub route: Route,
    /// What is sent.
    pub content: Content,
    /// What every answer must be.
    pub expect: Expect,
    /// What is spoken.
    pub protocol: Protocol,
    /// Open connections over all threads, 1 to [`CONNECTIONS_MAX`].
    pub connections: u32,
    /// Requests in flight on each connection, 1 to [`PIPELINE_MAX`]: pipelined, or with HTTP/2 that many streams, fewer
    /// where the server allows fewer.
    pub pipeline: u32,
    /// Whether connections carry more than one request; otherwise each request has its own, its latency begins before
    /// that is opened, and `Connection: close` is sent with it.
    pub keep_alive: bool,
    /// How long an answer may take from the actual send (of a body from a file: from when some of it was sent last), and a connection to open; 1 ms to 1 h, kept to a
    /// twentieth (and never finer than a millisecond).
    pub timeout_ns: u64,
    /// When requests are sent.
    pub pacing: Pacing,
    /// Stop sending after this many requests over all threads ([`crate::Generator::finished`] reports when all are answered);
    /// `None`: until stopped.
    pub requests_max: Option<u64>,
    /// What makes it.
    pub workers: Workers,
    /// Seed of everything random.
    pub seed: u64,
}

/// Where connections go, and from where.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// Where to.
    pub target: Target,
    /// Connect there instead of the URL's host and port: what is asked for, and whose certificate it must be, stays the URL's.
    pub connect_to: Option<HostPort>,
    /// Connect to this Unix socket instead of the URL's host and port.
    pub unix_socket: Option<PathBuf>,
    /// Local addresses to connect from, one after the other: each has ports for about 28,000 connections to one server.
    /// Empty: the kernel's choice, on loopback as many of 127.0.0.0/8 as the connections need.
    pub local_addresses: Vec<IpAddr>,
    /// How `https` is spoken.
    pub tls: Tls,
    /// Whether [`crate::preflight`] goes on where a redirect leads, up to ten of them on the same host: the load then goes
    /// to the last URL.
    pub follow: bool,
}

/// What is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Content {
    /// Instead of the target's own path: several, spread evenly by weight; at most [`crate::URLS_MAX`].
    pub urls: Vec<WeightedUrl>,
    /// A file of requests, one a line, read as it is needed and begun again at its end; replaces method, path, headers
    /// and body. A line is a JSON object (`{"method":"POST","path":"/x","headers":{"A":"b"},"body":"…"}`, all but `path` may be
    /// left out) or `METHOD PATH`, after which `\\r\\n` (as two escapes) may begin headers and, after an empty line, a body.
    pub request_file: Option<PathBuf>,
    /// Method, in capitals; `GET` unless set.
    pub method: String,
    /// Further headers; a `Host` here replaces the URL's.
    pub headers: Vec<(String, String)>,
    /// Sent with each request, with its length.
    pub body: Vec<u8>,
    /// Instead of `body`: this file, of any length, is sent from where it is, piece by piece. By HTTP/1.1 one request at a
    /// time on each connection, by HTTP/2 one on each stream; without templates in it.
    pub body_file: Option<PathBuf>,
    /// Whether `{{…}}` in path, headers, body and request file is replaced anew in each request: `{{counter}}`,
    /// `{{counter:FROM}}`, `{{random:FROM-TO}}`, `{{hex:DIGITS}}`, `{{csv:COLUMN}}`, `{{capture:NAME}}`.
    pub templates: bool,
    /// The values of `{{csv:COLUMN}}`: its first line names the columns; request n takes row n, from the top again after the last.
    pub csv_file: Option<PathBuf>,
    /// What templates may use of earlier answers; at most [`crate::CAPTURES_MAX`].
    pub captures: Vec<Capture>,
}

/// What makes the load.
#[derive(Debug, Clone, PartialEq)]
pub struct Workers {
    /// Threads, 1 to [`THREADS_MAX`], at most one per connection.
    pub threads: u32,
    /// Thread `i` runs on `cpus[i % len]` alone; empty: where the scheduler puts it.
    pub cpus: Vec<u32>,
    /// What moves the bytes.
    pub engine: EngineChoice,
    /// Threads never sleep: an answer is seen, and an open loop's request sent, without a wake-up before it
    /// (20 to 100 µs here). Each thread then takes a whole CPU; of interleaved loops, in its turns.
    pub busy_poll: bool,
}

impl Route {
    /// To `target`, from where the kernel chooses.
    pub fn to(target: Target) -> Self {
        Route {
            target,
            connect_to: None,
            unix_socket: None,
            local_addresses: Vec::new(),
            tls: Tls::default(),
            follow: false,
        }
    }

    /// Where connections go, unless to a Unix socket.
    pub fn goes_to(&self) -> &HostPort {
        self.connect_to.as_ref().unwrap_or(self.target.at())
    }
}

impl Default for Content {
    /// `GET` of the target's own path.
    fn default() -> Self {
        Content {
            urls: Vec::new(),
            request_file: None,
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            body_file: None,
            templates: false,
            csv_file: None,
            captures: Vec::new(),
        }
    }
}

impl Default for Workers {
    /// One thread that sleeps between events, wherever the scheduler puts it.
    fn default() -> Self {
        Workers { threads: 1, cpus: Vec::new(), engine: EngineChoice::Auto, busy_poll: false }
    }
}

impl LoadSpec {
    /// One thread, one connection, `GET`, closed loop, nothing pipelined, two seconds of patience, sleeping
    /// between events.
    pub fn new(target: Target) -> Self {
        LoadSpec {
            route: Route::to(target),
            content: Content::default(),
            expect: Expect::default(),
            protocol: Protocol::Http1,
            connections: 1,
            pipeline: 1,
            keep_alive: true,
            timeout_ns: 2_000_000_000,
            pacing: Pacing::Closed,
            requests_max: None,
            workers: Workers::default(),
            seed: 0,
        }
    }

    /// The same load on another place: its URLs keep their paths.
    #[must_use]
    pub fn aimed_at(&self, target: Target) -> LoadSpec {
        let moved = |url: &WeightedUrl| WeightedUrl { target: url.target.moved_to(&target), ..*url };
        let mut spec = self.clone();
        spec.content.urls = self.content.urls.iter().map(moved).collect();
        spec.route.target = target;
        spec
    }

    /// Whether requests on one connection are answered in any order.
    pub(crate) fn is_multiplexed(&self) -> bool {
        self.protocol == Protocol::Http2
    }

    /// How many requests, each with a place of its own, a connection carries at once; pipelined ones share one.
    pub(crate) fn lanes(&self) -> u32 {
        if self.is_multiplexed() { self.pipeline } else { 1 }
    }

    /// How many requests follow each other in one such place.
    pub(crate) fn depth(&self) -> u32 {
        if self.is_multiplexed() { 1 } else { self.pipeline }
    }

    /// Connections of one thread: even shares, the first threads take what is left over.
    pub(crate) fn connections_of(&self, thread: u32) -> u32 {
        let threads = self.workers.threads;
        self.connections / threads + u32::from(thread < self.connections % threads)
    }
}
