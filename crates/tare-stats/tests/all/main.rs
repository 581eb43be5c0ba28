//! Properties of the statistics, and simulations of what they promise.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic; the tables are for who asks for them"
)]

mod coverage;
#[path = "../../src/noise.rs"]
mod noise;
mod properties;
mod series;
mod steady;

// For the noise, which the library's own tests share.
use tare_stats::SplitMix64;
