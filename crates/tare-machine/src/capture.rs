//! A machine in a file: what readers read of it, packed, so that it can be examined elsewhere.

mod unpacked;

use crate::facts::{Reach, survey};
use crate::root::{Found, Root};
use crate::topology;
use bzip2::read::BzDecoder;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::PoisonError;
use tar::{Archive, Builder, EntryType, Header};
use unpacked::Unpacked;

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
    #[error(
        "{path} {why} (hint: a folder or an archive that holds proc and sys, as 'tare doctor --capture FILE.tar.gz' makes)"
    )]
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
/// [`CaptureError::Io`]; a file that was there before is as it was then.
pub fn pack(root: &Root, path: &Path) -> Result<(), CaptureError> {
    let failed = CaptureError::io(path);
    if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        // A device or a pipe is written to; nothing can take its place.
        return OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|file| pack_to(root, file))
            .map_err(failed);
    }
    // Where a link leads, so that the link stays.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let folder = target.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let everybody = std::fs::Permissions::from_mode(0o666);
    let mut file = tempfile::Builder::new()
        .prefix(".tare-")
        .permissions(everybody)
        .tempfile_in(folder)
        .map_err(&failed)?;
    pack_to(root, file.as_file_mut()).and_then(|()| file.as_file().sync_all()).map_err(&failed)?;
    file.persist(&target).map(drop).map_err(|error| failed(error.error))
}

/// The same to whatever can be written to.
///
/// # Errors
/// What `to` says; also when there is too much to pack.
pub fn pack_to(root: &Root, to: impl Write) -> io::Result<()> {
    let (recording, seen) = root.recording();
    survey(&recording, Reach { company: None, windows: false });
    topology::read(&recording, None);
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let (files, directories) = harmless(seen);
    let mut archive = Builder::new(GzEncoder::new(to, Compression::default()));
    let header = |kind: EntryType, size: usize| {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(if kind == EntryType::Directory { 0o755 } else { 0o644 });
        header.set_size(size as u64);
        header
    };
    for directory in directories {
        archive.append_data(&mut header(EntryType::Directory, 0), directory, io::empty())?;
    }
    let mut total = 0;
    for (file, bytes) in files {
        total += bytes.len();
        if total > PACKED_BYTES_MAX {
            return Err(io::Error::other("what is read of this machine is too long to pack"));
        }
        archive.append_data(&mut header(EntryType::Regular, bytes.len()), file, bytes.as_slice())?;
    }
    archive.into_inner().and_then(GzEncoder::finish).and_then(|mut to| to.flush())
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
                if let Some(bytes) =
                    harmless_part(&path, &bytes).filter(|bytes| bytes.len() <= FILE_BYTES_MAX)
                {
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
            let kept = text.split('\0').filter_map(|entry| match entry.split_once('=')? {
                ("container", _) => Some(entry),
                (name @ "KUBERNETES_SERVICE_HOST", _) => Some(name),
                _ => None,
            });
            let kept: Vec<String> = kept
                .map(|entry| if entry.contains('=') { entry.to_string() } else { format!("{entry}=") })
                .collect();
            Some(kept.join("\0").into_bytes())
        }
        "/proc/cmdline" => {
            let text = String::from_utf8_lossy(bytes);
            const KNOWN: [&str; 6] =
                ["isolcpus=", "nohz_full=", "mitigations=", "preempt=", "clocksource=", "psi="];
            let kept = text.split_ascii_whitespace().filter_map(|word| match word {
                word if KNOWN.iter().any(|known| word.starts_with(known)) => Some(word),
                word if word.contains("firecracker") => Some("firecracker"),
                _ => None,
            });
            Some((kept.collect::<Vec<_>>().join(" ") + "\n").into_bytes())
        }
        "/proc/self/mountinfo" | "/proc/self/mounts" | "/proc/mounts" => lines(&|line| {
            // Of a container: what a pod is given, and whose layers its root has.
            let marks = [
                "cgroup",
                "tracefs",
                "debugfs",
                "resctrl",
                "/dev/termination-log",
                "kubernetes.io/serviceaccount",
            ];
            marks.iter().any(|mark| line.contains(mark)) || line.contains(" / ") && line.contains(" overlay ")
        }),
        "/proc/swaps" => {
            let text = String::from_utf8_lossy(bytes);
            // Where a file lies tells of people.
            let kept = text.lines().map(|line| match line.split_once([' ', '\t']) {
                Some((path, rest)) if path.starts_with('/') && !path.starts_with("/dev/") => {
                    format!("/file {rest}\n")
                }
                _ => format!("{line}\n"),
            });
            Some(kept.collect::<String>().into_bytes())
        }
        "/proc/sysinfo" => lines(&|line| {
            ["Manufacturer", "LPAR Number", "VM00 Control Program"].iter().any(|key| line.starts_with(key))
        }),
        "/proc/self/status" => {
            lines(&|line| line.starts_with("Cpus_allowed") || line.starts_with("Mems_allowed"))
        }
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

/// The machine of a folder or of an archive; what an archive was unpacked to goes away with this.
#[derive(Debug)]
pub struct Captured {
    root: Root,
    _unpacked: Option<Unpacked>,
}

impl Captured {
    /// The root to read under.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Opens a folder that holds `proc` and `sys`, or a `tar`, `tar.gz` or `tar.bz2` of one.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn open(path: &Path) -> Result<Captured, CaptureError> {
        let kind = std::fs::metadata(path).map_err(CaptureError::io(path))?.file_type();
        if kind.is_dir() {
            return Ok(Captured { root: Root::at(top(path, path)?), _unpacked: None });
        }
        // A pipe may never end, and is read from its beginning once only.
        if !kind.is_file() {
            return Err(CaptureError::no_tree(path, "is neither a folder nor a file"));
        }
        let unpacked = Unpacked::new().map_err(CaptureError::io(path))?;
        unpack(path, unpacked.path())?;
        let root = Root::at(top(unpacked.path(), path)?);
        Ok(Captured { root, _unpacked: Some(unpacked) })
    }
}

/// Where `proc` or `sys` is: here, or in the only folder here.
fn top(dir: &Path, named: &Path) -> Result<PathBuf, CaptureError> {
    let is_top = |dir: &Path| {
        let root = Root::at(dir);
        root.is_dir("/sys") || root.is_dir("/proc")
    };
    let inside = std::fs::read_dir(dir).map_err(CaptureError::io(named))?;
    // Not by links: a tree that is somewhere else has been named so, or not at all.
    let is_folder = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let folders = inside.flatten().filter(is_folder).map(|entry| entry.path());
    std::iter::once(dir.to_path_buf())
        .chain(folders.take(2))
        .find(|dir| is_top(dir))
        .ok_or_else(|| CaptureError::no_tree(named, "holds neither proc nor sys"))
}

fn unpack(path: &Path, into: &Path) -> Result<(), CaptureError> {
    let failed = CaptureError::io(path);
    let mut start = [0u8; 3];
    let mut file = File::open(path).map_err(&failed)?;
    file.read_exact(&mut start).map_err(|_| CaptureError::no_tree(path, "is no archive"))?;
    let file = BufReader::new(File::open(path).map_err(&failed)?);
    let plain: Box<dyn Read> = match start {
        [0x1f, 0x8b, _] => Box::new(GzDecoder::new(file)),
        [b'B', b'Z', b'h'] => Box::new(BzDecoder::new(file)),
        _ => Box::new(file),
    };
    let no_archive = |error: io::Error| {
        // It may quote what it could not read.
        let error = error.to_string().replace(char::is_control, "?");
        CaptureError::no_tree(path, &format!("cannot be unpacked: {error}"))
    };
    let mut archive = Archive::new(plain.take(UNPACKED_BYTES_MAX));
    archive.set_preserve_mtime(false);
    for entry in archive.entries().map_err(no_archive)?.take(ENTRIES_MAX) {
        let mut entry = entry.map_err(no_archive)?;
        // Where a link leads is a matter of reading it: under a root of a tree, never out of that.
        let wanted = matches!(
            entry.header().entry_type(),
            EntryType::Regular | EntryType::Directory | EntryType::Symlink
        );
        if wanted && entry.path().is_ok_and(|path| !goes_through_a_link(into, &path)) {
            let at = entry.path().ok().and_then(|path| inside(into, &path));
            // Nothing leaves `into`: such entries are skipped by the library.
            if let (true, Some(at)) = (entry.unpack_in(into).map_err(no_archive)?, at) {
                open_up(&at).map_err(no_archive)?;
            }
        }
    }
    Ok(())
}

/// Where an entry is unpacked to, if it stays inside.
fn inside(into: &Path, path: &Path) -> Option<PathBuf> {
    let mut at = into.to_path_buf();
    for part in path.components() {
        match part {
            Component::Normal(name) => at.push(name),
            Component::ParentDir => return None,
            _ => {}
        }
    }
    Some(at)
}

/// Modes of an archive are those of somebody else's files: whoever unpacks it reads all of it, and writes into folders
/// that are closed there.
fn open_up(at: &Path) -> io::Result<()> {
    // By what was made: the oldest archives mark a folder by its name alone.
    let kind = std::fs::symlink_metadata(at)?.file_type();
    let mode = match (kind.is_dir(), kind.is_file()) {
        (true, _) => 0o700,
        (_, true) => 0o600,
        _ => return Ok(()),
    };
    std::fs::set_permissions(at, std::fs::Permissions::from_mode(mode))
}

/// What goes through a link would be written, or have its mode changed, wherever that leads.
fn goes_through_a_link(into: &Path, path: &Path) -> bool {
    let mut at = into.to_path_buf();
    path.components().filter(|part| matches!(part, Component::Normal(_))).any(|part| {
        at.push(part);
        at.symlink_metadata().is_ok_and(|found| found.is_symlink())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_others_stays_out() {
        let seen = [
            ("/proc/1/environ", "SECRET=1\0container=lxc\0"),
            ("/proc/cmdline", "root=/dev/sda1 password=1 isolcpus=2 -- --firecracker-init"),
            ("/proc/self/mountinfo", "1 0 0:1 / /home/me rw - ext4 x rw\n2 0 0:2 / /cg rw - cgroup2 x rw\n"),
            ("/proc/77/stat", "77 (mine) S"),
            ("/proc/self/limits", "all"),
            ("/proc/swaps", "Filename\tType\n/home/me/swap file 8 0 -2\n/dev/zram0 partition 8 0 100\n"),
            (
                "/proc/sysinfo",
                "Manufacturer: IBM\nLPAR Number: 3\nLPAR Name: MINE\nVM00 Control Program: KVM/Linux\n",
            ),
        ];
        let seen = seen.map(|(path, text)| (PathBuf::from(path), Found::File(text.as_bytes().to_vec())));
        let names = Found::Directory(vec!["77".to_string()]);
        let (files, directories) =
            harmless(seen.into_iter().chain([(PathBuf::from("/proc"), names)]).collect());
        let text = |path: &str| String::from_utf8(files[Path::new(path)].clone()).unwrap();
        assert_eq!(text("proc/1/environ"), "container=lxc");
        assert_eq!(text("proc/cmdline"), "isolcpus=2 firecracker\n");
        assert_eq!(text("proc/self/mountinfo"), "2 0 0:2 / /cg rw - cgroup2 x rw\n");
        assert_eq!(text("proc/self/limits"), "all");
        assert_eq!(text("proc/swaps"), "Filename\tType\n/file file 8 0 -2\n/dev/zram0 partition 8 0 100\n");
        assert_eq!(
            text("proc/sysinfo"),
            "Manufacturer: IBM\nLPAR Number: 3\nVM00 Control Program: KVM/Linux\n"
        );
        assert!(!files.contains_key(Path::new("proc/77/stat")) && directories.is_empty());
    }

    fn header(kind: EntryType, size: usize) -> Header {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(0o755);
        header.set_size(size as u64);
        header
    }

    /// An archive with links, some of which lead out, by themselves or through each other.
    #[test]
    fn links_stay_inside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.tar");
        let outside = dir.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("secret"), "mine").unwrap();
        let mut archive = Builder::new(File::create(&path).unwrap());
        let links = [
            ("m/sys/in", "../proc/n"),
            ("m/sys/abs-in", "/proc/n"),
            ("m/sys/out", "../../../etc/passwd"),
            ("m/sys/abs", "/etc/passwd"),
            ("m/sys/a/b/c/up", "../../../.."),
            ("m/sys/a/b/c/far", "up/../../../../../../../../etc/passwd"),
            ("m/sys/a/b/c/up/link", "../../../etc/passwd"),
            ("m/sys/folder", outside.to_str().unwrap()),
        ];
        for (from, to) in links {
            archive.append_link(&mut header(EntryType::Symlink, 0), from, to).unwrap();
        }
        for (file, text) in [("m/proc/n", &b"42"[..]), ("m/sys/folder/secret", b"no"), ("m/sys/abs", b"no")] {
            archive.append_data(&mut header(EntryType::Regular, text.len()), file, text).unwrap();
        }
        let mut open = header(EntryType::Directory, 0);
        open.set_mode(0o700);
        let mode = || outside.metadata().unwrap().permissions().mode();
        let before = mode();
        archive.append_data(&mut open, "m/sys/folder", io::empty()).unwrap();
        archive.finish().unwrap();
        let captured = Captured::open(&path).unwrap();
        let root = captured.root();
        assert_eq!((root.value("/sys/in"), root.value("/sys/abs-in")), (Ok(42u32), Ok(42u32)));
        for out in ["out", "abs", "a/b/c/far", "a/b/c/up/link", "a/b/c/up/etc/passwd", "folder/secret"] {
            assert!(root.text(format!("/sys/{out}")).is_err(), "{out}");
        }
        assert_eq!(std::fs::read(outside.join("secret")).unwrap(), b"mine");
        assert_eq!(mode(), before);
    }

    /// `/sys` is full of folders that nobody may write to, and of files that nobody may read.
    #[test]
    fn modes_of_an_archive_do_not_matter() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.tar");
        let mut archive = Builder::new(File::create(&path).unwrap());
        for (folder, mode) in [("m/sys", 0o555), ("m/sys/closed", 0)] {
            let mut header = header(EntryType::Directory, 0);
            header.set_mode(mode);
            archive.append_data(&mut header, folder, io::empty()).unwrap();
        }
        let mut closed = header(EntryType::Regular, 2);
        closed.set_mode(0);
        archive.append_data(&mut closed, "m/sys/closed/n", &b"42"[..]).unwrap();
        archive.finish().unwrap();
        let captured = Captured::open(&path).unwrap();
        let mode = |path: &str| captured.root().path(path).metadata().unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode("/sys"), mode("/sys/closed"), mode("/sys/closed/n")), (0o700, 0o700, 0o600));
        assert_eq!(captured.root().value("/sys/closed/n"), Ok(42u32));
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let no_archive = dir.path().join("x.tar.gz");
        for bytes in [&b""[..], b"\x1f\x8bnonsense", b"BZhnonsense", b"nonsense of some length"] {
            std::fs::write(&no_archive, bytes).unwrap();
            assert!(matches!(Captured::open(&no_archive), Err(CaptureError::NoTree { .. })), "{bytes:?}");
        }
        assert!(matches!(Captured::open(dir.path()), Err(CaptureError::NoTree { .. })));
        assert!(matches!(Captured::open(&dir.path().join("none")), Err(CaptureError::Io { .. })));
        assert!(matches!(Captured::open(Path::new("/dev/null")), Err(CaptureError::NoTree { .. })));
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(matches!(Captured::open(&pipe), Err(CaptureError::NoTree { .. })));
    }
}
