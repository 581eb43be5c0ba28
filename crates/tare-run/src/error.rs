//! Why a session could not be held, typed by what the user has to do about it.

use thiserror::Error;

/// Where the ranges of a load are listed.
pub(crate) const LOAD_HELP: &str = "'tare help load' has the range of each option";
/// Where a thread cannot be started.
pub(crate) const THREADS_HINT: &str = "hint: does this user have as many processes as ulimit -u allows?";
/// How a URL is written.
pub(crate) const URL_EXAMPLE: &str = "write it as http://127.0.0.1:8080/";

/// A session that failed. Each variant is one exit code of the design.
#[derive(Debug, Error)]
pub enum LabError {
    /// Nothing was started: the request cannot be carried out as given.
    #[error("{what}{}", hinted(.hint))]
    Usage {
        /// What is wrong.
        what: String,
        /// What to do instead; empty where the text says it already.
        hint: String,
    },
    /// The SUT could not be started, never answered or died.
    #[error("the system under test {what}{}", printed(.last_output))]
    Sut {
        /// What happened to it, with its exit status where there is one.
        what: String,
        /// The last of what it printed.
        last_output: String,
    },
    /// The load generator failed.
    #[error("the load generator {what}{}", printed(.last_output))]
    Load {
        /// What happened.
        what: String,
        /// The last of what it printed, for a foreign one.
        last_output: String,
    },
    /// The observers could not start.
    #[error("cannot observe: {0}")]
    Observe(String),
    /// The record could not be written.
    #[error("{0} (hint: {hint})", hint = .0.hint())]
    Store(#[from] tare_store::StoreError),
    /// The state directory (journal) could not be used.
    #[error("state: {0}")]
    State(String),
    /// The user interrupted; what was done is on disk.
    #[error("interrupted; what was finished until then stands")]
    Interrupted,
}

impl LabError {
    /// A request that cannot be carried out, and what to do instead, which is left out where the text says it already.
    pub fn usage(what: impl Into<String>, hint: impl Into<String>) -> Self {
        let what = what.into();
        let hint = if what.contains("hint: ") { String::new() } else { hint.into() };
        LabError::Usage { what, hint }
    }

    /// Says which of several servers this is about, and what to do where the server is to blame and the error does not say it.
    pub fn of(self, name: &str, hint: &str) -> Self {
        match self {
            LabError::Sut { what, last_output } => {
                let hint = if what.contains("hint: ") { "" } else { hint };
                LabError::Sut { what: format!("{name} {what}{}", hinted(hint)), last_output }
            }
            LabError::Load { what, last_output } => {
                LabError::Load { what: format!("for {name} {what}"), last_output }
            }
            other => other,
        }
    }
}

fn hinted(hint: &str) -> String {
    if hint.is_empty() { String::new() } else { format!(" (hint: {hint})") }
}

/// Lines of a program's output that a message ends with.
const LAST_LINES: usize = 20;

/// The last lines, of each what was left to be seen of it: progress is written over itself.
fn printed(last_output: &str) -> String {
    let seen = |line: &str| line.trim_end().rsplit('\r').next().unwrap_or_default().to_owned();
    let lines: Vec<String> = last_output.trim_end().lines().map(seen).collect();
    let last = lines.get(lines.len().saturating_sub(LAST_LINES)..).unwrap_or_default();
    match last {
        [] => String::new(),
        last => format!("; it printed last:\n{}", last.join("\n")),
    }
}
