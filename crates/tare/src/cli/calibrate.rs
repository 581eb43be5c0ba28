//! `tare calibrate`.

use super::output::OutputArgs;
use clap::Args;
use std::path::PathBuf;

/// What to inject, and how often.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tare calibrate                             all that can be injected here, three times each (about 12 minutes)
  tare calibrate --list                      what that is, and what cannot be injected here, with the reason
  tare calibrate --only quota --only none --repeats 1
  tare calibrate --only none --comparisons 20   how often a comparison calls a server different from itself
  tare calibrate -o calibration.json
  tare calibrate --zoo                       real programs that are installed here: nginx, Node, redis, PostgreSQL, … (about 20 minutes)
  tare calibrate --zoo --list                which programs that is, what is not installed, and how to install it
  tare calibrate --zoo --only nginx --only go/quota --records FOLDER --budget 90s

How: each run puts one cause up for real around the built-in server (a quota, a busy neighbour, too many threads, a lock, …),
holds an ordinary session as `tare run` does, and takes it down. A run is right if the bottleneck, or the first finding beside it,
is what was injected; one with nothing injected, if nothing is found but its bottleneck (the server's CPU or the generator). Losses
below 3 % limit nothing and count as notes. The order is drawn at random. What there is when it is interrupted is kept; after kill -9, `tare recover` takes down what was up.

Then the built-in server is compared with itself, as `tare compare` does, 10 s each: in how many comparisons any figure was called
different (they do not change the exit code, few tell little), and the smallest true change of throughput that one shows. The
spread of net is that of the runs in which the server and its requests are the same: none, quota, parent-quota, neighbour.

With --zoo: each program is started in ways of which it is known what limits it (a quota, one loop on two CPUs, workers that sleep, a full
server behind it, …) and measured by `tare run`; only the bottleneck that it names counts. With --records a run that has a record there is not
measured again but judged anew, so it can be gone on with. It does not take the place of the calibration report.

The calibration report is kept, and `tare doctor` shows it; one of some causes only does not take the place of a whole one.

Exit codes: 0 at least 95 % of the runs were right, and no undisturbed one raised an alarm; 1 not so; 2 bad usage;
130 interrupted (what was done is kept).")]
pub struct CalibrateArgs {
    /// How often each injection is measured.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: u32,
    /// Real programs that are installed, instead of the built-in server.
    #[arg(long, conflicts_with_all = ["comparisons", "seed"])]
    pub zoo: bool,
    /// With --zoo: begin no run after this time.
    #[arg(long, value_name = "TIME", requires = "zoo", value_parser = super::values::duration)]
    pub budget: Option<std::time::Duration>,
    /// This injection alone, with --zoo this program (or PROGRAM/TRUTH); may be given several times (see --list for the names).
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// Compare the built-in server with itself so often afterwards, 10 s each [default: 3; with --only: 0].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub comparisons: Option<u32>,
    /// Tell what can be injected here, and inject nothing.
    #[arg(long, conflicts_with_all = ["only", "comparisons", "seed", "output", "records"])]
    pub list: bool,
    /// Seed of the order [default: another one each time].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub exports: OutputArgs,
    /// Keep the result, with every run, as JSON in this file.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Keep the record of each run in this folder, for `tare show`, and each comparison as JSON.
    #[arg(long, value_name = "FOLDER")]
    pub records: Option<PathBuf>,
    /// No progress on standard error.
    #[arg(short, long)]
    pub quiet: bool,
}
