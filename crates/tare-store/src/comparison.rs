//! A comparison, kept as a file of JSON.

use crate::old::{self, Part, Version};
use crate::whole;
use std::io::{ErrorKind, Read};
use std::path::Path;
use tare_model::comparison::Comparison;

/// A file that is none of tare's is not read further than this to find that out.
const READ_MAX_BYTES: u64 = 256 << 20;

/// Whether what is at `path` is nothing, empty, or an earlier comparison.
///
/// # Errors
/// It is something else, or cannot be read.
pub fn may_replace(path: &Path) -> std::io::Result<()> {
    let file = match std::fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(about) if about.len() == 0 && about.is_file() => return Ok(()),
        Ok(about) if !about.is_file() => None,
        Ok(_) => Some(std::fs::File::open(path)?),
    };
    let read = |file| {
        let mut bytes = Vec::new();
        Read::take(file, READ_MAX_BYTES).read_to_end(&mut bytes).is_ok() && of(&bytes).is_ok()
    };
    match file.is_some_and(read) {
        true => Ok(()),
        false => Err(std::io::Error::other(format!("{} is not a comparison of tare's", path.display()))),
    }
}

fn of(bytes: &[u8]) -> serde_json::Result<Comparison> {
    match serde_json::from_slice(bytes)? {
        Version { schema: old::FORMAT } => old::read(Part::Comparison, bytes),
        _ => serde_json::from_slice(bytes),
    }
}

/// Puts it on disk in place of what is there, whole or not at all. Links are followed.
///
/// # Errors
/// What the file system says.
pub fn keep(comparison: &Comparison, path: &Path) -> std::io::Result<()> {
    match std::fs::canonicalize(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => whole::replace(path, comparison),
        known => whole::replace(&known?, comparison),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_a_comparison_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("empty"), "").unwrap();
        std::fs::write(path("mine"), "{\"name\": 1}").unwrap();
        let comparison =
            of(include_bytes!("../tests/fixtures/0.1.0/comparison-commands.json")).expect("a comparison");
        keep(&comparison, &path("old")).unwrap();
        std::os::unix::fs::symlink(path("old"), path("link")).unwrap();
        keep(&comparison, &path("link")).unwrap();
        assert!(path("link").is_symlink());
        for fine in ["absent", "empty", "old", "link"] {
            assert!(may_replace(&path(fine)).is_ok(), "{fine}");
        }
        for other in [path("mine"), folder.path().to_owned(), "/dev/null".into()] {
            assert!(may_replace(&other).is_err(), "{}", other.display());
        }
    }
}
