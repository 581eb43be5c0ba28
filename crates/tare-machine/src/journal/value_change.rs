//! A setting of the machine that was applied, and the file that holds it.

use crate::root::Root;
use crate::value::{self, Step};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use tare_model::Missing;
use tare_sys::filesystem;

/// A setting that is about to be changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ValueChange {
    /// The setting's name.
    pub setting: String,
    /// The file, on this system.
    pub path: PathBuf,
    /// The value before, as it can be written again.
    pub before: String,
    /// What shall stand there.
    pub wanted: String,
    /// What stands there may change without anybody's doing.
    #[serde(default)]
    pub moves_by_itself: bool,
    /// The root of the machine that it is a setting of.
    #[serde(default = "live")]
    pub root: PathBuf,
    /// The kind of file system that it was on.
    #[serde(default)]
    pub filesystem: Option<u64>,
}

fn live() -> PathBuf {
    PathBuf::from("/")
}

/// The kind of file system of a path, or of the nearest folder above it that is there.
pub(super) fn nearest_filesystem(path: &Path) -> Option<u64> {
    path.ancestors().find_map(|path| filesystem::kind(path).ok())
}

/// Whether a setting is there.
pub(super) enum Presence {
    There,
    /// It went away, and what it said with it.
    Gone,
    /// It cannot be seen from here, which is no sign that it went away.
    Unseen(String),
}

impl ValueChange {
    pub(crate) fn new(root: &Root, setting: &str, step: &Step, before: &str) -> ValueChange {
        let path = root.path(&step.path);
        ValueChange {
            setting: setting.to_string(),
            before: before.to_string(),
            wanted: step.wanted.clone(),
            moves_by_itself: step.moves_by_itself,
            root: root.path("/"),
            filesystem: nearest_filesystem(&path),
            path,
        }
    }

    /// The machine, and the file on it; none for what is no setting of a machine: a journal is a list of things to write,
    /// which is followed no further than it must.
    fn place(&self) -> Result<(Root, PathBuf), Missing> {
        let below = self.path.strip_prefix(&self.root).unwrap_or(Path::new(""));
        let is_plain = below.components().all(|part| matches!(part, Component::Normal(_)));
        let is_setting = below.starts_with("proc") || below.starts_with("sys");
        if !(is_plain && is_setting && self.root.is_absolute()) {
            let (path, root) = (self.path.display(), self.root.display());
            return Err(Missing::new(format!("{path} is no setting of the machine at {root}")));
        }
        Ok((Root::at(&self.root), Path::new("/").join(below)))
    }

    pub(super) fn presence(&self) -> Presence {
        match fs::symlink_metadata(&self.path) {
            Ok(_) => Presence::There,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                if self.filesystem.is_some() && nearest_filesystem(&self.path) == self.filesystem {
                    return Presence::Gone;
                }
                Presence::Unseen("its file system is not mounted here".to_string())
            }
            Err(error) => Presence::Unseen(error.to_string()),
        }
    }

    /// What stands there now.
    pub(crate) fn now(&self) -> Result<String, Missing> {
        let (root, file) = self.place()?;
        value::read(&root, file)
    }

    pub(super) fn put_back(&self) -> io::Result<()> {
        let (root, file) = self.place().map_err(io::Error::other)?;
        value::write(&root, file, &self.before)
    }
}
