//! The result: gross, tare, net, accounting, bottleneck and findings. Its JSON form is a contract that scripts use:
//! keys may be added, none renamed.

mod accounting;
mod cause;
mod compared;
mod confirmation;
mod execution;
mod finding;
mod hypothesis;
mod latency;
mod metric;
mod own_count;
mod spikes;
mod stages;
mod stopped;
mod timeline;
mod weights;

pub use crate::better::Better;
pub use crate::format::SCHEMA;
pub use crate::warning::Warning;
pub use accounting::{
    CpuAccounting, ModeShare, RoleAccounting, ServingAccounting, ThreadRow, TimeAccounting, WaitSplit,
};
pub use cause::Cause;
pub use confirmation::{Confirmation, Confirmed, NotTried, Tried};
pub use execution::{CyclesFrom, Execution};
pub use finding::{Evidence, Finding};
pub use hypothesis::{Hypothesis, Judged, Standing};
pub use latency::{LatencyOf, LatencySummary};
pub use metric::Metric;
pub use own_count::OwnCount;
pub use spikes::{Moved, Spike, SpikeTimeline, Spikes, ThrottleBursts};
pub use stages::{Followed, StageOutcome, WatchedStage};
pub use stopped::{Stopped, Target};
pub use timeline::{Compiled, LatencyFall, Stage, State, Timeline, WarmUpTimeline};
pub use weights::{AgainstReference, Estimate, Gross, GrossIs, Net, NetOrMissing, TareCause, TarePart};

use crate::Reading;
use crate::ceiling::CeilingShare;
use crate::plan::StartUp;
use crate::tool::ToolMetrics;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The whole result of one session, as `tare run --json` prints it; what belongs together is a struct here and stands side by
/// side in JSON.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Outcome {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `http` or `command`.
    pub workload: String,
    /// What follows from all of it.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Gross, tare and net.
    #[serde(flatten)]
    pub figures: Figures,
    /// Where the time of threads and CPUs went.
    pub accounting: TimeAccounting,
    /// What was counted.
    #[serde(flatten)]
    pub answers: Answers,
    /// What changed meanwhile.
    #[serde(flatten)]
    pub over_time: OverTime,
    /// What it was measured with.
    #[serde(flatten)]
    pub conditions: Conditions,
    /// Every trial that ran, in order.
    pub trials: Vec<TrialSummary>,
}

/// What holds throughput where it is, what was lost, and whether that can be trusted.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether the requests, the clock and the accounting can be trusted.
    pub valid: bool,
    /// Everything a reader must know before quoting a number.
    pub warnings: Vec<Warning>,
    /// What holds throughput where it is.
    pub bottleneck: Cause,
    /// The confidence of the bottleneck's own finding, 0..=1; `null` where it has none.
    pub bottleneck_confidence: Option<f64>,
    /// By effect, largest first; the bottleneck's own finding is among them.
    pub findings: Vec<Finding>,
    /// Whether the bottleneck, or where nothing can be tried on it the first finding that can be, was confirmed by trying it;
    /// absent where that was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<Confirmation>,
}

/// Gross, tare and net, and the metrics that they come from.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Figures {
    /// The measured figure.
    pub gross: Gross,
    /// What the gross figure is a measure of.
    pub gross_is: GrossIs,
    /// How well it is known, where that or a budget was to end the trials; of several commands, the first one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopping: Option<Stopped>,
    /// What the program could do here with nothing in the way.
    pub net: NetOrMissing,
    /// The parts between them: they sum to ln(net / gross) (http) or ln(gross / net) (command).
    pub tare: Vec<TarePart>,
    /// What it used of what the machine can do at most (`tare ceiling`).
    #[serde(default)]
    pub ceiling: Reading<CeilingShare>,
    /// What was measured in each trial, one entry for each metric (of commands: for each metric of the first one).
    #[serde(default)]
    pub metrics: Vec<Metric>,
}

/// Requests and their latencies, or runs of commands.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Answers {
    /// The requests (http) of the asked level; absent for commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Requests>,
    /// Latency of the asked level; absent for commands, and where the stages have their own and the one that decides was not followed: there
    /// waits grow for as long as it lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<LatencySummary>,
    /// With `--steps`: each stage for itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<WatchedStage>,
    /// With `--steps`: what the stages show of the server's capacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub followed: Option<Followed>,
    /// Of somebody else's generator: what it reports, beside what its connections received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_count: Option<OwnCount>,
    /// One entry for each command of a command workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandSummary>,
    /// What the program printed as a benchmark's results, over all runs; each run is a launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<ToolMetrics>,
}

/// What changed while it was measured.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct OverTime {
    /// Moments of high latency, and what moved in them.
    #[serde(default = "Spikes::not_looked_for")]
    pub spikes: Reading<Spikes>,
    /// How the rate came to its level, and kept it; absent for commands and where no slices were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
}

/// What it was measured with, and on.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Conditions {
    /// Layouts of the generator that were tried first, the one that was taken first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried_layouts: Vec<crate::plan::TriedLayout>,
    /// What the measuring itself took; absent in older results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_cost: Option<OwnCost>,
    /// The machine's facts.
    pub machine: crate::machine::MachineFacts,
}

/// Requests of the asked level.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Requests {
    /// Answers received; `None` when a foreign generator's summary could not be read.
    pub count: Option<u64>,
    /// By kind; all kinds are listed.
    pub errors: BTreeMap<String, u64>,
    /// Errors by kind and by reason, in a few words (`malformed`: `chunk size is not a number`), where one is known.
    #[serde(default)]
    pub error_reasons: BTreeMap<String, BTreeMap<String, u64>>,
    /// CPU time per request of each role, nanoseconds.
    pub cpu_ns_per_request: PerRole,
    /// The SUT's switches per request.
    pub switches_per_request: SwitchesPerRequest,
    /// How often a thread woke another of its own role, per request; or why that was not counted.
    #[serde(default = "SutWakeups::not_counted")]
    pub sut_wakeups_per_request: Reading<SutWakeups>,
}

/// Wake-ups of a thread by another of the same role: work that is handed over. What packets and timers wake is
/// not among them.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SutWakeups {
    /// Of the SUT.
    pub sut: f64,
}

impl SutWakeups {
    fn not_counted() -> Reading<SutWakeups> {
        Reading::missing("wake-ups of other SUT threads were not counted")
    }
}

/// A figure of each role; `None` is missing (no requests, or the role cannot be seen).
#[derive(Debug, Clone, Copy, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct PerRole {
    /// The SUT.
    pub sut: Option<f64>,
    /// The generator.
    pub load: Option<f64>,
}

/// The SUT's context switches per request.
#[derive(Debug, Clone, Copy, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SwitchesPerRequest {
    /// It went to sleep.
    pub voluntary: Option<f64>,
    /// It was pushed off.
    pub involuntary: Option<f64>,
}

/// One command of a command workload.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CommandSummary {
    /// As run.
    pub command: String,
    /// Wall time per run.
    pub gross: Estimate,
    /// How well it is known, where that or a budget was to end the runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopping: Option<Stopped>,
    /// Wall time with nothing in the way.
    pub net: NetOrMissing,
    /// Standard deviation of wall, seconds; `None` for one run.
    pub stdev_s: Option<f64>,
    /// Median of wall, seconds.
    pub median_s: f64,
    /// Fastest run, seconds.
    pub min_s: f64,
    /// Slowest run, seconds.
    pub max_s: f64,
    /// Mean user time, seconds.
    pub user_s: f64,
    /// Mean kernel time, seconds.
    pub system_s: f64,
    /// Runs counted.
    pub runs: u32,
    /// Wall of each run, seconds, in order.
    pub times_s: Vec<f64>,
    /// Exit code of each run; `null`: ended by a signal.
    pub exit_codes: Vec<Option<i32>>,
    /// Against the command with the smallest median; `None` for that one, and where there is one command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against_fastest: Option<AgainstFastest>,
    /// What of each run is its start, which is in all times above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_up: Option<StartUp>,
}

/// A command against the fastest.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct AgainstFastest {
    /// From start to exit.
    pub wall_time: Contrast,
    /// `None` where one of them used no CPU time that could be counted.
    pub cpu_time: Option<Contrast>,
}

/// How many times as much.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Contrast {
    /// Of typical runs (trimmed means of logarithms).
    pub ratio: f64,
    /// Its interval at 99 %, for all commands together; `None` of too few runs.
    pub interval: Option<[f64; 2]>,
    /// Whether the interval excludes that they are equal.
    pub distinguishable: bool,
    /// The smallest difference that these runs could show, as a share.
    pub smallest_detectable: Option<f64>,
}

/// One trial, summed up.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TrialSummary {
    /// Position in the session.
    pub seq: u32,
    /// `asked`, `saturating` or `reference` (tare's own server instead of the SUT); `run` for commands.
    pub level: String,
    /// The stage of `--steps` that it is of, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<u32>,
    /// Open connections of its level (http).
    pub connections: Option<u32>,
    /// Length in seconds.
    pub elapsed_s: f64,
    /// req/s (of its own turns, where several servers were loaded interleaved), or wall seconds for commands; `None` where requests
    /// could not be counted.
    pub value: Option<f64>,
    /// CPU nanoseconds of the SUT per request (http) or of the run.
    pub sut_cpu_ns: Option<f64>,
    /// Effective clock of the SUT's CPUs.
    pub clock_hz: Option<f64>,
    /// What a cache line takes from the SUT's CPUs to the generator's, nanoseconds.
    #[serde(default)]
    pub transfer_ns: Option<f64>,
    /// Its own residual: the largest of its CPUs, threads and processes.
    pub residual_ratio: Option<f64>,
    /// Whose that is: of `cpu 1`, of a thread, or of a whole group; `None` where nothing is open.
    #[serde(default)]
    pub residual_of: Option<String>,
}

/// What tare's own threads took in the trials of the asked level.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct OwnCost {
    /// CPU time of the observers per second.
    pub observers_cpus: Reading<f64>,
    /// CPUs that they were seen on.
    pub observers_ran_on: Vec<u32>,
    /// Of that, CPU time on CPUs that were the server's.
    pub observers_on_sut_cpus: Reading<f64>,
    /// CPU time of the load generator per second; `None` for commands.
    pub generator_cpus: Option<f64>,
    /// CPUs that it was seen on.
    pub generator_ran_on: Vec<u32>,
    /// What the observers wrote down, in bytes of the record per second.
    pub recorded_bytes_hz: f64,
}
