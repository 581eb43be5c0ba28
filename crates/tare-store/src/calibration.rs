//! The calibration report of this machine, kept as a file of JSON.

use crate::old::{self, Part, Version};
use crate::whole;
use std::io::{ErrorKind, Read};
use std::path::Path;
use tare_model::calibration::Calibration;

/// A calibration report is far smaller.
const READ_MAX_BYTES: u64 = 16 << 20;

/// The one at `path`; `None` where there is none.
///
/// # Errors
/// It cannot be read, or is something else.
pub fn read(path: &Path) -> std::io::Result<Option<Calibration>> {
    let file = match std::fs::File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut bytes = Vec::new();
    file.take(READ_MAX_BYTES).read_to_end(&mut bytes)?;
    of(&bytes).map(Some).map_err(std::io::Error::other)
}

fn of(bytes: &[u8]) -> serde_json::Result<Calibration> {
    match serde_json::from_slice(bytes)? {
        Version { schema: old::FORMAT } => old::read(Part::Calibration, bytes),
        _ => serde_json::from_slice(bytes),
    }
}

/// Puts it on disk in place of what is there, whole or not at all.
///
/// # Errors
/// What the file system says.
pub fn keep(calibration: &Calibration, path: &Path) -> std::io::Result<()> {
    whole::replace(path, calibration)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::calibration::RunResult;

    #[test]
    fn what_was_kept_before_is_read_and_nothing_is_made_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calibration.json");
        std::fs::write(&path, include_str!("../tests/fixtures/0.1.0/calibration-first.json")).unwrap();
        let old = read(&path).unwrap().unwrap();
        assert!(old.complete && old.summary.right == 1 && old.runs.len() == 2);
        assert!(old.comparisons.is_empty() && old.aa_control.is_none() && old.net_spread.is_none());
        assert!(
            !old.injections[0].leaves_net && old.note_ln.is_none() && old.summary.right_as_listed.is_none()
        );
        let RunResult::Measured(found) = &old.runs[0].result else { panic!("{:?}", old.runs[0]) };
        assert_eq!((found.gross, found.net), (Some(99000.0), None));
        assert!(found.findings.is_empty() && found.right_as_listed.is_none());
        keep(&old, &path).unwrap();
        assert_eq!(read(&path).unwrap(), Some(old));
    }
}
