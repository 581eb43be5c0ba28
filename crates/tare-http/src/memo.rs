//! Remembering the last head: clients that keep a connection mostly ask the same again, byte for byte.

use crate::request::{Framing, Head, Method, Version};
use crate::target::Target;

/// Heads longer than this are not remembered, in bytes.
const HEAD_BYTES_MAX: usize = 1024;

/// The last plain head that was read: no body, origin-form, nothing before the request line.
///
/// Equal bytes have an equal reading, so comparing them is enough; it costs a tenth of reading them.
#[derive(Debug, Default)]
pub struct Memo {
    bytes: Vec<u8>,
    reading: Option<Reading>,
}

/// A head as positions in its bytes.
#[derive(Debug, Clone, Copy)]
struct Reading {
    method: Method,
    version: Version,
    persistent: bool,
    path_end: usize,
    query_end: Option<usize>,
    lines_at: usize,
}

impl Memo {
    /// The head at the start of `input`, if it is the one remembered.
    #[inline]
    pub fn recall<'b>(&self, input: &'b [u8]) -> Option<Head<'b>> {
        let reading = self.reading.as_ref()?;
        let bytes = input.get(..self.bytes.len())?;
        if bytes != self.bytes {
            return None;
        }
        let path_at = reading.method.name().len() + 1;
        let text = |from: usize, to: usize| std::str::from_utf8(&bytes[from..to]).ok();
        let query = match reading.query_end {
            Some(end) => Some(text(reading.path_end + 1, end)?),
            None => None,
        };
        Some(Head {
            method: reading.method,
            target: Target { path: text(path_at, reading.path_end)?, query, authority: None },
            version: reading.version,
            framing: Framing::None,
            persistent: reading.persistent,
            expect_continue: false,
            len: bytes.len(),
            lines: &bytes[reading.lines_at..],
        })
    }

    /// Remembers a head that was read from the start of `input`, if it is a plain one.
    pub fn learn(&mut self, head: &Head<'_>, input: &[u8]) {
        let path_at = head.method.name().len() + 1;
        let plain = head.framing == Framing::None
            && !head.expect_continue
            && head.target.authority.is_none()
            && head.len <= HEAD_BYTES_MAX
            && input.starts_with(head.method.name().as_bytes());
        if !plain {
            return;
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(&input[..head.len]);
        let path_end = path_at + head.target.path.len();
        self.reading = Some(Reading {
            method: head.method,
            version: head.version,
            persistent: head.persistent,
            path_end,
            query_end: head.target.query.map(|q| path_end + 1 + q.len()),
            lines_at: head.len - head.lines.len(),
        });
    }
}
