//! What load to make: plain data, checked before anything is started.

use crate::target::Target;
use std::time::Duration;

/// Most connections of one generator: more than one address has ports for.
pub const CONNECTIONS_MAX: u32 = 1 << 20;
/// Most threads of one generator.
pub const THREADS_MAX: u32 = 1024;
/// Most requests in flight on one connection.
pub const PIPELINE_MAX: u32 = 1024;
/// Highest rate of an open loop, requests per second.
pub const RATE_HZ_MAX: f64 = 1e9;
/// Most requests in flight on all connections: each has a stamp in memory.
const IN_FLIGHT_MAX: u64 = 1 << 24;
/// Longest request in bytes, and longest run of pipelined ones.
const REQUEST_BYTES_MAX: usize = 64 * 1024;
const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;

/// When requests are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pacing {
    /// The next one as soon as an answer is there. Such a loop slows down with the server, so it cannot see
    /// how long requests would have waited that it did not send (coordinated omission).
    Closed,
    /// At a rate of its own, whatever the server does; latency counts from the *intended* send time.
    Open {
        /// Requests per second over all threads, above 0, at most [`RATE_HZ_MAX`].
        rate_hz: f64,
        /// How they are spread.
        gaps: Gaps,
    },
}

/// The time between intended sends of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gaps {
    /// All the same, over all threads together.
    Fixed,
    /// Exponential: requests of many independent users.
    Poisson,
}

/// What load to make.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadSpec {
    /// Where to.
    pub target: Target,
    /// Method, in capitals; `GET` unless set.
    pub method: String,
    /// Further headers; a `Host` here replaces the URL's.
    pub headers: Vec<(String, String)>,
    /// Open connections over all threads, 1 to [`CONNECTIONS_MAX`].
    pub connections: u32,
    /// Threads, 1 to [`THREADS_MAX`], at most one per connection.
    pub threads: u32,
    /// Thread `i` runs on `cpus[i % len]` alone; empty: where the scheduler puts it.
    pub cpus: Vec<u32>,
    /// When requests are sent.
    pub pacing: Pacing,
    /// Requests in flight on each connection, 1 to [`PIPELINE_MAX`].
    pub pipeline: u32,
    /// How long an answer may take from the actual send, and a connection to open; 1 ms to 1 h, kept to a
    /// twentieth (and never finer than a millisecond).
    pub timeout_ns: u64,
    /// Threads never sleep: an answer is seen, and an open loop's request sent, without a wake-up before it
    /// (20 to 100 µs here). Each thread then takes a whole CPU.
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
    /// The rate of an open loop.
    #[error("a rate must be above 0 and at most {RATE_HZ_MAX:e} requests per second, not {given}")]
    Rate {
        /// As given.
        given: f64,
    },
    /// The timeout.
    #[error("a timeout must be from 1 ms to 1 h, not {:?}", Duration::from_nanos(*.given_ns))]
    Timeout {
        /// As given.
        given_ns: u64,
    },
    /// The method.
    #[error("`{given}` cannot be used as a method (hint: GET, HEAD, POST …, in capitals)")]
    Method {
        /// As given.
        given: String,
    },
    /// A header that would break the request, or contradict its framing.
    #[error("the header `{given}` cannot be sent: {why}")]
    Header {
        /// Its name.
        given: String,
        /// What is wrong with it.
        why: &'static str,
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
            method: "GET".to_owned(),
            headers: Vec::new(),
            connections: 1,
            threads: 1,
            cpus: Vec::new(),
            pacing: Pacing::Closed,
            pipeline: 1,
            timeout_ns: 2_000_000_000,
            busy_poll: false,
            seed: 0,
        }
    }

    /// Whether this load can be made.
    ///
    /// # Errors
    /// The first [`SpecError`] in it.
    pub fn validate(&self) -> Result<(), SpecError> {
        check_count("connections", self.connections, CONNECTIONS_MAX)?;
        check_count("threads", self.threads, THREADS_MAX)?;
        check_count("pipeline depth", self.pipeline, PIPELINE_MAX)?;
        let (threads, connections, pipeline) = (self.threads, self.connections, self.pipeline);
        if threads > connections {
            return Err(SpecError::MoreThreadsThanConnections { threads, connections });
        }
        if u64::from(connections) * u64::from(pipeline) > IN_FLIGHT_MAX {
            return Err(SpecError::TooManyInFlight { connections, pipeline });
        }
        if let Pacing::Open { rate_hz, .. } = self.pacing
            && !(rate_hz > 0.0 && rate_hz <= RATE_HZ_MAX)
        {
            return Err(SpecError::Rate { given: rate_hz });
        }
        if !(1_000_000..=3_600_000_000_000).contains(&self.timeout_ns) {
            return Err(SpecError::Timeout { given_ns: self.timeout_ns });
        }
        self.validate_request()
    }

    fn validate_request(&self) -> Result<(), SpecError> {
        let capitals = !self.method.is_empty() && self.method.bytes().all(|byte| byte.is_ascii_uppercase());
        if !capitals || self.method.len() > 32 || self.method == "CONNECT" {
            return Err(SpecError::Method { given: self.method.clone() });
        }
        for (name, value) in &self.headers {
            if let Some(why) = header_fault(name, value) {
                return Err(SpecError::Header { given: name.clone(), why });
            }
        }
        let bytes = crate::request::request_bytes(self).len();
        if bytes > REQUEST_BYTES_MAX || bytes * self.pipeline as usize > BATCH_BYTES_MAX {
            return Err(SpecError::RequestTooLong { bytes, pipeline: self.pipeline });
        }
        Ok(())
    }
}

fn check_count(what: &'static str, given: u32, max: u32) -> Result<(), SpecError> {
    if (1..=max).contains(&given) { Ok(()) } else { Err(SpecError::Count { what, given, max }) }
}

fn header_fault(name: &str, value: &str) -> Option<&'static str> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return Some("its name has characters that names may not have");
    }
    if !value.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f)) {
        return Some("its value has control characters");
    }
    if ["content-length", "transfer-encoding"].iter().any(|framing| name.eq_ignore_ascii_case(framing)) {
        return Some("where the request ends is decided by the generator");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> LoadSpec {
        LoadSpec::new(Target::parse("http://127.0.0.1/").unwrap())
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
                header("X", &"y".repeat(REQUEST_BYTES_MAX)),
            ]
            .join("\n")
        );
    }
}
