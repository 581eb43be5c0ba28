//! Instructions and cycles.

use crate::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a role's threads executed, the kernel's part included, and what each request took of it.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Execution {
    /// Instructions per cycle.
    pub ipc: Reading<f64>,
    /// I of the iron law.
    pub instructions_per_request: Reading<f64>,
    /// C of the iron law.
    pub cycles_per_request: Reading<f64>,
    /// How the cycles were come by.
    pub cycles_from: CyclesFrom,
    /// Smallest share of the run for which a group of events was on the PMU: 1 where they did not have to take turns.
    /// `None` without a PMU.
    pub on_pmu: Option<f64>,
    /// Every other event per request, by name (`llc_misses`).
    pub events_per_request: BTreeMap<String, f64>,
}

/// Where cycles come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CyclesFrom {
    /// Counted.
    Pmu,
    /// CPU time × effective clock.
    Clock,
}
