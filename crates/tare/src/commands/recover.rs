//! `tare recover`: what every `tare run` does first, on its own.

use crate::failure::{Ended, Failure};
use crate::terminal;
use std::process::ExitCode;
use tare_machine::Root;
use tare_machine::journal::{self, Recovery};

/// Exit code when something is still not as it was.
pub const NOT_ALL_PUT_BACK: u8 = 1;

/// The same at the start of another command that examines the machine or loads it; says what it did, if anything.
/// Whether all is as it was.
pub fn first() -> bool {
    // Without a folder for journals there is none.
    super::state_dir().map_or(true, |dir| say(&journal::recover(&dir, &Root::live())))
}

/// Says what was undone before something else is done. Whether all is as it was.
pub fn say(recovery: &Recovery) -> bool {
    tare_run::recovered(recovery).iter().for_each(|line| terminal::say(line));
    recovery.is_clean()
}

/// Stops and restores what killed runs left, and says what it did.
pub fn recover() -> Ended {
    let recovery = journal::recover(&super::state_dir()?, &Root::live());
    let mut lines = tare_run::recovered(&recovery);
    if lines.is_empty() {
        lines.push("nothing was left behind".into());
    }
    terminal::print(&format!("{}\n", lines.join("\n"))).map_err(Failure::underway)?;
    Ok(if recovery.is_clean() { ExitCode::SUCCESS } else { ExitCode::from(NOT_ALL_PUT_BACK) })
}
