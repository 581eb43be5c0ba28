//! How the figure went over time: rate, steadiness, spikes.

pub(crate) mod rate_over_time;
pub(crate) mod spikes;
pub(crate) mod trend;
