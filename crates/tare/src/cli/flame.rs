//! The arguments of `tare flame`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;
use tare_model::observation::Role;

/// `tare flame`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tare run -o a.tare URL && tare flame a.tare               writes a.svg, to click and to search
  tare flame a.tare b.tare -o diff.svg                      what b has more of is red, less of blue
  tare flame a.tare --folded | grep futex                   as text, one line for each stack
  perf script > perf.txt && tare flame --import perf.txt    somebody else's samples")]
pub struct FlameArgs {
    /// The record; without it, the newest one made without -o.
    pub file: Option<PathBuf>,
    /// A second record: draw how its shares differ.
    ///
    /// It is drawn, coloured by how its shares differ from those of the first.
    #[arg(requires = "file", conflicts_with = "import")]
    pub after: Option<PathBuf>,
    /// The drawing to write [default: the record's name.svg].
    ///
    /// In the current folder, where none is named. `-` is standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Whose stacks: sut or load (the generator).
    #[arg(long, value_name = "ROLE", default_value = "sut")]
    pub role: FlameRole,
    /// Where threads waited, by time, instead of what ran.
    #[arg(long)]
    pub off_cpu: bool,
    /// Threads apart, by name.
    #[arg(long)]
    pub by_thread: bool,
    /// Print folded stacks instead of a drawing.
    ///
    /// A line is the frames joined by ';' and the samples (off the CPU nanoseconds); of two records the first's, scaled to the
    /// second's total, and the second's.
    #[arg(long, conflicts_with = "output")]
    pub folded: bool,
    /// Take the stacks from this file, as perf script prints them.
    ///
    /// The output of `perf script`, or folded stacks; `-` is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    pub import: Option<PathBuf>,
    /// Write them for `go tool pprof`.
    ///
    /// And for whatever else reads its format.
    #[arg(long, value_name = "FILE", conflicts_with = "after")]
    pub export_pprof: Option<PathBuf>,
    /// Write them for the Firefox Profiler, as JSON.
    ///
    /// It is at profiler.firefox.com.
    #[arg(long, value_name = "FILE", conflicts_with = "after")]
    pub export_firefox: Option<PathBuf>,
}

/// Whose stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FlameRole {
    /// The system under test.
    Sut,
    /// The load generator.
    Load,
}

impl From<FlameRole> for Role {
    fn from(role: FlameRole) -> Role {
        match role {
            FlameRole::Sut => Role::Sut,
            FlameRole::Load => Role::Load,
        }
    }
}
