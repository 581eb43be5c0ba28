//! Gross, tare and net, with their intervals.

use crate::Missing;
use crate::reference_level::ReferenceLevel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A value with its 95 % interval.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// `req/s` or `s`.
    pub unit: String,
    /// Lower and upper end; `null` when one trial cannot give any.
    pub ci95: Option<[f64; 2]>,
}

/// The measured figure, or why there is none: somebody else's generator may keep its count to itself.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NetOrMissing {
    /// Why not; first, so that it is never taken for a value.
    Missing(Missing),
    /// The net figure and what it holds for.
    Net(Net),
}

/// The net figure with the conditions it holds for.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Net {
    /// The value.
    pub value: f64,
    /// `req/s` or `s`.
    pub unit: String,
    /// Lower and upper end of the 95 % interval.
    pub ci95: Option<[f64; 2]>,
    /// `loopback`, `namespace`, `remote`; `none` for commands.
    pub transport: String,
    /// The SUT's CPU entitlement A in CPUs.
    pub cpus: f64,
    /// The clock it is stated at; `null` when the clock could not be measured (then no clock part either).
    pub ref_clock_hz: Option<f64>,
    /// Against tare's own server, where that was measured in the same blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against_reference: Option<AgainstReference>,
}

/// Net against tare's own server, loaded on the SUT's CPUs interleaved with it: what the machine's interference does to both is
/// not in it.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct AgainstReference {
    /// What the SUT does on a CPU over what the reference does on one; neither at a reference clock, as both ran at the
    /// same.
    pub ratio: f64,
    /// Lower and upper end of its 95 % interval.
    pub ci95: Option<[f64; 2]>,
    /// CPU time of a request of the reference, nanoseconds.
    pub cpu_ns_per_request: f64,
    /// Whether the interference was taken out of net and of its cost part: where there were at least two windows interleaved. Net is then that
    /// in the middle of the session's interference; another session may meet another one, this ratio does not.
    pub interference_corrected: bool,
    /// What net is stated at, so that the nets of sessions repeat; absent where the session knew of none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<ReferenceLevel>,
}

/// One named part of the tare.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TarePart {
    /// What took it.
    pub cause: TareCause,
    /// Share of ln(net/gross); positive where something was lost.
    pub ln_share: f64,
    /// 95 % interval of the share.
    pub ci95: Option<[f64; 2]>,
}

/// The ways a part of the machine can be lost to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TareCause {
    /// The SUT waited for work.
    NoWork,
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
    /// Threads of the SUT waited for each other with CPUs to spare elsewhere.
    SelfContention,
    /// The clock was below the reference.
    Clock,
    /// A request cost more than at saturation (wake-ups, cold caches).
    Cost,
    /// The machine made every program cost more than it does here undisturbed, the reference server too.
    Interference,
    /// The same of a server that a quota throttled: its caches are cold when it may run again.
    ColdAfterThrottling,
}
