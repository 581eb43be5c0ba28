//! The arguments of `tare explain`.

use super::output::OutputArgs;
use clap::Args;

/// `tare explain`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tare explain                        every cause in a line
  tare explain server-cpu-bound       what it means, its evidence, what to do, how to confirm it
  tare explain --json | jq -r '.[].cause'")]
pub struct ExplainArgs {
    /// The cause; without it, all are listed.
    pub cause: Option<String>,
    #[command(flatten)]
    pub exports: OutputArgs,
}
