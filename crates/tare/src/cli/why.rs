//! The arguments of `tare why`.

use super::output::OutputArgs;
use clap::Args;
use std::path::PathBuf;

/// `tare why`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tare run -o a.tare http://127.0.0.1:8080/      before …
  tare run -o b.tare http://127.0.0.1:8080/      … and after a change
  tare why a.tare b.tare                         which part of the difference is what
  tare why a.tare b.tare -o why.html             the same as a page
  tare why a.tare b.tare --json | jq '.differences[] | select(.kind == \"environment\")'
  tare why a.tare                                one run: what held it, where its time went

How to read it: the rate of requests is X = b · f / C, with b CPUs busy, f their clock and C the cycles of a request.
So ln(B/A) falls apart exactly into what became of b (its CPU entitlement, and each loss out of it: no work, throttled,
preempted …), of the clock and of the cost; the parts sum to the whole. A part of +0.10 made B about 10 % faster.
The intervals hold all together: one that has 0 in it may be chance, one that has not is a change. They know what
trials differ by, not what runs do: for a small difference, measure A and B again in turn.

Ends with 0 when there is an account, however small the difference; 2 when a file cannot be read or the two cannot be
compared.")]
pub struct WhyArgs {
    /// The run to explain, or to compare with; without it, the newest one made without -o.
    pub a: Option<PathBuf>,
    /// The run to compare.
    pub b: Option<PathBuf>,
    #[command(flatten)]
    pub exports: OutputArgs,
    /// The same as --html FILE, and nothing on the terminal.
    #[arg(short, long, value_name = "FILE.html", conflicts_with = "json")]
    pub output: Option<PathBuf>,
}
