//! Arguments of `tare schema`.

use clap::Args;

/// `tare schema`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tare schema                    the names, and which commands print them
  tare schema run > run.json     what 'tare run --json' and 'tare show --json' print")]
pub struct SchemaArgs {
    /// Which output; without it, their names are listed.
    pub name: Option<String>,
}
