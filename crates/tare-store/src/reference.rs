//! What is known of the reference server's level on this boot: one small file of JSON in the state directory.

use crate::whole;
use serde::{Deserialize, Serialize};
use std::path::Path;
use tare_model::reference_level::ReferenceHistory;

/// A file of more than this is something else.
const READ_MAX_BYTES: u64 = 4 << 20;
/// References that are kept: of other CPUs, depths and builds. The one used longest ago goes first.
const KEPT_MAX: usize = 16;

#[derive(Debug, Default, Serialize, Deserialize)]
struct File {
    /// The one used last is the last.
    references: Vec<ReferenceHistory>,
}

/// What is known under a key; nothing where there is no file or no such key.
///
/// # Errors
/// It cannot be read, or is something else.
pub fn read(path: &Path, key: &str) -> std::io::Result<ReferenceHistory> {
    let found = all(path)?.references.into_iter().rev().find(|history| history.key == key);
    Ok(found.unwrap_or_else(|| ReferenceHistory { key: key.to_owned(), ..ReferenceHistory::default() }))
}

/// Puts it on disk in place of what was known under its key.
///
/// # Errors
/// What the file system says.
pub fn keep(path: &Path, history: &ReferenceHistory) -> std::io::Result<()> {
    // What cannot be read is of no use to anybody: it is replaced.
    let mut file = all(path).unwrap_or_default();
    file.references.retain(|known| known.key != history.key);
    file.references.push(history.clone());
    let too_many = file.references.len().saturating_sub(KEPT_MAX);
    file.references.drain(..too_many);
    whole::replace(path, &file)
}

fn all(path: &Path) -> std::io::Result<File> {
    whole::read(path, READ_MAX_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::reference_level::ReferenceLevel;

    fn history(key: &str, cost_s: f64) -> ReferenceHistory {
        let level = ReferenceLevel { cost_s, clock_hz: None, half_ln: 0.04, spread_ln: 0.03, sessions: 2 };
        ReferenceHistory { key: key.to_owned(), level: Some(level), blocks: Vec::new() }
    }

    #[test]
    fn each_reference_has_its_own_level_and_the_oldest_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reference.json");
        assert_eq!(read(&path, "a").unwrap().level, None);
        for key in 0..20 {
            keep(&path, &history(&key.to_string(), 4e-6)).unwrap();
        }
        keep(&path, &history("7", 5e-6)).unwrap();
        assert_eq!(read(&path, "7").unwrap(), history("7", 5e-6));
        assert_eq!(read(&path, "0").unwrap(), ReferenceHistory { key: "0".into(), ..Default::default() });
        assert_eq!(all(&path).unwrap().references.len(), KEPT_MAX);
    }

    #[test]
    fn a_broken_file_is_an_error_and_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reference.json");
        std::fs::write(&path, "{").unwrap();
        assert!(read(&path, "a").is_err());
        keep(&path, &history("a", 4e-6)).unwrap();
        assert_eq!(read(&path, "a").unwrap(), history("a", 4e-6));
    }
}
