//! A request's body that stays in its file and is sent piece by piece: memory for one piece, whatever the file's length.

use crate::message::{BODY_BYTES_MAX, MessageError};
use crate::regular;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Most that is read at once: a socket seldom takes more, and what it does not take is read again.
pub(crate) const PIECE_BYTES: usize = 64 * 1024;

/// The file, as long as it was when it was opened; threads share it.
#[derive(Debug)]
pub(crate) struct BodyFile {
    file: File,
    bytes: u64,
}

impl BodyFile {
    /// Opens the file at `path`, which must be a regular one: it is read as often as it is sent.
    pub(crate) fn open(path: &Path) -> Result<BodyFile, MessageError> {
        let fault = |why: String| MessageError::File { path: path.to_path_buf(), why };
        let file = regular::open(path).map_err(fault)?;
        let bytes = file.metadata().map_err(|error| fault(error.to_string()))?.len();
        Ok(BodyFile { file, bytes })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The piece that begins at `at`, as long as `buffer` and the file have room.
    pub(crate) fn piece<'a>(&self, at: u64, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
        let left = usize::try_from(self.bytes.saturating_sub(at)).unwrap_or(usize::MAX);
        let most = left.min(PIECE_BYTES).min(buffer.len());
        let buffer = &mut buffer[..most];
        loop {
            match self.file.read_at(buffer, at) {
                // Its length is promised already.
                Ok(0) if left > 0 => {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it became shorter"));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read.map(|read| &buffer[..read]),
            }
        }
    }
}

/// The body in a file that is short enough to be held; `None` for a longer one, which is sent from its file.
///
/// # Errors
/// [`MessageError::File`]: it cannot be read, or what is no regular file has more than 1 MiB.
pub fn short_body(path: &Path) -> Result<Option<Vec<u8>>, MessageError> {
    let fault = |why: String| MessageError::File { path: path.to_path_buf(), why };
    let file = File::open(path).map_err(|error| fault(error.to_string()))?;
    let metadata = file.metadata().map_err(|error| fault(error.to_string()))?;
    if metadata.is_file() && metadata.len() > BODY_BYTES_MAX as u64 {
        return Ok(None);
    }
    let mut body = Vec::new();
    let limit = BODY_BYTES_MAX as u64 + 1;
    let read = file.take(limit).read_to_end(&mut body).map_err(|error| fault(error.to_string()))?;
    if read as u64 == limit {
        return Err(fault("it has more than 1 MiB (hint: only a regular file may have more)".to_owned()));
    }
    Ok(Some(body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn pieces_end_with_the_file_as_it_was() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let text: Vec<u8> = (0..PIECE_BYTES + 10).map(|k| k as u8).collect();
        file.write_all(&text).unwrap();
        let body = BodyFile::open(file.path()).unwrap();
        let mut buffer = vec![0; PIECE_BYTES];
        let len = body.bytes();
        assert_eq!(body.piece(0, &mut buffer).unwrap(), &text[..PIECE_BYTES]);
        assert_eq!(body.piece(len - 10, &mut buffer).unwrap(), &text[PIECE_BYTES..]);
        assert_eq!(body.piece(len, &mut buffer).unwrap(), b"");
        file.write_all(b"more").unwrap();
        assert_eq!(body.piece(len - 1, &mut buffer).unwrap().len(), 1, "its length is promised");
        file.as_file().set_len(100).unwrap();
        assert_eq!(body.piece(90, &mut buffer).unwrap().len(), 10);
        assert_eq!(body.piece(100, &mut buffer).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn short_bodies_are_held_and_what_is_no_file_is_short() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(BODY_BYTES_MAX as u64).unwrap();
        assert_eq!(short_body(file.path()).unwrap().map(|body| body.len()), Some(BODY_BYTES_MAX));
        file.as_file().set_len(BODY_BYTES_MAX as u64 + 1).unwrap();
        assert_eq!(short_body(file.path()).unwrap(), None);
        assert_eq!(short_body(Path::new("/dev/null")).unwrap(), Some(Vec::new()));
        for (path, word) in [("/dev/zero", "1 MiB"), ("/", "directory"), ("/nowhere", "No such file")] {
            let error = short_body(Path::new(path)).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        assert!(BodyFile::open(Path::new("/dev/null")).is_err());
    }
}
