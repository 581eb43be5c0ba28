//! The command line: arguments, wiring and exit codes. The only crate that prints.
//!
//! Results go to standard output, everything else to standard error.

mod cli;
mod commands;
mod decisions;
mod failure;
mod progress;
mod terminal;
mod version;

use clap::Parser;
use clap::error::ErrorKind;
use cli::{Cli, Command};
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            let text = cli::help::asked(&failure::words());
            return commands::help::print(&text).unwrap_or_else(Failure::print);
        }
        Err(error) => return failure::usage(&error),
    };
    let style = terminal::style(cli.color);
    if let Err(failure) = decisions::print(cli.verbose) {
        return failure.print();
    }
    // What a killed tare left turned would be measured with the rest. (`run` and `tune` do it by themselves.)
    if matches!(cli.command, Command::Load(_) | Command::Doctor(_)) {
        commands::recover::first();
    }
    let result = match cli.command {
        Command::Run(args) => commands::run::run(*args, style),
        Command::Compare(args) => commands::compare::compare(&args, style),
        Command::Gate(args) => commands::gate::gate(&args, style),
        Command::Plan(args) => commands::plan::plan(&args, style),
        Command::Scale(args) => commands::scale::scale(*args, style),
        Command::Probe(args) => commands::probe::probe(&args, style),
        Command::Load(args) => commands::load::load(&args, style),
        Command::Show(args) => commands::show::show(&args, style),
        Command::Why(args) => commands::why::why(&args, style),
        Command::Export(args) => commands::export::export(&args),
        Command::Explain(args) => commands::explain::explain(&args, style),
        Command::Report(args) => commands::report::report(&args),
        Command::Flame(args) => commands::flame::flame(&args),
        Command::Serve(args) => commands::serve::serve(*args),
        Command::Doctor(args) => commands::doctor::doctor(&args, style),
        Command::Calibrate(args) => commands::calibrate::calibrate(&args, style),
        Command::Ceiling(args) => commands::ceiling::ceiling(&args, style),
        Command::Steady(args) => commands::steady::steady(&args, style),
        Command::Tune(args) => commands::tune::tune(&args, style),
        Command::Recover => commands::recover::recover(),
        Command::Schema(args) => commands::schema::schema(&args),
        Command::Completions { shell } => commands::completions::completions(shell),
        Command::Help { name } => commands::help::help(name.as_deref()),
        Command::Man { dir } => commands::man::man(dir.as_deref()),
    };
    match result {
        Ok(code) => code,
        Err(failure) => failure.print(),
    }
}
