//! How the rate came to its level, and kept it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rate of the asked level over time.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Timeline {
    /// The load before the first trial; `None` where tare's generator made none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUpTimeline>,
    /// Slices of the trials that the rates below are of.
    pub slices: u32,
    /// What their rates do in the order of their time; `None` where too little was answered to tell, and in older results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// 5th percentile of their rates: what can be promised.
    pub floor: Stage,
    /// Median.
    pub typical: Stage,
    /// 95th percentile: what it can do for a moment.
    pub burst: Stage,
}

/// What a series does in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It is at one level.
    Steady,
    /// It changes, without going anywhere.
    NeverSteady,
    /// It rises or falls on and on.
    Drifting,
    /// It goes to and fro between two levels.
    Bimodal,
}

impl From<tare_stats::State> for State {
    fn from(state: tare_stats::State) -> State {
        match state {
            tare_stats::State::Steady => State::Steady,
            tare_stats::State::NeverSteady => State::NeverSteady,
            tare_stats::State::Drifting => State::Drifting,
            tare_stats::State::Bimodal => State::Bimodal,
        }
    }
}

/// A rate, and how the machine was in the trials with such slices.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Stage {
    /// Requests per second.
    pub rate_hz: f64,
    /// Mean effective clock of the trials of the tenth of the slices about there; `None` where it was not measured.
    pub clock_hz: Option<f64>,
    /// What a request cost the reference server in those trials, over its median of the session; `None` without a reference.
    pub interference: Option<f64>,
}

/// The load before the first trial.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct WarmUpTimeline {
    /// How long it was.
    pub length_s: f64,
    /// When the rate had come to its last level; `None`: it had not.
    pub steady_from_s: Option<f64>,
    /// Rate of that level over the rate before it, as far as there was one.
    pub growth: Option<f64>,
    /// Of a server whose runtime compiles while it runs: how warm it became.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiled: Option<Compiled>,
    /// Where the rate was given: when latencies had come to their last level (half of the load, where they came to none), and how many
    /// times as long they were before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_fall: Option<LatencyFall>,
}

/// What became of the CPU time of a request, of a runtime that compiles.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Compiled {
    /// How many times as much a request took before the last level; `None`: there was nothing before it, or it came to none.
    pub cost_fall: Option<f64>,
    /// Share of the server's CPU time that its compilers took in the last second; `None`: they cannot be distinguished.
    pub compiling_share: Option<f64>,
    /// Whether its last level was long past when the load ended.
    pub is_warm: bool,
}

/// What became of latencies in the load before the first trial, at a given rate.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct LatencyFall {
    /// From when on they are taken for those of the end.
    pub from_s: f64,
    /// Mean before that over mean after it; below 1: they rose.
    pub times: f64,
}
