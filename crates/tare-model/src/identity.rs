//! What else can differ between two runs: the machine as it was set, the programs by their content, how they were
//! called and in which environment. Kept with every record, so that a difference between two can be looked for later.
//!
//! Where threads ran and which quota held the system under test stand in the observations of each trial.

use crate::Reading;
use crate::observation::Role;
use crate::survey::Survey;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Who and what took part in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// Version of the tare that held it.
    pub tare: String,
    /// The machine as found before anything was started; nobody was watched and nothing probed for it.
    pub survey: Survey,
    /// The programs of the system under test, then those of a generator that is not tare's own; each once, however many
    /// processes run it.
    pub programs: Vec<Program>,
}

/// A program that took part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// Whose it is.
    pub role: Role,
    /// Its processes; 0 where it was not running yet when it was examined.
    pub processes: u32,
    /// Their numbers, those that were examined; none in records from before 0.2.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pids: Vec<u32>,
    /// The file that is executed, links resolved.
    pub path: Reading<String>,
    /// Length of that file.
    pub size_bytes: Reading<u64>,
    /// What its linker named it by (ELF note `NT_GNU_BUILD_ID`), in hexadecimal; not applicable where it has none.
    pub build_id: Reading<String>,
    /// SHA-256 of its content, in hexadecimal, as `sha256sum` prints it. Shared libraries are not in it.
    pub sha256: Reading<String>,
    /// What schedules its work onto threads, where it is known to do so itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Runtime>,
    /// The words that it was called with, its own name among them.
    pub arguments: Reading<Vec<Setting>>,
    /// Its environment as it is now: a program may overwrite its own.
    pub environment: Reading<BTreeMap<String, Setting>>,
}

/// A runtime that decides which of a program's threads run, where the name of the program does not tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Runtime {
    /// Go's: it puts threads to sleep (in a futex) whenever it has no work for them, and work to sleep without a thread, so that a thread
    /// asleep there says nothing of locks.
    Go,
    /// CPython's in a program that brought it along: one thread of a process runs its code at once.
    Python,
    /// And Ruby's.
    Ruby,
    /// JavaScript's in a program that brought Node along: one thread runs the program.
    Node,
}

/// A word or a variable's value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Setting {
    /// As it stands.
    Clear(String),
    /// It looks like a secret, or is too long to keep.
    Hidden {
        /// The first 16 bits of its SHA-256, in hexadecimal: two that differ are distinguished (all but one in 65,536), and
        /// it is too short to find the value by trying.
        hidden: String,
    },
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Setting::Clear(text) => f.write_str(text),
            Setting::Hidden { hidden } => write!(f, "(not kept: {hidden})"),
        }
    }
}
