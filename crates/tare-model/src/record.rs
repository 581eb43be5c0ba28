//! All that one session produced.

use crate::machine::MachineFacts;
use crate::plan::Plan;
use crate::stacks::Stacks;
use crate::trial::Trial;
use crate::{identity, intervention, outcome};

/// Everything one session produced: what the explanation, the reports and a later re-reading work from.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Record {
    /// The machine as it was found, before anything was started.
    pub machine: MachineFacts,
    /// What was resolved to be done.
    pub plan: Plan,
    /// The trials that ran, in the order they ran; a killed run has fewer than planned.
    pub trials: Vec<Trial>,
    /// Call stacks under the load that was asked for, after the trials, window by window. They are apart from those, so that no figure can have
    /// any of it. Empty: none were sampled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profile: Vec<Stacks>,
    /// Warnings of the run itself (not derived from the observations).
    pub notices: Vec<outcome::Warning>,
    /// What else can differ between two runs; `None` in records that are older than it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Box<identity::Identity>>,
    /// What was tried on the bottleneck, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervention: Option<intervention::Intervention>,
}
