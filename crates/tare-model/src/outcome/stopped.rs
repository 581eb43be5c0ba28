//! How well gross is known, where trials ended by that or by a budget.

use crate::comparison::Ended;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which figure the trials were to make known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// What was measured.
    #[default]
    Gross,
    /// What the program could do: the share of the reference server is what repeats.
    Net,
    /// The results of a benchmark that the program prints: of those that are chosen the one that is known least.
    Results,
}

/// What was asked of the trials, what they came to, and what more of them would tell. All of trials within one launch: that launches
/// may differ by more is for `tare compare`.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Stopped {
    /// Of which figure all of this is.
    #[serde(default)]
    pub target: Target,
    /// Half of the 95 % interval that was asked for, as a share; `null`: as many trials as fit the budget.
    pub precision: Option<f64>,
    /// How long they might take, seconds.
    pub budget_s: f64,
    /// How long they took, the load before them included.
    pub elapsed_s: f64,
    /// Trials that the figure is from.
    pub trials: usize,
    /// Trials that the budget has room for; `null`: too few ran to know.
    pub planned: Option<usize>,
    /// Why there were no more; `null`: they were cut short.
    pub ended: Option<Ended>,
    /// Half of the interval as it is, as a share; `null`: too few trials to tell, or their requests could not be counted.
    pub reached: Option<f64>,
    /// The smallest change of the figure that two runs with this budget, one before and one after it, would show in nine of ten cases:
    /// √2 times what one would show beside a figure that is known exactly (`tare_stats::Foresight`), as two means err.
    pub detectable: Option<f64>,
    /// Seconds that ±1 % takes; `null` where it is out of reach.
    pub one_percent_s: Option<f64>,
    /// What no number of trials brings `reached` below: the host of this machine treats programs unlike by so much, as a share;
    /// `null`: nothing is known of it.
    #[serde(default)]
    pub between_sessions: Option<f64>,
}
