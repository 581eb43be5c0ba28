//! Looking into answers, where that was asked for: what they must be, and what is kept of them.

use crate::message::{BODY_KEPT_BYTES_MAX, CaptureFrom};
use crate::spec::LoadSpec;
use crate::template::find;
use tare_http::response::{Answer, Listener, header};

/// What is looked for in each answer of one thread's connections.
#[derive(Debug)]
pub(crate) struct Inspect {
    headers: Vec<(String, Vec<u8>)>,
    body_bytes: Option<u64>,
    body_contains: Option<Vec<u8>>,
    captures: Vec<CaptureFrom>,
    keeps_body: bool,
    seen: Vec<Seen>,
}

/// What one connection's current answer showed so far, and what its earlier ones left.
#[derive(Debug, Default)]
struct Seen {
    headers_fit: bool,
    body: Vec<u8>,
    captured: Vec<Vec<u8>>,
}

impl Inspect {
    /// `None`: nothing in the answers is looked at but status and framing.
    pub(crate) fn new(spec: &LoadSpec, connections: u32) -> Option<Box<Inspect>> {
        let expect = &spec.expect;
        let captures: Vec<CaptureFrom> =
            spec.content.captures.iter().map(|capture| capture.from.clone()).collect();
        let looks =
            !expect.headers.is_empty() || expect.body_bytes.is_some() || expect.body_contains.is_some();
        if !looks && captures.is_empty() {
            return None;
        }
        let seen = || Seen { captured: vec![Vec::new(); captures.len()], ..Seen::default() };
        let from_body = captures.iter().any(|from| matches!(from, CaptureFrom::Body { .. }));
        Some(Box::new(Inspect {
            headers: expect
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), value.clone().into_bytes()))
                .collect(),
            body_bytes: expect.body_bytes,
            body_contains: expect.body_contains.clone().map(String::into_bytes),
            keeps_body: from_body || expect.body_contains.is_some(),
            seen: (0..connections).map(|_| seen()).collect(),
            captures,
        }))
    }

    /// What sees the answers of connection `c`.
    pub(crate) fn listener(&mut self, c: u32) -> impl Listener + '_ {
        Ear { inspect: self, c: c as usize }
    }

    /// Whether the answer that just ended on connection `c` is what was expected; keeps what is captured.
    pub(crate) fn judge(&mut self, c: u32, answer: &Answer) -> bool {
        let seen = &mut self.seen[c as usize];
        for (from, value) in self.captures.iter().zip(&mut seen.captured) {
            if let CaptureFrom::Body { after, before } = from
                && let Some(found) = between(&seen.body, after.as_bytes(), before.as_bytes())
            {
                value.clear();
                value.extend_from_slice(found);
            }
        }
        let length_fits = self.body_bytes.is_none_or(|bytes| bytes == answer.body_bytes);
        let text_fits = self.body_contains.as_ref().is_none_or(|text| find(&seen.body, text).is_some());
        seen.body.clear();
        seen.headers_fit && length_fits && text_fits
    }

    /// Connection `c` was closed in the middle of an answer or between two.
    pub(crate) fn closed(&mut self, c: u32) {
        self.seen[c as usize].body.clear();
    }

    /// What earlier answers on connection `c` left.
    pub(crate) fn captured(&self, c: u32) -> &[Vec<u8>] {
        &self.seen[c as usize].captured
    }
}

struct Ear<'a> {
    inspect: &'a mut Inspect,
    c: usize,
}

impl Listener for Ear<'_> {
    fn head(&mut self, head: &[u8]) {
        let Inspect { headers, captures, seen, .. } = &mut *self.inspect;
        let seen = &mut seen[self.c];
        seen.body.clear();
        seen.headers_fit = headers
            .iter()
            .all(|(name, text)| header(head, name).is_some_and(|value| find(&value, text).is_some()));
        for (from, kept) in captures.iter().zip(&mut seen.captured) {
            if let CaptureFrom::Header(name) = from
                && let Some(value) = header(head, name)
            {
                kept.clear();
                kept.extend_from_slice(
                    value.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii(),
                );
            }
        }
    }

    fn body(&mut self, bytes: &[u8]) {
        if self.inspect.keeps_body {
            let body = &mut self.inspect.seen[self.c].body;
            let room = BODY_KEPT_BYTES_MAX - body.len().min(BODY_KEPT_BYTES_MAX);
            body.extend_from_slice(&bytes[..room.min(bytes.len())]);
        }
    }
}

fn between<'a>(text: &'a [u8], after: &[u8], before: &[u8]) -> Option<&'a [u8]> {
    let rest = &text[find(text, after)? + after.len()..];
    if before.is_empty() { Some(rest) } else { find(rest, before).map(|end| &rest[..end]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between() {
        assert_eq!(between(b"{\"id\":\"42\"}", b"\"id\":\"", b"\""), Some(&b"42"[..]));
        assert_eq!(between(b"a=1", b"=", b""), Some(&b"1"[..]));
        assert_eq!((between(b"a=1", b":", b""), between(b"a=1", b"=", b";")), (None, None));
    }
}
