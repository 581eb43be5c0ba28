//! Where results go.

use clap::Args;
use std::path::{Path, PathBuf};

/// Where results go besides the terminal.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Print the result as one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Write the trials as CSV; `-` is standard output, in place of the result.
    #[arg(long, value_name = "FILE")]
    pub export_csv: Option<PathBuf>,
    /// Write the result as Markdown tables; `-` is standard output, in place of the result.
    #[arg(long, value_name = "FILE")]
    pub export_markdown: Option<PathBuf>,
}

impl OutputArgs {
    /// Whether an export takes the place of the result on standard output.
    pub fn takes_stdout(&self) -> bool {
        [&self.export_csv, &self.export_markdown].into_iter().flatten().any(|path| path == Path::new("-"))
    }
}
