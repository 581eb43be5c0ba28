//! What can go wrong with a record on disk, and what to do about it.

use std::path::{Path, PathBuf};

/// A record that could not be written or read. Displays as one line; [`StoreError::hint`] is the next thing to
/// try.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No such file.
    #[error("{}: no such file", .path.display())]
    Absent {
        /// The file.
        path: PathBuf,
    },
    /// A directory, a device, a pipe.
    #[error("{}: not a regular file", .path.display())]
    NotAFile {
        /// What was named.
        path: PathBuf,
    },
    /// A file that tare did not write.
    #[error("{}: not a tare record ({what})", .path.display())]
    NotARecord {
        /// The file.
        path: PathBuf,
        /// What it is instead, as far as its first bytes tell.
        what: &'static str,
    },
    /// Written by a later tare.
    #[error("{}: written in layout {found}, this tare knows up to {known}", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its layout.
        found: i32,
        /// Ours.
        known: i32,
    },
    /// Shorter than it says it is.
    #[error("{}: cut short: {have_bytes} of {want_bytes} bytes are there", .path.display())]
    CutShort {
        /// The file.
        path: PathBuf,
        /// Its length.
        have_bytes: u64,
        /// The length its header promises.
        want_bytes: u64,
    },
    /// Not what was written.
    #[error("{}: damaged: {detail}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first thing that did not fit.
        detail: String,
    },
    /// A killed run left a commit half done, and this user may not finish it.
    #[error("{}: its last commit was interrupted and cannot be undone without write access", .path.display())]
    NeedsRollback {
        /// The file.
        path: PathBuf,
    },
    /// Somebody else holds the file's lock.
    #[error("{}: in use by another program", .path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// More than a record may hold.
    #[error("{}: a record holds at most {max} samples, this would make {samples}", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// How many there would be.
        samples: u64,
        /// [`super::SAMPLES_MAX`].
        max: u64,
    },
    /// The operating system refused.
    #[error("{}: {action}: {detail}", .path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// What was tried (`cannot be written`, `cannot be read`).
        action: &'static str,
        /// The system's reason.
        detail: String,
    },
}

impl StoreError {
    /// What the user can do, in one line.
    pub fn hint(&self) -> &'static str {
        match self {
            StoreError::Absent { .. } => "give the path of a .tare file that `tare run -o` wrote",
            StoreError::NotAFile { .. } => "give a path of a regular file, like result.tare",
            StoreError::NotARecord { .. } => {
                "give a .tare file that `tare run -o` wrote; tare never overwrites anybody else's file"
            }
            StoreError::Newer { .. } => "open it with the tare that wrote it, or a later one",
            StoreError::CutShort { .. } => "copy the whole file again; the disk it was copied to may be full",
            StoreError::Damaged { .. } => "copy the file again from where it was measured, or measure again",
            StoreError::NeedsRollback { .. } => {
                "copy the file and its -journal to a directory that you can write to, and open it there"
            }
            StoreError::Busy { .. } => "wait until the other program is done with it",
            StoreError::TooLarge { .. } => "measure for a shorter time, or with fewer observers",
            StoreError::Refused { .. } => "check that the directory exists, has room and may be used by you",
        }
    }

    /// An operating-system error on `path`.
    pub(super) fn io(path: &Path, action: &'static str, error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::NotFound if action == READ => StoreError::Absent { path: path.into() },
            _ => StoreError::Refused { path: path.into(), action, detail: one_line(&error.to_string()) },
        }
    }

    /// An SQLite error on `path`.
    pub(super) fn sqlite(path: &Path, action: &'static str, error: &rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{
            CannotOpen, ConstraintViolation, DatabaseBusy, DatabaseLocked, DiskFull, OutOfMemory,
            PermissionDenied, ReadOnly, SystemIoFailure,
        };
        let path = path.to_path_buf();
        let detail = one_line(&error.to_string());
        match error.sqlite_error() {
            Some(failure) => match failure.code {
                DatabaseBusy | DatabaseLocked => StoreError::Busy { path },
                ReadOnly if failure.extended_code == rusqlite::ffi::SQLITE_READONLY_ROLLBACK => {
                    StoreError::NeedsRollback { path }
                }
                CannotOpen | ConstraintViolation | DiskFull | OutOfMemory | PermissionDenied | ReadOnly
                | SystemIoFailure => StoreError::Refused { path, action, detail },
                _ => StoreError::Damaged { path, detail },
            },
            None => StoreError::Damaged { path, detail },
        }
    }

    /// The same error said of the path that the user gave, not of a name that only this module knows.
    pub(super) fn at(mut self, place: PathBuf) -> Self {
        match &mut self {
            StoreError::Absent { path }
            | StoreError::NotAFile { path }
            | StoreError::NotARecord { path, .. }
            | StoreError::Newer { path, .. }
            | StoreError::CutShort { path, .. }
            | StoreError::Damaged { path, .. }
            | StoreError::NeedsRollback { path }
            | StoreError::Busy { path }
            | StoreError::TooLarge { path, .. }
            | StoreError::Refused { path, .. } => *path = place,
        }
        self
    }

    /// Something in the file that does not fit.
    pub(super) fn damaged(path: &Path, detail: impl Into<String>) -> Self {
        StoreError::Damaged { path: path.into(), detail: one_line(&detail.into()) }
    }
}

/// What was tried when reading failed.
pub(super) const READ: &str = "cannot be read";
/// What was tried when writing failed.
pub(super) const WRITE: &str = "cannot be written";

/// Errors are one line and of bounded length, whatever a library or a damaged file puts into them.
fn one_line(text: &str) -> String {
    const CHARS_MAX: usize = 200;
    text.chars().take(CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
