//! The arguments of `tare ceiling`.

use super::output::OutputArgs;
use super::values;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// `tare ceiling`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tare ceiling                               all ceilings of this machine, in less than a minute
  tare ceiling --only loopback,reference     some of them
  tare ceiling --only fsync --dir /var/lib/postgresql
  tare ceiling --list                        what there is to measure
  tare ceiling --json | jq '.ceilings[] | {name, value: .estimate.value}'")]
pub struct CeilingArgs {
    /// Measure these alone: whole names, or how they begin.
    ///
    /// `memory-copy` is memory-copy-1, memory-copy-2 and so on. What is kept of the others stays.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub only: Vec<String>,
    /// List the ceilings; nothing is measured.
    #[arg(long, conflicts_with_all = ["dir", "only"])]
    pub list: bool,
    /// How long it may take.
    ///
    /// 2s to 10m. A longer one takes longer samples and more rounds; a shorter one has wider intervals.
    #[arg(long, value_name = "TIME", default_value = "45s", value_parser = values::duration)]
    pub budget: Duration,
    /// The folder whose disk is measured.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    #[command(flatten)]
    pub exports: OutputArgs,
    /// No progress on standard error.
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}
