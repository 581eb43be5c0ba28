//! What two files of results of another tool differ by.

use crate::Reading;
use crate::better::Better;
use crate::comparison::{Change, Verdict};
use crate::warning::Warning;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What two files of results differ by. `tare compare OLD NEW --json` prints it.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ToolComparison {
    /// Version of this format.
    pub schema: u32,
    /// Whose results they are.
    pub format: String,
    /// What the results are held against: its file.
    pub before: String,
    /// What is held against it: its file.
    pub after: String,
    /// Differences up to this share do not matter.
    pub margin: f64,
    /// Metrics that are in both.
    pub effects: Vec<ToolEffect>,
    /// Metrics that are in one of the files alone.
    pub unpaired: Vec<Unpaired>,
    /// How the intervals were made.
    pub method: String,
    /// What a reader must know before quoting a figure of it.
    pub warnings: Vec<Warning>,
}

/// What a metric came to.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ToolEffect {
    /// The benchmark; empty where the tool has only one.
    pub benchmark: String,
    /// What was measured.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Which way is better; `null` where that is not known.
    pub better: Option<Better>,
    /// What it was: the geometric mean of its values, which the change is of; the median where one of them is not above 0.
    pub before: Option<f64>,
    /// What it is, in the same way.
    pub after: Option<f64>,
    /// Values that count before and after: launches, or samples where all are of one.
    pub values: [u32; 2],
    /// Relative change with its interval, which holds together with all others in 95 of 100 comparisons; or why there is none.
    pub change: Reading<Change>,
    /// What the interval says. Of a metric without a better side: `cannot-tell`, or `no-difference`.
    pub verdict: Verdict,
}

/// A metric that one of two files has.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Unpaired {
    /// The benchmark; empty where the tool has only one.
    pub benchmark: String,
    /// What was measured.
    pub name: String,
    /// Whether it is in the later file alone; else in the earlier one.
    pub is_new: bool,
}
