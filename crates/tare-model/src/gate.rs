//! The result of a gate: whether what a branch does now is worse than what it did. Its JSON form is a contract that scripts
//! use: keys may be added, none renamed. So is a run's, which is a line of a history.

use crate::Reading;
use crate::comparison::{BenchmarkEffect, Change, Figure, NOT_IN_ALL, Verdict};
pub use crate::format::SCHEMA;
use crate::outcome::Warning;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Fewest runs at one level that tell what another run may differ by.
pub const RUNS_MIN: usize = 5;

/// The warning of a gate that could not have shown what it was asked to fail on.
pub const BLIND: &str = "cannot-show";

/// What came of a gate.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Gate {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The run that is judged.
    pub new: Run,
    /// What it is held against.
    pub against: Against,
    /// Differences up to this share do not matter.
    pub margin: f64,
    /// Whether the figures can be trusted to be of answers.
    pub valid: bool,
    /// All figures.
    pub effects: Vec<Effect>,
    /// Of commands that print the results of benchmarks: every metric, the old build's as its baseline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub benchmarks: Vec<BenchmarkEffect>,
    /// Where the history's level shifted, by figure and time.
    pub change_points: Vec<ChangePoint>,
    /// What it was to fail on.
    pub conditions: Vec<Judged>,
    /// How the intervals were made.
    pub method: String,
    /// What to know before quoting it.
    pub warnings: Vec<Warning>,
}

impl Gate {
    /// Whether the results of benchmarks are what is judged unless something else was asked for: one of both builds prints some that can
    /// be.
    pub fn judges_benchmarks(&self) -> bool {
        self.benchmarks.iter().any(|effect| effect.better.is_some())
            || self.warnings.iter().any(|warning| warning.id == NOT_IN_ALL)
    }
}

/// What a run is held against.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Against {
    /// A record.
    Baseline(Run),
    /// Another build, which was measured interleaved with it; its trials are launches.
    Interleaved(Run),
    /// The runs of a branch.
    History {
        /// Runs of the same plan that were valid.
        runs: u32,
        /// Runs of another plan, which do not count.
        other_plans: u32,
    },
}

/// A run as a gate sees it.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Run {
    /// [`SCHEMA`].
    pub schema: u32,
    /// What its user calls it: a commit, or the record's file.
    pub label: String,
    /// Wall clock at its start, seconds since 1970.
    pub time_unix_s: u64,
    /// From its first trial to the end of its last, seconds; `null`: not known.
    #[serde(default)]
    pub length_s: Option<f64>,
    /// What was asked of it, in words: runs with the same words are of one plan.
    pub plan: String,
    /// Processor and CPUs, in words: runs with the same words are of machines of one kind.
    pub machine: String,
    /// `uname -r`.
    pub kernel: String,
    /// Whether its figures can be trusted to be of answers.
    pub valid: bool,
    /// All figures, in base units, or why one is missing.
    pub figures: BTreeMap<Figure, Reading<FigureValue>>,
    /// Net and CPU time of a request in units of the reference server, where that was loaded interleaved with the program: without
    /// the machine's interference, and across machines.
    pub against_reference: BTreeMap<Figure, FigureValue>,
}

/// A figure of a run.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct FigureValue {
    /// Its value.
    pub value: f64,
    /// Half of the 95 % interval of its logarithm, from trials; `null`: one trial has none.
    pub half_ln: Option<f64>,
    /// How many trials.
    pub trials: u32,
}

/// What a figure came to.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Effect {
    /// Which figure.
    pub figure: Figure,
    /// Whether it is in units of the reference server; in base units otherwise.
    pub of_reference: bool,
    /// What it was; of a history, its geometric mean since its last change point.
    pub baseline: Option<f64>,
    /// What it is now.
    pub value: Option<f64>,
    /// Runs behind the baseline.
    pub runs: u32,
    /// So many more runs are needed before it can be judged; 0 where runs are not what it lacks.
    pub runs_missing: u32,
    /// Relative change with its interval, which holds together with all others in 95 of 100 gates; or why there is none.
    pub change: Reading<Change>,
    /// The smallest true change for the worse, as a share, that is shown in nine of ten such gates: one of which the interval does not
    /// hold 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detectable: Option<f64>,
    /// What the interval says.
    pub verdict: Verdict,
}

/// A lasting change in a history.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ChangePoint {
    /// Of which figure.
    pub figure: Figure,
    /// Label of the first run at the new level.
    pub since: String,
    /// When that was, seconds since 1970.
    pub time_unix_s: u64,
    /// Relative change of the level; 0.02 is 2 % more.
    pub change: f64,
    /// Runs at the new level, up to the next change point.
    pub runs: u32,
}

/// A condition and what became of it.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Judged {
    /// As it is written.
    pub condition: String,
    /// Its figure.
    pub figure: Figure,
    /// What became of it.
    pub state: State,
}

/// What became of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The whole interval is beyond it.
    Proven,
    /// Some of the interval is not.
    NotProven,
    /// The history is too short yet.
    TooFewRuns,
    /// There is no interval.
    CannotTell,
}
