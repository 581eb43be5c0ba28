//! Local programs that the SUT has connections to (a backend behind a proxy, a database), and those that they call in turn.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was seen in one window of a program that another one calls; many fields, as each is one count of the same samples.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct DownstreamSeen {
    /// What its busiest or first process is called.
    pub name: String,
    /// Where it is called: `address:port`, or the path of a Unix socket; at most 8.
    pub at: Vec<String>,
    /// Its processes; at most 512.
    pub pids: Vec<u32>,
    /// Who calls it: its place among the programs of this window; `None` is the SUT.
    #[serde(default)]
    pub caller: Option<u32>,
    /// How often connections were sampled.
    pub samples: u32,
    /// Over these samples, connections of the caller to it, summed.
    pub open: u64,
    /// Of them, those on which the caller waited for an answer.
    pub waiting: u64,
    /// Of them, those of which that is not known.
    pub unsure: u64,
    /// Of those that wait, the ones that it had not accepted yet.
    #[serde(default)]
    pub queued: u64,
    /// Segments with data that the caller sent per second, on connections that were there at two samples or more; `None` where most
    /// connections were not.
    #[serde(default)]
    pub sends_hz: Option<f64>,
    /// How long a quota held its group back in the window; `None` where that is not counted.
    #[serde(default)]
    pub throttled_ns: Option<u64>,
    /// The tightest quota of its groups, in CPUs; `None`: there is none.
    #[serde(default)]
    pub quota_cpus: Option<f64>,
}

/// What a program that is called did, over all windows of the asked level: part of the outcome; a field for each column of its row.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct DownstreamAccounting {
    /// What it is called.
    pub name: String,
    /// Where it is called.
    pub at: Vec<String>,
    /// Its processes.
    pub pids: Vec<u32>,
    /// Who calls it: the place of that in this list; `null` is the SUT.
    pub caller: Option<u32>,
    /// CPUs that it kept busy.
    pub busy_cpus: f64,
    /// Of them, on CPUs that the SUT may use.
    pub busy_on_sut_cpus: f64,
    /// Connections of the caller to it, on average; `null` where they were not sampled.
    pub connections: Option<f64>,
    /// Of the requests in flight, those for which the caller waited for it, at least, 0..=1; `null` where that is not known.
    pub waited: Option<f64>,
    /// The same at most.
    pub waited_at_most: Option<f64>,
    /// How long the caller waited for it in each request of the SUT, seconds; `null` where that is not known.
    pub wait_s_per_request: Option<f64>,
    /// Of those that wait, the share that it had not accepted yet; `null` where nobody waited.
    pub queued: Option<f64>,
    /// Calls for each request of the SUT, as segments that the caller sent; `null` where they cannot be counted.
    pub calls_per_request: Option<f64>,
    /// What it is at its limit with.
    pub limit: DownstreamLimit,
    /// How full that is, 0..=1: of its busiest thread, of its CPUs, or of the window how long a quota held it back.
    pub fullness: f64,
}

/// What a downstream has no more of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DownstreamLimit {
    /// One thread of it is full, and others of its threads, if any, are not.
    OneThread,
    /// All threads that it works with are full.
    AllThreads,
    /// It kept one CPU busy though it may use more and those were free: it does one thing at a time.
    OneAtATime,
    /// All CPUs that it may use are full.
    Cpus,
    /// A quota holds it back.
    Quota,
    /// It has time to spare.
    None,
}
