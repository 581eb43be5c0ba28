//! Why a load cannot be made as asked.

use super::load::{IN_FLIGHT_MAX, UPLOADS_MAX};
use super::pacing::{RATE_HZ_MAX, STAGES_MAX};
use crate::interleaving::{ARMS_MAX, Interleaving};
use crate::message::MessageError;
use crate::tls_files::TlsFileError;
use std::time::Duration;

/// A load that cannot be made as asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SpecError {
    /// A count outside its range.
    #[error("{what} must be from 1 to {max}, not {given}")]
    Count {
        /// Which one.
        what: &'static str,
        /// As given.
        given: u32,
        /// The highest that is allowed.
        max: u32,
    },
    /// A thread without a connection would only look busy.
    #[error("{threads} threads need at least as many connections, not {connections} (hint: fewer threads)")]
    MoreThreadsThanConnections {
        /// As given.
        threads: u32,
        /// As given.
        connections: u32,
    },
    /// Connections times pipeline depth.
    #[error("{connections} connections x {pipeline} in flight are too many (hint: at most {IN_FLIGHT_MAX})")]
    TooManyInFlight {
        /// As given.
        connections: u32,
        /// As given.
        pipeline: u32,
    },
    /// The engine for plain connections, and an `https` target.
    #[error("io_uring carries plain connections only (hint: leave the engine out, https goes by epoll)")]
    TlsByIoUring,
    /// The engine for HTTP/1.1.
    #[error("io_uring carries HTTP/1.1 only (hint: leave the engine out, HTTP/2 goes by epoll)")]
    Http2ByIoUring,
    /// Built without it.
    #[error("this build has no HTTP/2 (hint: build it with the feature `http2`)")]
    NoHttp2,
    /// One request a connection, and several at once.
    #[error("without keep-alive each connection has one request (hint: leave out the pipeline depth)")]
    PipelineWithoutKeepAlive,
    /// The rate of an open loop.
    #[error("a rate must be above 0 and at most {RATE_HZ_MAX:e} requests per second, not {given}")]
    Rate {
        /// As given.
        given: f64,
    },
    /// A user's pause.
    #[error("a pause between requests must be above 0 and at most 1 h, not {:?}", Duration::from_nanos(*.given_ns))]
    Think {
        /// As given.
        given_ns: u64,
    },
    /// No stage, none that sends anything, or too many.
    #[error("{given} stages cannot be used (hint: 1 to {STAGES_MAX}, at least one of them with a rate)")]
    Stages {
        /// How many.
        given: usize,
    },
    /// A stage of no length, or of more than a day.
    #[error("a stage must last above 0 and at most one day, not {:?}", Duration::from_nanos(*.given_ns))]
    StageLength {
        /// As given.
        given_ns: u64,
    },
    /// Values of an interleaving that do not fit together.
    #[error("{given:?} cannot be interleaved (hint: turns of 1 ms to 1 min, at most {ARMS_MAX} arms)")]
    Interleaving {
        /// As given.
        given: Interleaving,
    },
    /// The number of requests to stop after.
    #[error("a run of 0 requests has nothing to measure (hint: at least 1)")]
    NoRequests,
    /// Certificates or keys.
    #[error(transparent)]
    TlsFiles(#[from] TlsFileError),
    /// What is to be sent, or expected.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// The timeout.
    #[error("a timeout must be from 1 ms to 1 h, not {:?}", Duration::from_nanos(*.given_ns))]
    Timeout {
        /// As given.
        given_ns: u64,
    },
    /// A body from a file, several at once on a connection.
    #[error(
        "a body of more than 1 MiB is sent alone on its connection (hint: leave out --pipeline and add connections)"
    )]
    UploadPipelined,
    /// Too many bodies from a file at once.
    #[error(
        "too many bodies of more than 1 MiB at once: {UPLOADS_MAX} are the most, each has 64 KiB of memory (hint: fewer connections or streams)"
    )]
    UploadsInFlight,
    /// A body from a file, interleaved with other loads.
    #[error(
        "a body of more than 1 MiB does not end within the turns of servers that are compared (hint: measure each by tare run, or send a \
         shorter file)"
    )]
    UploadInterleaved,
    /// Certificates that nobody will see.
    #[error(
        "certificates are for https, and the URL is of http (hint: leave out --cacert and --client-cert, or write https://)"
    )]
    CertificatesWithoutTls,
    /// A body from a file, with templates.
    #[error(
        "templates are not looked for in a body of more than 1 MiB (hint: leave out --template, or vary the requests by a \
         --request-file)"
    )]
    UploadWithTemplates,
    /// The request is too long.
    #[error(
        "requests of {bytes} bytes, {pipeline} in a row, are too long (hint: fewer headers or a lower depth)"
    )]
    RequestTooLong {
        /// Length of one.
        bytes: usize,
        /// As given.
        pipeline: u32,
    },
}
