//! Arguments that choose among a benchmark's results.

use clap::Args;
use tare_formats::{Choice, Pattern};

/// Which of a tool's results are taken.
#[derive(Debug, Args)]
pub struct ChoiceArgs {
    /// Of a benchmark's results, benchmarks with such names alone.
    ///
    /// A regular expression that matches a part of the name: 'Sort', '^BenchmarkSort$', 'Sort|Hash'.
    #[arg(long, value_name = "REGEX", help_heading = "Results of a benchmark")]
    pub benchmark: Option<Pattern>,
    /// Of a benchmark's results, metrics with such names alone.
    ///
    /// A regular expression that matches a part of the name, in the tool's own words: 'ns/op', '^time$'.
    #[arg(long, value_name = "REGEX", help_heading = "Results of a benchmark")]
    pub metric: Option<Pattern>,
}

impl ChoiceArgs {
    /// Whether something is chosen.
    pub fn is_given(&self) -> bool {
        !self.choice().is_all()
    }

    /// What is chosen.
    pub fn choice(&self) -> Choice {
        Choice { benchmark: self.benchmark.clone(), metric: self.metric.clone() }
    }
}
