//! All tools that are known. A new one is its file and a line in each list that it belongs to.

use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::result::ToolOutput;
use crate::{ab, h2load, memaslap, pgbench, redis_benchmark, sysbench, wrk, wrk2};
use std::time::Duration;

/// Every format that is read. No output is detected by two of them.
pub const FORMATS: &[&Format] = &[
    &wrk::FORMAT,
    &wrk2::FORMAT,
    &redis_benchmark::FORMAT,
    &pgbench::FORMAT,
    &sysbench::FORMAT,
    &memaslap::FORMAT,
    &ab::FORMAT,
    &h2load::FORMAT,
];

/// Every load generator of others that something is known about; [`OTHER`] stands for the rest.
pub const GENERATORS: &[&Generator] = &[
    &wrk::GENERATOR,
    &wrk2::GENERATOR,
    &redis_benchmark::GENERATOR,
    &pgbench::GENERATOR,
    &sysbench::GENERATOR,
    &memaslap::GENERATOR,
    &ab::GENERATOR,
    &h2load::GENERATOR,
];

/// What is assumed of a load generator that is not known.
pub const OTHER: &Generator = &Generator {
    program: "",
    senders: Senders::All,
    set_up: SetUp { steady_for: Duration::from_millis(200), at_most: Duration::from_secs(2) },
    rate_options: &[],
    chatter: &[],
    format: None,
};

/// The format of `printed`, by its content.
pub fn detect(printed: &str) -> Option<&'static Format> {
    FORMATS.iter().copied().find(|format| format.detects(printed))
}

/// The entry of the program with this name or path; [`OTHER`] where there is none.
pub fn generator(program: &str) -> &'static Generator {
    let name = program.rsplit('/').next().unwrap_or_default();
    GENERATORS.iter().copied().find(|known| known.program == name).unwrap_or(OTHER)
}

impl Generator {
    /// What it printed: by the format that its content shows, since programs are renamed (wrk2 is built as `wrk`), else by its own.
    /// `None`: no format reads it.
    pub fn read(&self, printed: &str) -> Option<ToolOutput> {
        detect(printed).or(self.format).map(|format| format.read(printed))
    }
}
