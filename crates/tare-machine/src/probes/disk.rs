//! What the disk below a folder does: a write that is on it (`fsync`), and reads at random places, one at a time.
//!
//! The file that is read has no name where the file system can do that (`O_TMPFILE`), so that nothing is left whatever becomes of the
//! process; elsewhere the name is taken away at once. The file that is written has none only on file systems that are known to put a file
//! without a name on the disk as any other: btrfs, F2FS and ZFS leave out part of the work, since nobody could find it after a crash. What a
//! killed process left [`clean_up`] removes.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;
use tare_model::Missing;
use tare_stats::SplitMix64;
use tare_sys::{file, filesystem, time::monotonic_ns};

/// Bytes of a read and of a write.
pub const BLOCK_BYTES: usize = 4 << 10;
/// Bytes of the file that is read.
pub const READ_FILE_BYTES: u64 = 64 << 20;
/// Bytes of the file that is written again and again.
const WRITTEN_FILE_BYTES: u64 = 1 << 20;
/// Bytes that are written at once while a file is made.
const PIECE_BYTES: usize = 1 << 20;
/// How long a disk may keep somebody waiting, beside the time given.
const GRACE: Duration = Duration::from_secs(5);
/// Names, where there must be one; the process's id follows.
const NAME: &str = ".tare-ceiling-";
/// `TMPFS_MAGIC` and `RAMFS_MAGIC` of `statfs`.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];
/// Beside those, where `fsync` does the same for a file without a name: `EXT4_SUPER_MAGIC` and `XFS_SUPER_MAGIC`.
const SYNCS_NAMELESS: [u64; 2] = [0xef53, 0x5846_5342];

/// A file that goes away by itself.
#[derive(Debug, Clone)]
pub struct Scratch {
    file: Arc<File>,
    /// Its name, where it has one; taken away with the last copy of this.
    _name: Option<Arc<Name>>,
    bytes: u64,
    /// Whether reads go to the disk, past the page cache.
    pub is_direct: bool,
    /// Whether the file system is in memory: there is no disk.
    pub is_in_memory: bool,
}

/// The name of a file, until this goes.
#[derive(Debug)]
struct Name(PathBuf);

impl Drop for Name {
    fn drop(&mut self) {
        // Where that fails, the next `clean_up` does it.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Whether a file has to have a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    Never,
    WhereItCounts,
}

impl Named {
    fn on(self, kind: Option<u64>) -> bool {
        let is_same = kind.is_some_and(|kind| IN_MEMORY.contains(&kind) || SYNCS_NAMELESS.contains(&kind));
        self == Named::WhereItCounts && !is_same
    }
}

impl Scratch {
    /// A file of [`READ_FILE_BYTES`] whose content is on disk, to be read.
    ///
    /// # Errors
    /// What the folder or its file system does not allow, or that it took longer than is waited for.
    pub fn to_read(folder: &Path) -> Result<Scratch, Missing> {
        Scratch::made(folder, READ_FILE_BYTES, Named::Never).map(|mut scratch| {
            scratch.is_direct = file::set_direct(&scratch.file, true).is_ok();
            scratch
        })
    }

    /// A small file to be written.
    ///
    /// # Errors
    /// As [`Scratch::to_read`].
    pub fn to_write(folder: &Path) -> Result<Scratch, Missing> {
        Scratch::made(folder, WRITTEN_FILE_BYTES, Named::WhereItCounts)
    }

    fn made(folder: &Path, bytes: u64, named: Named) -> Result<Scratch, Missing> {
        let owned = folder.to_path_buf();
        let make = move || {
            let kind = filesystem::kind(&owned).ok();
            let (file, name) = match named.on(kind) {
                true => with_name(&owned).map(|(file, name)| (file, Some(Arc::new(name))))?,
                false => (unnamed(&owned)?, None),
            };
            let mut random = SplitMix64::new(bytes);
            // Nothing that a disk could take for zeroes or compress.
            let piece: Vec<u8> = (0..PIECE_BYTES / 8).flat_map(|_| random.next_u64().to_ne_bytes()).collect();
            for at in (0..bytes).step_by(PIECE_BYTES) {
                file.write_all_at(&piece, at)?;
            }
            file.sync_all()?;
            if name.is_some() {
                // The name, too, has to be there: else the first `fsync` of the file has to see to it.
                // A file system that refuses that for a folder has been given the file all the same.
                let _ = File::open(&owned).and_then(|folder| folder.sync_all());
            }
            let is_in_memory = kind.is_some_and(|kind| IN_MEMORY.contains(&kind));
            Ok(Scratch { file: Arc::new(file), _name: name, bytes, is_direct: false, is_in_memory })
        };
        in_time(GRACE, make).map_err(|error| unusable(folder, &error))
    }

    /// Seconds of a write of 4 KiB with the `fsync` after it, on average over `duration_ns`.
    ///
    /// # Errors
    /// What the file system says, or that it took longer than is waited for.
    pub fn fsync_s(&self, duration_ns: u64) -> Result<f64, Missing> {
        let block = vec![7u8; BLOCK_BYTES];
        self.repeat(duration_ns, move |file, at| {
            file.write_all_at(&block, at)?;
            file.sync_all()
        })
    }

    /// Seconds of a read of 4 KiB at a random place, on average over `duration_ns`.
    ///
    /// # Errors
    /// As [`Scratch::fsync_s`].
    pub fn read_s(&self, duration_ns: u64) -> Result<f64, Missing> {
        let mut buffer = vec![0u8; 2 * BLOCK_BYTES];
        // Reads past the page cache need a buffer that begins on a block.
        let begin = buffer.as_ptr().align_offset(BLOCK_BYTES).min(BLOCK_BYTES);
        self.repeat(duration_ns, move |file, at| {
            let block = buffer.get_mut(begin..begin + BLOCK_BYTES).unwrap_or_default();
            file.read_exact_at(block, at)
        })
    }

    fn repeat(
        &self,
        duration_ns: u64,
        mut one: impl FnMut(&File, u64) -> io::Result<()> + Send + 'static,
    ) -> Result<f64, Missing> {
        let (file, blocks) = (Arc::clone(&self.file), self.bytes / BLOCK_BYTES as u64);
        let work = move || {
            let mut random = SplitMix64::new(monotonic_ns());
            let begun_ns = monotonic_ns();
            for count in 1u64.. {
                one(&file, random.next_u64() % blocks * BLOCK_BYTES as u64)?;
                let taken_ns = monotonic_ns() - begun_ns;
                if taken_ns >= duration_ns {
                    return Ok(taken_ns as f64 / count as f64 / 1e9);
                }
            }
            Err(ErrorKind::TimedOut.into())
        };
        let within = Duration::from_nanos(duration_ns) + GRACE;
        in_time(within, work).map_err(|error| Missing::new(format!("the disk: {error}")))
    }
}

/// Does it on a thread of its own, which is left to itself where the disk does not answer.
fn in_time<T: Send + 'static>(
    within: Duration,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (sender, receiver) = sync_channel(1);
    let thread = move || _ = sender.send(work());
    std::thread::Builder::new().name("tare-probe".into()).spawn(thread)?;
    receiver.recv_timeout(within).unwrap_or_else(|error| match error {
        RecvTimeoutError::Timeout => {
            let text = format!("it did not answer within {:.1} s", within.as_secs_f64());
            Err(io::Error::new(ErrorKind::TimedOut, text))
        }
        RecvTimeoutError::Disconnected => Err(io::Error::other("the probe's thread ended early")),
    })
}

fn unusable(folder: &Path, error: &io::Error) -> Missing {
    let remedy = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free 65 MiB there, or name another folder (--dir)"
        }
        _ => "name a folder that may be written (--dir)",
    };
    Missing::with_remedy(format!("no file can be made in {}: {error}", folder.display()), remedy)
}

fn unnamed(folder: &Path) -> io::Result<File> {
    // The name goes with what held it.
    file::nameless(folder).or_else(|_| with_name(folder).map(|(file, _)| file))
}

fn with_name(folder: &Path) -> io::Result<(File, Name)> {
    let path = folder.join(format!("{NAME}{}-{}", std::process::id(), monotonic_ns()));
    let made = File::options().read(true).write(true).create_new(true).open(&path)?;
    Ok((made, Name(path)))
}

/// Removes what processes that have ended left in a folder: its names.
pub fn clean_up(folder: &Path) -> Vec<PathBuf> {
    let left = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix(NAME));
        let pid = name.and_then(|rest| rest.split('-').next()).and_then(|pid| pid.parse::<u32>().ok());
        pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists())
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(left).filter(|path| std::fs::remove_file(path).is_ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_measured_and_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let (written, read) =
            (Scratch::to_write(folder.path()).unwrap(), Scratch::to_read(folder.path()).unwrap());
        let (fsync_s, read_s) = (written.fsync_s(1_000_000).unwrap(), read.read_s(1_000_000).unwrap());
        assert!(fsync_s > 0.0 && read_s > 0.0, "{fsync_s} {read_s}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_has_a_name_where_fsync_may_leave_out_work_without_one() {
        let (btrfs, f2fs, zfs, overlay) = (0x9123_683e, 0xf2f5_2010, 0x2fc1_2fc1, 0x794c_7630);
        for kind in [btrfs, f2fs, zfs, overlay] {
            assert!(Named::WhereItCounts.on(Some(kind)) && !Named::Never.on(Some(kind)), "{kind:#x}");
        }
        assert!(Named::WhereItCounts.on(None));
        for kind in IN_MEMORY.into_iter().chain(SYNCS_NAMELESS) {
            assert!(!Named::WhereItCounts.on(Some(kind)), "{kind:#x}");
        }
        let folder = tempfile::tempdir().unwrap();
        let names = || std::fs::read_dir(folder.path()).unwrap().count();
        let (file, name) = with_name(folder.path()).unwrap();
        assert_eq!(names(), 1);
        drop((file, name));
        assert_eq!(names(), 0);
    }

    #[test]
    fn a_folder_that_is_not_there_is_missing_with_a_remedy() {
        let missing = Scratch::to_write(Path::new("/proc/no/such/folder")).unwrap_err();
        assert!(
            missing.why.contains("/proc/no/such/folder") && missing.remedy.contains("--dir"),
            "{missing:?}"
        );
    }

    #[test]
    fn names_that_ended_processes_left_are_removed_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let (left, running) =
            (path(".tare-ceiling-4194305-1"), path(&format!(".tare-ceiling-{}-1", std::process::id())));
        for path in [&left, &running, &path("mine"), &path(".tare-ceiling-x")] {
            std::fs::write(path, "").unwrap();
        }
        assert_eq!(clean_up(folder.path()), [left]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    }
}
