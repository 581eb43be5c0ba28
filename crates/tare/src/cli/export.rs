//! Arguments of `tare export`.

use super::choice::ChoiceArgs;
use clap::Args;
use std::path::PathBuf;

/// `tare export`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tare export --format benchfmt last.tare > new.txt      for benchstat
  tare export --format bmf bench.json                    another tool's results, for Bencher
  tare export --format github-action-benchmark last.tare -o output.json")]
pub struct ExportArgs {
    /// The record, or another tool's results [default: the newest record].
    ///
    /// [default: the newest record that was made without -o]. `-` is standard input, for results of another tool.
    pub file: Option<PathBuf>,
    /// The format to write: 'tare help formats' lists them.
    #[arg(long, value_name = "FORMAT", value_parser = format_names())]
    pub format: String,
    #[command(flatten)]
    pub chosen: ChoiceArgs,
    /// The file to write [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

fn format_names() -> clap::builder::PossibleValuesParser {
    tare_formats::export::EXPORTS.iter().map(|export| export.name).collect::<Vec<_>>().into()
}
