//! `tare recover`: what every `tare run` does first, on its own.

use crate::failure::Failure;
use crate::{Ended, terminal};
use std::process::ExitCode;

/// The same at the start of another command that looks at the machine or loads it; says what it did, if anything.
pub fn first() {
    tare_lab::recover(&super::state_dir()).iter().for_each(|line| terminal::say(line));
}

/// Stops and restores what killed runs left, and says what it did.
pub fn recover() -> Ended {
    let mut lines = tare_lab::recover(&super::state_dir());
    if lines.is_empty() {
        lines.push("nothing was left behind".into());
    }
    terminal::print(&format!("{}\n", lines.join("\n"))).map_err(Failure::underway)?;
    Ok(ExitCode::SUCCESS)
}
