//! What reports say of made-up outcomes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test may panic, and says why"
)]

mod ceiling;
mod forms;
mod gate;
mod page;
mod scaling;
mod support;
mod text;
mod topology;
mod why;
