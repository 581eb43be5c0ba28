//! Results that other tools print: recognised by their content, and read without I/O.
//!
//! Each tool has one file, with its detection, its reader and what it gets wrong; [`FORMATS`] lists them. A reader takes
//! any text, never panics, keeps no more than the bounds in [`result`], and guesses nothing: what a tool does not print is missing.
//! [`GENERATORS`] says how the load generators among the tools are recognised while they run.

mod choice;
mod collectors;
mod decode;
mod documents;
pub mod export;
mod extent;
mod format;
mod generator;
mod json;
mod languages;
mod load_metrics;
mod loads;
mod metrics;
mod numbers;
mod programs;
mod reader;
mod refused;
mod registry;
pub mod result;
mod rows;
mod sample;
mod shapes;
mod units;

#[cfg(test)]
mod readers_tests;
#[cfg(test)]
mod tests;

pub use choice::{Choice, NoMatch, Pattern};
pub use collectors::read_by_regex;
pub use decode::{text_of, unpacked};
pub use format::Format;
pub use generator::{Generator, Senders, SetUp};
pub use metrics::{METRICS_MAX, SAMPLES_MAX, SKIPPED_MAX};
pub use reader::{Input, Reader};
pub use refused::Refused;
pub use registry::{
    FORMATS, GENERATORS, OTHER, detect, generator, is_of_both_streams, read, read_printed, readers,
};
pub use result::{LatencySummary, ToolOutput, ToolResult};
pub use sample::{http_sample, report};
