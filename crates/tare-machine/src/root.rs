//! Where `/proc` and `/sys` are: the live system, or a tree captured on another machine.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tare_record::Missing;

/// Most bytes that are read of one file; `/proc/net/tcp` of a busy host is the longest that is wanted.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Most names that are taken of one directory.
const NAMES_MAX: usize = 1 << 20;

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
        let exists = self.path(absolute).exists();
        if exists {
            self.record(absolute, || Found::Mark);
        }
        exists
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
        fs::File::open(self.path(absolute))
            .and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes))
            .map_err(|error| unreadable(absolute, &error))?;
        self.record(absolute, || Found::File(bytes.clone()));
        Ok(bytes)
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
        let entries = fs::read_dir(self.path(absolute)).map_err(|error| unreadable(absolute, &error))?;
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
}

/// Why a file could not be read, and what would help.
pub fn unreadable(path: &Path, error: &io::Error) -> Missing {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => Missing::new(format!("{path} is not there")),
        io::ErrorKind::PermissionDenied => {
            Missing::with_remedy(format!("{path} may not be read"), "run tare as root")
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
}
