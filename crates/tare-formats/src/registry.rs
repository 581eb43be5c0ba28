//! All tools that are known. A new one is its file and a line in each list that it belongs to.

use crate::decode::without_colours;
use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::load_metrics;
use crate::reader::{Input, Reader};
use crate::result::ToolOutput;
use crate::{collectors, languages, loads, programs};
use std::time::Duration;
use tare_model::tool::ToolMetrics;

/// Every format that is read. No output is detected by two of them.
pub const FORMATS: &[&Format] = &[
    &loads::wrk::FORMAT,
    &loads::wrk2::FORMAT,
    &loads::redis_benchmark::FORMAT,
    &loads::pgbench::FORMAT,
    &loads::sysbench::FORMAT,
    &loads::memaslap::FORMAT,
    &loads::ab::FORMAT,
    &loads::h2load::FORMAT,
    &loads::iperf3::FORMAT,
    &loads::memtier::FORMAT,
    &loads::sockperf::FORMAT,
    &loads::mysqlslap::FORMAT,
    &loads::neper::FORMAT,
    &loads::netperf::FORMAT,
    &loads::ycsb::FORMAT,
    &loads::k6::FORMAT,
    &loads::hey::FORMAT,
    &loads::ghz::FORMAT,
    &loads::oha::FORMAT,
    &loads::vegeta::FORMAT,
    &loads::bombardier::FORMAT,
    &loads::autocannon::FORMAT,
    &loads::locust::FORMAT,
];

/// Every load generator of others that something is known about; [`OTHER`] stands for the rest.
pub const GENERATORS: &[&Generator] = &[
    &loads::wrk::GENERATOR,
    &loads::wrk2::GENERATOR,
    &loads::redis_benchmark::GENERATOR,
    &loads::pgbench::GENERATOR,
    &loads::sysbench::GENERATOR,
    &loads::memaslap::GENERATOR,
    &loads::ab::GENERATOR,
    &loads::h2load::GENERATOR,
    &loads::iperf3::GENERATOR,
    &loads::memtier::GENERATOR,
    &loads::sockperf::GENERATOR,
    &loads::mysqlslap::GENERATOR,
    &loads::neper::TCP_RR,
    &loads::neper::TCP_STREAM,
    &loads::netperf::GENERATOR,
    &loads::k6::GENERATOR,
    &loads::hey::GENERATOR,
    &loads::ghz::GENERATOR,
    &loads::oha::GENERATOR,
    &loads::vegeta::GENERATOR,
    &loads::bombardier::GENERATOR,
    &loads::autocannon::GENERATOR,
    &loads::locust::GENERATOR,
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

/// Every reader of results that are no summary of a load.
pub fn readers() -> impl Iterator<Item = &'static Reader> {
    measuring().chain(last())
}

/// Those of tools that measure something, and print it in a way of their own.
fn measuring() -> impl Iterator<Item = &'static Reader> {
    [languages::READERS, programs::READERS, loads::READERS, collectors::READERS]
        .into_iter()
        .flatten()
        .copied()
}

/// Those that stand around the results of others, and plain columns and numbers, which may be anybody's: asked where no other knows a text.
pub(crate) const LAST: [&[&Reader]; 2] = [programs::AROUND, collectors::PLAIN];

fn last() -> impl Iterator<Item = &'static Reader> {
    LAST.into_iter().flatten().copied()
}

/// What a tool printed that measures something; `None` where nobody knows it. Formats of collections are written to files: what looks
/// like one here may be anybody's JSON.
pub fn read_printed(printed: &str) -> Option<ToolMetrics> {
    let plain = without_colours(printed);
    let printed = plain.as_str();
    let tools = [languages::READERS, programs::READERS, loads::READERS].into_iter().flatten().copied();
    read_by(tools, &Input::of_text(printed))
        .or_else(|| detect(printed).map(|format| load_metrics::of(format, printed)))
}

/// What a file of results says, whosever they are; `None` where nobody knows it.
pub fn read(input: &Input<'_>) -> Option<ToolMetrics> {
    let by_format = || detect(input.text).map(|format| load_metrics::of(format, input.text));
    read_by(measuring(), input).or_else(by_format).or_else(|| read_by(last(), input))
}

fn read_by(mut readers: impl Iterator<Item = &'static Reader>, input: &Input<'_>) -> Option<ToolMetrics> {
    let read = readers.find(|reader| reader.detects(input)).map(|reader| reader.read(input));
    // A text that only has a tool's words in it (its source) says nothing.
    read.filter(|read| !read.metrics.is_empty() || read.skipped_count > 0 || !read.warnings.is_empty())
}
