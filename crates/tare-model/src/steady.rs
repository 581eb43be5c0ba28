//! From where on a series of times or rates is steady: what `tare steady` says of one.

use crate::outcome::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A series and what became of it.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Series {
    /// What it is called.
    pub name: String,
    /// Whether it becomes steady: its state is `steady`.
    pub label: Label,
    /// What it is from its last level on; where there is none, as a whole.
    pub state: State,
    /// Index of the first value at the last level; -1: it does not become steady.
    pub steady_from: i64,
    /// The level that it becomes steady at; both, the lower first, where it alternates between two; none where it drifts or is never steady.
    /// In the unit of its values.
    #[serde(default)]
    pub levels: Vec<f64>,
    /// How many values it has.
    pub values: usize,
    /// Values far from all those around them, which are left out.
    pub wild: usize,
    /// Its levels, one after the other.
    pub segments: Vec<Segment>,
}

/// Whether a series becomes steady.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Label {
    /// It does.
    Steady,
    /// It does not.
    NotSteady,
}

/// Values at one level.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Segment {
    /// Index of its first value.
    pub from: usize,
    /// Index after its last value.
    pub to: usize,
    /// Mean of its values.
    pub mean: f64,
}
