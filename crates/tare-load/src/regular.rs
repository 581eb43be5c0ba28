//! Files that are read more than once: by a check before the load, then by its threads.

use std::fs::File;
use std::path::Path;

/// Opens the file at `path` for reading, which must be a regular one: what a pipe had is gone once it was read, and opening
/// one waits for its writer, perhaps for ever. An error says what is wrong.
pub(crate) fn open(path: &Path) -> Result<File, String> {
    // Before it is opened.
    if !std::fs::metadata(path).map_err(|error| error.to_string())?.is_file() {
        let why = "it is not a regular file, so it cannot be read more than once: write what it has to a file first";
        return Err(why.to_owned());
    }
    File::open(path).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_read_again_is_opened() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(open(file.path()).is_ok());
        for (path, word) in
            [("/dev/null", "regular file"), ("/", "regular file"), ("/nowhere", "No such file")]
        {
            let why = open(Path::new(path)).unwrap_err();
            assert!(why.contains(word), "{why}");
        }
    }
}
