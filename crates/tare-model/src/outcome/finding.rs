//! What was found, with its proof.

use super::Cause;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One finding with its proof.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Finding {
    /// Cause id; `tare explain` has its page.
    pub cause: Cause,
    /// What it is, as the subject of a sentence; empty in older results.
    #[serde(default)]
    pub title: String,
    /// One sentence with the numbers in it.
    pub summary: String,
    /// Share of ln(net/gross) that it explains; 0 for what costs nothing.
    pub effect_ln: f64,
    /// Share of the evidence's interval that supports it, 0..=1.
    pub confidence: f64,
    /// Accounting entries.
    pub evidence: Vec<Evidence>,
    /// What to do.
    pub remedy: String,
    /// Which intervention would confirm or refute it.
    pub confirm: String,
}

/// One number of a proof.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Evidence {
    /// What it is; may name a process or thread.
    pub name: String,
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: String,
}
