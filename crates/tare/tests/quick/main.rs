//! The command line without load: what it says of made-up machines and files. And the rules of this house.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may panic, and says why")]

mod decisions;
mod docs;
mod doctor;
mod format_pages;
mod help;
mod house;
mod packages;
#[path = "../support/pages.rs"]
mod pages;
mod scale;
mod schema;
mod steady;
#[path = "../support/mod.rs"]
mod support;
mod tools;
mod tune;
