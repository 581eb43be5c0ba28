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
#[command(override_usage = "tare gate [OPTIONS] RECORD|RESULTS --baseline BASE | --history FILE.jsonl
       tare gate [OPTIONS] --sut NEW --against OLD [URL]
       tare gate [OPTIONS] --command NEW --against OLD")]
#[command(after_help = "Examples:
  tare gate --sut './new --port {port}' --against './old --port {port}' /plaintext
  tare gate new.tare --history main.jsonl          against the level that the branch has come to
  tare gate new.tare --baseline base.tare          against one run, as of the branch's base
  tare gate new.txt --baseline old.txt             results of 'go test -bench', JMH, hyperfine, …
  tare gate --command './new.test' --against './old.test'
  tare gate new.tare --baseline base.tare --fail-if 'net < -2%' --fail-if 'p99 > 10%'
  tare gate new.tare --history main.jsonl --keep --label \"$(git rev-parse --short HEAD)\"
  tare gate new.tare --history main.jsonl --json | jq '.change_points'
  tare run -o new.tare --sut './server --port 8080' http://127.0.0.1:8080/   makes new.tare")]
pub struct GateArgs {
    /// The record or results to judge; with --sut a path, as /plaintext.
    ///
    /// With --sut it is what to ask for: a path, or http://127.0.0.1:{port}/path [default: /].
    #[arg(value_name = "RECORD|URL", required_unless_present_any = ["sut", "command"], conflicts_with = "command")]
    pub new: Option<PathBuf>,
    /// Start the new build of a server like this.
    ///
    /// Through sh, with a port in place of {port}.
    #[arg(
        long,
        value_name = "COMMAND",
        requires = "against_build",
        conflicts_with = "command",
        help_heading = "Both builds"
    )]
    pub sut: Option<String>,
    /// Run the new build of a command like this (without a shell).
    ///
    /// Where it prints the results of a benchmark, each metric is judged; otherwise its time is.
    #[arg(long, value_name = "COMMAND", requires = "against_build", help_heading = "Both builds")]
    pub command: Option<String>,
    /// The same for the old build.
    ///
    /// Both are measured here, interleaved.
    #[arg(id = "against_build", long = "against", value_name = "COMMAND", conflicts_with_all = ["label", "keep"], help_heading = "Both builds")]
    pub against: Option<String>,
    /// Measure for no longer than this [default: 60s].
    #[arg(long, value_name = "TIME", requires = "against_build", value_parser = values::positive_duration, help_heading = "Both builds")]
    pub budget: Option<Duration>,
    /// Hold it against this record, or file of results.
    #[arg(long, value_name = "BASE", help_heading = "Records")]
    pub baseline: Option<PathBuf>,
    /// Hold it against the runs in this file, one a line.
    ///
    /// A file that is not there yet holds none.
    #[arg(long, value_name = "FILE.jsonl", help_heading = "Records")]
    pub history: Option<PathBuf>,
    /// Add the run to the history, after it was judged.
    ///
    /// A result that is not valid is not added. A run that is kept counts from then on, whether it failed or not: keep those of the
    /// branch itself.
    #[arg(long, requires = "history", conflicts_with = "baseline", help_heading = "Records")]
    pub keep: bool,
    /// What the run is called, as its commit [default: its file].
    #[arg(long, value_name = "NAME", value_parser = label, help_heading = "Records")]
    pub label: Option<String>,
    /// Exit code 1 if this is proven, as 'net < -2%'; repeatable.
    ///
    /// Proven means that its whole interval is beyond it; may be given several times. Figures: throughput, net, cpu_per_request, p50, p90,
    /// p99, p99.9; of commands time, cpu_time [default: net < -5%, or throughput < -5% where net cannot be compared; of commands
    /// time > 5%, unless they print the results of a benchmark].
    #[arg(long, value_name = "CONDITION", value_parser = condition, help_heading = "What fails it")]
    pub fail_if: Vec<Condition>,
    /// Of results: exit code 1 where one is worse by more [default: 5%].
    ///
    /// Of files, and of what --command prints. One metric or several, each with its whole interval; exit code 4 where a metric could not
    /// be judged.
    #[arg(long, value_name = "PERCENT", conflicts_with = "fail_if", value_parser = values::worse, help_heading = "What fails it")]
    pub fail_if_worse: Option<f64>,
    /// Exit code 4 where a condition could not have been shown.
    ///
    /// Where it asks for a smaller change than would have been found.
    #[arg(long, help_heading = "What fails it")]
    pub strict: bool,
    /// Differences up to this do not matter.
    ///
    /// `no difference` is then said.
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = values::percent, help_heading = "What fails it")]
    pub margin: f64,
    #[command(flatten)]
    pub exports: OutputArgs,
    /// No progress on standard error.
    #[arg(short, long, help_heading = "Output")]
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
