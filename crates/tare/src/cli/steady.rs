//! `tare steady`.

use super::output::OutputArgs;
use clap::Args;
use std::path::PathBuf;

/// Where the series is.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tare steady times.txt                  one series: a number a line
  tare steady --json forks.jsonl.gz      several: JSON lines with \"seconds\": [...], compressed or not
  some-benchmark | tare steady -         from standard input

A value may be anything above zero: times, rates, sizes. Blank lines and lines that begin with # are left out.

How it is decided: values far from all those around them are left out; change points of mean and variance (PELT, the
penalty at the knee) cut the rest; the last segment reaches back over all segments whose mean may be within 5 % of its
own (95 % interval) and is within 20 %. Up to five values in all (of 120: three) may be off it for a moment. A series that
reaches that level in its last sixth is not steady.

What it is from that level on (where there is none: as a whole) is its state: steady; drifting, where it moves on by more
than 5 %, and as fast in half the length of the series; bimodal, where it alternates between two levels more than 5 % apart
(Hartigan's dip); else never steady. Only the first has a start and one level; of two levels both are said.")]
pub struct SteadyArgs {
    /// The series; `-` is standard input.
    pub file: PathBuf,
    #[command(flatten)]
    pub exports: OutputArgs,
}
