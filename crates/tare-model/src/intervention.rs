//! What was tried on the bottleneck, or on the first finding that can be tried: a little of one resource given or taken, in blocks of a trial with it and one without. Kept as
//! measured; what it says of the cause is derived from it again whenever the record is read.

use crate::Reading;
use crate::outcome::{Cause, NotTried};
use serde::{Deserialize, Serialize};

/// What was tried on a cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Intervention {
    /// What was tried: the bottleneck by then, unless that cannot be.
    pub cause: Cause,
    /// The bottleneck by then, where nothing can be tried on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<NotTried>,
    /// What came of it, or why it could not be tried here.
    pub blocks: Reading<Blocks>,
}

/// Trials with a resource changed, and without, in pairs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Blocks {
    /// What was changed, in words.
    pub what: String,
    /// Unit of the resource.
    pub unit: String,
    /// How much there is of it.
    pub before: f64,
    /// How much there was when it was changed.
    pub changed: f64,
    /// The least elasticity that the cause implies.
    pub floor: f64,
    /// The pairs, in their order.
    pub pairs: Vec<Pair>,
}

/// Rates of two trials next to each other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// As it is, answers per second.
    pub before_hz: f64,
    /// With the resource changed.
    pub changed_hz: f64,
}
