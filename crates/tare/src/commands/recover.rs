//! `tare recover`: what every `tare run` does first, on its own.

use crate::failure::Failure;
use crate::{Ended, terminal};
use std::process::ExitCode;

/// Stops and restores what killed runs left, and says what it did.
pub fn recover() -> Ended {
    let mut lines = tare_lab::recover(&super::state_dir());
    if lines.is_empty() {
        lines.push("nothing was left behind".into());
    }
    terminal::print(&format!("{}\n", lines.join("\n"))).map_err(Failure::underway)?;
    Ok(ExitCode::SUCCESS)
}
