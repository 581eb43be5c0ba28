//! `tare plan`.

use super::output::OutputArgs;
use clap::Args;
use std::path::PathBuf;

/// Which plan, and what of it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tare plan plans/generator-layouts.toml
  tare plan plans/generator-layouts.toml --set trial=2s --set blocks=8
  tare plan --factor connections=1,8,64 --factor threads=1,2       the built-in server
  tare plan --set url=http://127.0.0.1:8080/ --factor 'sut=./old --port 8080' \\
            --factor 'sut=./new --port 8080'")]
pub struct PlanArgs {
    /// The plan, in TOML ('tare help plans' shows one).
    ///
    /// May be left out where --set or --factor is given.
    #[arg(required_unless_present_any = ["set", "factor"])]
    pub file: Option<PathBuf>,
    /// Set a key of the plan, as blocks=8; may be repeated.
    ///
    /// Also over what FILE says of all cases: blocks=8, trial=2s, 'sut=./server --port 8080'.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Vary a key, as threads=1,2; may be repeated.
    ///
    /// Every combination of levels is a cell; without a file each is compared with the first. Levels that are numbers stand in a list;
    /// other levels are given by repeating the option: --factor 'sut=./old' --factor 'sut=./new'.
    #[arg(long, value_name = "KEY=LEVEL,…")]
    pub factor: Vec<String>,
    /// Only judge the plan, and say what would be done.
    #[arg(long, conflicts_with_all = ["output", "json"])]
    pub dry_run: bool,
    /// Keep the record of each launch in this folder.
    #[arg(short, long, value_name = "FOLDER", help_heading = "Output")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub exports: OutputArgs,
    /// No progress on standard error.
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}
