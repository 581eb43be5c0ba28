//! The result: gross, tare, net, ledgers, limit and findings. Its JSON form is a contract that scripts use:
//! keys may be added, none renamed.

mod execution;
mod spikes;

pub use execution::{CyclesFrom, Execution};
pub use spikes::{Moved, Spike, SpikeCourse, Spikes, ThrottleBursts};

use crate::{Missing, Reading};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the JSON contract.
pub const SCHEMA: u32 = 1;

/// The whole result of one sitting, as `tare run --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `http` or `command`.
    pub workload: String,
    /// Whether the requests, the clock and the books can be trusted.
    pub valid: bool,
    /// Everything a reader must know before quoting a number.
    pub warnings: Vec<Warning>,
    /// What holds throughput where it is.
    pub limit: Cause,
    /// The measured figure.
    pub gross: Gross,
    /// What the gross figure is a measure of.
    pub gross_is: GrossIs,
    /// What the program could do here with nothing in the way.
    pub net: NetOrMissing,
    /// The parts between them: they sum to ln(net / gross) (http) or ln(gross / net) (command).
    pub tare: Vec<TarePart>,
    /// By effect, largest first; the limit's own finding is among them.
    pub findings: Vec<Finding>,
    /// The books.
    pub ledger: Ledger,
    /// The requests (http) of the asked level; absent for commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<Requests>,
    /// Latency of the asked level; absent for commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<LatencySummary>,
    /// One entry for each command of a command workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandSummary>,
    /// Moments of high latency, and what moved in them.
    #[serde(default = "Spikes::not_looked_for")]
    pub spikes: Reading<Spikes>,
    /// What the measuring itself took; `None` in older results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_cost: Option<OwnCost>,
    /// The machine's facts.
    pub machine: crate::machine::MachineFacts,
    /// Every trial that ran, in order.
    pub trials: Vec<TrialSummary>,
}

/// A value with its 95 % interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// `req/s` or `s`.
    pub unit: String,
    /// Lower and upper end; `null` when one trial cannot give any.
    pub ci95: Option<[f64; 2]>,
}

/// The measured figure, or why there is none: somebody else's generator may keep its count to itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Gross {
    /// Why not, and the unit that it would have; first, so that it is never taken for a value.
    Missing {
        /// The reason, and what would bring it.
        #[serde(flatten)]
        reason: Missing,
        /// `req/s` or `s`.
        unit: String,
    },
    /// As measured.
    Measured(Estimate),
}

impl Gross {
    /// The value in the unit.
    pub fn value(&self) -> Option<f64> {
        match self {
            Gross::Measured(estimate) => Some(estimate.value),
            Gross::Missing { .. } => None,
        }
    }

    /// `req/s` or `s`.
    pub fn unit(&self) -> &str {
        match self {
            Gross::Measured(Estimate { unit, .. }) | Gross::Missing { unit, .. } => unit,
        }
    }

    /// Lower and upper end of the 95 % interval.
    pub fn ci95(&self) -> Option<[f64; 2]> {
        match self {
            Gross::Measured(estimate) => estimate.ci95,
            Gross::Missing { .. } => None,
        }
    }
}

/// What the gross figure measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GrossIs {
    /// What the server can do as it stands.
    Capacity,
    /// The generator gave out first: at least this.
    LowerBound,
    /// What it was asked to do.
    Offered,
}

/// Net, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NetOrMissing {
    /// Why not; first, so that it is never taken for a value.
    Missing(Missing),
    /// The net figure and what it holds for.
    Net(Net),
}

/// The net figure with the conditions it holds for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Net {
    /// The value.
    pub value: f64,
    /// `req/s` or `s`.
    pub unit: String,
    /// Lower and upper end of the 95 % interval.
    pub ci95: Option<[f64; 2]>,
    /// `loopback`, `namespace`, `remote`; `none` for commands.
    pub transport: String,
    /// The SUT's allotment A in CPUs.
    pub cpus: f64,
    /// The clock it is stated at; `null` when the clock could not be measured (then no clock part either).
    pub ref_clock_hz: Option<f64>,
    /// Against tare's own server, where that was weighed in the same blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against_reference: Option<AgainstReference>,
}

/// Net against tare's own server, weighed on the SUT's CPUs between its trials: what the machine's weather does to
/// both is not in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgainstReference {
    /// What the SUT does on a CPU over what the reference does on one; neither at a reference clock, as both ran at the
    /// same.
    pub ratio: f64,
    /// Lower and upper end of its 95 % interval.
    pub ci95: Option<[f64; 2]>,
    /// CPU time of a request of the reference, nanoseconds.
    pub cpu_ns_per_request: f64,
    /// Whether the weather was taken out of net and of its cost part: where that narrows the interval.
    pub weather_taken_out: bool,
}

/// One named part of the tare.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TarePart {
    /// What took it.
    pub cause: TareCause,
    /// Share of ln(net/gross); positive where something was lost.
    pub ln_share: f64,
    /// 95 % interval of the share.
    pub ci95: Option<[f64; 2]>,
}

/// The ways a part of the machine can be lost to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TareCause {
    /// The SUT waited for work.
    Starved,
    /// A quota held the SUT back.
    Throttled,
    /// Somebody else ran while the SUT was ready to.
    Preempted,
    /// The generator ran on the SUT's CPU while the SUT was ready to.
    Placement,
    /// The hypervisor ran somebody else.
    Steal,
    /// Interrupts that are not in the SUT's run.
    Irq,
    /// The CPU idled though the SUT was ready to run.
    Scheduler,
    /// The SUT's own threads waited for each other's turn with CPUs to spare elsewhere.
    Own,
    /// The clock was below the reference.
    Clock,
    /// A request cost more than at saturation (wake-ups, cold caches).
    Cost,
}

/// What holds throughput where it is, or what was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // the names are the design's; each rule documents its cause
pub enum Cause {
    LoadGeneratorBound,
    OfferedLoad,
    ServerCpuBound,
    OneThreadBound,
    CpuQuotaThrottled,
    CpuContended,
    Oversubscribed,
    PlacementConflict,
    Steal,
    ClockDropped,
    CrossCpuWakeups,
    ListenOverflow,
    BlockedOnDisk,
    BlockedOnDownstream,
    LockContended,
    KernelLockContended,
    TooLittleConcurrency,
    NotSteady,
    Errors,
    TooNoisy,
    /// A command that was on a CPU the whole time: the program itself.
    ProgramCpuBound,
    /// A command that mostly slept: the program's own waits.
    ProgramWaits,
    Unknown,
}

/// One finding with its proof.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Cause id.
    pub cause: Cause,
    /// One sentence with the numbers in it.
    pub summary: String,
    /// Share of ln(net/gross) that it explains; 0 for what costs nothing.
    pub effect_ln: f64,
    /// Share of the evidence's interval that supports it, 0..=1.
    pub confidence: f64,
    /// Ledger entries.
    pub evidence: Vec<Evidence>,
    /// What to do.
    pub remedy: String,
    /// Which intervention would confirm or refute it.
    pub confirm: String,
}

/// One number of a proof.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// What it is; may name a process or thread.
    pub name: String,
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: String,
}

/// A warning with the next thing to try.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// Stable id, kebab-case.
    pub id: String,
    /// What is wrong.
    pub text: String,
    /// What to do.
    pub hint: String,
}

/// The books, pooled over the trials of the asked level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// The largest of the design's residuals; `None` when nothing could be checked.
    pub residual_ratio: Option<f64>,
    /// Each residual that could be computed, by name (`cpu 0`, `nginx/4711`, `cgroup`).
    pub residuals: BTreeMap<String, f64>,
    /// The kernel's accounting regime.
    pub regime: crate::machine::Regime,
    /// The SUT's threads together; `None` when it cannot be seen.
    pub sut: Option<RoleLedger>,
    /// The generator's threads together; `None` for commands.
    pub load: Option<RoleLedger>,
    /// Tare's own threads other than the generator's.
    pub tare: Option<RoleLedger>,
    /// Every CPU that the SUT or the generator used.
    pub cpus: Vec<CpuLedger>,
    /// Sleeps and waits in detail; `None` where the SUT cannot be seen.
    #[serde(default)]
    pub switches: Option<crate::schedule::SwitchBooks>,
}

/// Books of one role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoleLedger {
    /// Threads × window.
    pub wall_s: f64,
    /// On a CPU.
    pub run_s: f64,
    /// Runnable without one, by why.
    pub wait_s: WaitSplit,
    /// Asleep, by reason; keys `event`, `lock`, `disk`,
    /// `downstream`, `timer`, `fault`, `other`, or `unsplit` where no reason is known.
    pub blocked_s: BTreeMap<String, f64>,
    /// Sleep of its serving threads alone, from which causes are told.
    #[serde(default)]
    pub serving: ServingLedger,
    /// Busy CPUs on average (run / window).
    pub busy_cpus: f64,
    /// Wake-ups of one of its threads by another, per second; `None` where they were not counted.
    #[serde(default)]
    pub peer_wakeups_hz: Option<f64>,
    /// Allotment A: CPUs it may use, at most its serving threads.
    pub allotment_cpus: f64,
    /// By cause, CPUs lost out of the allotment: A = busy + sum of these (http SUT only).
    #[serde(default)]
    pub losses_cpus: BTreeMap<String, f64>,
    /// What it executed; `None` for tare's own threads, for commands and in older results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<Execution>,
    /// Its threads, busiest first.
    pub threads: Vec<ThreadRow>,
}

/// The threads of a role that do the work: those that ran for more than a thousandth of the window. The others (a main
/// thread that waits for its workers) sleep for reasons that hold nothing back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServingLedger {
    /// How many.
    pub threads: usize,
    /// Threads × window.
    pub wall_s: f64,
    /// Asleep, by reason; keys as in [`RoleLedger`].
    pub blocked_s: BTreeMap<String, f64>,
}

/// Waiting by cause, seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitSplit {
    /// Held back by a quota.
    pub throttled: f64,
    /// Somebody else ran (the generator included).
    pub preempted: f64,
    /// Another thread of the same role ran.
    pub own: f64,
    /// The CPU was free: the scheduler's delay.
    pub scheduler: f64,
}

/// One thread, as pidstat shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadRow {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Name.
    pub name: String,
    /// Share of one CPU in user mode, 0..1.
    pub user: f64,
    /// Share of one CPU in the kernel, 0..1.
    pub system: f64,
    /// Share of the window on a CPU, 0..1.
    pub run: f64,
    /// Share of the window runnable without a CPU.
    pub wait: f64,
    /// Voluntary switches per second.
    pub voluntary_hz: f64,
    /// Involuntary switches per second.
    pub involuntary_hz: f64,
    /// CPUs it was seen on.
    pub cpus: Vec<u32>,
}

/// One CPU over the window; the parts are shares of it and sum to 1 up to the residual.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CpuLedger {
    /// Number.
    pub cpu: u32,
    /// The SUT ran.
    pub sut: f64,
    /// The generator ran.
    pub load: f64,
    /// Tare's observers ran.
    pub tare: f64,
    /// Anybody else ran.
    pub others: f64,
    /// Held back by a quota though the SUT was ready.
    pub throttled: f64,
    /// Stolen by the hypervisor.
    pub steal: f64,
    /// Interrupts and idle-loop work that are in nobody's run.
    pub irq: f64,
    /// Idle, throttled time excluded.
    pub idle: f64,
    /// Busy time by mode, from tick samples.
    pub share: ModeShare,
}

/// Busy time by mode, shares of the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ModeShare {
    /// User.
    pub user: f64,
    /// Kernel, soft interrupts excluded.
    pub system: f64,
    /// Soft interrupts.
    pub softirq: f64,
}

/// Requests of the asked level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Requests {
    /// Answers received; `None` when a foreign generator's summary could not be read.
    pub count: Option<u64>,
    /// By kind; all kinds are listed.
    pub errors: BTreeMap<String, u64>,
    /// CPU time per request of each role, nanoseconds.
    pub cpu_ns_per_request: PerRole,
    /// The SUT's switches per request.
    pub switches_per_request: SwitchesPerRequest,
    /// How often a thread woke another of its own role, per request; or why that was not counted.
    #[serde(default = "PeerWakeups::not_counted")]
    pub peer_wakeups_per_request: Reading<PeerWakeups>,
}

/// Wake-ups of a thread by another of the same role: work that is handed over. What packets and timers wake is
/// not among them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PeerWakeups {
    /// Of the SUT.
    pub sut: f64,
}

impl PeerWakeups {
    fn not_counted() -> Reading<PeerWakeups> {
        Reading::missing("peer wake-ups were not counted")
    }
}

/// A figure of each role; `None` is missing (no requests, or the role cannot be seen).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct PerRole {
    /// The SUT.
    pub sut: Option<f64>,
    /// The generator.
    pub load: Option<f64>,
}

/// The SUT's context switches per request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SwitchesPerRequest {
    /// It went to sleep.
    pub voluntary: Option<f64>,
    /// It was pushed off.
    pub involuntary: Option<f64>,
}

/// Latency figures in nanoseconds; `None` where a foreign generator did not print them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // the names are the statistics
pub struct LatencySummary {
    pub p50: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p75: Option<f64>,
    pub p90: Option<f64>,
    pub p99: Option<f64>,
    pub p99_9: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_99: Option<f64>,
    pub max: Option<f64>,
    pub mean: Option<f64>,
    pub stdev: Option<f64>,
}

/// One command of a command workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandSummary {
    /// As run.
    pub command: String,
    /// Wall time per run.
    pub gross: Estimate,
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
}

/// One trial, summed up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialSummary {
    /// Position in the sitting.
    pub seq: u32,
    /// `asked`, `saturating` or `reference` (tare's own server instead of the SUT); `run` for commands.
    pub level: String,
    /// Open connections of its level (http).
    pub connections: Option<u32>,
    /// Length in seconds.
    pub elapsed_s: f64,
    /// req/s, or wall seconds for commands; `None` where requests could not be counted.
    pub value: Option<f64>,
    /// CPU nanoseconds of the SUT per request (http) or of the run.
    pub sut_cpu_ns: Option<f64>,
    /// Effective clock of the SUT's CPUs.
    pub clock_hz: Option<f64>,
    /// Its own residual.
    pub residual_ratio: Option<f64>,
}

/// What tare's own threads took in the trials of the asked level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OwnCost {
    /// CPU time of the observers per second.
    pub observers_cpus: f64,
    /// CPUs that they were seen on.
    pub observers_ran_on: Vec<u32>,
    /// Of that, CPU time on CPUs that were the server's.
    pub observers_on_sut_cpus: f64,
    /// CPU time of the load generator per second; `None` for commands.
    pub generator_cpus: Option<f64>,
    /// CPUs that it was seen on.
    pub generator_ran_on: Vec<u32>,
    /// What the observers wrote down, in bytes of the record per second.
    pub recorded_bytes_hz: f64,
}
