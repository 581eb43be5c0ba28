//! The arguments of `tare run`.

use super::choice::ChoiceArgs;
use super::output::OutputArgs;
use super::traffic::{self, TrafficArgs};
use super::values::{self, CpuList};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use tare_model::placement::Policy;

/// `tare run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tare run http://127.0.0.1:8080/       the server that answers there
  tare run --sut './server --port 8080' http://127.0.0.1:8080/    started, measured and stopped
  tare run -- sort big.txt              a program that ends; one quoted string goes through sh
  tare run                              the built-in server: what this machine can do
  tare run --load 'wrk -t4 -c500 -d20s http://127.0.0.1:8080/'
  tare run --precision 1% --budget 5m http://127.0.0.1:8080/")]
pub struct RunArgs {
    /// The server to measure; without it, the built-in one.
    #[arg(value_name = "URL")]
    pub url: Option<String>,
    /// A program to measure instead of a server.
    #[arg(last = true, value_name = "COMMAND", num_args = 1.., allow_hyphen_values = true,
          conflicts_with_all = traffic::ALL)]
    pub command: Vec<String>,

    #[command(flatten)]
    pub sut: SutArgs,
    #[command(flatten)]
    pub traffic: TrafficArgs,
    #[command(flatten)]
    pub generator: GeneratorArgs,
    #[command(flatten)]
    pub program: ProgramArgs,
    #[command(flatten)]
    pub parameters: ParameterArgs,
    #[command(flatten)]
    pub trials: TrialArgs,
    #[command(flatten)]
    pub stacks: StackArgs,
    #[command(flatten)]
    pub output: OutputArgs,

    /// Trace each switch and wake-up of the SUT (root).
    ///
    /// It shows why each thread slept and behind whom it waited, exactly, for some microseconds of each sleep. Without it, a hundred
    /// samples a second show it.
    #[arg(long, help_heading = "Call stacks and tracing")]
    pub trace: bool,
    /// Keep the record in this file, for tare show, why, report.
    ///
    /// Without it the record is one of the last 20 ('tare help records').
    #[arg(short = 'o', long = "output", value_name = "FILE.tare", help_heading = "Output")]
    pub record: Option<PathBuf>,
    /// No progress on standard error.
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}

/// Where the SUT comes from and where it runs.
#[derive(Debug, Args)]
#[command(next_help_heading = "System under test")]
pub struct SutArgs {
    /// Start this server through sh, and stop it afterwards.
    ///
    /// It is waited for until URL answers (without one: until it listens). The first word `tare` is this very program.
    #[arg(long = "sut", value_name = "COMMAND", conflicts_with_all = ["sut_pid", "sut_group", "command"])]
    pub start: Option<String>,
    /// The server is this process and its descendants.
    #[arg(long, value_name = "PID", conflicts_with = "command",
          value_parser = clap::value_parser!(u32).range(2..))]
    pub sut_pid: Option<u32>,
    /// The server is all processes of this control group.
    ///
    /// A path as in /proc/PID/cgroup, or a name alone (nginx.service).
    #[arg(long, value_name = "GROUP", conflicts_with_all = ["sut_pid", "command"])]
    pub sut_group: Option<String>,
    /// Hold the SUT on these CPUs, as 0-3,8.
    ///
    /// One that was already running is put back afterwards.
    #[arg(long, value_name = "LIST", value_parser = values::cpu_list)]
    pub sut_cpus: Option<CpuList>,
    /// Choose its CPUs: auto, spread, same-node, smt-pairs, random:SEED.
    ///
    /// For a SUT that tare starts. 'tare help placement' explains them.
    #[arg(long, value_name = "POLICY", conflicts_with_all = ["sut_cpus", "sut_pid", "sut_group", "command"])]
    pub placement: Option<Policy>,
    /// Set GOMAXPROCS and the like for what the SUT may use.
    ///
    /// It is started with GOMAXPROCS, GOMEMLIMIT and JAVA_TOOL_OPTIONS for the CPUs and the memory that it may use (quota and limit
    /// included); what is set already stays.
    #[arg(long, conflicts_with_all = ["sut_pid", "sut_group"])]
    pub fit_runtime: bool,
    /// How long a started server may take to answer [default: 30s].
    ///
    /// To answer, or to listen where no URL is given.
    #[arg(long, value_name = "TIME", requires = "start", value_parser = values::positive_duration)]
    pub start_timeout: Option<Duration>,
}

/// Whose load, and how much beside it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub struct GeneratorArgs {
    /// Hold the generator on these CPUs [default: not the SUT's].
    ///
    /// [default: other physical cores than the SUT's, where there are any]
    #[arg(long, value_name = "LIST", conflicts_with = "command", value_parser = values::cpu_list)]
    pub load_cpus: Option<CpuList>,
    /// Use this load generator, as 'wrk -t4 -c64 -d20s URL'.
    ///
    /// It is started anew for each trial. What it prints is read if its tool is known ('tare help formats'); of any other, its CPU time and
    /// the server's. Without a URL the server is who it is connected to.
    #[arg(long = "load", value_name = "COMMAND", conflicts_with_all = ["command", "load_pid"], conflicts_with_all = traffic::ALL)]
    pub load: Option<String>,
    /// Watch this running generator; its requests are not counted.
    ///
    /// They cannot be counted.
    #[arg(long, value_name = "PID", conflicts_with = "command", conflicts_with_all = traffic::ALL,
          value_parser = clap::value_parser!(u32).range(2..))]
    pub load_pid: Option<u32>,
    /// Drive only the load that was asked for.
    ///
    /// Not also a saturating one (which net is taken from) and the reference server.
    #[arg(long, conflicts_with = "command")]
    pub no_levels: bool,
    /// Do not load tare's own server interleaved with the SUT.
    ///
    /// It runs on the SUT's CPUs, and the machine's interference is taken out of net by it. It takes 6 seconds, and is left out for TLS,
    /// HTTP/2, Unix sockets and other hosts.
    #[arg(long, conflicts_with = "command")]
    pub no_reference: bool,
    /// Try afterwards whether that is the bottleneck (9 s more).
    ///
    /// A little of that one resource (CPU time, a quota, connections, the rate, the generator's CPUs) is changed in 8 pairs of short trials,
    /// and the result says whether throughput follows; some 9 s more. Where nothing can be tried on the bottleneck, the first finding that
    /// can be is tried. What is changed is put back.
    #[arg(long, conflicts_with_all = ["command", "load", "load_pid"])]
    pub confirm: bool,
    /// Try layouts of the generator first, and take the best.
    ///
    /// One thread, or one for each CPU; on the CPUs that tare would choose, all but the server's, or all: at most 8 in short trials one after
    /// the other. Of those with the highest rate the one whose generator has the most CPU time left is taken; some 5 s more.
    #[arg(long, conflicts_with_all = ["command", "load", "load_pid", "load_cpus", "threads"])]
    pub find_layout: bool,
}

/// Trials.
#[derive(Debug, Args)]
#[command(next_help_heading = "Trials")]
pub struct TrialArgs {
    /// Time per trial [default: 1s].
    ///
    /// With --steps it is their length.
    #[arg(short = 'd', long, value_name = "TIME", conflicts_with_all = ["command", "load"],
          value_parser = values::positive_duration)]
    pub duration: Option<Duration>,
    /// How many trials [default: 8], or runs of a program.
    ///
    /// [default: 8; with --load 3; for a program at least 10 and 3 s]
    #[arg(long, visible_alias = "runs", value_name = "N", conflicts_with_all = ["precision", "budget"],
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub trials: Option<u32>,
    /// Go on until net is known to ± this, as 1%.
    ///
    /// Instead of a number of trials: until the 95 % interval of net is as narrow, or until --budget is used up. It is the interval of gross
    /// where the reference server is not beside the SUT in every block (--no-reference, --no-levels, a short --budget); of a program, of the
    /// time of a run, or of the results of a benchmark that it prints: of all, or of those that --benchmark and --metric choose. The interval holds for an analysis after each trial, so that it is no narrower for having been waited for; it takes
    /// 8 trials to have one.
    #[arg(long, value_name = "PERCENT", value_parser = values::percent)]
    pub precision: Option<f64>,
    /// Trials may take so long [default with --precision: 60s].
    ///
    /// With the load before them, but not what --find-layout and --confirm take; several programs share it. Without --precision as many
    /// trials as fit, of a program 1000 runs at most. Early in a budget intervals are wide: a run with a budget of many times what is needed
    /// takes longer.
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    pub budget: Option<Duration>,
    /// Load before the first trial [default: until it is steady].
    ///
    /// [default: until the rate is at one level (with --rate and --think: and latencies do not fall any more), 1.5 to 20 s]. For a program:
    /// runs before the counted ones [default: 0].
    #[arg(short = 'w', long, value_name = "TIME|RUNS")]
    pub warmup: Option<String>,
    /// State net at this clock [default: the fastest seen].
    ///
    /// The fastest that was seen in this run; as 2.8GHz.
    #[arg(long, value_name = "HZ", value_parser = values::clock_hz)]
    pub ref_clock: Option<f64>,
}

/// Samples of stacks per second unless others are asked for: not a divisor of any timer's rate, so that they do not always fall on its ticks.
pub const STACKS_HZ: u32 = 999;

/// How callers are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum UnwindChoice {
    /// By the kernel, while it samples; code built without them hides its callers.
    FramePointers,
    /// From a copy of 8 KiB of each stack, after the trial: more CPU time, and 256 MB of copies a trial at most.
    Dwarf,
}

/// Call stacks, for `tare flame` and `tare why`.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Call stacks and tracing")]
pub struct StackArgs {
    /// Sample call stacks in every trial, HZ times [default: 999].
    ///
    /// They keep which code ran, the server's and the generator's: so many samples a second of CPU time, up to 10,000, which cost some 2 % of
    /// it. Without this they are sampled for 1.6 s after the trials, in no figure; 0: not at all.
    #[arg(long, value_name = "HZ", num_args = 0..=1, require_equals = true, default_missing_value = "999",
          conflicts_with = "command", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub stacks: Option<u32>,
    /// Find callers by frame-pointers [default] or dwarf.
    ///
    /// In the program's own code.
    #[arg(
        long,
        value_name = "HOW",
        default_value = "frame-pointers",
        hide_default_value = true,
        conflicts_with = "command"
    )]
    pub stacks_unwind: UnwindChoice,
    /// Keep where threads waited as well, and for how long.
    ///
    /// By a sample at each of their switches.
    #[arg(long, conflicts_with = "command")]
    pub stacks_off_cpu: bool,
}

/// How a program is run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Program")]
pub struct ProgramArgs {
    /// Run this once before the first run of each command.
    #[arg(long, value_name = "CMD", requires = "command")]
    pub setup: Option<String>,
    /// Run this before each run; not timed.
    #[arg(short = 'p', long, value_name = "CMD", requires = "command")]
    pub prepare: Option<String>,
    /// Run this once after the last run of each command.
    #[arg(long, value_name = "CMD", requires = "command")]
    pub cleanup: Option<String>,
    /// The shell for a command given as one string.
    #[arg(short = 'S', long, value_name = "SHELL", requires = "command", conflicts_with = "no_shell")]
    pub shell: Option<String>,
    /// No shell: split the string into words, run the program.
    ///
    /// The program itself is run.
    #[arg(short = 'N', long = "no-shell", requires = "command")]
    pub no_shell: bool,
    /// A non-zero exit code is not an error.
    #[arg(short = 'i', long, requires = "command")]
    pub ignore_failure: bool,
    /// Let the program write to this terminal.
    #[arg(long, requires = "command")]
    pub show_output: bool,
    /// What the program reads: a file or a text [default: nothing].
    ///
    /// From standard input: a file, or, where there is none of that name, the text itself.
    #[arg(long, value_name = "FILE|TEXT", requires = "command", allow_hyphen_values = true)]
    pub input: Option<String>,
    /// Run the program in a terminal of its own (80 x 24).
    #[arg(long, requires = "command")]
    pub pty: bool,
    /// End a run that takes longer; it has failed then.
    #[arg(long, value_name = "TIME", requires = "command", value_parser = values::positive_duration)]
    pub time_limit: Option<Duration>,
    #[command(flatten)]
    pub chosen: ChoiceArgs,
}

/// What is varied in its command.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Program")]
pub struct ParameterArgs {
    /// Run once for each value, in place of {NAME}.
    ///
    /// {NAME} in the command is replaced by it.
    #[arg(short = 'L', long, num_args = 2, value_names = ["NAME", "A,B,…"], requires = "command",
          action = clap::ArgAction::Append)]
    pub parameter_list: Vec<String>,
    /// Run once for each number from MIN to MAX.
    #[arg(short = 'P', long, num_args = 3, value_names = ["NAME", "MIN", "MAX"], requires = "command",
          allow_hyphen_values = true)]
    pub parameter_scan: Vec<String>,
    /// Step of --parameter-scan.
    #[arg(short = 'D', long, value_name = "STEP", requires = "parameter_scan", default_value = "1")]
    pub parameter_step_size: String,
}
