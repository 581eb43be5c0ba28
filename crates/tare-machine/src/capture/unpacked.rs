//! Where an archive is unpacked to. A process that is killed leaves its folder behind, and lets go of the lock on it:
//! the next one that unpacks an archive takes it away.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tempfile::TempDir;

const PREFIX: &str = "tare-root-";
/// Entries of the folder for temporary files that are looked at, and folders that are taken away, at most.
const LOOKED_AT_MAX: usize = 10_000;
const REMOVED_MAX: usize = 16;
/// Folders that are made until one is ours: whoever cleans up may take a new one for a dead one.
const ATTEMPTS: usize = 8;

/// A folder that goes away with this.
#[derive(Debug)]
pub(super) struct Unpacked {
    dir: TempDir,
    /// Let go of when the folder is gone.
    _lock: File,
}

impl Unpacked {
    /// A new one among the system's temporary files.
    pub(super) fn new() -> io::Result<Unpacked> {
        Self::new_in(&std::env::temp_dir())
    }

    fn new_in(parent: &Path) -> io::Result<Unpacked> {
        remove_dead(parent);
        for _ in 0..ATTEMPTS {
            let dir = TempDir::with_prefix_in(PREFIX, parent)?;
            let is_ours = |lock: &File| {
                let there = dir.path().symlink_metadata().map(|there| there.ino());
                lock.try_lock().is_ok()
                    && matches!((lock.metadata(), there), (Ok(own), Ok(there)) if own.ino() == there)
            };
            if let Some(lock) = File::open(dir.path()).ok().filter(is_ours) {
                return Ok(Unpacked { dir, _lock: lock });
            }
        }
        Err(io::Error::other("a folder for temporary files went away"))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Takes away what dead processes of this user left. What cannot be is left to whoever can.
fn remove_dead(parent: &Path) {
    let Ok(entries) = parent.read_dir() else { return };
    let user = tare_sys::process::user();
    let is_named =
        |entry: &std::fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
    let dead = entries.take(LOOKED_AT_MAX).flatten().filter(is_named).filter_map(|entry| {
        // Not by links: what a stranger's leads to is not ours to take away.
        let is_own = entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == user);
        let lock = File::open(entry.path()).ok().filter(|lock| is_own && lock.try_lock().is_ok())?;
        Some((entry.path(), lock))
    });
    for (path, _lock) in dead.take(REMOVED_MAX) {
        let _ = std::fs::remove_dir_all(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir, create_dir_all, write};

    #[test]
    fn what_a_killed_process_left_is_taken_away_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| parent.path().join(name);
        let alive = Unpacked::new_in(parent.path()).unwrap();
        create_dir_all(at("tare-root-dead/proc/1")).unwrap();
        write(at("tare-root-dead/proc/1/stat"), "1 (x) S").unwrap();
        create_dir(at("other")).unwrap();
        write(at("tare-root-file"), "").unwrap();
        std::os::unix::fs::symlink(at("other"), at("tare-root-link")).unwrap();
        let next = Unpacked::new_in(parent.path()).unwrap();
        assert!(!at("tare-root-dead").exists());
        assert!(alive.path().is_dir() && next.path().is_dir() && at("other").is_dir());
        assert!(at("tare-root-file").is_file() && at("tare-root-link").is_symlink());
        let (alive, next) = (alive, next.path().to_owned());
        drop(alive);
        assert!(next.exists());
    }

    #[test]
    fn no_more_than_a_few_are_taken_away_at_once() {
        let parent = tempfile::tempdir().unwrap();
        (0..20).for_each(|at| create_dir(parent.path().join(format!("tare-root-{at}"))).unwrap());
        let own = Unpacked::new_in(parent.path()).unwrap();
        assert_eq!(parent.path().read_dir().unwrap().count(), 20 - REMOVED_MAX + 1);
        drop(own);
        assert_eq!(parent.path().read_dir().unwrap().count(), 20 - REMOVED_MAX);
    }
}
