//! Results that other tools print: recognised by their content, and read without I/O.
//!
//! Each tool has one file, with its detection, its reader and what it gets wrong; [`FORMATS`] lists them. A reader takes
//! any text, never panics, keeps no more than the bounds in [`result`], and guesses nothing: what a tool does not print is missing.
//! [`GENERATORS`] says how the load generators among the tools are recognised while they run.

mod ab;
mod format;
mod generator;
mod h2load;
mod memaslap;
mod numbers;
mod pgbench;
mod redis_benchmark;
mod registry;
pub mod result;
mod sample;
mod sysbench;
mod wrk;
mod wrk2;

#[cfg(test)]
mod tests;

pub use format::Format;
pub use generator::{Generator, Senders, SetUp};
pub use registry::{FORMATS, GENERATORS, OTHER, detect, generator};
pub use result::{LatencySummary, ToolOutput, ToolResult};
pub use sample::{http_sample, report};
