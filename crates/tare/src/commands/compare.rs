//! `tare compare`: from arguments to launches to what differs.

use super::worse;
use crate::cli::compare::CompareArgs;
use crate::failure::{Ended, Failure, NOT_VALID};
use crate::{progress, terminal};
use anyhow::anyhow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tare_load::Target;
use tare_model::Missing;
use tare_model::comparison::Figure;
use tare_model::condition::Condition;
use tare_report::{Style, comparison as report};
use tare_run::LabError;
use tare_run::compare::{self, Asked, CommandsRequest, Compared, EMBEDDED, PORT, Request};
use tare_run::request::Warmup;

/// Exit code where a condition to fail on was proven.
const PROVEN: u8 = 1;
/// Commands are run interleaved for so long at a time.
const COMMANDS_WINDOW: Duration = Duration::from_millis(600);
/// Stands for the servers until they are up and their ports known.
const ANYWHERE: &str = "http://127.0.0.1/";

/// Compares, prints and keeps.
pub fn compare(args: &CompareArgs, style: Style) -> Ended {
    check_conditions(args).map_err(Failure::usage)?;
    check_treated(args).map_err(Failure::usage)?;
    super::check_output(&args.exports)?;
    if let Some(missing) = args.missing_file() {
        return Err(Failure::usage(anyhow!(
            "there is no file '{}' (hint: files of one side have commas between them)",
            missing.display()
        )));
    }
    if args.are_results() {
        return super::compare_results::compare_results(args, style);
    }
    if args.chosen.is_given() && args.all_commands().is_empty() {
        return Err(Failure::usage(anyhow!(
            "--benchmark and --metric choose among the results of benchmarks (hint: give two files of results, or two --command)"
        )));
    }
    if args.are_records() {
        return super::compare_records::compare_records(args, style);
    }
    let compared = measured(args)?;
    let Some(comparison) = compared.comparison else {
        compared.end?;
        return Ok(ExitCode::SUCCESS);
    };
    let shown = report::report(&comparison);
    let json = report::json(&comparison).map_err(Failure::underway)?;
    super::emit_report(&shown, &shown, &json, &args.exports, style)?;
    compared.end.map_err(of_a_launch)?;
    if !compare::is_valid(&comparison) {
        return Ok(ExitCode::from(NOT_VALID));
    }
    let mut code = ExitCode::SUCCESS;
    for condition in &args.design.fail_if {
        if !condition.is_judged(&comparison) {
            let missing = comparison.not_known.iter().find(|missing| missing.figure == condition.figure);
            let why = match missing.map(|missing| &missing.why) {
                Some(Missing { why, remedy }) if remedy.is_empty() => why.clone(),
                Some(Missing { why, remedy }) => format!("{why} (hint: {remedy})"),
                None => {
                    let figure = condition.figure.name();
                    format!("there is no interval for {figure} (hint: give a longer --budget)")
                }
            };
            terminal::say(&format!("tare: {condition} could not be judged: {why}"));
            if code == ExitCode::SUCCESS {
                code = ExitCode::from(NOT_VALID);
            }
        }
        for (program, percent) in condition.proven(&comparison) {
            terminal::say(&format!("tare: {program}: {condition} is proven: {percent:+.1} %"));
            code = ExitCode::from(PROVEN);
        }
    }
    let worse = {
        let judged = |bound| worse::of_commands(&comparison.benchmarks, &comparison.warnings, bound);
        args.design.fail_if_worse.map(judged)
    };
    // What is proven counts more than what could not be judged.
    Ok(match worse {
        Some(worse) if code == ExitCode::SUCCESS || worse == ExitCode::from(PROVEN) => worse,
        _ => code,
    })
}

/// Measures what the arguments ask for, launch by launch.
pub(super) fn measured(args: &CompareArgs) -> Result<Compared, Failure> {
    // Before Ctrl-C only sets a flag: a body that comes from a pipe is waited for.
    let servers = args.all_commands().is_empty().then(|| request(args)).transpose()?;
    let commands = servers.is_none().then(|| of_commands(args)).transpose()?;
    let session = super::session(args.output.clone())?;
    let mut progress = progress::display(args.quiet);
    Ok(match (&servers, &commands) {
        (_, Some(commands)) => compare::compare_commands(commands, &session, progress.as_mut()),
        (Some(servers), None) => compare::compare(servers, &session, progress.as_mut()),
        (None, None) => Compared { comparison: None, end: Ok(()) },
    })
}

/// A port that was taken meanwhile is found where a launch begins; something was started by then.
pub(super) fn of_a_launch(error: LabError) -> Failure {
    match error {
        LabError::Usage { .. } | LabError::State(_) => Failure::underway(error),
        error => error.into(),
    }
}

/// What is to be proven must be a figure of what is compared.
pub(super) fn check_conditions(args: &CompareArgs) -> anyhow::Result<()> {
    if args.are_results() && !args.design.fail_if.is_empty() {
        return Err(anyhow!(
            "--fail-if is for figures that tare measures (hint: --fail-if-worse 5% is for the metrics of other tools)"
        ));
    }
    if !args.are_results() && args.all_commands().is_empty() && args.design.fail_if_worse.is_some() {
        return Err(anyhow!(
            "--fail-if-worse is for the results of benchmarks (hint: --fail-if 'throughput < -5%')"
        ));
    }
    if args.are_records() && args.start_timeout.is_some() {
        return Err(anyhow!(
            "nothing is started where records are compared (hint: leave out --start-timeout)"
        ));
    }
    match args.are_records() || args.all_commands().is_empty() {
        true => check_figures(&args.design.fail_if, Figure::of_servers()),
        false => check_figures(&args.design.fail_if, Figure::of_commands()),
    }
}

/// What conditions are on must be a figure of what is compared.
pub(super) fn check_figures(
    conditions: &[Condition],
    figures: impl Iterator<Item = Figure>,
) -> anyhow::Result<()> {
    let figures: Vec<Figure> = figures.collect();
    match conditions.iter().find(|condition| !figures.contains(&condition.figure)) {
        Some(condition) => {
            let names: Vec<&str> = figures.iter().map(|figure| figure.name()).collect();
            Err(anyhow!(
                "'{condition}' is none of what is compared here (hint: there are {})",
                names.join(", ")
            ))
        }
        None => Ok(()),
    }
}

/// Settings are of one program, which is run with them and without.
fn check_treated(args: &CompareArgs) -> anyhow::Result<()> {
    let commands = args.commands.len() + usize::from(!args.treated.program.is_empty());
    if !args.treated.is_given() {
        return match args.treated.program.is_empty() {
            true => Ok(()),
            false => Err(anyhow!(
                "a program behind '--' is compared with itself under a setting, and there is none (hint: give --set-b NAME=VALUE, or two --command)"
            )),
        };
    }
    if args.are_records() || args.are_results() {
        return Err(anyhow!(
            "--set-a and --set-b are for programs that are run now (hint: give a program: --set-b thp=never -- ./program)"
        ));
    }
    if commands.max(args.suts.len()).max(args.urls.len()) > 1 {
        return Err(anyhow!(
            "--set-a and --set-b are for one program, which is A without the setting and B with it (hint: give one program, one --sut or one URL)"
        ));
    }
    Ok(())
}

/// What A and B are run with; nothing where no setting is given.
fn treatments(args: &CompareArgs) -> Result<Vec<tare_run::treatment::Treatment>, Failure> {
    if !args.treated.is_given() {
        return Ok(Vec::new());
    }
    let of = |given: &[String]| super::treated::treatment(given).map_err(Failure::usage);
    Ok(vec![of(&args.treated.set_a)?, of(&args.treated.set_b)?])
}

fn of_commands(args: &CompareArgs) -> Result<CommandsRequest, Failure> {
    let design = &args.design;
    Ok(CommandsRequest {
        argv: super::run::argv(),
        commands: args.all_commands(),
        treatments: treatments(args)?,
        budget: design.budget,
        precision: design.precision,
        margin: design.margin,
        seed: design.seed,
        window: design.window.unwrap_or(COMMANDS_WINDOW),
        sut_cpus: args.sut_cpus.clone().map(|list| list.0),
        choice: args.chosen.choice(),
        needs_results: args.chosen.is_given() || design.fail_if_worse.is_some(),
    })
}

fn request(args: &CompareArgs) -> Result<Request, Failure> {
    let design = &args.design;
    let target = Target::parse(ANYWHERE).map_err(Failure::usage)?;
    let mut programs = programs(&args.suts, &args.urls).map_err(Failure::usage)?;
    if let (true, [one]) = (args.treated.is_given(), programs.as_slice()) {
        programs.push(one.clone());
    }
    Ok(Request {
        argv: super::run::argv(),
        programs,
        treatments: treatments(args)?,
        traffic: super::traffic::spec(&args.traffic, target)?,
        connections: args.traffic.volume.connections,
        threads: args.traffic.volume.threads,
        budget: design.budget,
        precision: design.precision,
        margin: design.margin,
        seed: design.seed,
        window: design.window,
        warmup: (!design.cold).then(|| design.warmup.map_or(compare::WARMUP, Warmup::Fixed)),
        start_timeout: args.start_timeout,
        sut_cpus: args.sut_cpus.clone().map(|list| list.0),
        load_cpus: args.load_cpus.clone().map(|list| list.0),
        embedded_program: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe")),
    })
}

/// Commands and URLs, paired: one of either is for all of the other.
fn programs(suts: &[String], urls: &[String]) -> anyhow::Result<Vec<Asked>> {
    let count = suts.len().max(urls.len());
    let fits = |given: usize| given <= 1 || given == count;
    if !fits(suts.len()) || !fits(urls.len()) {
        return Err(anyhow!(
            "{} servers and {} URLs do not pair (hint: give one URL for all servers, or one for each)",
            suts.len(),
            urls.len()
        ));
    }
    let nth = |given: &[String], at: usize| given.get(at).or(given.first()).cloned();
    let asked = |at: usize| {
        let command = nth(suts, at).unwrap_or_else(|| EMBEDDED.to_owned());
        let page = if command == EMBEDDED { "/plaintext" } else { "/" };
        let url = nth(urls, at).unwrap_or_else(|| page.to_owned());
        let url = if url.starts_with('/') { format!("http://127.0.0.1:{PORT}{url}") } else { url };
        Asked { command, url }
    };
    Ok((0..count).map(asked).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;
    use tare_run::calibrate;

    fn paired(suts: &[&str], urls: &[&str]) -> Option<Vec<(String, String)>> {
        let owned = |given: &[&str]| given.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let programs = programs(&owned(suts), &owned(urls)).ok()?;
        Some(programs.into_iter().map(|asked| (asked.command, asked.url)).collect())
    }

    #[test]
    fn calibration_compares_as_is_done_here_by_default() {
        let words = ["tare", "compare", "--budget", "10s", "--seed", "7", "/plaintext", "/plaintext"];
        let Ok(Cli { command: Command::Compare(args), .. }) = Cli::try_parse_from(words) else {
            unreachable!("{words:?}")
        };
        let Ok(asked) = request(&args) else { unreachable!("{args:?}") };
        let there = calibrate::itself::request(&asked.argv, &asked.embedded_program, 7).unwrap();
        assert_eq!(format!("{asked:?}"), format!("{there:?}"));
    }

    #[test]
    fn one_of_either_is_for_all_of_the_other() {
        let at = |command: &str, path: &str| (command.to_owned(), format!("http://127.0.0.1:{{port}}{path}"));
        assert_eq!(paired(&["x", "y"], &["/p"]), Some(vec![at("x", "/p"), at("y", "/p")]));
        assert_eq!(paired(&["x"], &["/p", "/q"]), Some(vec![at("x", "/p"), at("x", "/q")]));
        assert_eq!(paired(&[], &["/p", "/q"]), Some(vec![at("embedded", "/p"), at("embedded", "/q")]));
        assert_eq!(paired(&["embedded", "y"], &[]), Some(vec![at("embedded", "/plaintext"), at("y", "/")]));
        assert_eq!(paired(&["x", "y", "z"], &["/p", "/q"]), None);
        assert_eq!(paired(&[], &[]), Some(Vec::new()));
    }
}
