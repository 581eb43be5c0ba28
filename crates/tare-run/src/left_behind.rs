//! Processes that a program has started and that are still there when it ends: they came to us, and are named before they are stopped.

use crate::error::LabError;
use crate::process::alive;
use crate::running::Running;
use tare_machine::{Root, procs};

const NOTICE: &str = "left-behind";
/// Processes that are named, at most.
const NAMED_MAX: usize = 3;

/// Says once which processes the run that ended, `main`, has left behind.
pub(crate) fn report(main: u32, program: &str, running: &mut Running<'_>) -> Result<(), LabError> {
    if running.has_notice(NOTICE) {
        return Ok(());
    }
    let root = Root::live();
    let children = procs::children(&root, std::process::id());
    let left: Vec<u32> = children.into_iter().filter(|pid| *pid != main && alive(*pid)).collect();
    if left.is_empty() {
        return Ok(());
    }
    let name = |pid: &u32| {
        let stat = procs::stat(&root, *pid);
        stat.map_or_else(|_| format!("pid {pid}"), |stat| format!("{} (pid {pid})", stat.name))
    };
    let named: Vec<String> = left.iter().take(NAMED_MAX).map(name).collect();
    let more = match left.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    running.notice(
        NOTICE,
        &format!(
            "'{program}' ended and left processes behind: {}{more}; they are stopped after each run, and their time is not in the run's",
            named.join(", ")
        ),
        "let the program wait for what it starts (wait in a shell), or measure it as a server (--sut)",
    )
}
