//! What load to make: plain data, checked before anything is started.

use crate::message::{Capture, Expect, MessageError, WeightedUrl};
use crate::request::{BATCH_BYTES_MAX, Program};
use crate::target::Target;
use crate::tls::HTTP2;
use crate::turns::{ARMS_MAX, Turns};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Connections of a load that nobody said otherwise of: several requests are always due.
pub const CONNECTIONS_DEFAULT: u32 = 64;
/// Most connections of one generator: more than one address has ports for.
pub const CONNECTIONS_MAX: u32 = 1 << 20;
/// Most threads of one generator.
pub const THREADS_MAX: u32 = 1024;
/// Most requests in flight on one connection.
pub const PIPELINE_MAX: u32 = 1024;
/// Highest rate of an open loop, requests per second.
pub const RATE_HZ_MAX: f64 = 1e9;
/// Longest mean pause of a thinking user (an hour).
pub const THINK_NS_MAX: u64 = 3_600_000_000_000;
/// Most stages of an open loop's course, and longest one (a day).
pub const STAGES_MAX: usize = 10_000;
/// See [`STAGES_MAX`].
pub const STAGE_NS_MAX: u64 = 86_400_000_000_000;
/// Most requests in flight on all connections: each has a stamp in memory.
const IN_FLIGHT_MAX: u64 = 1 << 24;
/// When requests are sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Pacing {
    /// The next one as soon as an answer is there. Such a loop slows down with the server, so it cannot see
    /// how long requests would have waited that it did not send (coordinated omission).
    Closed,
    /// A closed loop of users who pause after each answer; latency counts from the actual send.
    Thinking {
        /// Mean pause in nanoseconds, 1 to [`THINK_NS_MAX`].
        mean_ns: u64,
        /// All pauses the same, or exponential.
        gaps: Gaps,
    },
    /// A closed loop that sends only while it is its turn among several; what is in flight then is still answered.
    Interleaved(Turns),
    /// At a rate of its own, whatever the server does; latency counts from the *intended* send time.
    Open {
        /// Requests per second over all threads, above 0, at most [`RATE_HZ_MAX`].
        rate_hz: f64,
        /// How they are spread.
        gaps: Gaps,
    },
    /// An open loop whose rate changes: the stages one after the other, then the last one's end rate for ever.
    Stages {
        /// At least one, at most [`STAGES_MAX`].
        stages: Vec<Stage>,
        /// How requests are spread.
        gaps: Gaps,
    },
}

/// A part of an open loop's course: a step where both rates are the same, else a ramp.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stage {
    /// Requests per second at its beginning, 0 (none) to [`RATE_HZ_MAX`].
    pub from_hz: f64,
    /// Requests per second at its end; the rate changes evenly between them.
    pub to_hz: f64,
    /// How long it lasts, nanoseconds, 1 to [`STAGE_NS_MAX`].
    pub for_ns: u64,
}

impl Pacing {
    /// How long the rate changes, nanoseconds; `None` where it does not.
    pub fn course_ns(&self) -> Option<u64> {
        match self {
            Pacing::Stages { stages, .. } => {
                Some(stages.iter().fold(0, |sum, stage| stage.for_ns.saturating_add(sum)))
            }
            Pacing::Closed | Pacing::Interleaved(_) | Pacing::Thinking { .. } | Pacing::Open { .. } => None,
        }
    }

    /// Requests per second of an open loop, on average over the stages; `None` where answers decide it.
    pub fn rate_hz(&self) -> Option<f64> {
        match self {
            Pacing::Open { rate_hz, .. } => Some(*rate_hz),
            Pacing::Stages { stages, .. } => {
                let requests: f64 =
                    stages.iter().map(|s| (s.from_hz + s.to_hz) / 2.0 * s.for_ns as f64).sum();
                self.course_ns().map(|course_ns| requests / course_ns.max(1) as f64)
            }
            Pacing::Closed | Pacing::Interleaved(_) | Pacing::Thinking { .. } => None,
        }
    }

    fn validate(&self) -> Result<(), SpecError> {
        let rate = |given: f64, least: bool| {
            let fits = given <= RATE_HZ_MAX && (given > 0.0 || (least && given == 0.0));
            if fits { Ok(()) } else { Err(SpecError::Rate { given }) }
        };
        match self {
            Pacing::Closed => Ok(()),
            Pacing::Interleaved(turns) => turns.validate(),
            Pacing::Thinking { mean_ns, .. } if (1..=THINK_NS_MAX).contains(mean_ns) => Ok(()),
            Pacing::Thinking { mean_ns, .. } => Err(SpecError::Think { given_ns: *mean_ns }),
            Pacing::Open { rate_hz, .. } => rate(*rate_hz, false),
            Pacing::Stages { stages, .. } => {
                let sends = stages.iter().any(|stage| stage.from_hz > 0.0 || stage.to_hz > 0.0);
                if !sends || stages.len() > STAGES_MAX {
                    return Err(SpecError::Stages { given: stages.len() });
                }
                for stage in stages {
                    rate(stage.from_hz, true)?;
                    rate(stage.to_hz, true)?;
                    if !(1..=STAGE_NS_MAX).contains(&stage.for_ns) {
                        return Err(SpecError::StageLength { given_ns: stage.for_ns });
                    }
                }
                Ok(())
            }
        }
    }
}

/// The time between intended sends of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gaps {
    /// All the same, over all threads together.
    Fixed,
    /// Exponential: requests of many independent users.
    Poisson,
}

/// What moves the bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// Io_uring for closed loops of plain connections that are kept, where the kernel has it: it takes less CPU time for
    /// a request the more of them a turn brings (`bench/load` has the figures). Else epoll, which sends each request of an
    /// open loop as it falls due, and opens and closes connections for less.
    #[default]
    Auto,
    /// Readiness by epoll: every kernel; in an open loop each request leaves as it falls due.
    Epoll,
    /// Batched submission by io_uring: Linux 6.1, plain connections. Requests leave at the end of a turn, and latency
    /// counts from before all sends of the turn.
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
    /// Where to.
    pub target: Target,
    /// Instead of the target's own path: several, dealt evenly by weight; at most [`crate::URLS_MAX`].
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
    /// Whether `{{…}}` in path, headers, body and request file is replaced anew in each request: `{{counter}}`,
    /// `{{counter:FROM}}`, `{{random:FROM-TO}}`, `{{hex:DIGITS}}`, `{{csv:COLUMN}}`, `{{capture:NAME}}`.
    pub templates: bool,
    /// The values of `{{csv:COLUMN}}`: its first line names the columns; request n takes row n, from the top again after the last.
    pub csv_file: Option<PathBuf>,
    /// What templates may use of earlier answers; at most [`crate::CAPTURES_MAX`].
    pub captures: Vec<Capture>,
    /// What every answer must be.
    pub expect: Expect,
    /// Open connections over all threads, 1 to [`CONNECTIONS_MAX`].
    pub connections: u32,
    /// Threads, 1 to [`THREADS_MAX`], at most one per connection.
    pub threads: u32,
    /// Thread `i` runs on `cpus[i % len]` alone; empty: where the scheduler puts it.
    pub cpus: Vec<u32>,
    /// When requests are sent.
    pub pacing: Pacing,
    /// Whether connections carry more than one request; otherwise each request has its own, its latency begins before
    /// that is opened, and `Connection: close` is sent with it.
    pub keep_alive: bool,
    /// Stop sending after this many requests over all threads ([`crate::Generator::finished`] tells when all are answered);
    /// `None`: until stopped.
    pub requests_max: Option<u64>,
    /// Local addresses to connect from, in turn: each has ports for about 28,000 connections to one server.
    /// Empty: the kernel's choice, on loopback as many of 127.0.0.0/8 as the connections need.
    pub local_addresses: Vec<IpAddr>,
    /// Connect to this Unix socket instead of the URL's host and port.
    pub unix_socket: Option<PathBuf>,
    /// `https`: resume TLS sessions when connections are opened again. Certificates are never verified: a load
    /// generator is pointed at servers under test.
    pub tls_resume: bool,
    /// What moves the bytes.
    pub engine: EngineChoice,
    /// What is spoken.
    pub protocol: Protocol,
    /// Requests in flight on each connection, 1 to [`PIPELINE_MAX`]: pipelined, or with HTTP/2 that many streams, fewer
    /// where the server allows fewer.
    pub pipeline: u32,
    /// How long an answer may take from the actual send, and a connection to open; 1 ms to 1 h, kept to a
    /// twentieth (and never finer than a millisecond).
    pub timeout_ns: u64,
    /// Threads never sleep: an answer is seen, and an open loop's request sent, without a wake-up before it
    /// (20 to 100 µs here). Each thread then takes a whole CPU; of loops interleaved, in its turns.
    pub busy_poll: bool,
    /// Seed of everything random.
    pub seed: u64,
}

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
    /// Turns that cannot be taken.
    #[error("{given:?} are no turns (hint: 1 ms to 1 min each, at most {ARMS_MAX} arms)")]
    Turns {
        /// As given.
        given: Turns,
    },
    /// The number of requests to stop after.
    #[error("a run of 0 requests has nothing to measure (hint: at least 1)")]
    NoRequests,
    /// What is to be sent, or expected.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// The timeout.
    #[error("a timeout must be from 1 ms to 1 h, not {:?}", Duration::from_nanos(*.given_ns))]
    Timeout {
        /// As given.
        given_ns: u64,
    },
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

impl LoadSpec {
    /// One thread, one connection, `GET`, closed loop, nothing pipelined, two seconds of patience, sleeping
    /// between events.
    pub fn new(target: Target) -> Self {
        LoadSpec {
            target,
            urls: Vec::new(),
            request_file: None,
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            templates: false,
            csv_file: None,
            captures: Vec::new(),
            expect: Expect::default(),
            connections: 1,
            threads: 1,
            cpus: Vec::new(),
            pacing: Pacing::Closed,
            keep_alive: true,
            requests_max: None,
            local_addresses: Vec::new(),
            unix_socket: None,
            tls_resume: true,
            engine: EngineChoice::Auto,
            protocol: Protocol::Http1,
            pipeline: 1,
            timeout_ns: 2_000_000_000,
            busy_poll: false,
            seed: 0,
        }
    }

    /// The same load on another place: its URLs keep their paths.
    #[must_use]
    pub fn aimed_at(&self, target: Target) -> LoadSpec {
        let moved = |url: &WeightedUrl| WeightedUrl { target: url.target.moved_to(&target), ..*url };
        let urls = self.urls.iter().map(moved).collect();
        LoadSpec { urls, target, ..self.clone() }
    }

    /// Whether requests on one connection are answered in any order.
    pub(crate) fn is_multiplexed(&self) -> bool {
        self.protocol == Protocol::Http2
    }

    /// The protocols to offer in a TLS handshake.
    pub(crate) fn alpn(&self) -> &'static [&'static str] {
        if self.is_multiplexed() { &[HTTP2] } else { &[] }
    }

    /// How many requests, each with a place of its own, a connection carries at once; pipelined ones share one.
    pub(crate) fn lanes(&self) -> u32 {
        if self.is_multiplexed() { self.pipeline } else { 1 }
    }

    /// How many requests follow each other in one such place.
    pub(crate) fn depth(&self) -> u32 {
        if self.is_multiplexed() { 1 } else { self.pipeline }
    }

    /// Whether this load can be made; reads the files that it names.
    ///
    /// # Errors
    /// The first [`SpecError`] in it.
    pub fn validate(&self) -> Result<(), SpecError> {
        self.compile().map(drop)
    }

    /// Checks everything and compiles what is to be sent.
    pub(crate) fn compile(&self) -> Result<Program, SpecError> {
        self.validate_counts()?;
        let program = Program::load(self)?;
        self.validate_request(&program)?;
        Ok(program)
    }

    fn validate_counts(&self) -> Result<(), SpecError> {
        check_count("connections", self.connections, CONNECTIONS_MAX)?;
        check_count("threads", self.threads, THREADS_MAX)?;
        check_count("pipeline depth", self.pipeline, PIPELINE_MAX)?;
        let (threads, connections, pipeline) = (self.threads, self.connections, self.pipeline);
        if threads > connections {
            return Err(SpecError::MoreThreadsThanConnections { threads, connections });
        }
        if !self.keep_alive && pipeline > 1 {
            return Err(SpecError::PipelineWithoutKeepAlive);
        }
        if self.engine == EngineChoice::IoUring && self.target.is_tls() {
            return Err(SpecError::TlsByIoUring);
        }
        if self.is_multiplexed() && self.engine == EngineChoice::IoUring {
            return Err(SpecError::Http2ByIoUring);
        }
        if self.is_multiplexed() && cfg!(not(feature = "http2")) {
            return Err(SpecError::NoHttp2);
        }
        if u64::from(connections) * u64::from(pipeline) > IN_FLIGHT_MAX {
            return Err(SpecError::TooManyInFlight { connections, pipeline });
        }
        self.pacing.validate()?;
        if self.requests_max == Some(0) {
            return Err(SpecError::NoRequests);
        }
        if !(1_000_000..=3_600_000_000_000).contains(&self.timeout_ns) {
            return Err(SpecError::Timeout { given_ns: self.timeout_ns });
        }
        Ok(())
    }

    fn validate_request(&self, program: &Program) -> Result<(), SpecError> {
        let bytes = program.constant().map_or(0, <[u8]>::len);
        if bytes * self.depth() as usize > BATCH_BYTES_MAX {
            return Err(SpecError::RequestTooLong { bytes, pipeline: self.pipeline });
        }
        Ok(())
    }
}

fn check_count(what: &'static str, given: u32, max: u32) -> Result<(), SpecError> {
    if (1..=max).contains(&given) { Ok(()) } else { Err(SpecError::Count { what, given, max }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> LoadSpec {
        LoadSpec::new(Target::parse("http://127.0.0.1/").unwrap())
    }

    #[test]
    fn stages_have_a_length_and_a_mean() {
        let stage = |from_hz, to_hz, for_s: u64| Stage { from_hz, to_hz, for_ns: for_s * 1_000_000_000 };
        let stages = vec![stage(100.0, 100.0, 1), stage(100.0, 500.0, 2), stage(0.0, 0.0, 1)];
        let pacing = Pacing::Stages { stages, gaps: Gaps::Fixed };
        assert_eq!((pacing.course_ns(), pacing.rate_hz()), (Some(4_000_000_000), Some(175.0)));
        assert_eq!((Pacing::Closed.course_ns(), Pacing::Closed.rate_hz()), (None, None));
    }

    #[test]
    fn a_load_can_be_aimed_elsewhere() {
        let mut spec = spec();
        spec.urls = vec![url("http://127.0.0.1/a?b", 3)];
        let moved = spec.aimed_at(Target::parse("http://[::1]:81/x").unwrap());
        assert_eq!(moved.urls, [url("http://[::1]:81/a?b", 3)]);
        assert_eq!(moved.validate(), Ok(()));
    }

    fn url(url: &str, weight: u32) -> WeightedUrl {
        WeightedUrl { target: Target::parse(url).unwrap(), weight }
    }

    fn fault(change: impl FnOnce(&mut LoadSpec)) -> String {
        let mut spec = spec();
        change(&mut spec);
        spec.validate().unwrap_err().to_string()
    }

    #[test]
    fn defaults_are_valid() {
        assert_eq!(spec().validate(), Ok(()));
    }

    #[test]
    fn each_mistake_has_its_own_word() {
        let header =
            |name: &str, value: &str| fault(|s| s.headers = vec![(name.to_owned(), value.to_owned())]);
        let rate = |rate_hz| fault(|s| s.pacing = Pacing::Open { rate_hz, gaps: Gaps::Fixed });
        insta::assert_snapshot!(
            [
                fault(|s| s.connections = 0),
                fault(|s| s.connections = CONNECTIONS_MAX + 1),
                fault(|s| s.threads = 0),
                fault(|s| s.threads = 2),
                fault(|s| s.pipeline = 0),
                fault(|s| (s.pipeline, s.connections) = (1024, 1 << 15)),
                rate(0.0),
                rate(f64::NAN),
                rate(f64::INFINITY),
                rate(-1.0),
                fault(|s| s.timeout_ns = 0),
                fault(|s| s.timeout_ns = u64::MAX),
                fault(|s| s.method = "get".to_owned()),
                fault(|s| s.method = "CONNECT".to_owned()),
                header("", "x"),
                header("a b", "x"),
                header("X", "a\r\nEvil: 1"),
                header("content-Length", "5"),
                header("X", &"y".repeat(1 << 20)),
                fault(|s| (s.body, s.pipeline) = (vec![b'x'; 1 << 20], 17)),
                fault(|s| s.urls = vec![url("http://127.0.0.1:81/", 1)]),
                fault(|s| s.urls = vec![url("http://127.0.0.1/", 0)]),
                fault(|s| s.requests_max = Some(0)),
                fault(|s| (s.keep_alive, s.pipeline) = (false, 2)),
                fault(|s| s.pacing = Pacing::Thinking { mean_ns: 0, gaps: Gaps::Fixed }),
                fault(|s| s.pacing = Pacing::Stages { stages: Vec::new(), gaps: Gaps::Fixed }),
                fault(|s| s.csv_file = Some("/nowhere.csv".into())),
                fault(|s| {
                    (s.engine, s.target) = (EngineChoice::IoUring, Target::parse("https://[::1]/").unwrap());
                }),
            ]
            .join("\n")
        );
    }
}
