//! One tare at a time applies settings.

use super::caller::{command_line, now_ns};
use super::folder::check_folder;
use crate::procs;
use crate::root::Root;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tare_model::tuning::Holder;

/// Longest name of a holder that is read.
const HOLDER_BYTES_MAX: u64 = 4096;
/// How often it is checked again whether a holder that is dead has let go, and how long between two checks: a child
/// that it was just starting has the lock for a moment longer.
const CHECKS: u32 = 100;
const CHECK_EVERY: Duration = Duration::from_millis(10);

/// Why the settings are not to be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another tare has them.
    #[error(
        "the settings are held by '{}' (pid {}, for {} s); hint: wait for its end, or end it: it puts back what it applied",
        .0.command, .0.pid, (now_ns() / 1_000_000_000).saturating_sub(.0.since_unix_s)
    )]
    Held(Holder),
    /// The lock cannot be kept.
    #[error("the lock {} cannot be taken: {source}; hint: applying settings needs a folder to keep the way back in", path.display())]
    Io {
        /// Its file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The right to apply settings, until all that share it are dropped or the process ends in whatever way.
#[derive(Debug, Clone)]
pub struct Lock {
    _held: Arc<Held>,
}

#[derive(Debug)]
struct Held {
    file: File,
}

impl Lock {
    /// Takes the lock in `dir`, which is made if need be.
    ///
    /// # Errors
    /// [`LockError`], with the holder's name.
    pub fn take(dir: &Path) -> Result<Lock, LockError> {
        let path = dir.join("tune.lock");
        let failed = |source| LockError::Io { path: path.clone(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
        check_folder(dir).map_err(failed)?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        for _ in 0..CHECKS {
            match file.try_lock() {
                Ok(()) => {
                    let pid = std::process::id();
                    let holder =
                        Holder { pid, command: command_line(), since_unix_s: now_ns() / 1_000_000_000 };
                    write(&mut file, &holder).map_err(failed)?;
                    return Ok(Lock { _held: Arc::new(Held { file }) });
                }
                Err(TryLockError::WouldBlock) => {
                    let holder = read(&mut file);
                    let is_dead = holder.pid != 0
                        && procs::stat(&Root::live(), holder.pid)
                            .map_or(true, |stat| matches!(stat.state, 'Z' | 'X'));
                    // Whoever has just taken it may not have written its name yet.
                    if !is_dead && holder.pid != 0 {
                        return Err(LockError::Held(holder));
                    }
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            std::thread::sleep(CHECK_EVERY);
        }
        Err(LockError::Held(read(&mut file)))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Closing it would leave it to a child that is just being started, which has the same open file.
        let _ = self.file.unlock();
    }
}

fn write(file: &mut File, holder: &Holder) -> io::Result<()> {
    let text = serde_json::to_vec(holder)?;
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(&text)
}

/// Nobody where nothing sensible stands.
fn read(file: &mut File) -> Holder {
    let mut text = Vec::new();
    let read = file.rewind().and_then(|()| file.take(HOLDER_BYTES_MAX).read_to_end(&mut text));
    read.ok().and_then(|_| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_one_learns_who_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::take(&dir.path().join("new")).unwrap();
        let LockError::Held(holder) = Lock::take(&dir.path().join("new")).unwrap_err() else {
            panic!("not held")
        };
        assert_eq!(holder.pid, std::process::id());
        assert!(!holder.command.is_empty() && holder.since_unix_s > 1_600_000_000);
        let shared = lock.clone();
        drop(lock);
        assert!(Lock::take(&dir.path().join("new")).is_err(), "somebody has it still");
        drop(shared);
        Lock::take(&dir.path().join("new")).unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        let error = Lock::take(&dir.path().join("file")).unwrap_err();
        assert!(error.to_string().contains("hint"), "{error}");
    }
}
