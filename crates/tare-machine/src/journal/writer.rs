//! The journal that this process writes: each line is on disk before what it says is done.

use super::caller::{command_line, now_ns};
use super::entry::Entry;
use super::folder::check_folder;
use super::id::identity;
use super::running::left_running;
use super::value_change::ValueChange;
use super::{found, left, lines};
use crate::facts::boot_id;
use crate::root::Root;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A journal that cannot be kept: nothing may be started or applied then.
#[derive(Debug, thiserror::Error)]
#[error("the journal {} cannot be written: {source}; hint: set TARE_STATE_DIR to a folder that you may write; tare keeps there what it must undo after a crash", path.display())]
pub struct JournalError {
    /// The file or folder.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// The journal of this process.
#[derive(Debug)]
pub struct Journal {
    pub(super) path: PathBuf,
    run: String,
    file: Mutex<File>,
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
    pub(super) fn reopen(path: &Path) -> Result<Journal, JournalError> {
        let failed = |source| JournalError { path: path.to_path_buf(), source };
        let bytes = fs::read(path).map_err(failed)?;
        let (whole, last) = found::split(&bytes);
        let mut file = OpenOptions::new().append(true).open(path).map_err(failed)?;
        // The last line may lack its end, or be cut: what is appended must stand on a line of its own.
        match lines::read(last) {
            Some(_) => file.write_all(b"\n").map_err(failed)?,
            None => file.set_len(whole.len() as u64).map_err(failed)?,
        }
        Ok(Journal { path: path.to_path_buf(), run: String::new(), file: Mutex::new(file) })
    }

    /// The folder that all journals are in.
    pub(super) fn dir(&self) -> &Path {
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
        if found::read(&self.path).is_ok_and(|found| !left::groups(&found.entries).is_empty()) {
            return Ok(());
        }
        fs::remove_file(&self.path).map_err(|source| JournalError { path: self.path.clone(), source })
    }

    /// What carries the run id of this journal now, other than this process: what was started under it, and its children.
    pub fn carriers(&self, root: &Root) -> Vec<u32> {
        left_running(root, &[], &self.run).into_iter().map(|process| process.id).collect()
    }

    pub(super) fn append(&self, entry: &Entry) -> Result<(), JournalError> {
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

    /// To be called before a setting is changed.
    pub(crate) fn will_apply(&self, setting: &ValueChange) -> Result<(), JournalError> {
        self.append(&Entry::WillApply(setting.clone()))
    }

    /// To be called when a setting is as it was.
    pub(crate) fn was_put_back(&self, path: &Path) -> Result<(), JournalError> {
        self.append(&Entry::PutBack { path: path.to_path_buf() })
    }

    /// To be called when all settings are changed.
    pub(crate) fn holding(&self, standing: bool, values: &[(PathBuf, String)]) -> Result<(), JournalError> {
        self.append(&Entry::Holding { standing, values: values.to_vec() })
    }
}
