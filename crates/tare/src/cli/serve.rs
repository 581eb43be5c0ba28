//! The arguments of `tare serve`.

use super::values::{self, CpuList};
use clap::{Args, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tare_server::BackendChoice;
use tare_server::architecture::Architecture;

/// `tare serve`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tare serve --threads 1 --cpus 0            one pinned loop: what one CPU can do
  tare serve --arch dispatch --threads 2     one acceptor that deals connections out
  tare serve --root ./public --listen 0.0.0.0:8080 --metrics 127.0.0.1:9090")]
pub struct ServeArgs {
    /// Address and port to listen on.
    ///
    /// Port 0 takes a free one, which is printed.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8080", value_parser = values::address)]
    pub listen: SocketAddr,
    /// Serve the files of this folder, not the test bodies.
    ///
    /// With ranges, conditional requests, index.html, and NAME.br or NAME.gz beside a file for clients that take
    /// them. Nothing outside the folder can be reached, links included. A folder that is renamed is served on; when
    /// another one stands at DIR, or DIR is a link that now leads to another one, that is served within a second.
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// The server that /downstream?us=N waits for.
    ///
    /// /downstream?us=N is answered when the server at this address has answered /sleep?us=N. One kept connection for each thread, which waits for the answer: as a service that calls another one.
    #[arg(long, value_name = "ADDR:PORT", value_parser = values::address, conflicts_with = "root")]
    pub downstream: Option<SocketAddr>,
    /// Serve its own counts at /metrics on this address.
    ///
    /// As Prometheus text, by a thread of its own, so that a server that is full can still be read.
    #[arg(long, value_name = "ADDR:PORT", value_parser = values::address)]
    pub metrics: Option<SocketAddr>,
    /// Write a line for each answer to this file.
    ///
    /// In the Common Log Format; `-` is standard output. Lines go through a buffer in memory and a thread of their own: where the disk or the reader is too slow they
    /// are dropped and counted, and no request waits.
    #[arg(long, value_name = "FILE")]
    pub access_log: Option<PathBuf>,
    /// Speak TLS, with the certificates in this PEM file.
    ///
    /// TLS 1.2 and 1.3; the server's own certificate stands first.
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert, in a PEM file.
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    #[command(flatten)]
    pub threads: ThreadArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub timeouts: TimeoutArgs,
}

/// Threads, and how they get their connections.
#[derive(Debug, Args)]
#[command(next_help_heading = "Threads and connections")]
pub struct ThreadArgs {
    /// Event loops [default: one for each CPU].
    ///
    /// [default: one for each CPU of --cpus, else for each that this process may use]. More than there are CPUs only makes them wait for each other.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Hold the threads on these CPUs, as 0-3,8.
    ///
    /// The first on the first, and so on round. A pinned loop keeps its caches, and its cost is comparable between runs. Where others run on the same CPUs
    /// it waits for them, even if another CPU is free.
    #[arg(long, value_name = "LIST", value_parser = values::cpu_list)]
    pub cpus: Option<CpuList>,
    /// Threads: shared-nothing [default], reactor or dispatch.
    ///
    /// How connections are spread over threads. shared-nothing: each loop has a listener of its own (SO_REUSEPORT), nothing is handed over; the kernel deals
    /// by hash, so that few connections may fall unevenly. reactor: one loop, the least there is. dispatch: one more
    /// thread accepts and deals out in turn; even counts, for a queue and a wake-up each.
    #[arg(long, value_name = "NAME", default_value = "shared-nothing", hide_default_value = true, value_parser = values::architecture)]
    pub arch: &'static dyn Architecture,
    /// How bytes are moved: auto, io-uring or epoll.
    ///
    /// io-uring (Linux 6.1), epoll, or auto: io-uring where it can be had, else epoll, saying why. io-uring gives the kernel all answers of a turn and takes all requests of the next in one system call.
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = values::backend)]
    pub backend: BackendChoice,
    /// Which listener gets it: none, incoming-cpu or cbpf.
    ///
    /// How the kernel chooses among the listeners of shared-nothing (cbpf and incoming-cpu need --cpus).
    #[arg(long, value_name = "HOW", default_value = "none")]
    pub steer: Steer,
    /// Accept when first bytes are there, or after TIME.
    ///
    /// A connection is handed over only when its first bytes are there, or after TIME, in whole seconds. Saves a wake-up for each connection where clients speak first and connections are short. No gain for long
    /// ones; a client that only connects is seen late.
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = values::duration)]
    pub defer_accept: Duration,
    /// Look for more events for so long before sleeping.
    ///
    /// After each event, for up to TIME. Takes the wake-up (20 µs and more on a virtual machine) off the latency of few connections. It costs CPU
    /// time while requests come further apart than a loop needs to answer, and nothing at saturation or when
    /// nothing comes for TIME. 50us to 1ms are useful; never with more threads than CPUs.
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = values::duration)]
    pub busy_poll: Duration,
    /// Connections that may wait to be accepted.
    ///
    /// Per listener; the kernel caps it at net.core.somaxconn.
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..))]
    pub backlog: u32,
    /// Most open connections; one more is answered with 503.
    ///
    /// Over all threads [default: 65536, or what the limit on open files lets be]. That limit is raised as far as it may be. For more than it has room for, each thread of shared-nothing takes a
    /// table of descriptors of its own, which the limit then holds for: 3 threads can have three times as many.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16_777_216))]
    pub max_connections: Option<u32>,
}

/// How the kernel deals connections to listeners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Steer {
    /// By the hash of the addresses: even in the mean.
    None,
    /// To the listener of the CPU that handles their packets (SO_INCOMING_CPU): no packet crosses CPUs, where the
    /// network card spreads connections evenly.
    IncomingCpu,
    /// The same by a small program for all listeners (SO_ATTACH_REUSEPORT_CBPF): also for CPUs without a listener,
    /// and on kernels before 6.1.
    Cbpf,
}

/// Bounds on a request.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits on a request")]
pub struct LimitArgs {
    /// Longest head, in bytes; 431 beyond.
    ///
    /// The request line and the fields. It bounds what one silent client can hold.
    #[arg(long, value_name = "BYTES", default_value_t = 16 * 1024,
          value_parser = clap::value_parser!(u32).range(64..=1024 * 1024))]
    pub max_head: u32,
    /// Longest path and query, in bytes; 414 beyond.
    ///
    /// The request-target.
    #[arg(long, value_name = "BYTES", default_value_t = 8 * 1024,
          value_parser = clap::value_parser!(u32).range(1..=1024 * 1024))]
    pub max_target: u32,
    /// Most header fields; 431 beyond.
    ///
    /// Each one that is sent costs time to read.
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(1..=tare_server::FIELDS_MAX as i64))]
    pub max_fields: u32,
    /// Longest body, in bytes; 413 beyond.
    ///
    /// Decoded. A body is kept in memory until it is complete.
    #[arg(long, value_name = "BYTES", default_value_t = 1024 * 1024,
          value_parser = clap::value_parser!(u32).range(0..=1024 * 1024 * 1024))]
    pub max_body: u32,
    /// Memory for bodies in pieces, in bytes; 503 beyond.
    ///
    /// Over all connections; at least that of one longest body. Bodies with a Content-Length that arrive whole with their head are answered where they lie, and take none.
    #[arg(long, value_name = "BYTES", default_value_t = 256 * 1024 * 1024,
          value_parser = clap::value_parser!(u64).range(0..=1024 * 1024 * 1024 * 1024))]
    pub max_bodies: u64,
}

/// How long to wait for a peer.
#[derive(Debug, Args)]
#[command(next_help_heading = "Timeouts (kept to about half a second)")]
pub struct TimeoutArgs {
    /// From the first byte of a head to its last; 408.
    ///
    /// Against clients that drip their headers.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::positive_duration)]
    pub head_timeout: Duration,
    /// From the end of a head to the end of the body; 408.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = values::positive_duration)]
    pub body_timeout: Duration,
    /// For the client to take 16 KiB of an answer.
    ///
    /// Against clients that read as slowly as they can.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = values::positive_duration)]
    pub write_timeout: Duration,
    /// Between an answer and the next request.
    ///
    /// Longer than your proxy's, or it will use closed connections.
    #[arg(long, value_name = "TIME", default_value = "75s", value_parser = values::positive_duration)]
    pub idle_timeout: Duration,
    /// For the client to close after the last answer.
    ///
    /// What it still sends is thrown away.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = values::positive_duration)]
    pub linger_timeout: Duration,
    /// For everything under way when the server is stopped.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::positive_duration)]
    pub drain_timeout: Duration,
}
