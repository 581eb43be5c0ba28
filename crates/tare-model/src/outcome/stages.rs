//! Stages of a load whose rate changes (`--steps`): each a result of its own, and what they show of the server's capacity.

use super::{Cause, Finding, LatencySummary, Warning};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What came of one stage.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct StageOutcome {
    /// Requests per second that were asked for, at its beginning and at its end.
    pub from_hz: f64,
    /// See `from_hz`.
    pub to_hz: f64,
    /// Length in seconds.
    pub elapsed_s: f64,
    /// Requests that fell due, per second.
    pub offered_hz: Option<f64>,
    /// Answers per second.
    pub rate_hz: Option<f64>,
    /// Errors of all kinds.
    pub errors: u64,
    /// Whether all that fell due in it was answered, or on its way at the end; `null` where that is not known.
    pub followed: Option<bool>,
    /// Requests that were due and had no connection as it began: latencies of the stage hold their wait.
    pub left_before: u64,
    /// Whether its figures are those of its rate.
    pub valid: bool,
    /// What a reader must know of it.
    pub warnings: Vec<Warning>,
    /// From intended send to the last byte of the answer.
    pub latency_ns: LatencySummary,
}

/// A stage that was watched: all passes together.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct WatchedStage {
    /// Its place among the stages, from 1.
    pub stage: u32,
    /// What was counted.
    #[serde(flatten)]
    pub counted: StageOutcome,
    /// Passes that it was driven in.
    pub trials: usize,
    /// What holds throughput where it is in this stage.
    pub bottleneck: Cause,
    /// The confidence of the bottleneck's own finding, 0..=1; `null` where it has none.
    pub bottleneck_confidence: Option<f64>,
    /// The bottleneck with its proof.
    pub finding: Option<Finding>,
    /// Whether gross, tare, net, bottleneck and time accounting of the whole result are those of this stage: of the first one of one
    /// rate that was not followed and did not fail, else of the highest rate that was followed.
    pub decides: bool,
}

/// How far a server followed stages of a rising rate.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Followed {
    /// The highest rate that was offered and answered before the first stage that was not; `null` where none of these
    /// is valid.
    pub held_hz: Option<f64>,
    /// What was offered in the first stage that the server could not follow; `null` where it followed all.
    pub missed_hz: Option<f64>,
    /// What it answered in the first stage of one rate that it could not follow: its capacity with so many connections. `null` where there
    /// is none, and where the generator was full. What kept the generator off its CPUs is seen by `tare run` alone, and would be in it.
    pub capacity_hz: Option<f64>,
}
