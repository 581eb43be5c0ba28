//! The arguments of `tare gate`.

use super::output::OutputArgs;
use super::values;
use clap::{ArgGroup, Args};
use std::path::PathBuf;
use std::time::Duration;
use tare_model::comparison::Figure;
use tare_model::condition::Condition;

/// `tare gate`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("against").required(true).args(["baseline", "history", "against_build"])))]
#[command(after_help = "Examples:
  tare run -o new.tare --sut './server --port 8080' http://127.0.0.1:8080/
  tare gate --sut './new --port {port}' --against './old --port {port}' /plaintext     both builds, measured here: the sharpest
  tare gate --command './new.test' --against './old.test'
  tare gate new.tare --baseline base.tare                   against one run, of the branch's base for instance
  tare gate new.tare --baseline base.tare --fail-if 'net < -2%' --fail-if 'p99 > 10%'
  tare gate new.tare --history main.jsonl                   against the level that the branch has come to
  tare gate new.tare --history main.jsonl --keep --label \"$(git rev-parse --short HEAD)\"
  tare gate new.tare --history main.jsonl --json | jq '.change_points'

Net and the CPU time of a request are taken in units of tare's own server where both records measured it interleaved with the
program ('tare run' does, unless it is switched off): what the machine does to both is then not in them, and machines of other
kinds can be compared. Throughput and latencies are compared on machines of one kind only.

Which is best: both builds measured here (--against). Every launch starts both afresh, the old one twice, and loads them interleaved;
what the old one differs by from itself is not counted as a difference. It takes --budget at most, and less once enough is known. 'tare compare' does the same
with more arguments. Without the old build: two records know what trials of a run differ by, not what each launch changes. A history knows that after 5 runs:
its intervals are those in which one more run of the same program would lie; where its level has shifted it counts from
there on, and says since which run. A run that is kept counts from then on, whether it failed or not: keep those of the
branch itself.

Without --fail-if: 'net < -5%', or 'throughput < -5%' where net cannot be compared; of commands 'time > 5%'. The first line says
how large a loss must be to be found. Where that is more than a condition asks for, there is a warning.

Exit codes: 0 nothing was proven, or the history is too short yet; 1 a condition was proven; 2 a file cannot be read, or
holds something else; 3 a build failed; 4 a result is not valid, a condition could not be judged, or, with --strict, could not have been shown.")]
pub struct GateArgs {
    /// The record of the run to judge. With --sut: what to ask for, a path or http://127.0.0.1:{port}/path [default: /].
    #[arg(value_name = "RECORD|URL", required_unless_present_any = ["sut", "command"], conflicts_with = "command")]
    pub new: Option<PathBuf>,
    /// Start the new build of a server like this (through sh), with a port in place of {port}.
    #[arg(
        long,
        value_name = "COMMAND",
        requires = "against_build",
        conflicts_with = "command",
        help_heading = "Both builds"
    )]
    pub sut: Option<String>,
    /// Run the new build of a command like this (without a shell).
    #[arg(long, value_name = "COMMAND", requires = "against_build", help_heading = "Both builds")]
    pub command: Option<String>,
    /// The same for the old build: both are measured here, interleaved.
    #[arg(id = "against_build", long = "against", value_name = "COMMAND", conflicts_with_all = ["label", "keep"], help_heading = "Both builds")]
    pub against: Option<String>,
    /// Measure for no longer than this [default: 60s].
    #[arg(long, value_name = "TIME", requires = "against_build", value_parser = values::positive_duration, help_heading = "Both builds")]
    pub budget: Option<Duration>,
    /// Hold it against this record.
    #[arg(long, value_name = "BASE.tare")]
    pub baseline: Option<PathBuf>,
    /// Hold it against the runs in this file, one a line; one that is not there yet holds none.
    #[arg(long, value_name = "FILE.jsonl")]
    pub history: Option<PathBuf>,
    /// Add the run to the history, after it was judged; a result that is not valid is not added.
    #[arg(long, requires = "history", conflicts_with = "baseline")]
    pub keep: bool,
    /// What the run is called, for instance its commit [default: the record's file].
    #[arg(long, value_name = "NAME", value_parser = label)]
    pub label: Option<String>,
    /// Exit with code 1 if this is proven (its whole interval is beyond it); may be given several times. Figures: throughput, net,
    /// cpu_per_request, p50, p90, p99, p99.9; of commands time, cpu_time [default: net < -5%; of commands time > 5%].
    #[arg(long, value_name = "CONDITION", value_parser = condition)]
    pub fail_if: Vec<Condition>,
    /// Exit with code 4 where a condition asks for a smaller change than would have been found.
    #[arg(long)]
    pub strict: bool,
    /// Differences up to this do not matter: `no difference` is then said.
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = values::percent)]
    pub margin: f64,
    #[command(flatten)]
    pub exports: OutputArgs,
    /// No progress on standard error.
    #[arg(short, long)]
    pub quiet: bool,
}

fn condition(text: &str) -> Result<Condition, String> {
    Condition::of(text, Figure::all())
}

/// Longer names are no names.
const LABEL_CHARS_MAX: usize = 200;

fn label(text: &str) -> Result<String, String> {
    let fits =
        !text.is_empty() && text.chars().count() <= LABEL_CHARS_MAX && !text.contains(char::is_control);
    fits.then(|| text.to_owned()).ok_or_else(|| {
        format!("a name has 1 to {LABEL_CHARS_MAX} characters and is one line, as \"$(git rev-parse --short HEAD)\"")
    })
}
