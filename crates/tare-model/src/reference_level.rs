//! What the reference server costs on this machine when nothing is in its way: kept from session to session of one boot, so that
//! nets of different sessions are stated against the same level.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The level that nets are stated at.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ReferenceLevel {
    /// CPU seconds of a request of the reference server.
    pub cost_s: f64,
    /// The clock of its CPUs meanwhile; `null` where it could not be measured.
    pub clock_hz: Option<f64>,
    /// Half of its 95 % interval, on the log.
    pub half_ln: f64,
    /// How much what it cost differs from one stretch of a session to another: standard deviation, on the log. 0 in older records.
    #[serde(default)]
    pub spread_ln: f64,
    /// Sessions that it is from.
    pub sessions: u32,
}

/// What a session knew of the level as it began: with it an old record is explained as it was at first.
#[derive(Debug, Clone, Copy, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct KnownReference {
    /// The level of the sessions before it; `null`: it was the first of this boot with this reference, and has its own alone.
    pub level: Option<ReferenceLevel>,
}

/// What the reference cost in a stretch of a session, of windows in which nothing was seen to be in its way.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReferenceBlock {
    /// CPU seconds of a request: the median of its windows.
    pub cost_s: f64,
    /// The same of the clock.
    pub clock_hz: Option<f64>,
    /// Start of the session, seconds since 1970: which session it is of.
    pub session_unix_s: u64,
}

/// All that is kept of one reference on one boot.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReferenceHistory {
    /// What the levels hold for: machine, boot, transport, depth, CPUs, build.
    pub key: String,
    /// The level that is stated; `None` before the first session.
    pub level: Option<ReferenceLevel>,
    /// Stretches of sessions, the latest last.
    pub blocks: Vec<ReferenceBlock>,
}
