//! How a figure grows with one factor: what `tare scale` measures or reads, the law that fits, and why it flattens.

use crate::Reading;
use crate::instances::{Fairness, Instance};
pub use crate::level_accounting::LevelAccounting;
use crate::outcome::{Cause, Estimate};
use crate::warning::Warning;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of `tare scale`.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ScaleOutcome {
    /// [`crate::format::SCHEMA`].
    pub schema: u32,
    /// What was varied: `connections`, `cpus`, `rate`, `instances`, `{n}`, … ; of a file the name of its first column.
    pub factor: String,
    /// Where the levels are from: `measured`, or the file.
    pub source: String,
    /// The law that fits best, its parameters and what follows from them.
    pub scaling: Scaling,
    /// Every level, ascending in `n`.
    pub levels: Vec<ScaleLevel>,
    /// CPUs in the order in which they were added, where CPUs were varied; empty otherwise.
    #[serde(default)]
    pub cpu_order: Vec<OrderedCpu>,
    /// What an SMT thread is worth: the figure that the second thread of a core adds, as a share of what a core does with one (unit
    /// `cores`). Where CPUs were varied; missing on a machine without SMT, and where the levels or what was busy at them do not show it.
    #[serde(default)]
    pub smt_worth: Reading<Estimate>,
    /// The instances, each alone and together with all others, where their number was varied; empty otherwise.
    #[serde(default)]
    pub instances: Vec<Instance>,
    /// How evenly they lose, for every level above 1.
    #[serde(default)]
    pub fairness: Vec<Fairness>,
    /// Blocks that were measured: each level once in each, in an order drawn at random. 0: read from a file.
    #[serde(default)]
    pub blocks: u32,
    /// Seed of the order.
    #[serde(default)]
    pub seed: u64,
    /// What a reader must know before quoting a figure of it.
    pub warnings: Vec<Warning>,
}

/// The law that fits best. X(n) is the figure at n.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Scaling {
    /// Which law.
    pub model: ScalingModel,
    /// Contention: the share that is done by one at a time. Of `usl` and `amdahl`; 0 to 1 where the law holds.
    pub alpha: Reading<Estimate>,
    /// Coherency: what every pair of n costs each. Of `usl`.
    pub beta: Reading<Estimate>,
    /// X(1) of the law: what one does alone, in the figure's unit. Of `linear` and `piecewise` what each adds before the break.
    pub gamma: Reading<Estimate>,
    /// n at which X is highest, of `usl` √((1 − α) / β); missing where that is not within the range that was measured.
    pub peak_n: Reading<Estimate>,
    /// n at which the law's first straight line (X = γ·n) meets its highest or limiting value: from there on more n brings little.
    pub knee_n: Reading<Estimate>,
    /// n at which a straight rise ends. Of `piecewise`.
    pub break_n: Reading<Estimate>,
    /// What each n adds behind the break, in the figure's unit; negative where the figure falls. Of `piecewise`.
    #[serde(default)]
    pub slope_after: Reading<Estimate>,
    /// How samples were weighted: `equal` (plain least squares, as fits are published) or `relative` (their scatter is a share of the figure).
    #[serde(default)]
    pub weights: Weights,
    /// Every law that was tried, the best first.
    pub alternatives: Vec<Alternative>,
    /// The curve of the law with its 95 % band, from the lowest level to the highest.
    pub curve: Vec<CurvePoint>,
}

/// A law of scaling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScalingModel {
    /// X = γ·n.
    Linear,
    /// X = γ·n / (1 + α(n − 1)): Amdahl's law.
    Amdahl,
    /// X = γ·n / (1 + α(n − 1) + βn(n − 1)): Gunther's universal scalability law.
    Usl,
    /// X = γ·n up to a break, and another straight line from there on.
    Piecewise,
}

impl ScalingModel {
    /// Its name, as it stands in data.
    pub fn id(self) -> &'static str {
        match self {
            ScalingModel::Linear => "linear",
            ScalingModel::Amdahl => "amdahl",
            ScalingModel::Usl => "usl",
            ScalingModel::Piecewise => "piecewise",
        }
    }
}

/// How samples are weighted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// All alike.
    #[default]
    Equal,
    /// By the figure: a sample that misses by 1 % counts alike at every level.
    Relative,
}

/// A law that was tried.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Alternative {
    /// Which law.
    pub model: ScalingModel,
    /// Akaike's information criterion, corrected for few samples, less that of the best: 0 is the best; under 2 there is nothing to choose
    /// between; `null`: it could not be fitted.
    pub aicc_delta: Option<f64>,
    /// Root mean square of what it misses, as a share of X.
    pub rms_share: Option<f64>,
}

/// A point of the curve.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Where.
    pub n: f64,
    /// The law's value, in the figure's unit.
    pub value: f64,
    /// Lower and upper end of its 95 % band; `null` where there is no interval.
    pub ci95: Option<[f64; 2]>,
}

/// One level.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ScaleLevel {
    /// The factor's value.
    pub n: f64,
    /// The figure.
    pub estimate: Reading<Estimate>,
    /// Every sample, one a block or a row of the file, in the figure's unit.
    pub samples: Vec<f64>,
    /// It is far from what all others say, and is left out of the fit.
    #[serde(default)]
    pub is_outlier: bool,
    /// What held the figure where it was, block by block; empty where nothing was observed.
    #[serde(default)]
    pub bottlenecks: Vec<Cause>,
    /// Where the time went; missing where nothing was observed.
    pub accounting: Reading<LevelAccounting>,
    /// What took efficiency from this level, in comparison with the lowest one, the largest first.
    pub lost: Vec<LostPart>,
}

/// A part of the efficiency that is lost at a level: efficiency is (X(n)/n) / (X(n1)/n1), n1 the lowest level.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct LostPart {
    /// What took it, in words: `waiting for a CPU`, `CPU time of a request`, `nothing to do`, …
    pub part: String,
    /// Its share of −ln(efficiency); negative where it helped. The shares of a level sum to 1.
    pub share: f64,
    /// The figures behind it, in words.
    pub evidence: String,
}

/// A CPU in the order in which CPUs are added.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct OrderedCpu {
    /// The kernel's number of it.
    pub cpu: u32,
    /// What it adds: `core`, `smt-sibling`; and of which NUMA node.
    pub adds: String,
    /// NUMA node.
    pub node: Option<u32>,
}
