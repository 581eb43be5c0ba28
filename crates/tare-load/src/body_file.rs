//! A request's body that stays in its file and is sent piece by piece: memory for one piece, whatever the file's length.

use crate::message::{BODY_BYTES_MAX, MessageError};
use crate::regular;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// Most that is read at once: a socket seldom takes more, and what it does not take is read again.
pub(crate) const PIECE_BYTES: usize = 64 * 1024;
/// Longest that a pipe may take to give all of a body.
const WRITTEN_WITHIN: Duration = Duration::from_secs(5);

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
/// [`MessageError::File`]: it cannot be read, or what is no regular file has more than 1 MiB, or is not written within 5 s.
pub fn short_body(path: &Path) -> Result<Option<Vec<u8>>, MessageError> {
    let fault = |why: String| MessageError::File { path: path.to_path_buf(), why };
    let metadata = std::fs::metadata(path).map_err(|error| fault(error.to_string()))?;
    if metadata.is_file() && metadata.len() > BODY_BYTES_MAX as u64 {
        return Ok(None);
    }
    let body = if metadata.is_file() { read(path) } else { read_within(path, WRITTEN_WITHIN) };
    body.map(Some).map_err(fault)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let (mut body, limit) = (Vec::new(), BODY_BYTES_MAX as u64 + 1);
    let file = File::open(path).map_err(|error| error.to_string())?;
    let read = file.take(limit).read_to_end(&mut body).map_err(|error| error.to_string())?;
    if read as u64 == limit {
        return Err("it has more than 1 MiB (hint: only a regular file may have more)".to_owned());
    }
    Ok(body)
}

/// The same of a pipe: opening one waits for its writer, and reading one for its writer's end, perhaps for ever. A thread that still
/// waits then ends with this process.
fn read_within(path: &Path, longest: Duration) -> Result<Vec<u8>, String> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let path = path.to_path_buf();
    // Nobody is there to receive it when the time is over.
    let body = move || drop(sender.send(read(&path)));
    let thread = std::thread::Builder::new().name("tare-body".into()).spawn(body);
    thread.map_err(|error| format!("no thread could be started to read it: {error}"))?;
    receiver.recv_timeout(longest).unwrap_or_else(|_| {
        Err(format!(
            "it is no regular file, and within {} s nobody had written to it and closed it (hint: write the body to a file first)",
            longest.as_secs_f64()
        ))
    })
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

    #[test]
    fn a_pipe_is_read_and_one_that_nobody_writes_to_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let why = read_within(&pipe, Duration::from_millis(1)).unwrap_err();
        assert!(why.contains("within 0.001 s nobody") && why.contains("hint: "), "{why}");
        // Whoever still waits for a writer has one now, who writes nothing.
        drop(File::options().read(true).write(true).open(&pipe).unwrap());
        let written = folder.path().join("written");
        assert!(std::process::Command::new("mkfifo").arg(&written).status().unwrap().success());
        std::thread::scope(|scope| {
            scope.spawn(|| std::fs::write(&written, "hello").unwrap());
            assert_eq!(read_within(&written, Duration::from_secs(60)).unwrap(), b"hello");
        });
    }
}
