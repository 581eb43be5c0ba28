//! Readers on trees of other machines, and settings that are put back.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test may panic, and says why"
)]

mod hwloc;
mod identity;
mod journal;
mod killed;
mod kinds_of_cores;
mod kinds_of_machines;
mod machines;
mod placement;
mod support;
mod survey;
mod surveyed;
mod tuning;
mod what_moves_figures;
