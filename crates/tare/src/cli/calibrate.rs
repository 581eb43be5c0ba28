//! `tare calibrate`.

use super::output::OutputArgs;
use clap::Args;
use std::path::PathBuf;

/// What to inject, and how often.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tare calibrate                       all that can be injected here, three times each (12 minutes)
  tare calibrate --list                what that is, and why the rest cannot be injected here
  tare calibrate --only quota --only none --repeats 1
  tare calibrate --only none --comparisons 20   how often a server is called different from itself
  tare calibrate -o calibration.json
  tare calibrate --zoo                 real programs that are installed: nginx, Node, redis, …
  tare calibrate --zoo --list          which programs that is, and how to install the others
  tare calibrate --zoo --only nginx --only go/quota --records FOLDER --budget 90s")]
pub struct CalibrateArgs {
    /// How often each injection is measured.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: u32,
    /// Real programs that are installed, not the built-in server.
    ///
    /// Each program (nginx, Node, redis, PostgreSQL, …) is started in ways of which it is known what limits it: a quota, one loop on two
    /// CPUs, workers that sleep, a full server behind it, … 'tare run' measures it; only the bottleneck that it names counts. This takes
    /// about 20 minutes, and does not take the place of the calibration report.
    #[arg(long, conflicts_with_all = ["comparisons", "seed"])]
    pub zoo: bool,
    /// With --zoo: sessions as long as those of 'tare run' by itself.
    ///
    /// With the reference server and a saturating load, so that net is known as well: some 20 seconds each, in place of 7.
    #[arg(long, requires = "zoo")]
    pub long: bool,
    /// With --zoo: begin no run after this time.
    #[arg(long, value_name = "TIME", requires = "zoo", value_parser = super::values::duration)]
    pub budget: Option<std::time::Duration>,
    /// This injection alone, with --zoo this program; repeatable.
    ///
    /// With --zoo also PROGRAM/TRUTH, as go/quota. --list has the names.
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// Then compare the server with itself [default: 3].
    ///
    /// The built-in server, so often, 10 s each [default: 3; with --only: 0].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub comparisons: Option<u32>,
    /// List what can be injected here, and inject nothing.
    ///
    /// What cannot be injected is listed with the reason; with --zoo, programs that are not installed with how to install them.
    #[arg(long, conflicts_with_all = ["only", "comparisons", "seed", "output", "records"])]
    pub list: bool,
    /// Seed of the order [default: another one each time].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub exports: OutputArgs,
    /// Keep the result, with every run, as JSON in this file.
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Keep the record of each run in this folder.
    ///
    /// 'tare show' reads them; each comparison is kept as JSON. With --zoo a run that has a record there is not measured again but judged
    /// anew: an interrupted session can be continued.
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    pub records: Option<PathBuf>,
    /// No progress on standard error.
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}
