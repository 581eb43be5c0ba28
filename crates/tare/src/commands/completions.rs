//! `tare completions`.

use crate::cli::Cli;
use crate::failure::{Ended, Failure};
use crate::terminal;
use clap::CommandFactory;
use std::process::ExitCode;

/// Prints the completion script.
pub fn completions(shell: clap_complete::Shell) -> Ended {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tare", &mut script);
    terminal::print(&String::from_utf8_lossy(&script)).map_err(Failure::underway)?;
    Ok(ExitCode::SUCCESS)
}
