//! `tare steady`.

use super::choice::ChoiceArgs;
use super::output::OutputArgs;
use clap::Args;
use std::path::PathBuf;

/// Where the series is.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tare steady times.txt                  one series: a number a line
  tare steady --json forks.jsonl.gz      several: JSON lines with \"seconds\": [...]
  some-benchmark | tare steady -         from standard input
  tare steady jmh.json                   results of another tool
  tare steady jmh.json --benchmark Sort --metric time")]
pub struct SteadyArgs {
    /// The series; `-` is standard input.
    ///
    /// A number a line, or JSON lines with "seconds": [...] for several series; compressed (gzip) or not. A value may be anything above
    /// zero: times, rates, sizes. Blank lines and lines that begin with # are left out. Of another tool's results ('tare help formats') each
    /// launch of each metric is a series.
    pub file: PathBuf,
    #[command(flatten)]
    pub chosen: ChoiceArgs,
    #[command(flatten)]
    pub exports: OutputArgs,
}
