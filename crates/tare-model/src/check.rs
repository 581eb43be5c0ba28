//! What a machine will do to a measurement: one check, its finding, and what can be done.

use crate::Reading;
use crate::probes::Probes;
use crate::survey::Survey;
use crate::topology::Topology;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much a finding matters. Ordered: what is worse is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Examined, and nothing is wrong.
    Ok,
    /// Good to know before quoting a number, or: it could not be examined.
    Note,
    /// Figures will be worse, or vary more, than they need to.
    Warn,
    /// Figures will not mean what they seem to.
    Bad,
}

/// What is examined together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Area {
    /// Quotas, sets of CPUs, limits of control groups.
    Groups,
    /// The clock, heat and power.
    Clock,
    /// How threads take turns.
    Scheduler,
    /// CPUs, caches and nodes.
    Processor,
    /// Memory.
    Memory,
    /// The host and the hypervisor.
    Host,
    /// Ports, queues and interrupts.
    Network,
    /// What may be observed and how much may be opened.
    Limits,
    /// Who else is here.
    Company,
    /// Tare itself.
    Instrument,
}

/// One check of the machine.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Check {
    /// Stable name (`cpu-quota`, `governor` …); a check may come more than once.
    pub id: String,
    /// What it belongs to.
    pub area: Area,
    /// How much it matters.
    pub level: Level,
    /// What was found; begins with `missing: ` where it could not be examined.
    pub found: String,
    /// What that does to a measurement, in numbers where they are known; empty for an ok.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub effect: String,
    /// What to do about it; empty where there is nothing to do.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fix: String,
    /// The setting of `tare tune` that does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
}

/// All that `tare doctor` found out.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Examination {
    /// The checks, those that belong together one after the other.
    pub checks: Vec<Check>,
    /// How the machine is put together.
    pub topology: Topology,
    /// What was read of it.
    pub survey: Survey,
    /// What was measured of it.
    pub probes: Reading<Probes>,
}
