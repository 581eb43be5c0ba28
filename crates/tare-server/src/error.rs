//! What can go wrong with a server.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

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
