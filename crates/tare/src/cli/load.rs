//! The arguments of `tare load`.

use super::output::OutputArgs;
use super::traffic::TrafficArgs;
use super::values::{self, CpuList};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use tare_model::threshold::Threshold;

/// `tare load`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tare load -t1 -c64 -d10s --latency http://127.0.0.1:8080/  as fast as it answers (closed loop)
  tare load -R 5000 -d10s http://127.0.0.1:8080/             5,000 a second (open loop)
  tare load --find 'p99<5ms' -d30s http://127.0.0.1:8080/    the highest rate that holds this
  tare load -c1 --busy-poll http://127.0.0.1:8080/           no wake-up in its latency
  tare load --steps 1k-20k:30s http://127.0.0.1:8080/        a ramp
  tare load --fail-if 'p99>20ms' http://127.0.0.1:8080/      a gate: exit code 1 where that is so")]
pub struct LoadArgs {
    /// Where the load goes.
    #[arg(value_name = "URL")]
    pub url: String,
    /// Length of the whole run [default: 10s].
    ///
    /// With --steps the default is their length.
    #[arg(short = 'd', long, value_name = "TIME", value_parser = values::positive_duration)]
    pub duration: Option<Duration>,
    /// Leave this much at the beginning out of the figures.
    ///
    /// It is a part of --duration.
    #[arg(short = 'w', long, value_name = "TIME", default_value = "0s", value_parser = values::duration)]
    pub warmup: Duration,
    /// Stop after this many requests.
    ///
    /// At the latest after the run's length.
    #[arg(short = 'n', long, value_name = "N", value_parser = values::count)]
    pub requests: Option<u64>,
    /// Find the highest rate that holds this, as 'p99<5ms'.
    ///
    /// A closed loop shows where to begin; then runs at one rate each follow, within --duration. A rate holds where the latency is below
    /// the bound, and 99 % of the scheduled requests are answered without an error.
    #[arg(long, value_name = "OBJECTIVE", value_parser = values::objective, conflicts_with_all = ["rate", "steps", "think", "requests"])]
    pub find: Option<values::Objective>,

    /// Exit code 1 where this is so, as 'p99 > 20ms'; repeatable.
    ///
    /// A figure beyond a bound: 'p99 > 20ms', 'errors > 1%', 'throughput < 5000'; may be given several times.
    #[arg(long, value_name = "BOUND")]
    pub fail_if: Vec<Threshold>,

    #[command(flatten)]
    pub traffic: TrafficArgs,
    /// Hold the generator on these CPUs, as 0-3,8.
    ///
    /// The first thread on the first CPU, the second on the second, and so on round.
    #[arg(long, value_name = "LIST", value_parser = values::cpu_list, help_heading = "Load")]
    pub load_cpus: Option<CpuList>,

    /// Print the whole distribution of latencies.
    #[arg(short = 'L', long, help_heading = "Output")]
    pub latency: bool,
    #[command(flatten)]
    pub exports: OutputArgs,
    /// Write the latencies of each second as an HdrHistogram log.
    ///
    /// An interval log (V2), in nanoseconds.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub hdr: Option<PathBuf>,
    /// Write rate, p50 and p99 of each 100 ms as CSV.
    ///
    /// `-` is standard output.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub series: Option<PathBuf>,
    /// wrk's Lua script, to learn what does its work here.
    #[arg(short = 's', long, hide = true, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// As of `tare run`, to learn why not here.
    #[arg(long, hide = true, value_name = "SHARE")]
    pub precision: Option<String>,
    /// The same.
    #[arg(long, hide = true, value_name = "TIME")]
    pub budget: Option<String>,
    /// No progress on standard error.
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}
