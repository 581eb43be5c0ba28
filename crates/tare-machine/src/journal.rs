//! What tare started and turned, on disk before it is done, so that a later start can undo what a killed run
//! left behind.
//!
//! One file per tare process, of JSON lines that are only ever appended and synced. A process is named by pid,
//! start time and boot: a number that was given out again is somebody else's.

mod found;
mod groups;
mod recover;
mod tuning;
mod undo;

pub(crate) use found::check_folder;
pub use groups::{GroupError, MadeGroup, Members, place_for_groups};
pub use recover::{Recovery, Restored, Stopped, recover, recover_holding};
pub use tuning::{Changed, PutBack, Report, State, Tuning, restore, tunings};
pub(crate) use tuning::{Turning, put_back};
pub use undo::{PinError, Pinned, pin_tasks};

use crate::facts::boot_id;
use crate::procs;
use crate::root::Root;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The environment variable that every process started by tare carries, and that its children inherit.
pub const RUN_VARIABLE: &str = "TARE_RUN";

/// A journal that cannot be kept: nothing may be started or turned then.
#[derive(Debug, thiserror::Error)]
#[error("the journal {} cannot be written: {source}; hint: set TARE_STATE_DIR to a folder that you may write; tare keeps there what it must undo after a crash", path.display())]
pub struct JournalError {
    /// The file or folder.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// There is no folder for journals.
#[derive(Debug, thiserror::Error)]
#[error(
    "there is no folder to keep in what must be undone after a crash; hint: set TARE_STATE_DIR to one of yours, or HOME"
)]
pub struct NoFolder;

/// Identity of a process or thread for as long as the machine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Id {
    /// Process or thread id.
    pub pid: u32,
    /// Its start, clock ticks since boot.
    pub start_ticks: u64,
}

/// A thread whose CPUs are changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Pin {
    /// The thread.
    id: Id,
    /// The process that it belongs to.
    process: u32,
    /// Where it could run.
    cpus_before: Vec<u32>,
    /// Where it can now.
    cpus: Vec<u32>,
}

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "entry")]
enum Entry {
    /// First line: whose journal this is.
    Owner {
        id: Id,
        boot_id: String,
        run: String,
        #[serde(default)]
        command: String,
        #[serde(default)]
        since_unix_ns: u64,
    },
    /// A process is about to be started; it will carry the run id.
    WillStart { command: String },
    /// It was started, as the leader of process group `pgid`.
    Started { id: Id, pgid: u32 },
    /// It was stopped and reaped by its owner.
    Stopped { pid: u32 },
    /// A thread's CPUs are about to be changed from these.
    WillPin(Pin),
    /// They were put back.
    Unpinned { id: Id },
    /// A control group is about to be made.
    WillMakeGroup { dir: PathBuf },
    /// It was removed.
    RemovedGroup { dir: PathBuf },
    /// A setting of the machine is about to be changed.
    WillTurn(Turning),
    /// All that was to be turned is, and this is what the kernel made of it. A standing one outlives its process.
    Holding { standing: bool, values: Vec<(PathBuf, String)> },
    /// What stood is being put back: from here on it is anybody's to finish.
    Restoring,
    /// A setting was put back.
    PutBack { path: PathBuf },
}

/// The journal of this process.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    run: String,
    file: Mutex<File>,
}

/// Where journals are kept unless somebody says otherwise: `/run/tare` for root, else the user's runtime or
/// state folder.
///
/// # Errors
/// A user without any: a folder that everybody may write to is none, as anybody could plant a journal there.
pub fn default_dir() -> Result<PathBuf, NoFolder> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if tare_sys::process::is_root() {
        return Ok(PathBuf::from("/run/tare"));
    }
    match (set("XDG_RUNTIME_DIR"), set("XDG_STATE_HOME"), set("HOME")) {
        (Some(runtime), _, _) => Ok(runtime.join("tare")),
        (None, Some(state), _) => Ok(state.join("tare")),
        (None, None, Some(home)) => Ok(home.join(".local/state/tare")),
        (None, None, None) => Err(NoFolder),
    }
}

impl Journal {
    /// Opens a new journal for this process in `dir`, which is made if need be.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn create(dir: &Path, root: &Root) -> Result<Journal, JournalError> {
        static SEQUENCE: AtomicU64 = AtomicU64::new(0);
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |source| JournalError { path, source }
        };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed(dir))?;
        check_folder(dir).map_err(failed(dir))?;
        let id = identity(root, std::process::id()).map_err(failed(dir))?;
        let boot_id = boot_id(root).map_err(|missing| failed(dir)(io::Error::other(missing)))?;
        let sequence = SEQUENCE.fetch_add(1, Ordering::Relaxed);
        let run = format!("{}-{}-{sequence}", id.pid, id.start_ticks);
        let path = dir.join(format!("{run}.journal"));
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed(&path))?;
        let journal = Journal { path, run: run.clone(), file: Mutex::new(file) };
        journal.append(&Entry::Owner {
            id,
            boot_id,
            run,
            command: command_line(),
            since_unix_ns: now_ns(),
        })?;
        File::open(dir).and_then(|folder| folder.sync_all()).map_err(failed(dir))?;
        Ok(journal)
    }

    /// Opens the journal of somebody who is no more, to go on after its last whole line.
    fn reopen(path: &Path) -> Result<Journal, JournalError> {
        let failed = |source| JournalError { path: path.to_path_buf(), source };
        let bytes = fs::read(path).map_err(failed)?;
        let (whole, last) = found::split(&bytes);
        let mut file = OpenOptions::new().append(true).open(path).map_err(failed)?;
        // The last line may lack its end, or be cut: what is appended must stand on a line of its own.
        match found::entry(last) {
            Some(_) => file.write_all(b"\n").map_err(failed)?,
            None => file.set_len(whole.len() as u64).map_err(failed)?,
        }
        Ok(Journal { path: path.to_path_buf(), run: String::new(), file: Mutex::new(file) })
    }

    /// The folder that all journals are in.
    fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// What to put into a child's environment under [`RUN_VARIABLE`].
    pub fn run_id(&self) -> &str {
        &self.run
    }

    /// To be called before a process is started.
    ///
    /// # Errors
    /// [`JournalError`]: do not start it.
    pub fn will_start(&self, command: &str) -> Result<(), JournalError> {
        self.append(&Entry::WillStart { command: command.to_string() })
    }

    /// To be called at once after a child was started as the leader of its process group.
    ///
    /// # Errors
    /// [`JournalError`]; the run id in its environment still leads to it.
    pub fn started(&self, root: &Root, pid: u32) -> Result<(), JournalError> {
        match identity(root, pid) {
            Ok(id) => self.append(&Entry::Started { id, pgid: pid }),
            // Gone already, and reaped: there is nothing to remember.
            Err(_) => Ok(()),
        }
    }

    /// To be called when a started process has ended and its group is empty.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn stopped(&self, pid: u32) -> Result<(), JournalError> {
        self.append(&Entry::Stopped { pid })
    }

    /// To be called when all is undone: removes the file; but for a control group that could not be removed, which the next
    /// start finds by it.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn finish(self) -> Result<(), JournalError> {
        if found::read(&self.path).is_ok_and(|found| !groups::left(&found.entries).is_empty()) {
            return Ok(());
        }
        fs::remove_file(&self.path).map_err(|source| JournalError { path: self.path.clone(), source })
    }

    /// What carries the run id of this journal now, other than this process: what was started under it, and its children.
    pub fn carriers(&self, root: &Root) -> Vec<u32> {
        recover::left_running(root, &[], &self.run).into_iter().map(|process| process.id).collect()
    }

    fn append(&self, entry: &Entry) -> Result<(), JournalError> {
        let failed = |source| JournalError { path: self.path.clone(), source };
        let mut line = serde_json::to_vec(entry).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let length = file.metadata().map_err(failed)?.len();
        let written = file.write_all(&line).and_then(|()| file.sync_data());
        if written.is_err() {
            // The disk is full, perhaps: half a line would spoil the next one.
            let _ = file.set_len(length);
        }
        written.map_err(failed)
    }
}

/// How this process was called, for whoever has to wait for it.
pub(crate) fn command_line() -> String {
    const CHARACTERS_MAX: usize = 200;
    let mut words = std::env::args_os();
    let program = words.next().map(PathBuf::from).unwrap_or_default();
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let words = words.map(|word| word.to_string_lossy().into_owned());
    std::iter::once(name).chain(words).collect::<Vec<_>>().join(" ").chars().take(CHARACTERS_MAX).collect()
}

/// Nanoseconds since 1970.
pub(crate) fn now_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Pid and start time of a process or thread that is there.
fn identity(root: &Root, pid: u32) -> io::Result<Id> {
    match procs::stat(root, pid) {
        Ok(stat) => Ok(Id { pid, start_ticks: stat.start_ticks }),
        Err(missing) => Err(io::Error::other(missing)),
    }
}
