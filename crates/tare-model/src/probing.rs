//! Response times of several servers under several states of load: what `tare probe` measures, and which of them is the cause.
//! (`probes` is something else: what is measured of the machine itself.)

use crate::Reading;
use crate::outcome::Estimate;
use crate::warning::Warning;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What speaks to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeKind {
    /// A GET request.
    Http,
    /// A connection is opened and closed: the two kernels and the network alone.
    Tcp,
    /// `PING`.
    Redis,
    /// `SELECT 1` of MySQL or MariaDB.
    Mysql,
    /// `SELECT 1` of PostgreSQL.
    Postgres,
    /// A command, from its start to its end.
    Command,
}

/// A probe as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Probe {
    /// Its name.
    pub name: String,
    /// What it does.
    pub kind: ProbeKind,
    /// Where it goes, without a password.
    pub target: String,
    /// The address that it went to, `IP:PORT`; `null`: a command.
    pub address: Option<String>,
    /// Each request has a new connection, whose time is in the response time.
    pub fresh: bool,
    /// What the server calls to answer, by the probes of it; `null`: not known.
    pub calls: Option<Vec<Call>>,
    /// The calls were not named: each database and cache that has a probe was taken for one.
    pub calls_assumed: bool,
}

/// A probe of what a service calls.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Call {
    /// The probe's name.
    pub probe: String,
    /// How often it is called for one answer; `null`: not known.
    pub times: Option<u32>,
}

/// A state of load as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct LoadState {
    /// Its name.
    pub name: String,
    /// The command that makes the load; `null`: no load.
    pub command: Option<String>,
    /// Why it could not be made as asked; `null`: it could.
    pub failed: Option<StateFailure>,
}

/// A state of load that could not be made.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct StateFailure {
    /// In which round, from 0. It is not tried again.
    pub round: u32,
    /// What happened.
    pub what: String,
    /// The last that its command printed.
    pub last_output: String,
}

/// How it was measured.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ProbingPlan {
    /// Requests of each probe in a second.
    pub rate_hz: f64,
    /// Seconds in which a state is measured in each round.
    pub window_s: f64,
    /// Seconds that a state has before it is measured.
    pub settle_s: f64,
    /// Longest that a request may take, seconds.
    pub timeout_s: f64,
    /// Rounds that were asked for: each state once in each, in an order drawn at random.
    pub rounds: u32,
    /// Seed of the order and of the instants.
    pub seed: u64,
}

/// All requests of one probe in one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeWindow {
    /// Which round, from 0.
    pub round: u32,
    /// Index of the state.
    pub state: usize,
    /// Index of the probe.
    pub probe: usize,
    /// Response times of the answers, seconds, from the scheduled instant. Not sorted.
    pub times_s: Vec<f64>,
    /// Requests that were not answered within the time limit, from when they were due.
    pub timed_out: u64,
    /// Other failures, and how many.
    pub failures: Vec<ProbeFailure>,
    /// How late the probe itself was, median, seconds: time between the scheduled instant and the thread's wake-up. It is in no
    /// response time.
    pub own_lateness_s: Option<f64>,
}

/// A kind of failure.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct ProbeFailure {
    /// What happened.
    pub why: String,
    /// How often.
    pub count: u64,
}

/// What was measured, unexplained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbingRun {
    /// When it began, seconds since 1970.
    pub started_unix_s: u64,
    /// How it was measured.
    pub plan: ProbingPlan,
    /// The probes.
    pub probes: Vec<Probe>,
    /// The states, the first of which others are held against.
    pub states: Vec<LoadState>,
    /// The windows that ended.
    pub windows: Vec<ProbeWindow>,
    /// What was noticed underway.
    pub warnings: Vec<Warning>,
}

/// The result of `tare probe`.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ProbingOutcome {
    /// [`crate::format::SCHEMA`].
    pub schema: u32,
    /// When it began, seconds since 1970.
    pub started_unix_s: u64,
    /// How it was measured.
    pub plan: ProbingPlan,
    /// Rounds in which every state was measured, but those that failed.
    pub rounds_done: u32,
    /// The probes.
    pub probes: Vec<Probe>,
    /// The states of load, the first of which others are held against.
    pub states: Vec<LoadState>,
    /// A row for each probe in each state, by probe.
    pub table: Vec<ProbeRow>,
    /// The probe of what is the cause, by name, in the state in which the service got slower by the largest ratio. Where the finding is
    /// "… or network", the way to it is not cleared.
    pub culprit: Reading<String>,
    /// What was found for each service in each state but the first.
    pub verdicts: Vec<ProbeVerdict>,
    /// What a reader must know before quoting a figure of it.
    pub warnings: Vec<Warning>,
}

/// Response times of a probe in a state.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ProbeRow {
    /// The probe's name.
    pub probe: String,
    /// The state's name.
    pub state: String,
    /// Response time: the median of each round's window, mean over rounds with its 95 % interval, which is of this row alone. A request that
    /// timed out counts as the time limit, one that failed otherwise as slower than all.
    pub median: Reading<Estimate>,
    /// 99th percentile of all rounds' requests, seconds; missing where there are fewer than 300.
    pub p99_s: Reading<f64>,
    /// Median over that in the first state of the same round, geometric mean over rounds. Its interval holds together with those of
    /// all other rows, of their `added` and of what verdicts compare in 95 of 100 runs.
    pub ratio: Reading<Estimate>,
    /// The same as a difference, seconds.
    pub added: Reading<Estimate>,
    /// Requests that were answered.
    pub answers: u64,
    /// Requests that were not, by reason.
    pub failures: Vec<ProbeFailure>,
    /// How late the probe itself was, median over rounds, seconds; in no response time.
    pub own_lateness_s: Option<f64>,
    /// The median of each round, seconds; `null`: not measured, or half of the requests failed.
    pub rounds_s: Vec<Option<f64>>,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeFinding {
    /// The service itself, or the hosts that it runs on.
    Service,
    /// The same, or the way to it, which no probe shows.
    ServiceOrNetwork,
    /// What it calls.
    Downstream,
    /// The same, or the way to that, which no probe shows.
    DownstreamOrNetwork,
    /// What lies between.
    Network,
    /// It did not get slower.
    NothingSlowed,
    /// It cannot be said.
    Undecided,
}

/// Why a service got slower in a state.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ProbeVerdict {
    /// The state's name.
    pub state: String,
    /// The probe of the service.
    pub service: String,
    /// What was found.
    pub finding: ProbeFinding,
    /// The probe of what is the cause, by name.
    pub culprit: Reading<String>,
    /// All of it in a sentence.
    pub text: String,
    /// What to do next; empty where nothing is needed.
    pub hint: String,
}
