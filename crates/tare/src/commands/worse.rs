//! `--fail-if-worse`: whether a metric of a benchmark is worse by more than is allowed.

use crate::failure::NOT_VALID;
use crate::terminal;
use std::process::ExitCode;
use tare_model::Reading;
use tare_model::comparison::{BenchmarkEffect, Change, NOT_IN_ALL, Verdict};
use tare_model::outcome::{Better, Warning};
use tare_model::tool_comparison::{ToolComparison, ToolEffect};

/// Exit code where a metric was proven to be worse by more than is allowed.
const PROVEN: u8 = 1;

/// A metric that is judged.
struct Metric {
    name: String,
    better: Option<Better>,
    change: Option<Change>,
    verdict: Verdict,
    /// Why it has no change.
    why_not: String,
}

/// Two files of results.
pub fn of_results(compared: &ToolComparison, bound: f64) -> ExitCode {
    let metric = |effect: &ToolEffect| Metric {
        name: name(&effect.benchmark, &effect.name),
        better: effect.better,
        change: effect.change.value().copied(),
        verdict: effect.verdict,
        why_not: why_not(&effect.change),
    };
    let mut judged = judge(compared.effects.iter().map(metric), bound);
    for gone in compared.unpaired.iter().filter(|unpaired| !unpaired.is_new) {
        let name = name(&gone.benchmark, &gone.name);
        terminal::say(&format!("tare: {name} could not be judged: it is not in {}", compared.after));
        judged.unknown = true;
    }
    judged.code()
}

/// Commands that print the results of benchmarks.
pub fn of_commands(benchmarks: &[BenchmarkEffect], warnings: &[Warning], bound: f64) -> ExitCode {
    let metric = |effect: &BenchmarkEffect| Metric {
        name: format!("{}: {}", effect.program, name(&effect.benchmark, &effect.name)),
        better: effect.better,
        change: effect.change.value().copied(),
        verdict: effect.verdict,
        why_not: why_not(&effect.change),
    };
    let mut judged = judge(benchmarks.iter().map(metric), bound);
    for gone in warnings.iter().filter(|warning| warning.id == NOT_IN_ALL) {
        terminal::say(&format!("tare: not all could be judged: {}", gone.text));
        judged.unknown = true;
    }
    judged.code()
}

fn why_not(change: &Reading<Change>) -> String {
    match change {
        Reading::Missing(missing) if missing.remedy.is_empty() => missing.why.clone(),
        Reading::Missing(missing) => format!("{} (hint: {})", missing.why, missing.remedy),
        _ => "there is no interval".to_owned(),
    }
}

fn name(benchmark: &str, metric: &str) -> String {
    format!("{benchmark} {metric}").trim().to_owned()
}

/// What was found of all metrics.
struct Judged {
    proven: bool,
    unknown: bool,
}

impl Judged {
    fn code(&self) -> ExitCode {
        match (self.proven, self.unknown) {
            (true, _) => ExitCode::from(PROVEN),
            (false, true) => ExitCode::from(NOT_VALID),
            (false, false) => ExitCode::SUCCESS,
        }
    }
}

/// Proven is what is worse by more than `bound` with its whole interval; unknown what has none.
fn judge(metrics: impl Iterator<Item = Metric>, bound: f64) -> Judged {
    let mut directed = metrics.filter(|metric| metric.better.is_some()).peekable();
    let mut judged = Judged { proven: false, unknown: directed.peek().is_none() };
    if judged.unknown {
        terminal::say("tare: no metric of all is known to be better on one side, so none could be judged");
    }
    for metric in directed {
        match metric.change {
            // From 0 there is no ratio, and it is worse all the same.
            None if metric.verdict == Verdict::Slower => {
                terminal::say(&format!("tare: {} is worse: {}", metric.name, metric.why_not));
                judged.proven = true;
            }
            Some(change) if is_worse(metric.better, change, bound) => {
                let (at_most, percent) = (100.0 * bound, 100.0 * change.value);
                let name = metric.name;
                terminal::say(&format!("tare: {name} is worse by more than {at_most} %: {percent:+.1} %"));
                judged.proven = true;
            }
            Some(_) => {}
            None => {
                terminal::say(&format!("tare: {} could not be judged: {}", metric.name, metric.why_not));
                judged.unknown = true;
            }
        }
    }
    judged
}

fn is_worse(better: Option<Better>, change: Change, bound: f64) -> bool {
    match better {
        Some(Better::Lower) => change.interval[0] > bound,
        // As much worse as a time would be: half the rate is 100 % worse.
        Some(Better::Higher) => change.interval[1] < (1.0 + bound).recip() - 1.0,
        None => false,
    }
}
