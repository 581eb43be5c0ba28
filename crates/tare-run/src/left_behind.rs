//! Processes that a program has started and that are still there when it ends: they came to us, and are named before they are stopped.

use crate::error::LabError;
use crate::process::alive;
use crate::running::Running;
use tare_machine::{Root, procs};

const NOTICE: &str = "left-behind";
/// Processes that are named, at most.
const NAMED_MAX: usize = 3;

/// The processes that the run that ended, `main`, has left behind, each with its name: they are gone once it is reaped.
pub(crate) fn by(main: u32) -> Vec<String> {
    let root = Root::live();
    let children = procs::children(&root, std::process::id());
    let left = children.into_iter().filter(|pid| *pid != main && alive(*pid));
    let name = |pid| {
        let stat = procs::stat(&root, pid);
        stat.map_or_else(|_| format!("pid {pid}"), |stat| format!("{} (pid {pid})", stat.name))
    };
    left.map(name).collect()
}

/// Says once which processes a run has left behind.
pub(crate) fn report(left: &[String], program: &str, running: &mut Running<'_>) -> Result<(), LabError> {
    if left.is_empty() || running.has_notice(NOTICE) {
        return Ok(());
    }
    let more = match left.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    running.notice(
        NOTICE,
        &format!(
            "'{program}' ended and left processes behind: {}{more}; they are stopped after each run, and their time is not in the run's",
            left[..left.len().min(NAMED_MAX)].join(", ")
        ),
        "let the program wait for what it starts (wait in a shell), or measure it as a server (--sut)",
    )
}
