//! The arguments of `tare doctor`.

use super::output::OutputArgs;
use clap::Args;
use std::path::PathBuf;
use tare_model::placement::Policy;

/// `tare doctor`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tare doctor                            one screen: what is bad, what to mind, what is fine
  tare doctor --no-probes                in a fraction of a second: files only
  tare doctor --topology                 packages, nodes, caches, and who should run where
  tare doctor --capture here.tar.gz      for somebody else to examine
  tare doctor --root here.tar.gz         somebody else's machine
  tare doctor --json | jq '.checks[] | select(.level == \"bad\")'")]
pub struct DoctorArgs {
    /// Say of every check what was found, and what to do.
    ///
    /// What was found, what it does to a figure, and what to do. Without it this is said of what is bad or to mind only.
    #[arg(short, long)]
    pub all: bool,
    /// Do not probe, and watch the others for a moment only.
    #[arg(long)]
    pub no_probes: bool,
    /// Examine a captured machine instead.
    ///
    /// A folder with proc and sys, or a tar, tar.gz or tar.bz2 of one. Nothing is probed.
    #[arg(long, value_name = "DIR|FILE")]
    pub root: Option<PathBuf>,
    /// Pack what would be read here, to be examined elsewhere.
    ///
    /// That and nothing else; no checks are made. `-` is standard output.
    #[arg(long, value_name = "FILE.tar.gz", conflicts_with_all = ["root", "json", "no_probes", "all"])]
    pub capture: Option<PathBuf>,
    /// Draw the machine, and who should run where [default: auto].
    ///
    /// Which CPUs SUT, generator, observers and interrupts should have: auto, spread, same-node, smt-pairs, random:SEED ('tare help
    /// placement' explains them).
    #[arg(long, value_name = "POLICY", num_args = 0..=1, require_equals = true, default_missing_value = "auto",
          conflicts_with_all = ["json", "no_probes", "capture"])]
    pub topology: Option<Policy>,
    #[command(flatten)]
    pub exports: OutputArgs,
    /// No progress on standard error.
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}
