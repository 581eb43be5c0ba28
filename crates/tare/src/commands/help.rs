//! `tare help`: commands and topics explained.

use crate::cli::help::{self, Extent};
use crate::failure::{Ended, Failure};
use crate::terminal;
use anyhow::anyhow;
use std::process::ExitCode;

/// Explains a command or a topic, or lists all.
pub fn help(name: Option<&str>) -> Ended {
    let text = match name {
        None => help::overview(),
        Some(name) => {
            let plain = name.to_lowercase().replace(['_', ' '], "-");
            let topic = || help::topic(&plain).map(str::to_owned);
            help::of_command(&plain, Extent::Explained).or_else(topic).ok_or_else(|| unknown(name, &plain))?
        }
    };
    print(&text)
}

/// Prints help; a closed pipe (`tare help run | head`) is no failure.
pub fn print(text: &str) -> Ended {
    terminal::print(text).map_err(Failure::underway)?;
    Ok(ExitCode::SUCCESS)
}

fn unknown(name: &str, plain: &str) -> Failure {
    let meant = help::nearest(plain).map_or_else(String::new, |near| format!("did you mean '{near}'? "));
    Failure::usage(anyhow!("there is no command or topic '{name}' (hint: {meant}'tare help' lists all)"))
}
