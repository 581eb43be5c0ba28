//! Load without time accounting: what `tare load` did and what came of it.

use crate::latency::Packed;
use crate::outcome::{Followed, GrossIs, LatencySummary, Requests, StageOutcome, Warning};
use crate::trial::HttpSample;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The warning of a server that ended, or took no more connections, during a load.
pub const SERVER_GONE: &str = "server-gone";

/// A load as it was asked for and what the generator counted: all that a [`LoadOutcome`] is derived from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadRun {
    /// Where it went.
    pub url: String,
    /// What was asked for.
    pub asked: AskedLoad,
    /// `https`: whether the certificate of the TLS server was verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_certificate: Option<TlsCertificate>,
    /// With `--follow`: the redirects that led to `url` before the load, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirects: Option<FollowedRedirects>,
    /// Wall clock at the start, seconds since 1970, for logs.
    pub started_unix_s: f64,
    /// Monotonic stamp of the window's start, the origin of the series.
    pub begin_ns: u64,
    /// What was counted.
    pub sample: HttpSample,
    /// The latencies of each part of the window, in order, where they were asked for: not kept on disk.
    #[serde(skip)]
    pub intervals: Vec<LoadInterval>,
    /// What a search for a capacity found; this run is then the one at the highest rate that held.
    pub capacity: Option<Capacity>,
    /// The stages of `--steps`, each for itself, in order; those that the warm-up held are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<LoadStage>,
}

/// Whether the certificate of a TLS server was verified: its chain up to somebody who is trusted, and its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsCertificate {
    /// It was.
    Verified,
    /// It was not: the server is on this host, and nobody was named to trust.
    ThisHost,
    /// It was not, as asked for (`--insecure`).
    Insecure,
}

/// Redirects that were followed before a load.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct FollowedRedirects {
    /// The URL that was given.
    pub from: String,
    /// How many led from there to the URL that was loaded.
    pub count: u32,
}

/// One stage of a load whose rate changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadStage {
    /// Requests per second at its beginning, and at its end.
    pub from_hz: f64,
    /// See `from_hz`.
    pub to_hz: f64,
    /// What was counted in it.
    pub sample: HttpSample,
}

/// The latencies of a part of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadInterval {
    /// From the window's start to this part's, nanoseconds.
    pub begin_ns: u64,
    /// Its length.
    pub elapsed_ns: u64,
    /// Latencies of the answers in it.
    pub latency: Packed,
}

/// The highest rate that held an objective.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Capacity {
    /// The objective as given, `p99<5ms`.
    pub objective: String,
    /// The highest rate that held; `None`: not one did.
    pub held_hz: Option<f64>,
    /// The lowest rate that missed it twice; `None`: none was tried.
    pub missed_hz: Option<f64>,
}

/// A load as it was asked for.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct AskedLoad {
    /// Open connections.
    pub connections: u32,
    /// Threads of the generator.
    pub threads: u32,
    /// Requests in flight on each connection.
    pub pipeline: u32,
    /// Whether by HTTP/2, where those are streams; else by HTTP/1.1.
    #[serde(default)]
    pub http2: bool,
    /// Whether requests are sent at a rate of their own; a closed loop waits for answers.
    pub open_loop: bool,
    /// Whether threads spin instead of sleeping.
    pub busy_poll: bool,
}

/// The result of a load. Its JSON form is a contract as the outcome's is: `requests`, `latency_ns`, `valid` and
/// `warnings` are the same; keys may be added, none renamed.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct LoadOutcome {
    /// [`crate::outcome::SCHEMA`].
    pub schema: u32,
    /// `load`.
    pub workload: String,
    /// Whether the requests and the clock can be trusted.
    pub valid: bool,
    /// Everything a reader must know before quoting a number.
    pub warnings: Vec<Warning>,
    /// Where it went.
    pub url: String,
    /// What was asked for.
    pub asked: AskedLoad,
    /// `https`: whether the certificate of the TLS server was verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_certificate: Option<TlsCertificate>,
    /// With `--follow`: the redirects that led to `url` before the load, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirects: Option<FollowedRedirects>,
    /// Length of the window in seconds.
    pub elapsed_s: f64,
    /// Answers per second; `None` where they could not be counted.
    pub rate_hz: Option<f64>,
    /// What the rate is a measure of.
    pub rate_is: GrossIs,
    /// Bytes received per second.
    pub bytes_in_per_s: Option<f64>,
    /// Bytes received.
    pub bytes_in: Option<u64>,
    /// Bytes sent.
    pub bytes_out: Option<u64>,
    /// Answers, errors by kind, CPU time of the generator per request.
    pub requests: Requests,
    /// Answers by class of their status (`2xx` …); classes without any are not listed.
    pub statuses: BTreeMap<String, u64>,
    /// Answers by their status (`200`, `404` …).
    #[serde(default)]
    pub status_codes: BTreeMap<String, u64>,
    /// Requests that were still unanswered at the end: no errors.
    pub in_flight: Option<u64>,
    /// Open loop: requests that fell due.
    pub scheduled: Option<u64>,
    /// What a search for a capacity found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Capacity>,
    /// With `--steps`: each stage for itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageOutcome>,
    /// With `--steps`: what the stages show of the server's capacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub followed: Option<Followed>,
    /// From (intended) send to the last byte of the answer.
    pub latency_ns: LatencySummary,
    /// From (intended) send to the first byte of the answer.
    pub first_byte_ns: LatencySummary,
    /// Opening a connection.
    pub connect_ns: LatencySummary,
    /// Open loop: actual minus intended send time.
    pub lateness_ns: Option<LatencySummary>,
    /// The generator's view of itself.
    pub generator: SelfCheck,
    /// Rate and latency in steps of 100 ms (wider in long runs).
    pub series: Vec<SeriesPoint>,
}

impl LoadOutcome {
    /// Whether the server or the generator failed: it ended underway, or of all attempts some failed and none was answered.
    pub fn has_failed(&self) -> bool {
        let is_gone = self.warnings.iter().any(|warning| warning.id == SERVER_GONE);
        let failures: u64 = self.requests.errors.values().sum();
        is_gone || self.requests.count == Some(0) && failures > 0
    }
}

/// Whether the generator could be trusted.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SelfCheck {
    /// Share of each thread's time on a CPU, 0..1.
    pub busy: Vec<f64>,
    /// Rate × mean latency over the requests that were held in flight: 1 by Little's law; `None` where it is not known
    /// how many were held.
    pub littles_ratio: Option<f64>,
    /// Achieved over scheduled requests, in flight ones counted as achieved; open loop only.
    pub schedule_kept: Option<f64>,
    /// How far two clocks of the kernel drifted apart, parts of a whole.
    pub clock_drift: Option<f64>,
}

/// One step of the series.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SeriesPoint {
    /// Its end, seconds from the start.
    pub end_s: f64,
    /// Answers per second.
    pub rate_hz: f64,
    /// Median latency; `None` when nothing was answered.
    pub p50_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
}
