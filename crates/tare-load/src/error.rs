//! Why load could not be made.

use crate::host_port::TargetError;
use crate::spec::SpecError;
use crate::tls_files::TlsFileError;
use crate::trust;
use std::fmt::Display;
use std::io;
use tare_http::response::Malformed;
use tare_sys::uring::RingError;

/// Why load could not be made.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The load was asked for in a way that cannot be done.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The URL, or the name in it.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A redirect that is not followed.
    #[error("{from} redirects to {to}: {why}")]
    Redirect {
        /// What was asked for.
        from: String,
        /// As the server has it.
        to: String,
        /// Why it is not followed.
        why: String,
    },
    /// No connection could be opened.
    #[error("cannot connect to {address}: {why} (hint: does the server listen there?)")]
    NoConnection {
        /// Where to.
        address: String,
        /// What the kernel said.
        why: io::Error,
    },
    /// Every port towards the server is taken.
    #[error(
        "no local port is left towards {address} (hint: give more local addresses, widen net.ipv4.ip_local_port_range, \
         or wait for TIME_WAIT to pass)"
    )]
    PortsExhausted {
        /// Where to.
        address: String,
    },
    /// Certificates or keys that cannot be used, or none where some are needed.
    #[error(transparent)]
    TlsFiles(#[from] TlsFileError),
    /// The server is not the one that the URL names, as far as its certificate shows.
    #[error("the certificate of {address} is not trusted: {why} (hint: {hint})")]
    NotTrusted {
        /// Where to.
        address: String,
        /// What is wrong with it.
        why: String,
        /// What may help.
        hint: &'static str,
    },
    /// The server ended the TLS handshake.
    #[error(
        "{address} refused TLS: {why} (hint: it may want a client certificate that it trusts: --client-cert FILE --client-key FILE)"
    )]
    TlsRefused {
        /// Where to.
        address: String,
        /// Its reason.
        why: io::Error,
    },
    /// The TLS handshake failed.
    #[error("no TLS with {address}: {why} (hint: is this the port for https?)")]
    Tls {
        /// Where to.
        address: String,
        /// What rustls said.
        why: io::Error,
    },
    /// The server speaks something else.
    #[error(
        "{address} does not speak HTTP/2: {why} (hint: leave out --http2; without TLS the server has to take it at once, as h2c)"
    )]
    NoHttp2 {
        /// Where to.
        address: String,
        /// What came instead.
        why: io::Error,
    },
    /// The server took the connection and did not answer.
    #[error("{address} gave no answer: {why}")]
    NoAnswer {
        /// Who.
        address: String,
        /// What happened instead.
        why: io::Error,
    },
    /// The server's answer is not HTTP/1.
    #[error("{address} does not speak HTTP/1: {why} (hint: is this the right port?)")]
    Malformed {
        /// Who.
        address: String,
        /// What is wrong with it.
        why: Malformed,
    },
    /// More connections than this process, or each of its threads with a table of its own, may have files open.
    #[error("{needed} open files are needed and {limit} allowed (hint: {}ulimit -n {needed}, or fewer connections)",
            threads.map_or_else(String::new, |threads| format!("-t {threads}, ")))]
    OpenFiles {
        /// Connections and what goes with them.
        needed: u64,
        /// `RLIMIT_NOFILE`, raised as far as it goes.
        limit: u64,
        /// As many threads, each with files of its own, would be enough; `None`: no number is.
        threads: Option<u64>,
    },
    /// A thread could not be put on its CPU.
    #[error("cannot run on CPU {cpu}: {why} (hint: does it exist, and may this process use it?)")]
    Pin {
        /// As given.
        cpu: u32,
        /// What the kernel said.
        why: io::Error,
    },
    /// The engine that was asked for cannot be had here.
    #[error("{why}; --engine epoll works everywhere")]
    Engine {
        /// What is missing.
        why: RingError,
    },
    /// The user had enough before the load began.
    #[error("interrupted while the connections were opened")]
    Interrupted,
    /// A thread, or what it waits with, could not be made; or it ended by itself.
    #[error("a generator thread failed: {why}")]
    Thread {
        /// What the kernel said.
        why: io::Error,
    },
}

impl LoadError {
    /// No connection to `endpoint` could be opened.
    pub(crate) fn refused(endpoint: &impl Display, why: io::Error) -> LoadError {
        match why.kind() {
            io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse => {
                LoadError::PortsExhausted { address: endpoint.to_string() }
            }
            io::ErrorKind::Unsupported => LoadError::NoHttp2 { address: endpoint.to_string(), why },
            io::ErrorKind::InvalidData => LoadError::tls(endpoint.to_string(), why),
            _ => LoadError::NoConnection { address: endpoint.to_string(), why },
        }
    }

    fn tls(address: String, why: io::Error) -> LoadError {
        match why.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(rustls::Error::InvalidCertificate(fault)) => {
                let (why, hint) = trust::words(fault);
                LoadError::NotTrusted { address, why, hint }
            }
            Some(rustls::Error::AlertReceived(_)) => LoadError::TlsRefused { address, why },
            _ => LoadError::Tls { address, why },
        }
    }
}
