//! Where `/proc` and `/sys` are: the live system, or a tree captured on another machine.
//!
//! A tree is somebody else's: its links lead to places in the tree, as they did on its machine, and never to files of
//! this one; its pipes and devices are not opened.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tare_model::Missing;
use tare_sys::file::{self, Kind, Purpose};

/// Most bytes that are read of one file; `/proc/net/tcp` of a busy host is the longest that is wanted.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Most names that are taken of one directory.
const NAMES_MAX: usize = 1 << 20;
/// A directory, a pipe, a socket or a device where a file should be.
const NO_FILE: &str = "no file";

/// Where a captured tree keeps what the processor said of its hypervisor: no kernel has a file for it.
const HYPERVISOR_IDS: &str = "/tare/hypervisor-ids";

/// The root that every reader of this room looks under.
#[derive(Debug, Clone)]
pub struct Root {
    dir: PathBuf,
    seen: Option<Seen>,
}

/// What readers found under a recording root, by absolute path.
pub type Seen = Arc<Mutex<BTreeMap<PathBuf, Found>>>;

/// Something that a reader found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A file with this content.
    File(Vec<u8>),
    /// A directory with these names.
    Directory(Vec<String>),
    /// Something of which only the existence was asked.
    Mark,
}

impl Root {
    /// The running system.
    pub fn live() -> Root {
        Root { dir: PathBuf::from("/"), seen: None }
    }

    /// A captured tree: `dir` holds `proc`, `sys` …
    pub fn at(dir: impl Into<PathBuf>) -> Root {
        Root { dir: dir.into(), seen: None }
    }

    /// The same root, and a list that fills with what is read through it: what readers need of a machine is what
    /// they read of it.
    pub fn recording(&self) -> (Root, Seen) {
        let seen = Seen::default();
        (Root { dir: self.dir.clone(), seen: Some(seen.clone()) }, seen)
    }

    fn record(&self, absolute: &Path, found: impl FnOnce() -> Found) {
        if let Some(seen) = &self.seen {
            // A reader that panicked leaves a list that is as good as any.
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            let known = seen.entry(absolute.to_path_buf()).or_insert(Found::Mark);
            // Something of which only the existence was asked may be read later, but not the other way round.
            if *known == Found::Mark {
                *known = found();
            }
        }
    }

    /// Whether something is there, readable or not.
    pub fn exists(&self, absolute: impl AsRef<Path>) -> bool {
        let absolute = absolute.as_ref();
        let exists = self.look(absolute).is_ok();
        if exists {
            self.record(absolute, || Found::Mark);
        }
        exists
    }

    /// How many links the running system counts to something; `None` in a captured tree, which does not hold them.
    pub fn links(&self, absolute: impl AsRef<Path>) -> Option<u64> {
        let facts = if self.is_live() { fs::metadata(absolute).ok()? } else { return None };
        Some(std::os::unix::fs::MetadataExt::nlink(&facts))
    }

    /// What the hypervisor calls itself to its guests on x86 (`KVMKVMKVM`, `TCGTCGTCGTCG`), a line for each name: asked of the processor, or as
    /// the capture has it; empty where there is none, or nobody asked.
    pub fn hypervisor_ids(&self) -> String {
        if !self.is_live() {
            return self.text(HYPERVISOR_IDS).unwrap_or_default();
        }
        let line = |id: [u8; 12]| String::from_utf8_lossy(&id).trim_matches(['\0', ' ']).to_owned() + "\n";
        let ids: String = tare_sys::cpuid::hypervisor_ids().into_iter().map(line).collect();
        self.record(Path::new(HYPERVISOR_IDS), || Found::File(ids.clone().into_bytes()));
        ids
    }

    /// Whether a directory is there.
    pub fn is_dir(&self, absolute: impl AsRef<Path>) -> bool {
        self.look(absolute.as_ref()).is_ok_and(|kind| kind == Kind::Folder)
    }

    fn look(&self, absolute: &Path) -> io::Result<Kind> {
        if !self.is_live() {
            return Ok(file::facts(&self.open(absolute, Purpose::Look)?)?.kind);
        }
        let kind = fs::metadata(absolute)?.file_type();
        Ok(match (kind.is_file(), kind.is_dir()) {
            (true, _) => Kind::File,
            (_, true) => Kind::Folder,
            _ => Kind::Special,
        })
    }

    /// Opens something below a root that is not the running system.
    fn open(&self, absolute: &Path, purpose: Purpose) -> io::Result<File> {
        let path = CString::new(absolute.as_os_str().as_bytes())?;
        file::open_in_root(File::open(&self.dir)?, &path, purpose)
    }

    fn open_file(&self, absolute: &Path, purpose: Purpose) -> io::Result<File> {
        let file = self.open(absolute, purpose)?;
        match file::facts(&file)?.kind {
            Kind::File if purpose == Purpose::Read => readable(file),
            Kind::File => Ok(file),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, NO_FILE)),
        }
    }

    /// Writes a file that is there; makes none. In one call: the kernel takes each call for a whole value.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&self, absolute: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
        let absolute = absolute.as_ref();
        let mut file = if self.is_live() {
            OpenOptions::new().write(true).truncate(true).open(absolute)?
        } else {
            let file = self.open_file(absolute, Purpose::Write)?;
            file.set_len(0)?;
            file
        };
        file.write_all(bytes)
    }

    /// Whether this is the running system: system calls on its pids make sense.
    pub fn is_live(&self) -> bool {
        self.dir == Path::new("/")
    }

    /// Where an absolute path of that system is for us.
    pub fn path(&self, absolute: impl AsRef<Path>) -> PathBuf {
        let absolute = absolute.as_ref();
        self.dir.join(absolute.strip_prefix("/").unwrap_or(absolute))
    }

    /// The text of a file, with what is not UTF-8 replaced.
    ///
    /// # Errors
    /// Why it cannot be read, and what would help.
    pub fn text(&self, absolute: impl AsRef<Path>) -> Result<String, Missing> {
        self.bytes(absolute).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The content of a file.
    ///
    /// # Errors
    /// As [`Root::text`].
    pub fn bytes(&self, absolute: impl AsRef<Path>) -> Result<Vec<u8>, Missing> {
        let absolute = absolute.as_ref();
        let mut bytes = Vec::new();
        self.file(absolute)
            .and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes))
            .map_err(|error| unreadable(absolute, &error))?;
        self.record(absolute, || Found::File(bytes.clone()));
        Ok(bytes)
    }

    /// Opens a file for reading; in a captured tree links lead to places in the tree, never to files of this machine.
    ///
    /// # Errors
    /// What the system says.
    pub fn file(&self, absolute: impl AsRef<Path>) -> io::Result<File> {
        let absolute = absolute.as_ref();
        if self.is_live() { File::open(absolute) } else { self.open_file(absolute, Purpose::Read) }
    }

    /// A file that holds one value of type `T`.
    ///
    /// # Errors
    /// As [`Root::text`]; also when what stands there is not such a value.
    pub fn value<T: std::str::FromStr>(&self, absolute: impl AsRef<Path>) -> Result<T, Missing> {
        let absolute = absolute.as_ref();
        let text = self.text(absolute)?;
        text.trim().parse().map_err(|_| nonsense(absolute, &text))
    }

    /// Names in a directory, sorted; numbers by their value.
    ///
    /// # Errors
    /// As [`Root::text`].
    pub fn names(&self, absolute: impl AsRef<Path>) -> Result<Vec<String>, Missing> {
        let absolute = absolute.as_ref();
        let entries = if self.is_live() {
            fs::read_dir(absolute)
        } else {
            self.open(absolute, Purpose::Look)
                .and_then(readable)
                .and_then(|folder| fs::read_dir(by_descriptor(&folder)))
        };
        let entries = entries.map_err(|error| unreadable(absolute, &error))?;
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .take(NAMES_MAX)
            .collect();
        names.sort_unstable();
        self.record(absolute, || Found::Directory(names.clone()));
        Ok(names)
    }

    /// Names in a directory that are numbers, ascending.
    ///
    /// # Errors
    /// As [`Root::text`].
    pub fn numbers(&self, absolute: impl AsRef<Path>) -> Result<Vec<u32>, Missing> {
        let mut numbers: Vec<u32> =
            self.names(absolute)?.iter().filter_map(|name| name.parse().ok()).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The first numbers of a live directory, as the kernel lists them: of a process with thousands of threads the rest is not even
    /// asked for. They are in no capture.
    ///
    /// # Errors
    /// As [`Root::text`].
    pub fn first_numbers(&self, absolute: impl AsRef<Path>, most: usize) -> Result<Vec<u32>, Missing> {
        let absolute = absolute.as_ref();
        if !self.is_live() {
            return Ok(self.numbers(absolute)?.into_iter().take(most).collect());
        }
        let entries = fs::read_dir(absolute).map_err(|error| unreadable(absolute, &error))?;
        let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
        Ok(entries.flatten().filter_map(number).take(most).collect())
    }
}

/// Of a tree, what nobody may read is read by nobody: root could, and would be answered otherwise than the others.
fn readable(file: File) -> io::Result<File> {
    let anybody = file.metadata()?.permissions().mode() & 0o444 > 0;
    if anybody { Ok(file) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// The path by which this process, and it alone, finds something that it has open.
fn by_descriptor(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Why a file could not be read, and what would help.
pub fn unreadable(path: &Path, error: &io::Error) -> Missing {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => Missing::new(format!("{path} is not there")),
        io::ErrorKind::PermissionDenied => {
            Missing::with_remedy(format!("{path} may not be read"), "run tare as root")
        }
        // Without a number it is not the file that said so, but the way in which trees are read.
        io::ErrorKind::Unsupported if error.raw_os_error().is_none() => {
            Missing::with_remedy(format!("{path}: {error}"), "examine trees of others on Linux 5.6 or later")
        }
        io::ErrorKind::InvalidInput if error.to_string() == NO_FILE => {
            Missing::new(format!("{path} is {NO_FILE}"))
        }
        _ => Missing::new(format!("{path}: {error}")),
    }
}

/// A file that holds something else than it should.
pub(crate) fn nonsense(path: &Path, text: &str) -> Missing {
    let start: String = text.trim().chars().take(40).collect();
    Missing::new(format!("{} holds {start:?}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_read_and_what_is_not_there_is_said() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc/10")).unwrap();
        fs::create_dir_all(dir.path().join("proc/9")).unwrap();
        fs::write(dir.path().join("proc/n"), "42\n").unwrap();
        let root = Root::at(dir.path());
        assert_eq!(root.value("/proc/n"), Ok(42u32));
        assert_eq!(root.numbers("/proc"), Ok(vec![9, 10]));
        assert_eq!(root.value::<u32>("/proc/m").unwrap_err().why, "/proc/m is not there");
        fs::write(dir.path().join("proc/n"), "forty-two").unwrap();
        assert_eq!(root.value::<u32>("/proc/n").unwrap_err().why, "/proc/n holds \"forty-two\"");
        assert!(!root.is_live() && Root::live().is_live());
        let (recording, seen) = root.recording();
        recording.names("/proc").unwrap();
        assert!(recording.exists("/proc/n"));
        recording.text("/proc/n").unwrap();
        assert!(recording.exists("/proc/n") && recording.exists("/proc/9") && !recording.exists("/proc/8"));
        recording.text("/proc/m").unwrap_err();
        let seen = seen.lock().unwrap();
        let file = Found::File(b"forty-two".to_vec());
        assert_eq!(seen.get(Path::new("/proc/n")), Some(&file));
        assert_eq!(seen.get(Path::new("/proc/9")), Some(&Found::Mark));
        assert_eq!(seen.len(), 3);
    }

    /// Whoever runs this: root may read any file.
    #[test]
    fn what_nobody_may_read_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc/10")).unwrap();
        fs::write(dir.path().join("n"), "42").unwrap();
        let root = Root::at(dir.path());
        for (path, mode, open) in [("n", 0o200, 0o600), ("proc", 0o300, 0o700)] {
            let set = |mode| {
                fs::set_permissions(dir.path().join(path), fs::Permissions::from_mode(mode)).unwrap();
            };
            set(mode);
            let found = (root.text("/n").is_ok(), root.names("/proc").is_ok());
            set(open);
            assert_eq!(found, (path != "n", path != "proc"), "{path}");
            assert!(
                root.exists(format!("/{path}")) && root.text("/n").is_ok() && root.names("/proc").is_ok()
            );
        }
    }

    /// Links of a tree lead to places in the tree, as they did where it was captured.
    #[test]
    fn links_stay_inside() {
        let outside = tempfile::tempdir().unwrap();
        let secret = outside.path().join("secret");
        fs::write(&secret, "mine").unwrap();
        let dir = outside.path().join("tree");
        fs::create_dir_all(dir.join("proc/self")).unwrap();
        fs::create_dir_all(dir.join("a/b")).unwrap();
        fs::write(dir.join("proc/self/mounts"), "theirs").unwrap();
        let link = |from: &str, to: &Path| std::os::unix::fs::symlink(to, dir.join(from)).unwrap();
        link("proc/mounts", Path::new("self/mounts"));
        link("etc", Path::new("/proc/self"));
        link("a/b/up", Path::new(".."));
        link("out", &secret);
        link("up", Path::new("a/b/up/../../secret"));
        link("here", outside.path());
        let root = Root::at(&dir);
        for inside in ["/proc/mounts", "/etc/mounts", "/a/b/up/../etc/mounts", "/../../proc/self/mounts"] {
            assert_eq!(root.text(inside).as_deref(), Ok("theirs"), "{inside}");
        }
        for out in ["/out", "/up", "/here/secret", "/a/b/up/../../secret", "/../secret"] {
            assert!(root.text(out).is_err() && !root.exists(out), "{out}");
            assert!(root.write(out, b"theirs").is_err(), "{out}");
        }
        assert!(root.names("/here").is_err() && !root.is_dir("/here") && root.is_dir("/etc"));
        assert_eq!(fs::read(&secret).unwrap(), b"mine");
        root.write("/etc/mounts", b"new").unwrap();
        assert_eq!(fs::read(dir.join("proc/self/mounts")).unwrap(), b"new");
        assert!(root.write("/proc/new", b"x").is_err() && !dir.join("proc/new").exists());
    }

    #[test]
    fn nothing_waits_for_a_pipe() {
        let dir = tempfile::tempdir().unwrap();
        let made = std::process::Command::new("mkfifo").arg(dir.path().join("pipe")).status().unwrap();
        assert!(made.success());
        let root = Root::at(dir.path());
        assert_eq!(root.text("/pipe").unwrap_err().why, "/pipe is no file");
        assert_eq!(root.text("/").unwrap_err().why, "/ is no file");
        assert!(root.names("/pipe").is_err() && root.write("/pipe", b"x").is_err() && root.exists("/pipe"));
    }
}
