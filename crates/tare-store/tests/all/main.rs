//! The file, whole and damaged.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test may panic, and says why"
)]

mod store;
mod support;
