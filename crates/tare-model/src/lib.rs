//! The data of every stage as plain types with units: machine facts, plan, trial, observation, accounting and
//! verdict, and the metric descriptors.
//!
//! Units stand last in names (`run_ns`, `rate_hz`); base units inside: seconds or nanoseconds, bytes, hertz.
//! A value that could be absent is a [`Reading`]: measured, missing (why, and what would help), or not
//! applicable. Missing is never zero.

pub mod calibration;
pub mod check;
pub mod comparison;
pub mod condition;
pub mod cpuset;
pub mod gate;
pub mod identity;
pub mod intervention;
pub mod latency;
pub mod load;
pub mod machine;
pub mod metric;
pub mod metrics;
pub mod observation;
pub mod outcome;
pub mod pack;
pub mod placement;
pub mod plan;
pub mod probes;
pub mod reading;
pub mod schedule;
pub mod stacks;
pub mod study;
pub mod survey;
pub mod topology;
pub mod trial;
pub mod why;

pub use cpuset::CpuSet;
pub use reading::{Missing, Reading};

use machine::MachineFacts;
use plan::Plan;
use trial::Trial;

/// Bytes as hexadecimal digits.
pub fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// Everything one session produced: what the explanation, the reports and a later re-reading work from.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Record {
    /// The machine as it was found, before anything was started.
    pub machine: MachineFacts,
    /// What was resolved to be done.
    pub plan: Plan,
    /// The trials that ran, in the order they ran; a killed run has fewer than planned.
    pub trials: Vec<Trial>,
    /// Warnings of the run itself (not derived from the observations).
    pub notices: Vec<outcome::Warning>,
    /// What else can differ between two runs; `None` in records that are older than it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Box<identity::Identity>>,
    /// What was tried on the bottleneck, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervention: Option<intervention::Intervention>,
}
