//! Both builds of a gate, measured interleaved: a comparison of two, whose words are built here.

use super::compare::{check_conditions, measured, of_a_launch};
use crate::cli::gate::GateArgs;
use crate::cli::{Cli, Command};
use crate::failure::Failure;
use anyhow::anyhow;
use clap::Parser;
use std::time::Duration;
use tare_explain::gate::{self, Asked};
use tare_machine::Root;
use tare_machine::facts::{self, Reach};
use tare_model::gate::Gate;
use tare_run::compare::is_valid;

/// A gate takes no longer unless it may.
const BUDGET: Duration = Duration::from_secs(60);
/// Intervals a quarter as wide as the smallest change that is asked for leave no doubt of it; none needs to be narrower than the least.
const PRECISION_SHARE: f64 = 0.25;
const PRECISION_MIN: f64 = 0.01;
/// What is asked for where nothing else is.
const DEFAULT_BOUND: f64 = 0.05;

/// Measures the new build and the old one, and holds the one against the other; `None`: it ended before the first launch did.
pub(super) fn gate_of_builds(args: &GateArgs, old: &str, asked: &Asked) -> Result<Option<Gate>, Failure> {
    if args.sut.is_none() && args.command.is_none() {
        return Err(Failure::usage(anyhow!(
            "give the new build with --sut or --command (hint: 'tare gate -h' has examples)"
        )));
    }
    let words = words(args, old);
    let parsed = Cli::try_parse_from(&words).map_err(|error| Failure::usage(anyhow!("{error}")))?;
    let Command::Compare(compared) = parsed.command else {
        return Err(Failure::usage(anyhow!("these builds cannot be compared (hint: tare help gate)")));
    };
    check_conditions(&compared).map_err(Failure::usage)?;
    let time_unix_s = tare_sys::time::wall_s();
    let compared = measured(&compared)?;
    compared.end.map_err(of_a_launch)?;
    let machine = facts::survey(&Root::live(), Reach { company: None, windows: false }).machine;
    Ok(compared.comparison.map(|comparison| {
        let valid = is_valid(&comparison);
        gate::interleaved(&comparison, (&machine, time_unix_s), valid, asked)
    }))
}

/// What `tare compare` would be called with.
fn words(args: &GateArgs, old: &str) -> Vec<String> {
    let bounds = args.fail_if.iter().map(|condition| condition.bound.abs()).chain(args.fail_if_worse);
    let smallest = bounds.fold(f64::INFINITY, f64::min);
    let smallest = if smallest.is_finite() { smallest } else { DEFAULT_BOUND };
    let precision = (smallest * PRECISION_SHARE).max(PRECISION_MIN);
    let budget = args.budget.unwrap_or(BUDGET);
    let mut words: Vec<String> = ["tare", "compare"].map(str::to_owned).into();
    let mut option = |name: &str, value: String| words.push(format!("--{name}={value}"));
    option("budget", format!("{}ms", budget.as_millis()));
    option("precision", format!("{}%", precision * 100.0));
    option("margin", format!("{}%", args.margin * 100.0));
    args.fail_if.iter().for_each(|condition| option("fail-if", condition.to_string()));
    if let Some(bound) = args.fail_if_worse {
        option("fail-if-worse", format!("{}%", bound * 100.0));
    }
    for (name, new) in [("sut", &args.sut), ("command", &args.command)] {
        if let Some(new) = new {
            option(name, old.to_owned());
            option(name, new.clone());
        }
    }
    if args.quiet {
        words.push("--quiet".to_owned());
    }
    words.extend(args.new.iter().map(|url| url.to_string_lossy().into_owned()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Vec<String> {
        let Ok(Cli { command: Command::Gate(args), .. }) = Cli::try_parse_from(words) else {
            unreachable!("{words:?}")
        };
        super::words(&args, args.against.as_deref().unwrap_or_default())
    }

    #[test]
    fn a_gate_of_builds_is_a_comparison_of_the_old_one_with_the_new_one() {
        let gate = ["tare", "gate", "--sut", "./new {port}", "--against", "./old {port}", "/json"];
        let words = of(&[&gate[..], &["--fail-if", "net < -8%", "--budget", "20s", "-q"]].concat());
        let Ok(Cli { command: Command::Compare(args), .. }) = Cli::try_parse_from(&words) else {
            unreachable!("{words:?}")
        };
        assert_eq!(
            (args.suts, args.urls),
            (vec!["./old {port}".to_owned(), "./new {port}".to_owned()], vec!["/json".to_owned()])
        );
        assert!((args.design.precision - 0.02).abs() < 1e-12 && args.quiet, "{words:?}");
        assert_eq!(
            (args.design.budget, args.design.fail_if[0].to_string()),
            (Duration::from_secs(20), "net < -8%".to_owned())
        );
        let words = of(&["tare", "gate", "--command", "new -x", "--against", "old -x"]);
        let Ok(Cli { command: Command::Compare(args), .. }) = Cli::try_parse_from(&words) else {
            unreachable!("{words:?}")
        };
        assert_eq!(
            (args.commands, args.design.budget),
            (vec!["old -x".to_owned(), "new -x".to_owned()], BUDGET)
        );
    }
}
