//! The arguments of `tare why`.

use super::output::OutputArgs;
use clap::Args;
use std::path::PathBuf;

/// `tare why`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tare why before.tare after.tare        which part of the difference is what
  tare why before.tare after.tare -o why.html
  tare why after.tare                    one run: what was the bottleneck, where its time went
  tare run -o before.tare http://127.0.0.1:8080/      how the first record is made
  tare why a.tare b.tare --json | jq '.differences[] | select(.kind == \"environment\")'")]
pub struct WhyArgs {
    /// The run to explain, or to compare with [default: newest].
    ///
    /// Without it: the newest one made without -o. Of another tool's results ('tare help formats') what differs is shown.
    pub a: Option<PathBuf>,
    /// The run to compare.
    pub b: Option<PathBuf>,
    #[command(flatten)]
    pub exports: OutputArgs,
    /// The same as --html FILE, and nothing on the terminal.
    #[arg(short, long, value_name = "FILE.html", conflicts_with = "json", help_heading = "Output")]
    pub output: Option<PathBuf>,
}
