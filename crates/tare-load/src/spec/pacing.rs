//! When requests are sent: plain data.

use crate::interleaving::Interleaving;

/// Highest rate of an open loop, requests per second.
pub const RATE_HZ_MAX: f64 = 1e9;
/// Longest mean pause of a thinking user (an hour).
pub const THINK_NS_MAX: u64 = 3_600_000_000_000;
/// Most stages of an open loop, and the longest one (a day).
pub const STAGES_MAX: usize = 10_000;
/// See [`STAGES_MAX`].
pub const STAGE_NS_MAX: u64 = 86_400_000_000_000;

/// When requests are sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Pacing {
    /// The next one as soon as an answer is there. Such a loop slows down with the server, so it cannot see
    /// how long requests would have waited that it did not send (coordinated omission).
    Closed,
    /// A closed loop of users who pause after each answer; latency counts from the actual send.
    Thinking {
        /// Mean pause in nanoseconds, 1 to [`THINK_NS_MAX`].
        mean_ns: u64,
        /// All pauses the same, or exponential.
        gaps: Gaps,
    },
    /// A closed loop that sends only in its own turns, interleaved with others; what is in flight after a turn is still answered.
    Interleaved(Interleaving),
    /// At a rate of its own, whatever the server does; latency counts from the *intended* send time.
    Open {
        /// Requests per second over all threads, above 0, at most [`RATE_HZ_MAX`].
        rate_hz: f64,
        /// How they are spread.
        gaps: Gaps,
    },
    /// An open loop whose rate changes: the stages one after the other, then the last one's end rate for ever.
    Stages {
        /// At least one, at most [`STAGES_MAX`].
        stages: Vec<Stage>,
        /// How requests are spread.
        gaps: Gaps,
    },
}

/// A part of an open loop: a step where both rates are the same, else a ramp.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stage {
    /// Requests per second at its beginning, 0 (none) to [`RATE_HZ_MAX`].
    pub from_hz: f64,
    /// Requests per second at its end; the rate changes evenly between them.
    pub to_hz: f64,
    /// How long it lasts, nanoseconds, 1 to [`STAGE_NS_MAX`].
    pub for_ns: u64,
}

impl Pacing {
    /// How long the rate changes, nanoseconds; `None` where it does not.
    pub fn stages_ns(&self) -> Option<u64> {
        match self {
            Pacing::Stages { stages, .. } => {
                Some(stages.iter().fold(0, |sum, stage| stage.for_ns.saturating_add(sum)))
            }
            Pacing::Closed | Pacing::Interleaved(_) | Pacing::Thinking { .. } | Pacing::Open { .. } => None,
        }
    }

    /// Requests per second of an open loop, on average over the stages; `None` where answers decide it.
    pub fn rate_hz(&self) -> Option<f64> {
        match self {
            Pacing::Open { rate_hz, .. } => Some(*rate_hz),
            Pacing::Stages { stages, .. } => {
                let requests: f64 =
                    stages.iter().map(|s| (s.from_hz + s.to_hz) / 2.0 * s.for_ns as f64).sum();
                self.stages_ns().map(|stages_ns| requests / stages_ns.max(1) as f64)
            }
            Pacing::Closed | Pacing::Interleaved(_) | Pacing::Thinking { .. } => None,
        }
    }
}

/// The time between intended sends of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gaps {
    /// All the same, over all threads together.
    Fixed,
    /// Exponential: requests of many independent users.
    Poisson,
}
