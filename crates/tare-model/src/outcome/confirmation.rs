//! What a change of the one resource did that the bottleneck, or the first finding that can be tried, is said to be.

use super::cause::Cause;
use crate::{Missing, Reading};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether a cause was confirmed by trying it.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Confirmation {
    /// The cause that was tried.
    pub cause: Cause,
    /// The bottleneck, where nothing can be tried on it and another cause was tried instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<NotTried>,
    /// What came of it, or why it could not be tried here.
    pub tried: Reading<Tried>,
}

/// A cause that nothing can be tried on.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct NotTried {
    /// Which.
    pub cause: Cause,
    /// Why not, and what would tell instead.
    #[serde(flatten)]
    pub why: Missing,
}

/// How throughput followed the resource.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Tried {
    /// What was changed, in words.
    pub what: String,
    /// Unit of the resource.
    pub unit: String,
    /// How much there is of it.
    pub before: f64,
    /// How much there was when it was changed.
    pub changed: f64,
    /// Pairs of trials.
    pub pairs: usize,
    /// ∂ln throughput / ∂ln resource: the mean of ln(rate changed / rate before) over the pairs, over ln(changed / before).
    pub elasticity: f64,
    /// Its 95 % interval.
    pub ci95: [f64; 2],
    /// The least elasticity that the cause implies.
    pub floor: f64,
    /// What follows.
    pub verdict: Confirmed,
}

/// What an intervention says of a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confirmed {
    /// The whole interval lies above the floor.
    Confirmed,
    /// The whole interval lies below it: throughput follows this resource by less than the cause implies, or not at all.
    Refuted,
    /// The floor is in the interval.
    Undecided,
}

impl Confirmed {
    /// Its word, as in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Confirmed::Confirmed => "confirmed",
            Confirmed::Refuted => "refuted",
            Confirmed::Undecided => "undecided",
        }
    }
}
