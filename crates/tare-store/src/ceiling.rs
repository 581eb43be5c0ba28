//! What a machine can do at most, kept by boot: one small file of JSON in the state directory.

use crate::whole;
use serde::{Deserialize, Serialize};
use std::path::Path;
use tare_model::ceiling::{CeilingHistory, KnownCeilings};

/// A file of more than this is something else.
const READ_MAX_BYTES: u64 = 4 << 20;
/// Machines, boots, builds and sets of CPUs that are kept. The one measured longest ago goes first.
const KEPT_MAX: usize = 8;

#[derive(Debug, Default, Serialize, Deserialize)]
struct File {
    /// The one measured last is the last.
    histories: Vec<CeilingHistory>,
}

/// What is known under a key; `None` where there is no file or no such key.
///
/// # Errors
/// It cannot be read, or is something else.
pub fn read(path: &Path, key: &str) -> std::io::Result<Option<KnownCeilings>> {
    Ok(all(path)?.histories.into_iter().rev().find(|history| history.key == key).map(|history| history.known))
}

/// Puts ceilings on disk; those of the same key that have other names stay.
///
/// # Errors
/// What the file system says.
pub fn keep(path: &Path, key: &str, mut known: KnownCeilings) -> std::io::Result<()> {
    // What cannot be read is of no use to anybody: it is replaced.
    let mut file = all(path).unwrap_or_default();
    let (same, mut others): (Vec<_>, Vec<_>) =
        file.histories.drain(..).partition(|history| history.key == key);
    let older = same.into_iter().flat_map(|history| history.known.ceilings);
    let older: Vec<_> = older.filter(|older| known.find(&older.name).is_none()).collect();
    known.ceilings.extend(older);
    others.push(CeilingHistory { key: key.to_owned(), known });
    let too_many = others.len().saturating_sub(KEPT_MAX);
    others.drain(..too_many);
    whole::replace(path, &File { histories: others })
}

fn all(path: &Path) -> std::io::Result<File> {
    whole::read(path, READ_MAX_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::ceiling::KnownCeiling;
    use tare_model::outcome::Estimate;

    fn known(ceilings: &[(&str, f64)]) -> KnownCeilings {
        let one = |(name, value): &(&str, f64)| KnownCeiling {
            name: (*name).to_owned(),
            estimate: Estimate { value: *value, unit: "req/s".into(), ci95: None },
        };
        KnownCeilings { measured_unix_s: 1, ceilings: ceilings.iter().map(one).collect() }
    }

    #[test]
    fn a_part_that_is_measured_again_replaces_that_part_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ceilings.json");
        assert_eq!(read(&path, "a").unwrap(), None);
        keep(&path, "a", known(&[("x", 1.0), ("y", 2.0)])).unwrap();
        keep(&path, "b", known(&[("x", 9.0)])).unwrap();
        keep(&path, "a", known(&[("x", 3.0)])).unwrap();
        let found = read(&path, "a").unwrap().unwrap();
        let value = |name| found.find(name).map(|estimate| estimate.value);
        assert_eq!((value("x"), value("y"), value("z")), (Some(3.0), Some(2.0), None));
        assert_eq!(read(&path, "b").unwrap(), Some(known(&[("x", 9.0)])));
    }

    #[test]
    fn the_oldest_are_forgotten_and_a_broken_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ceilings.json");
        std::fs::write(&path, "{").unwrap();
        assert!(read(&path, "0").is_err());
        for key in 0..=KEPT_MAX {
            keep(&path, &key.to_string(), known(&[("x", 1.0)])).unwrap();
        }
        assert!(read(&path, "0").unwrap().is_none() && read(&path, "1").unwrap().is_some());
    }
}
