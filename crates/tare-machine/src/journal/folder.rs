//! Where journals are kept, and whether what stands there may be followed.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// There is no folder for journals.
#[derive(Debug, thiserror::Error)]
#[error(
    "there is no folder to keep in what must be undone after a crash; hint: set TARE_STATE_DIR to one of yours, or HOME"
)]
pub struct NoFolder;

/// Where journals are kept unless somebody says otherwise: `/run/tare` for root, else the user's runtime or
/// state folder.
///
/// # Errors
/// A user without any: a folder that everybody may write to is none, as anybody could plant a journal there.
pub fn default_dir() -> Result<PathBuf, NoFolder> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if tare_sys::process::is_root() {
        return Ok(PathBuf::from("/run/tare"));
    }
    match (set("XDG_RUNTIME_DIR"), set("XDG_STATE_HOME"), set("HOME")) {
        (Some(runtime), _, _) => Ok(runtime.join("tare")),
        (None, Some(state), _) => Ok(state.join("tare")),
        (None, None, Some(home)) => Ok(home.join(".local/state/tare")),
        (None, None, None) => Err(NoFolder),
    }
}

/// Whether only this user can have written what is in a folder.
pub(super) fn check_folder(dir: &Path) -> io::Result<()> {
    let facts = fs::metadata(dir)?;
    if !facts.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    check_owner(&facts)
}

pub(super) fn check_owner(facts: &Metadata) -> io::Result<()> {
    let us = tare_sys::process::user();
    let why = match (facts.uid(), facts.mode() & 0o022) {
        (owner, _) if owner != us => {
            format!("it belongs to user {owner}, not to {us}; hint: name another folder in TARE_STATE_DIR")
        }
        (_, 0) => return Ok(()),
        _ => {
            "others may write there, and could have tare undo what it never did; hint: chmod go-w".to_string()
        }
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}
