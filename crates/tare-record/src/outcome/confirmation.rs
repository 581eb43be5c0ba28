//! What a change of the one resource did that the limit is said to be.

use super::Cause;
use crate::Reading;
use serde::{Deserialize, Serialize};

/// Whether the limit was confirmed by trying it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Confirmation {
    /// The cause that was tried.
    pub cause: Cause,
    /// What came of it, or why it could not be tried here.
    pub tried: Reading<Tried>,
}

/// How throughput followed the resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
