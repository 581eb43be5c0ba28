//! Compares servers, or commands, on a machine that cannot be trusted: launch by launch, until what they differ by is known well
//! enough.
//!
//! A launch starts every program afresh, the first one twice (the second time as the A/A control), and loads all of them
//! interleaved, a few milliseconds each, within the same window ([`launch`]). What differs from launch to launch (addresses, heap, ports) differs by more
//! than a longer window would show, so the launch is the unit: it gives one value a figure and program, and [`judge`] analyses
//! all of them after each. [`warmth`] finds when servers are warm, [`alone`] whether taking turns changes what they cost, [`length`] finds how long a window is best, [`pace`] a turn, [`interference`] finds what disturbed one. [`commands`] runs commands interleaved instead,
//! [`apart`] servers one after another, where the machine is to be another one for each.

mod alone;
mod apart;
mod benchmarks;
mod breaks;
mod change;
mod commands;
mod cost;
pub(crate) mod interference;
mod judge;
mod launch;
mod length;
mod pace;
mod parts;
mod printed;
mod request;
mod servers;
mod slices;
mod steps;
mod taken;
#[cfg(test)]
mod tests;
mod treated;
mod warmth;

pub use commands::{CommandsRequest, compare_commands};
pub use judge::{is_valid, judge};
pub use request::{Asked, Compared, EMBEDDED, PORT, Request, WARMUP};
pub use servers::compare;
