//! A setting: one file that holds one value, read as the kernel shows it and written as the kernel takes it.

use crate::root::{Root, nonsense};
use std::io;
use std::path::{Path, PathBuf};
use tare_model::Missing;

/// Longest value that is taken for one: a list of thousands of CPUs.
const VALUE_BYTES_MAX: usize = 4096;

/// One setting to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The file, as an absolute path of the root's system.
    pub path: PathBuf,
    /// What stands there; `None`: writing it does something once, and there is nothing to put back.
    pub before: Option<String>,
    /// What shall stand there.
    pub wanted: String,
    /// The kernel may refuse this one without harm to the others: it is passed over then, and said.
    pub may_be_refused: bool,
    /// What it shows is not only what was written: heat lowers the highest clock, huge pages in use stay. Another
    /// value is no sign of somebody else then.
    pub moves_by_itself: bool,
}

impl Step {
    /// The change of a setting; none when it stands as wanted.
    pub(crate) fn change(
        path: impl Into<PathBuf>,
        before: impl Into<String>,
        wanted: impl Into<String>,
    ) -> Option<Step> {
        let (before, wanted) = (before.into(), wanted.into());
        (!same(&before, &wanted)).then(|| Step {
            path: path.into(),
            before: Some(before),
            wanted,
            may_be_refused: false,
            moves_by_itself: false,
        })
    }
}

/// The value of a setting, in the form in which it can be written again.
pub(crate) fn read(root: &Root, path: impl AsRef<Path>) -> Result<String, Missing> {
    let path = path.as_ref();
    let text = root.text(path)?;
    value_in(&text).ok_or_else(|| nonsense(path, &text))
}

/// A setting that is a number.
pub(crate) fn number(root: &Root, path: impl AsRef<Path>) -> Result<u64, Missing> {
    let path = path.as_ref();
    let text = read(root, path)?;
    // `parse` would take a sign.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit()).then_some(&text);
    digits.and_then(|text| text.parse().ok()).ok_or_else(|| nonsense(path, &text))
}

/// `always [madvise] never` is `madvise`; anything else is itself, without the end of the line.
fn value_in(text: &str) -> Option<String> {
    let text = text.trim_matches([' ', '\n']);
    let is_value = !text.is_empty() && text.len() <= VALUE_BYTES_MAX;
    let is_plain = text.chars().all(|c| c == '\t' || !c.is_control()) && !text.contains('\u{fffd}');
    if !is_value || !is_plain {
        return None;
    }
    let chosen = text.split(' ').find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    Some(chosen.unwrap_or(text).to_string())
}

/// What can be chosen in `always [madvise] never`.
pub(crate) fn choices(root: &Root, path: impl AsRef<Path>) -> Result<Vec<String>, Missing> {
    let path = path.as_ref();
    let text = root.text(path)?;
    let words: Vec<String> =
        text.split_ascii_whitespace().map(|word| word.trim_matches(['[', ']']).to_string()).collect();
    if words.is_empty() || value_in(&text).is_none() { Err(nonsense(path, &text)) } else { Ok(words) }
}

/// Whether two values mean the same: the kernel shows a tab where it takes a space.
pub(crate) fn same(one: &str, other: &str) -> bool {
    one.split_ascii_whitespace().eq(other.split_ascii_whitespace())
}

/// Writes a value into a file that is there; makes none.
pub(crate) fn write(root: &Root, path: impl AsRef<Path>, value: &str) -> io::Result<()> {
    root.write(path, format!("{value}\n").as_bytes())
}

/// `2 GiB`, `700 MiB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let (unit, name) = UNITS.into_iter().find(|(unit, _)| count >= *unit).unwrap_or((1, "bytes"));
    let scaled = (count as f64 / unit as f64 * 10.0).round() / 10.0;
    format!("{scaled} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_can_be_written() {
        assert_eq!(value_in("always [madvise] never\n").as_deref(), Some("madvise"));
        assert_eq!(value_in("32768\t60999\n").as_deref(), Some("32768\t60999"));
        assert_eq!(value_in("max 100000\n").as_deref(), Some("max 100000"));
        for nonsense in ["", "\n", "  \n", "a\u{0}b", "a\nb", "\u{fffd}", &"x".repeat(5000)] {
            assert_eq!(value_in(nonsense), None, "{nonsense:?}");
        }
        assert!(same("32768\t60999", "32768 60999") && !same("1", "10"));
        assert_eq!([bytes(2 << 30), bytes(1536 << 20), bytes(12)], ["2 GiB", "1.5 GiB", "12 bytes"]);
    }

    #[test]
    fn no_file_is_made() {
        let dir = tempfile::tempdir().unwrap();
        assert!(write(&Root::at(dir.path()), "/new", "1").is_err());
        assert!(!dir.path().join("new").exists());
    }
}
