//! Requests and answers, whole and broken.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test may panic, and says why"
)]

mod alike;
mod breaking;
mod request;
mod response_fuzz;
