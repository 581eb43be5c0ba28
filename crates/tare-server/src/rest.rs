//! What of an answer is still to come once its first output and tail are sent: the parts of several ranges, and
//! bodies that have to go through the output because a layer changes the bytes.

use std::collections::VecDeque;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use tare_http::write;

use crate::tail::Tail;

/// Bytes of a body that go through the output at once.
const PIECE_BYTES: u64 = 64 * 1024;

/// The parts of a file that were asked for, as `multipart/byteranges` (RFC 9110, 14.6).
#[derive(Debug)]
pub(crate) struct Parts {
    file: Arc<File>,
    /// Size of the whole file.
    bytes: u64,
    media_type: &'static str,
    boundary: u64,
    ranges: VecDeque<Range<u64>>,
    /// The last boundary was written.
    ended: bool,
}

impl Parts {
    pub(crate) fn new(file: File, bytes: u64, media_type: &'static str, ranges: Vec<Range<u64>>) -> Parts {
        // Not to be known beforehand: no file can be made to hold it.
        let boundary = RandomState::new().build_hasher().finish();
        Parts { file: Arc::new(file), bytes, media_type, boundary, ranges: ranges.into(), ended: false }
    }

    /// The value of Content-Type.
    pub(crate) fn content_type(&self) -> String {
        format!("multipart/byteranges; boundary={:020}", self.boundary)
    }

    /// Bytes of the whole body.
    pub(crate) fn content_length(&self) -> u64 {
        let mut head = Vec::with_capacity(256);
        let mut sum = 0;
        for range in &self.ranges {
            head.clear();
            self.write_head(range, &mut head);
            sum += head.len() as u64 + (range.end - range.start);
        }
        sum + self.end().len() as u64
    }

    /// Writes the head of the next part and gives its bytes, or writes the end; `None` when all was written.
    fn next(&mut self, out: &mut Vec<u8>) -> Option<Tail> {
        if self.ended {
            return None;
        }
        match self.ranges.pop_front() {
            Some(range) => {
                self.write_head(&range, out);
                let left = range.end - range.start;
                Some(Tail::File { file: Arc::clone(&self.file), offset: range.start, left })
            }
            None => {
                out.extend_from_slice(self.end().as_bytes());
                self.ended = true;
                Some(Tail::None)
            }
        }
    }

    fn write_head(&self, range: &Range<u64>, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("\r\n--{:020}\r\n", self.boundary).as_bytes());
        write::static_field(out, "Content-Type", self.media_type);
        let content_range =
            format!("Content-Range: bytes {}-{}/{}\r\n\r\n", range.start, range.end - 1, self.bytes);
        out.extend_from_slice(content_range.as_bytes());
    }

    fn end(&self) -> String {
        format!("\r\n--{:020}--\r\n", self.boundary)
    }
}

/// The rest of an answer. One piece at a time is written, when the one before it is sent.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// A body that has to go through the output.
    tail: Tail,
    parts: Option<Parts>,
}

impl Rest {
    pub(crate) fn of_parts(parts: Parts) -> Rest {
        Rest { tail: Tail::None, parts: Some(parts) }
    }

    /// Makes `tail` go through the output, before what else is to come.
    pub(crate) fn begin_with(&mut self, tail: Tail) {
        self.tail = tail;
    }

    /// Writes the next piece, or gives it as a tail for the backend to send; `None` when nothing is left. With
    /// `through_output` everything is written.
    ///
    /// # Errors
    /// The file cannot be read as far as was promised.
    pub(crate) fn next(&mut self, out: &mut Vec<u8>, through_output: bool) -> io::Result<Option<Tail>> {
        if self.tail.left() > 0 {
            write_piece(&mut self.tail, out)?;
            return Ok(Some(Tail::None));
        }
        match self.parts.as_mut().and_then(|parts| parts.next(out)) {
            Some(tail) if through_output => {
                self.tail = tail;
                Ok(Some(Tail::None))
            }
            next => Ok(next),
        }
    }
}

/// Moves up to [`PIECE_BYTES`] of the tail to the output.
fn write_piece(tail: &mut Tail, out: &mut Vec<u8>) -> io::Result<()> {
    let bytes = tail.left().min(PIECE_BYTES);
    let start = out.len();
    match &*tail {
        Tail::None => {}
        Tail::Fill { .. } => out.resize(start + bytes as usize, b'x'),
        Tail::File { file, offset, .. } => {
            out.resize(start + bytes as usize, 0);
            if let Err(error) = file.read_exact_at(&mut out[start..], *offset) {
                out.truncate(start);
                return Err(error);
            }
        }
    }
    tail.advance(bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn parts_are_as_long_as_they_say_whichever_way_they_go() {
        for through_output in [false, true] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(b"0123456789").unwrap();
            let parts = Parts::new(file, 10, "text/plain", vec![1..3, 4..6, 0..1]);
            let (wanted, boundary) = (parts.content_length(), format!("--{:020}", parts.boundary));
            let (mut rest, mut out, mut pieces) = (Rest::of_parts(parts), Vec::new(), 0);
            while let Some(mut tail) = rest.next(&mut out, through_output).unwrap() {
                assert_eq!(tail.left() > 0, !through_output && pieces < 3);
                write_piece(&mut tail, &mut out).unwrap();
                pieces += 1;
            }
            assert_eq!(out.len() as u64, wanted);
            let text = String::from_utf8(out).unwrap();
            let head = "Content-Type: text/plain\r\nContent-Range: bytes";
            let whole = format!(
                "\r\n{boundary}\r\n{head} 1-2/10\r\n\r\n12\r\n{boundary}\r\n{head} 4-5/10\r\n\r\n45\
                 \r\n{boundary}\r\n{head} 0-0/10\r\n\r\n0\r\n{boundary}--\r\n"
            );
            assert_eq!(text, whole);
        }
    }

    #[test]
    fn a_file_that_shrinks_is_an_error() {
        let mut rest = Rest::default();
        rest.begin_with(Tail::File { file: Arc::new(tempfile::tempfile().unwrap()), offset: 0, left: 5 });
        assert!(rest.next(&mut Vec::new(), true).is_err());
    }
}
