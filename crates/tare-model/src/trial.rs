//! One trial: a window of load on the SUT (or one run of a command), with what the generator counted and what
//! the observers saw.

mod warm_up;

pub use warm_up::WarmUp;

use crate::Reading;
use crate::latency::Latencies;
use crate::observation::Observation;
use crate::tool::ToolMetrics;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A finished trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Position in the session, from 0.
    pub seq: u32,
    /// Index into the plan's levels (http), 0 for commands.
    pub level: u32,
    /// What was measured.
    pub sample: Measure,
    /// What was seen meanwhile.
    pub observation: Observation,
    /// What somebody else's generator said beside its counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Box<GeneratorReport>>,
}

/// What somebody else's generator said of a trial, beside its counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratorReport {
    /// The time that its counts are of, as it printed it, nanoseconds; `None` where it printed none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<u64>,
    /// What it wrote to standard error, but for its usual progress: at most 2,000 characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
}

/// What a trial measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
// One value a trial, never in bulk: a box would only make every reader dereference.
#[expect(clippy::large_enum_variant)]
pub enum Measure {
    /// Requests over a connection.
    Http(HttpSample),
    /// One run of a program.
    Command(CommandSample),
}

/// The generator's side of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HttpSample {
    /// Window as the generator's own clock readings bound it, nanoseconds.
    pub elapsed_ns: u64,
    /// Answers received whole in the window, errors of status included.
    pub requests: Reading<u64>,
    /// Errors by kind; a kind that did not occur is not in the map. Keys are [`ErrorKind`] names.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// Time from (intended) send to last byte of the answer.
    pub latency: Reading<Latencies>,
    /// Quantiles that a foreign generator printed itself: (quantile 0..1, nanoseconds).
    pub printed_quantiles_ns: Vec<(f64, u64)>,
    /// Bytes received.
    pub bytes_in: Reading<u64>,
    /// Requests still unanswered at the window's end.
    pub in_flight: Reading<u64>,
    /// Open connections at the window's end.
    pub connections: Reading<u32>,
    /// Requests that an open loop should have sent in the window; `None` for a closed loop.
    pub scheduled: Option<u64>,
    /// Open loop: how late requests left, actual minus intended.
    pub lateness: Option<Latencies>,
    /// Requests by slice of the window, for the series: (monotonic end stamp, count in the slice).
    pub slices: Vec<(u64, u64)>,
    /// What only tare's own generator can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Box<HttpDetail>>,
}

impl HttpSample {
    /// This window and the one that followed it at once, as one: counts and histograms are added up.
    #[must_use]
    pub fn followed_by(mut self, next: HttpSample) -> HttpSample {
        for (kind, count) in next.errors {
            *self.errors.entry(kind).or_insert(0) += count;
        }
        self.slices.extend(next.slices);
        let merged = |mut all: Latencies, more: Latencies| {
            all.merge(&more);
            all
        };
        HttpSample {
            elapsed_ns: self.elapsed_ns + next.elapsed_ns,
            requests: both(self.requests, next.requests, |a, b| a + b),
            latency: both(self.latency, next.latency, merged),
            printed_quantiles_ns: Vec::new(),
            bytes_in: both(self.bytes_in, next.bytes_in, |a, b| a + b),
            in_flight: next.in_flight,
            connections: next.connections,
            scheduled: self.scheduled.zip(next.scheduled).map(|(a, b)| a + b),
            lateness: self.lateness.zip(next.lateness).map(|(a, b)| merged(a, b)),
            detail: self.detail.zip(next.detail).map(|(a, b)| Box::new(a.followed_by(*b))),
            errors: self.errors,
            slices: self.slices,
        }
    }
}

/// What is missing on one side is missing.
fn both<T>(a: Reading<T>, b: Reading<T>, add: impl FnOnce(T, T) -> T) -> Reading<T> {
    match (a, b) {
        (Reading::Measured(a), Reading::Measured(b)) => Reading::Measured(add(a, b)),
        (Reading::Measured(_), missing) | (missing, _) => missing,
    }
}

/// What tare's own generator tells beside the counts, its checks of itself among them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HttpDetail {
    /// From the first step of opening a connection until it could be used (with its TLS handshake).
    pub connect: Latencies,
    /// From (intended) send to the first byte of the answer; as many as there are latencies.
    pub first_byte: Latencies,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Answers by class of their status: 1xx (never counted: they announce an answer) to 5xx, then all others.
    pub status_classes: [u64; 6],
    /// Answers by their status; empty in records from before this was counted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status_codes: BTreeMap<u16, u64>,
    /// What failures and redirects said.
    #[serde(default, skip_serializing_if = "Said::is_empty")]
    pub said: Said,
    /// The slices of the window with their latencies: as `slices`, which stay for older readers.
    pub series: Vec<SeriesSlice>,
    /// What each thread of the generator took.
    pub threads: Vec<GeneratorThread>,
    /// What the window's ends read on `CLOCK_MONOTONIC` (every stamp's clock) and on `CLOCK_MONOTONIC_RAW`
    /// (never adjusted), nanoseconds between them: they should differ by some hundred ppm at most.
    pub clock: ClockCheck,
    /// Requests in flight that a closed loop holds: open connections × depth; `None` where pauses between requests, or
    /// connections opened for each, make it unknown. By Little's law it is rate × mean latency.
    pub held_in_flight: Option<u64>,
    /// Several loops that take turns: answers that came when this one was not to send. `None`: nobody takes turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_turn: Option<u64>,
    /// HTTP/2: streams that each connection had at once, those that were asked for or fewer, as the server allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams_allowed: Option<u32>,
    /// A stage of `--steps`: requests that were due and had no connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsent: Option<Unsent>,
    /// The load before it, where it is the first trial that tare's generator warmed up for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUp>,
}

/// What failures and redirects said; empty in records from before this was kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// Failures by their kind and their reason, in a few words, where one is known.
    #[serde(default)]
    pub reasons: Reasons,
    /// The Location of the first redirect.
    #[serde(default)]
    pub redirected_to: Option<String>,
}

/// Failures by their kind and their reason.
pub type Reasons = BTreeMap<ErrorKind, BTreeMap<String, u64>>;

impl Said {
    fn is_empty(&self) -> bool {
        *self == Said::default()
    }

    /// Adds up the reasons; of the places that redirects led to the first is kept.
    pub fn add(&mut self, more: Said) {
        for (kind, reasons) in more.reasons {
            let of_kind = self.reasons.entry(kind).or_default();
            for (why, count) in reasons {
                *of_kind.entry(why).or_insert(0) += count;
            }
        }
        self.redirected_to = self.redirected_to.take().or(more.redirected_to);
    }
}

/// The reason of an [`ErrorKind::Io`] that the server's reset of the connection is.
pub const RESET: &str = "connection reset";

impl HttpDetail {
    fn followed_by(mut self, next: HttpDetail) -> HttpDetail {
        self.connect.merge(&next.connect);
        self.first_byte.merge(&next.first_byte);
        self.bytes_out += next.bytes_out;
        for (sum, count) in self.status_classes.iter_mut().zip(next.status_classes) {
            *sum += count;
        }
        for (status, count) in next.status_codes {
            *self.status_codes.entry(status).or_insert(0) += count;
        }
        self.said.add(next.said);
        self.series.extend(next.series);
        for (all, more) in self.threads.iter_mut().zip(next.threads) {
            all.wall_ns += more.wall_ns;
            all.cpu_ns += more.cpu_ns;
        }
        self.clock.monotonic_ns += next.clock.monotonic_ns;
        self.clock.raw_ns += next.clock.raw_ns;
        self.held_in_flight = next.held_in_flight;
        self.out_of_turn = self.out_of_turn.zip(next.out_of_turn).map(|(a, b)| a + b);
        self.streams_allowed = next.streams_allowed;
        self
    }
}

/// Requests that were due and that no connection was free for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsent {
    /// As the stage before ended; 0 for the first one.
    pub left_before: u64,
    /// As the window began: between two stages, too, requests fall due.
    pub at_begin: u64,
    /// As it ended.
    pub at_end: u64,
}

/// One slice of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesSlice {
    /// Monotonic stamp of its end.
    pub end_ns: u64,
    /// Answers in it.
    pub requests: u64,
    /// Median latency of those, within 2 %; `None` when there were none.
    pub p50_ns: Option<u64>,
    /// 99th percentile of the same.
    pub p99_ns: Option<u64>,
}

/// One thread of the generator in a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorThread {
    /// The kernel's id.
    pub tid: u32,
    /// The thread's own window.
    pub wall_ns: u64,
    /// CPU time in it (`CLOCK_THREAD_CPUTIME_ID`).
    pub cpu_ns: u64,
    /// Whether it spins by design, so that `cpu_ns` says nothing about headroom.
    pub busy_poll: bool,
}

/// The same window on two clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockCheck {
    /// By `CLOCK_MONOTONIC`.
    pub monotonic_ns: u64,
    /// By `CLOCK_MONOTONIC_RAW`.
    pub raw_ns: u64,
}

/// How a request can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorKind {
    /// No connection: refused, unreachable, timed out, out of ports.
    Connect,
    /// The connection broke while reading or writing, or closed in mid-answer.
    Io,
    /// No whole answer in the allowed time.
    Timeout,
    /// A status of 400 or above.
    Status,
    /// Not HTTP, or an answer that contradicts itself.
    Malformed,
    /// No connection because every port of the local addresses towards the server is taken.
    PortsExhausted,
    /// The TLS handshake failed, or the protocol broke later.
    Tls,
    /// An answer that is not what was asked to be expected.
    Unexpected,
    /// HTTP/2: the server ended the request's stream before its answer was whole.
    StreamReset,
    /// HTTP/2: the server refused the request's stream, and did nothing for it.
    StreamRefused,
    /// HTTP/2: the server ended the connection and gave an error as the reason.
    #[serde(rename = "goaway")]
    GoAway,
    /// The file that the body is sent from became shorter, or could not be read.
    BodyFile,
}

impl ErrorKind {
    /// All kinds.
    pub const ALL: [ErrorKind; 12] = [
        ErrorKind::Connect,
        ErrorKind::Io,
        ErrorKind::Timeout,
        ErrorKind::Status,
        ErrorKind::Malformed,
        ErrorKind::PortsExhausted,
        ErrorKind::Tls,
        ErrorKind::Unexpected,
        ErrorKind::StreamReset,
        ErrorKind::StreamRefused,
        ErrorKind::GoAway,
        ErrorKind::BodyFile,
    ];

    /// Its key in data.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Connect => "connect",
            ErrorKind::Io => "io",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Status => "status",
            ErrorKind::Malformed => "malformed",
            ErrorKind::PortsExhausted => "ports-exhausted",
            ErrorKind::Tls => "tls",
            ErrorKind::Unexpected => "unexpected",
            ErrorKind::StreamReset => "stream-reset",
            ErrorKind::StreamRefused => "stream-refused",
            ErrorKind::GoAway => "goaway",
            ErrorKind::BodyFile => "body-file",
        }
    }
}

/// One run of a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandSample {
    /// Which command of the plan (with its parameters), as an index.
    pub command: u32,
    /// From start to exit, nanoseconds.
    pub wall_ns: u64,
    /// User CPU time of the program and the children it waited for.
    pub user_ns: u64,
    /// Kernel CPU time of the same.
    pub system_ns: u64,
    /// Voluntary context switches of the same.
    pub voluntary_switches: u64,
    /// Involuntary context switches of the same.
    pub involuntary_switches: u64,
    /// Largest resident set, bytes.
    pub rss_bytes_max: u64,
    /// Exit code; `None` when ended by a signal.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The results of a benchmark that it printed, where it is a tool that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<Box<ToolMetrics>>,
    /// It ran without observers, so that its time is its own. Where some runs of a command did, the others say where time went, and
    /// not how long it took. Not so in old records.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unobserved: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(requests: Reading<u64>, latency_ns: u64) -> HttpSample {
        let mut latency = Latencies::new();
        latency.record(latency_ns);
        HttpSample {
            elapsed_ns: 1000,
            requests,
            errors: BTreeMap::from([(ErrorKind::Io, 1)]),
            latency: Reading::Measured(latency),
            printed_quantiles_ns: Vec::new(),
            bytes_in: Reading::Measured(5),
            in_flight: Reading::Measured(latency_ns),
            connections: Reading::Measured(1),
            scheduled: Some(2),
            lateness: None,
            slices: vec![(latency_ns, 1)],
            detail: Some(Box::new(HttpDetail { bytes_out: 3, ..HttpDetail::default() })),
        }
    }

    #[test]
    fn kinds_are_written_as_they_are_called() {
        for kind in ErrorKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }

    #[test]
    fn windows_that_follow_each_other_add_up() {
        let all = sample(Reading::Measured(1), 10).followed_by(sample(Reading::Measured(4), 20));
        assert_eq!((all.elapsed_ns, &all.requests), (2000, &Reading::Measured(5)));
        assert_eq!((all.errors[&ErrorKind::Io], all.scheduled, all.slices.len()), (2, Some(4), 2));
        assert_eq!(all.in_flight, Reading::Measured(20), "as it was at the end");
        assert_eq!(all.latency.value().map(Latencies::count), Some(2));
        assert_eq!(all.detail.map(|detail| detail.bytes_out), Some(6));
        let lost = sample(Reading::missing("lost"), 1).followed_by(sample(Reading::Measured(4), 1));
        assert_eq!(lost.requests, Reading::missing("lost"));
    }
}
