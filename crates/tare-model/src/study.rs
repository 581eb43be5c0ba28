//! The result of a plan file: cells, their figures over the blocks, and what became of what was expected. Its JSON form is a
//! contract that scripts use: keys may be added, none renamed.

use crate::comparison::Disturbance;
pub use crate::figure::Unit;
pub use crate::format::SCHEMA;
use crate::outcome::Cause;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What came of a plan.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct StudyOutcome {
    /// [`SCHEMA`].
    pub schema: u32,
    /// What the plan is about.
    pub name: String,
    /// Seed of the order of the cells.
    pub seed: u64,
    /// Blocks that were planned, at most where `precision` may end it before.
    pub blocks: u32,
    /// How well throughput was to be known, and is; `None`: nobody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
    /// Blocks that were disturbed from outside and measured once more; of the two the one counts from which less was taken. The record of
    /// either is kept.
    #[serde(default)]
    pub measured_again: usize,
    /// Blocks that count though they were disturbed, and by what.
    #[serde(default)]
    pub disturbed: Vec<DisturbedBlock>,
    /// Every cell that was measured, in the order of the plan.
    pub cells: Vec<CellOutcome>,
    /// Cases that were left out, and how many CPUs they need.
    pub left_out: BTreeMap<String, u32>,
}

/// How well the throughput of each cell is known against its baseline's.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Precision {
    /// What was asked for: half of the 95 % interval of the ratio, as a share.
    pub asked: f64,
    /// What there is, of the cell that is known least; `null`: too few blocks are valid.
    pub reached: Option<f64>,
    /// The smallest change against the baseline that so many blocks as were planned would show in nine of ten cases, of the cell that
    /// shows least.
    #[serde(default)]
    pub detectable: Option<f64>,
    /// Blocks that ±1 % takes for all cells; `null` where it is out of reach.
    #[serde(default)]
    pub one_percent_blocks: Option<usize>,
}

impl Precision {
    /// Whether no further block is needed.
    pub fn is_reached(&self) -> bool {
        self.reached.is_some_and(|reached| reached <= self.asked)
    }
}

/// A block that counts though something was taken from it.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct DisturbedBlock {
    /// Which, counted from 1.
    pub block: usize,
    /// What disturbed it.
    pub by: Vec<Disturbance>,
}

/// What came of a cell.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CellOutcome {
    /// Its case and its levels.
    pub name: String,
    /// The cell that it was held against; `None`: it is the baseline.
    pub baseline: Option<String>,
    /// Launches that were measured to their end.
    pub blocks: usize,
    /// Those of them whose result is valid, and counts.
    pub valid: usize,
    /// Figures by name; `null`: missing in a result.
    pub figures: BTreeMap<String, Option<FigureSeen>>,
    /// What held throughput where it was, block by block.
    pub bottlenecks: Vec<Cause>,
    /// All figures of servers against the baseline's, each with a 95 % interval of its own; absent for the baseline.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub changes: BTreeMap<String, Seen>,
    /// What was expected, and what became of it.
    pub expectations: Vec<Judgement>,
}

/// A figure over the blocks.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct FigureSeen {
    /// Mean. Here and in [`Seen`], where a precision was asked for: without the fifth of the blocks at either end, if there is an interval.
    pub value: f64,
    /// Its 95 % interval; `null` with too few blocks.
    pub ci95: Option<[f64; 2]>,
    /// What it is counted in.
    pub unit: Unit,
}

/// A verdict with what it is of.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Judgement {
    /// What was expected, as written.
    pub expected: String,
    /// What became of it.
    pub verdict: Verdict,
    /// What was seen.
    pub seen: Seen,
}

/// What became of an expectation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole 95 % interval is where it was expected.
    Held,
    /// None of it is.
    DidNotHold,
    /// Some of it is, or there is none.
    CouldNotTell,
}

/// What was seen of a figure over the blocks.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seen {
    /// The figure over the baseline's.
    Ratio {
        /// Geometric mean over the blocks.
        value: f64,
        /// Its 95 % interval.
        ci95: [f64; 2],
    },
    /// The figure less the baseline's, where one of them was zero.
    Difference {
        /// Mean over the blocks.
        value: f64,
        /// Its 95 % interval.
        ci95: [f64; 2],
        /// What it is counted in.
        unit: Unit,
    },
    /// The figure itself.
    Value {
        /// Mean over the blocks.
        value: f64,
        /// Its 95 % interval.
        ci95: [f64; 2],
        /// What it is counted in.
        unit: Unit,
    },
    /// What held throughput where it was, block by block.
    Bottlenecks(Vec<Cause>),
    /// Why nothing can be said.
    Nothing(String),
}
