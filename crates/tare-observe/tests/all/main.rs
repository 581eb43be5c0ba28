//! Observers on processes of this machine.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test may panic, and says why"
)]

mod processes;
mod series;
mod stacks;
mod support;
