//! The arguments of `tare scale` that measure: what is varied, of which subject, under which load.

use super::run::{ProgramArgs, SutArgs};
use super::traffic::ShapeArgs;
use super::values::{self, CpuList};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use tare_run::scale::{Levels, Part, Work};

/// What makes load that is not tare's own.
const OWN_LOAD: [&str; 3] = ["connections", "threads", "rate"];

/// What measuring needs, and a file of figures does not.
pub const MEASURING: [&str; 12] = [
    "url",
    "command",
    "connections",
    "rate",
    "threads",
    "cpus",
    "n",
    "instances",
    "start",
    "load",
    "blocks",
    "records",
];

/// What to measure.
#[derive(Debug, Args)]
pub struct SweepArgs {
    /// The server to measure; without it, the built-in one.
    #[arg(value_name = "URL")]
    pub url: Option<String>,
    /// A program to measure instead of a server.
    #[arg(last = true, value_name = "COMMAND", num_args = 1.., allow_hyphen_values = true, conflicts_with_all = OWN_LOAD)]
    pub command: Vec<String>,

    #[command(flatten)]
    pub factors: FactorArgs,
    #[command(flatten)]
    pub design: DesignArgs,
    #[command(flatten)]
    pub sut: SutArgs,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub shape: ShapeArgs,
    #[command(flatten)]
    pub program: ProgramArgs,
}

/// What is varied: one of these takes several levels, the others one value.
#[derive(Debug, Args)]
#[command(next_help_heading = "Factors (one is varied: 1,2,4,8 or 1..64)")]
pub struct FactorArgs {
    /// Open connections of tare's generator.
    ///
    /// A list is taken as it is. Of a range the levels are chosen: 1, 2, 4, … first, then more where the curve bends, at most 9 in all.
    #[arg(short = 'c', long, value_name = "LEVELS")]
    pub connections: Option<Levels>,
    /// Requests per second (open loop).
    #[arg(short = 'R', long, value_name = "LEVELS")]
    pub rate: Option<Levels>,
    /// Threads of tare's generator.
    #[arg(short = 't', long = "load-threads", value_name = "LEVELS")]
    pub threads: Option<Levels>,
    /// CPUs that the server or the program may use.
    ///
    /// The first CPUs in this order: physical cores first, then their SMT siblings, each time node by node. The result shows the order.
    /// tare's generator stays on CPUs that the server gets at no level, where any are left.
    #[arg(long, value_name = "LEVELS", conflicts_with_all = ["sut_cpus", "placement"])]
    pub cpus: Option<Levels>,
    /// The value of {n}.
    ///
    /// {n} may stand in the command, in --sut, --load, --input, --setup, --prepare, --cleanup and in the URL. For a variable of the environment:
    /// --sut 'THREADS={n} ./server', or -- 'OMP_NUM_THREADS={n} ./program' (one quoted string goes through sh).
    #[arg(long, value_name = "LEVELS")]
    pub n: Option<Levels>,
    /// Copies of the server or the program that run at once.
    ///
    /// Each with its own load on its own CPUs, in a process of tare's own; each alone and several together, interleaved. {port} in --sut, in
    /// --load and in the URL is a free port of each, {i} its number from 1, {n} how many run. The result says what each keeps of its figure
    /// alone, how evenly they lose (Jain's index), and what took the rest: CPUs, memory, the kernel, what they call, generators, a quota.
    #[arg(long, value_name = "LEVELS", conflicts_with_all = ["cpus", "n", "sut_cpus", "placement", "sut_pid", "sut_group"])]
    pub instances: Option<Levels>,
    /// CPUs for each of the --instances [default: 1].
    ///
    /// In the order of --cpus: the first instance has the first ones. Where there are too few, some are shared, and there is a warning. CPUs
    /// that no instance has are for the load generators.
    #[arg(long, value_name = "N", requires = "instances", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub cpus_each: Option<u32>,
    /// Which instance this process measures: set by the one that starts it.
    #[arg(long, hide = true, value_name = "JSON", requires = "instances")]
    pub instance: Option<Part>,
}

/// How long and how often.
#[derive(Debug, Args)]
#[command(next_help_heading = "Trials")]
pub struct DesignArgs {
    /// Take no longer than this.
    ///
    /// It decides how long trials are and how many blocks there are. Three blocks are measured in any case.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = values::positive_duration)]
    pub budget: Duration,
    /// Measure each level so often [default: as --budget allows].
    ///
    /// Each level once in each block, on a fresh launch, in an order drawn at random.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub blocks: Option<u32>,
    /// Time per trial of a server [default: as --budget allows].
    #[arg(short = 'd', long, value_name = "TIME", conflicts_with = "command", value_parser = values::positive_duration)]
    pub duration: Option<Duration>,
    /// Load before the trial of a launch [default: 300ms].
    ///
    /// [default: 300ms; a server whose runtime compiles (Node, a JVM, .NET, …) until it is warm, 20 s at most]. For a program: runs before the
    /// counted ones [default: 0].
    #[arg(short = 'w', long, value_name = "TIME|RUNS")]
    pub warmup: Option<String>,
    /// Seed of the order [default: another one each time].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Units of work in each run of a program, as 1000 or {n}.
    ///
    /// The figure is then units per second. Without it, it is the result of a benchmark that the program prints ('tare help formats'; --metric
    /// chooses), else runs per second. {n} where a run does n times the work: as many copies, or n times the input.
    #[arg(long, value_name = "UNITS", requires = "command", allow_hyphen_values = true)]
    pub work: Option<Work>,
}

/// Whose load.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub struct LoadArgs {
    /// Hold the generator on these CPUs [default: not the SUT's].
    #[arg(long, value_name = "LIST", conflicts_with = "command", value_parser = values::cpu_list)]
    pub load_cpus: Option<CpuList>,
    /// Use this load generator, as 'wrk -t2 -c{n} -d2s URL'.
    ///
    /// It is started anew for each launch; {n} in it is replaced.
    #[arg(long = "load", value_name = "COMMAND", conflicts_with = "command", conflicts_with_all = OWN_LOAD)]
    pub load: Option<String>,
}

/// Where what was measured goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct KeptArgs {
    /// Keep the record of each launch in this folder.
    #[arg(short = 'o', long = "output", value_name = "FOLDER")]
    pub records: Option<PathBuf>,
    /// No progress on standard error.
    #[arg(short, long)]
    pub quiet: bool,
}
