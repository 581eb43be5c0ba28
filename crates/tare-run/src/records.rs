//! Where records go when the user names no file.

use crate::LabError;
use std::path::{Path, PathBuf};

/// Records kept in the default folder; older ones are removed when a new one is written.
pub const KEPT: usize = 20;

/// The path of a new record in `dir`, after making room for it.
pub fn fresh_path(dir: &Path, started_unix_s: u64) -> Result<PathBuf, LabError> {
    let cannot = |error: std::io::Error| {
        LabError::usage(
            format!("cannot use {} for records: {error}", dir.display()),
            "name a file with -o, or set TARE_STATE_DIR to a folder that can be written",
        )
    };
    std::fs::create_dir_all(dir).map_err(cannot)?;
    let mut existing = list(dir);
    while existing.len() >= KEPT {
        // Oldest first; a record that cannot be removed only takes room.
        std::fs::remove_file(existing.remove(0)).ok();
    }
    Ok(dir.join(format!("{started_unix_s:012}-{}.tare", std::process::id())))
}

/// The newest record in `dir`.
pub fn newest(dir: &Path) -> Option<PathBuf> {
    list(dir).pop()
}

fn list(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "tare"))
        .collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_newest() {
        let dir = tempfile::tempdir().unwrap();
        for second in 0..(KEPT as u64 + 5) {
            std::fs::write(fresh_path(dir.path(), second).unwrap(), b"x").unwrap();
        }
        assert_eq!(list(dir.path()).len(), KEPT);
        let newest = newest(dir.path()).unwrap();
        assert!(newest.file_name().unwrap().to_str().unwrap().starts_with("000000000024-"));
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_a_usage_error() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, b"in the way").unwrap();
        assert!(matches!(fresh_path(&file.join("records"), 1), Err(LabError::Usage { .. })));
        assert_eq!(newest(&file), None);
    }
}
