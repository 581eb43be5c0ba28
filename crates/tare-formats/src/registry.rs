//! All tools that are known. A new one is its file and a line in each list that it belongs to.

use crate::decode::without_colours;
use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::load_metrics;
use crate::reader::{Input, Reader};
use crate::refused::Refused;
use crate::result::ToolOutput;
use crate::{collectors, languages, loads, programs};
use std::time::Duration;
use tare_model::tool::ToolMetrics;
use tare_model::warning::Warning;

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

/// Whoever may know a text.
#[derive(Clone, Copy)]
enum Source {
    Reader(&'static Reader),
    Format(&'static Format),
}

impl Source {
    fn name(self) -> &'static str {
        match self {
            Source::Reader(reader) => reader.name,
            Source::Format(format) => format.name,
        }
    }

    /// What it says of the text, if that is its tool's.
    fn read(self, input: &Input<'_>) -> Option<ToolMetrics> {
        match self {
            Source::Reader(reader) => reader.detects(input).then(|| reader.read(input)),
            Source::Format(format) => {
                format.detects(input.text).then(|| load_metrics::of(format, input.text))
            }
        }
    }
}

fn formats() -> impl Iterator<Item = Source> {
    FORMATS.iter().copied().map(Source::Format)
}

fn around() -> impl Iterator<Item = Source> {
    programs::AROUND.iter().copied().map(Source::Reader)
}

/// Whether a tool says on standard error what its results on standard output cannot be judged without: `openssl speed` how long each measurement
/// took.
pub fn is_of_both_streams(format: &str) -> bool {
    format == "openssl-speed"
}

/// What a tool printed that measures something, with the line of each sample; `None` where nobody knows it. Formats of collections are written to files: what looks
/// like one here may be anybody's JSON.
pub fn read_printed(printed: &str) -> Option<ToolMetrics> {
    let plain = without_colours(printed);
    let input = Input::of_text(&plain);
    let tools = || {
        let all = [languages::READERS, programs::READERS, loads::READERS];
        all.into_iter().flatten().copied().map(Source::Reader)
    };
    let counting = programs::COUNTING.iter().copied().map(Source::Reader);
    let found = of_tools(tools(), &input).sure.or_else(|| read_by(counting, &input))?;
    Some(with_others(found, tools().chain(formats()).chain(around()), &input))
}

/// What a file of results says, whosever they are.
///
/// # Errors
/// Nobody knows it, as far as it is looked at.
pub fn read(input: &Input<'_>) -> Result<ToolMetrics, Refused> {
    let measuring = || measuring().map(Source::Reader);
    let OfTools { sure, cut_off } = of_tools(measuring(), input);
    let found = sure.or_else(|| read_by(last().map(Source::Reader), input)).or(cut_off);
    let mut found = found.ok_or_else(|| refused(input))?;
    // They say when a line was printed, which nobody knows of a file.
    found.metrics.iter_mut().for_each(|metric| metric.lines = Vec::new());
    Ok(with_others(found, measuring().chain(formats()).chain(around()), input))
}

/// Why nobody knows a text.
fn refused(input: &Input<'_>) -> Refused {
    if loads::iperf3::is_of_iperf2(input) {
        Refused::Iperf2
    } else if input.goes_on() {
        Refused::UnknownBeginning
    } else {
        Refused::Unknown
    }
}

/// What tools that measure something say of a text.
struct OfTools {
    sure: Option<ToolMetrics>,
    /// A line of a summary was there, and nothing to read: other texts may have such a line.
    cut_off: Option<ToolMetrics>,
}

/// By these readers and by the formats of summaries.
fn of_tools(readers: impl Iterator<Item = Source>, input: &Input<'_>) -> OfTools {
    let by_reader = read_by(readers, input);
    if by_reader.as_ref().is_some_and(has_metrics) {
        return OfTools { sure: by_reader, cut_off: None };
    }
    let by_format = read_by(formats(), input);
    // What a tool complains of is said in its own words.
    let is_sure = |read: &ToolMetrics| has_metrics(read) || by_reader.is_none() && !read.warnings.is_empty();
    if by_format.as_ref().is_some_and(is_sure) {
        return OfTools { sure: by_format, cut_off: None };
    }
    OfTools { sure: by_reader, cut_off: by_format }
}

fn has_metrics(read: &ToolMetrics) -> bool {
    !read.metrics.is_empty()
}

/// What the first of them says that finds metrics; where none does, why the first that knows the text finds none.
fn read_by(sources: impl Iterator<Item = Source>, input: &Input<'_>) -> Option<ToolMetrics> {
    let mut first = None;
    for read in sources.filter_map(|source| source.read(input)) {
        if has_metrics(&read) {
            return Some(read);
        }
        first = first.or(Some(read));
    }
    // A text that only has a tool's words in it (its source) says nothing.
    first.filter(|read| read.skipped_count > 0 || !read.warnings.is_empty())
}

/// So much of a text is searched for results of other tools.
const OTHERS_BYTES_MAX: usize = 1 << 22;

/// Says which other tools' results the text holds too: one file is of one tool.
fn with_others(
    mut found: ToolMetrics,
    sources: impl Iterator<Item = Source>,
    input: &Input<'_>,
) -> ToolMetrics {
    let input = beginning(input);
    let mut names: Vec<&str> = Vec::new();
    for source in sources {
        let name = source.name();
        let is_new = name != found.format && !names.contains(&name);
        if is_new && source.read(&input).is_some_and(|read| has_metrics(&read)) {
            names.push(name);
        }
    }
    if !names.is_empty() {
        found.warnings.push(Warning {
            id: "other-tools-not-read".into(),
            text: format!("the text also holds results of {}, which are not read", names.join(", ")),
            hint: "give them in a file of their own".into(),
        });
    }
    found
}

fn beginning<'a>(input: &Input<'a>) -> Input<'a> {
    let most = OTHERS_BYTES_MAX.min(input.text.len());
    let end = (0..=most).rev().find(|end| input.text.is_char_boundary(*end)).unwrap_or_default();
    Input {
        bytes: input.bytes.get(..OTHERS_BYTES_MAX).unwrap_or(input.bytes),
        text: input.text.get(..end).unwrap_or_default(),
    }
}
