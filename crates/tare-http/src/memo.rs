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
    path: String,
    query: String,
    reading: Option<Reading>,
}

/// What a head says beside its texts.
#[derive(Debug, Clone, Copy)]
struct Reading {
    method: Method,
    version: Version,
    persistent: bool,
    has_query: bool,
    lines_at: usize,
}

impl Memo {
    /// The head at the start of `input`, if it is the one remembered; borrowed from the memory, not from `input`.
    #[inline]
    pub fn recall<'m>(&'m self, input: &[u8]) -> Option<Head<'m>> {
        let reading = self.reading.as_ref().filter(|_| self.begins(input))?;
        Some(Head {
            method: reading.method,
            target: Target {
                path: &self.path,
                query: reading.has_query.then_some(self.query.as_str()),
                authority: None,
            },
            version: reading.version,
            framing: Framing::None,
            persistent: reading.persistent,
            expect_continue: false,
            len: self.bytes.len(),
            lines: &self.bytes[reading.lines_at..],
        })
    }

    /// Whether `input` begins with the bytes that are remembered.
    #[inline]
    pub fn begins(&self, input: &[u8]) -> bool {
        input.starts_with(&self.bytes)
    }

    /// Remembers a head that was read from the start of `input`, if it is a plain one.
    pub fn learn(&mut self, head: &Head<'_>, input: &[u8]) {
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
        self.path.clear();
        self.path.push_str(head.target.path);
        self.query.clear();
        self.query.push_str(head.target.query.unwrap_or_default());
        self.reading = Some(Reading {
            method: head.method,
            version: head.version,
            persistent: head.persistent,
            has_query: head.target.query.is_some(),
            lines_at: head.len - head.lines.len(),
        });
    }
}
