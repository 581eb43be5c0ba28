//! A machine in a file: what readers read of it, packed, so that it can be examined elsewhere.

use crate::facts::{Reach, survey};
use crate::root::{Found, Root};
use crate::topology;
use bzip2::read::BzDecoder;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::PoisonError;
use tar::{Archive, Builder, EntryType, Header};
use tempfile::TempDir;

/// Longest file that is packed; the longest that readers want is the kernel's configuration.
const FILE_BYTES_MAX: usize = 1 << 20;
/// Most bytes that are packed, and that are unpacked.
const PACKED_BYTES_MAX: usize = 32 << 20;
const UNPACKED_BYTES_MAX: u64 = 256 << 20;
/// Most files and directories of an archive.
const ENTRIES_MAX: usize = 500_000;

/// Why an archive cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// It could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the system says.
        source: io::Error,
    },
    /// It is no tree of a machine.
    #[error("{path} {why} (hint: a folder or an archive that holds proc and sys, as 'tare doctor --capture FILE.tar.gz' makes)")]
    NoTree {
        /// The file or folder.
        path: String,
        /// What is wrong with it.
        why: String,
    },
}

impl CaptureError {
    fn io(path: &Path) -> impl Fn(io::Error) -> CaptureError {
        let path = path.display().to_string();
        move |source| CaptureError::Io { path: path.clone(), source }
    }

    fn no_tree(path: &Path, why: &str) -> CaptureError {
        CaptureError::NoTree { path: path.display().to_string(), why: why.to_string() }
    }
}

/// Packs what the readers of facts and topology read under `root` as `tar.gz`: no more than that, and of it nothing that
/// is others' (their names, command lines and environments).
///
/// # Errors
/// [`CaptureError::Io`].
pub fn pack(root: &Root, path: &Path) -> Result<(), CaptureError> {
    let (recording, seen) = root.recording();
    survey(&recording, Reach { company: None, windows: false });
    topology::read(&recording, None);
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let (files, directories) = harmless(seen);
    let failed = CaptureError::io(path);
    let file = File::create(path).map_err(&failed)?;
    let mut archive = Builder::new(GzEncoder::new(file, Compression::default()));
    let mut header = |kind: EntryType, size: usize| {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(if kind == EntryType::Directory { 0o755 } else { 0o644 });
        header.set_size(size as u64);
        header
    };
    for directory in directories {
        archive.append_data(&mut header(EntryType::Directory, 0), directory, io::empty()).map_err(&failed)?;
    }
    let mut total = 0;
    for (file, bytes) in files {
        total += bytes.len();
        if total > PACKED_BYTES_MAX {
            return Err(failed(io::Error::other("what is read of this machine is too long to pack")));
        }
        archive.append_data(&mut header(EntryType::Regular, bytes.len()), file, bytes.as_slice()).map_err(&failed)?;
    }
    archive.into_inner().and_then(GzEncoder::finish).and_then(|file| file.sync_all()).map_err(failed)
}

/// Files and directories by their path in the archive.
type Tree = (BTreeMap<PathBuf, Vec<u8>>, BTreeSet<PathBuf>);

fn harmless(seen: BTreeMap<PathBuf, Found>) -> Tree {
    let mut files = BTreeMap::new();
    let mut directories = BTreeSet::new();
    for (path, found) in seen {
        let Ok(inside) = path.strip_prefix("/").map(Path::to_path_buf) else { continue };
        match found {
            Found::File(bytes) => {
                if let Some(bytes) = harmless_part(&path, &bytes).filter(|bytes| bytes.len() <= FILE_BYTES_MAX) {
                    files.insert(inside, bytes);
                }
            }
            // A list of all processes is nobody's business.
            Found::Directory(_) if path == Path::new("/proc") => {}
            Found::Directory(names) => {
                directories.extend(names.iter().take(ENTRIES_MAX).map(|name| inside.join(name)));
                directories.insert(inside);
            }
            Found::Mark => {
                directories.insert(inside);
            }
        }
    }
    // What is a file, or has one below it, needs no directory of its own.
    directories.retain(|directory| !files.contains_key(directory));
    (files, directories)
}

/// What of a file goes into an archive: the lines that readers look at where the others may tell of people or programs;
/// nothing of other processes.
fn harmless_part(path: &Path, bytes: &[u8]) -> Option<Vec<u8>> {
    let lines = |keep: &dyn Fn(&str) -> bool| {
        let text = String::from_utf8_lossy(bytes);
        let kept: String = text.lines().filter(|line| keep(line)).flat_map(|line| [line, "\n"]).collect();
        Some(kept.into_bytes())
    };
    match path.to_str()? {
        "/proc/1/environ" => {
            let text = String::from_utf8_lossy(bytes);
            let kept = text.split('\0').filter(|entry| entry.starts_with("container="));
            Some(kept.collect::<Vec<_>>().join("\0").into_bytes())
        }
        "/proc/cmdline" => {
            let text = String::from_utf8_lossy(bytes);
            const KNOWN: [&str; 6] = ["isolcpus=", "nohz_full=", "mitigations=", "preempt=", "clocksource=", "psi="];
            let kept = text.split_ascii_whitespace().filter_map(|word| match word {
                word if KNOWN.iter().any(|known| word.starts_with(known)) => Some(word),
                word if word.contains("firecracker") => Some("firecracker"),
                _ => None,
            });
            Some((kept.collect::<Vec<_>>().join(" ") + "\n").into_bytes())
        }
        "/proc/self/mountinfo" | "/proc/self/mounts" | "/proc/mounts" => {
            lines(&|line| ["cgroup", "tracefs", "debugfs"].iter().any(|kind| line.contains(kind)))
        }
        "/proc/self/status" => lines(&|line| line.starts_with("Cpus_allowed") || line.starts_with("Mems_allowed")),
        "/proc/stat" => lines(&|line| line.starts_with("cpu")),
        "/proc/cpuinfo" => lines(&|line| !line.starts_with("Serial")),
        path if of_a_process(path) => None,
        _ => Some(bytes.to_vec()),
    }
}

fn of_a_process(path: &str) -> bool {
    let name = path.strip_prefix("/proc/").and_then(|rest| rest.split('/').next());
    name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A tree of another machine: a folder, or an archive that was unpacked and goes away with this.
#[derive(Debug)]
pub struct Tree_ {
    root: Root,
    _unpacked: Option<TempDir>,
}
