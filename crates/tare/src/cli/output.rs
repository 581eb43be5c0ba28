//! Where results go.

use clap::Args;
use std::path::{Path, PathBuf};

/// Where results go besides the terminal.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Print the result as one JSON object.
    ///
    /// 'tare schema' prints its schema.
    #[arg(long)]
    pub json: bool,
    /// Write the figures as CSV; `-` is standard output.
    ///
    /// In base units; of a run its trials. With `-` they take the place of the result.
    #[arg(long, value_name = "FILE")]
    pub export_csv: Option<PathBuf>,
    /// Write the result as Markdown tables; `-` is standard output.
    ///
    /// With `-` they take the place of the result.
    #[arg(long, value_name = "FILE")]
    pub export_markdown: Option<PathBuf>,
    /// Write the result as one HTML page; `-` is standard output.
    ///
    /// The page needs nothing but itself. With `-` it takes the place of the result.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

impl OutputArgs {
    /// Whether an export takes the place of the result on standard output.
    pub fn takes_stdout(&self) -> bool {
        self.files().any(|path| path == Path::new("-"))
    }

    /// All that is written besides.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        [&self.export_csv, &self.export_markdown, &self.html].into_iter().flatten().map(PathBuf::as_path)
    }
}
