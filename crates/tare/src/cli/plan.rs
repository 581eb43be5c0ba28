//! `tare plan`.

use super::output::OutputArgs;
use clap::Args;
use std::path::PathBuf;

/// Which plan, and what of it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tare plan plans/generator-layouts.toml
  tare plan plans/generator-layouts.toml --set trial=2s --set blocks=8
  tare plan --factor connections=1,8,64 --factor threads=1,2             the built-in server; each against the first
  tare plan --set url=http://127.0.0.1:8080/ --factor 'sut=./old --port 8080' --factor 'sut=./new --port 8080'

A plan, in TOML (all keys but the cases' names may be left out):

  name = \"threads of the generator\"
  url = \"http://127.0.0.1:8080/\"      # without it, the built-in server
  sut = \"./server --port 8080\"        # started anew for each launch; without it, who answers at the URL
  blocks = 5                          # each cell once in each, on a fresh launch, in an order drawn at random
  reruns = 2                          # so many that the host disturbed (steal, a quota) are measured once more; the less disturbed one counts
  budget = \"3m\"                       # instead of blocks: as many as fit
  precision = \"2%\"                    # ends before that, once throughput is known so well against the
                                      # baseline's; blocks: about what may be needed, 8 at least
  trials = 1                          # in a launch; trial = \"1s\" each, after warmup = \"500ms\"
                                      # (left out: a server whose runtime compiles is warmed until it is steady)
  start_timeout = \"30s\"               # a server that is started may take so long until it answers
  connections = 64                    # also sut_cpus, load_cpus, threads, rate, pipeline,
                                      # header = \"Connection: close\"
  baseline = \"one\"                    # the case that others are held against; without it, the first

  [factors]                           # every combination is a cell in every case
  pipeline = [1, 8]

  [[case]]
  name = \"one\"
  threads = 1

  [[case]]
  name = \"four\"
  threads = 4
  baseline = \"two\"                    # held against this case instead
  needs_cpus = 8                      # left out on smaller machines
  expect = \"p99 up; throughput same within 10%; sut.voluntary_switches = 0; bottleneck = server-cpu-bound\"

What can be expected of a figure: up, down (by 20%), same (within 10%), against the baseline; =, <, > a number.
Figures: throughput, net, cpu_per_request, load.cpu_per_request, p50, p90, p99, p99.9, p99.99, mean, max,
sut.voluntary_switches and sut.involuntary_switches (a second and thread that serves), sut.busy (CPUs), and load. for
each of these; sut.softirq (of the busy time of its CPUs); sut.lock_contention (the kernel's locks, of the serving threads'
time) and sut.cross_cpu_wakeups (a second), which turn tracing on; and bottleneck = CAUSE.

Exit code 1: an expectation did not hold.")]
pub struct PlanArgs {
    /// The plan.
    #[arg(required_unless_present_any = ["set", "factor"])]
    pub file: Option<PathBuf>,
    /// Set a key of the plan, also over what FILE says of all cases: blocks=8, trial=2s, 'sut=./server --port 8080'. Repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Vary a key: every combination of levels is a cell. Levels of numbers in a list, others by repeating the flag.
    #[arg(long, value_name = "KEY=LEVEL,…")]
    pub factor: Vec<String>,
    /// Only judge the plan and tell what would be done.
    #[arg(long, conflicts_with_all = ["output", "json"])]
    pub dry_run: bool,
    /// Keep the record of each launch in this folder.
    #[arg(short, long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub exports: OutputArgs,
    /// No progress on standard error.
    #[arg(short, long)]
    pub quiet: bool,
}
