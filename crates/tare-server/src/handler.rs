//! What a handler gets and what it gives back.

use std::fmt::Display;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use tare_http::request::{Head, Method, Version};
use tare_http::status::Status;
use tare_http::write::{self, Stamp};

use crate::rest::{Parts, Rest};
use crate::tail::Tail;

/// Parts of files up to this size go through the output buffer, in bytes.
const FILE_INLINE_BYTES_MAX: u64 = 32 * 1024;

/// A complete request: its head, and its body already decoded.
#[derive(Debug, Clone, Copy)]
pub struct Request<'r> {
    pub(crate) head: &'r Head<'r>,
    pub(crate) body: &'r [u8],
    pub(crate) rest: &'r str,
}

impl<'r> Request<'r> {
    /// What is asked.
    pub fn method(&self) -> Method {
        self.head.method
    }

    /// The path as sent, not percent-decoded.
    pub fn path(&self) -> &'r str {
        self.head.target.path
    }

    /// The part of the path that the `*` of the route stands for; empty for a route without one.
    pub fn rest(&self) -> &'r str {
        self.rest
    }

    /// The value of `name` in the query, not percent-decoded.
    pub fn query_value(&self, name: &str) -> Option<&'r str> {
        self.head.target.query_value(name)
    }

    /// The first header field of that name, in any case.
    pub fn field(&self, name: &str) -> Option<&'r [u8]> {
        self.head.field(name)
    }

    /// The head in full.
    pub fn head(&self) -> &'r Head<'r> {
        self.head
    }

    /// The body; empty where there is none.
    pub fn body(&self) -> &'r [u8] {
        self.body
    }
}

/// Answers a request, exactly once: the only way to an [`Answer`] is through the [`Responder`].
///
/// Any `Fn(&Request, Responder) -> Answer` is one. It runs on the event loop: while it runs, the other
/// connections of that thread wait. A panic in it costs this request a 500 and its connection.
pub trait Handler: Send + Sync {
    /// Writes the answer.
    fn handle(&self, request: &Request<'_>, responder: Responder<'_>) -> Answer;
}

impl<F: Fn(&Request<'_>, Responder<'_>) -> Answer + Send + Sync> Handler for F {
    #[inline]
    fn handle(&self, request: &Request<'_>, responder: Responder<'_>) -> Answer {
        self(request, responder)
    }
}

/// How an answer differs by what the request was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    /// The request was HEAD: everything but the body is sent.
    head_only: bool,
    /// The Connection field to send, if any.
    connection: Option<&'static str>,
}

impl Manner {
    #[inline]
    pub(crate) fn of(head: &Head<'_>, stays: bool) -> Manner {
        let connection = match (stays, head.version) {
            (true, Version::Http11) => None,
            (true, Version::Http10) => Some("keep-alive"),
            (false, _) => Some("close"),
        };
        Manner { head_only: head.method == Method::Head, connection }
    }

    /// The answer to a request that could not be read, but for whether it is HEAD.
    pub(crate) fn last(head_only: bool) -> Manner {
        Manner { head_only, connection: Some("close") }
    }
}

/// The beginning of an answer. Writes straight into the output buffer.
#[derive(Debug)]
pub struct Responder<'o> {
    out: &'o mut Vec<u8>,
    stamp: &'o Stamp,
    manner: Manner,
}

impl<'o> Responder<'o> {
    #[inline]
    pub(crate) fn new(out: &'o mut Vec<u8>, stamp: &'o Stamp, manner: Manner) -> Responder<'o> {
        Responder { out, stamp, manner }
    }

    /// An answer with status 200.
    #[inline]
    pub fn ok(self) -> HeadWriter<'o> {
        self.status(Status::OK)
    }

    /// An answer with the status.
    #[inline]
    pub fn status(self, status: Status) -> HeadWriter<'o> {
        write::start(self.out, self.stamp, status);
        if let Some(option) = self.manner.connection {
            write::static_field(self.out, "Connection", option);
        }
        HeadWriter { out: self.out, status, head_only: self.manner.head_only }
    }

    /// An answer with the status and its name as the text.
    pub fn plain(self, status: Status) -> Answer {
        self.status(status).reason()
    }

    /// The second that the answer is stamped with, since 1970-01-01 UTC.
    pub fn unix_s(&self) -> u64 {
        self.stamp.unix_s()
    }
}

/// The head of an answer, open for fields until a body ends it.
#[derive(Debug)]
pub struct HeadWriter<'o> {
    out: &'o mut Vec<u8>,
    status: Status,
    head_only: bool,
}

impl HeadWriter<'_> {
    /// The Content-Type field.
    #[inline]
    #[must_use]
    pub fn content_type(self, media_type: &'static str) -> Self {
        write::static_field(self.out, "Content-Type", media_type);
        self
    }

    /// A field. Bytes that cannot stand in a value are sent as spaces. Content-Length, Date and Connection are
    /// written by the server.
    #[must_use]
    pub fn field(self, name: &'static str, value: &[u8]) -> Self {
        write::field(self.out, name, value);
        self
    }

    /// A field of which both parts stand in the program's text.
    #[must_use]
    pub fn static_field(self, name: &'static str, value: &'static str) -> Self {
        write::static_field(self.out, name, value);
        self
    }

    /// The Content-Range field of bytes `first` to `last` of `bytes` (RFC 9110, 14.4).
    #[must_use]
    pub fn content_range(self, first: u64, last: u64, bytes: u64) -> Self {
        self.out.extend_from_slice(b"Content-Range: bytes ");
        write::number(self.out, first);
        self.out.push(b'-');
        write::number(self.out, last);
        self.out.push(b'/');
        write::number(self.out, bytes);
        self.out.extend_from_slice(b"\r\n");
        self
    }

    /// Ends the answer with `body`, copied.
    #[inline]
    pub fn body(mut self, body: &[u8]) -> Answer {
        if !self.end_head(body.len() as u64) {
            return Answer::of(self.status, 0, Tail::None);
        }
        self.out.extend_from_slice(body);
        Answer::of(self.status, body.len() as u64, Tail::None)
    }

    /// Ends the answer with the name of its status as the text, where such an answer may have one.
    pub fn reason(self) -> Answer {
        match self.status {
            status if status.is_bodiless() || status == Status::RESET_CONTENT => self.empty(),
            status => self.content_type("text/plain").body(status.reason().as_bytes()),
        }
    }

    /// Ends the answer with the name of its status and why it is so as the text.
    pub(crate) fn reason_and(self, why: &dyn Display) -> Answer {
        let text = format!("{}: {why}", self.status.reason());
        self.content_type("text/plain").body(text.as_bytes())
    }

    /// Ends the answer with no body.
    pub fn empty(self) -> Answer {
        self.body(b"")
    }

    /// Ends the answer with `bytes` bytes of `x`, made as they are sent.
    pub fn fill(mut self, bytes: u64) -> Answer {
        match self.end_head(bytes) && bytes > 0 {
            true => Answer::of(self.status, bytes, Tail::Fill { left: bytes }),
            false => Answer::of(self.status, 0, Tail::None),
        }
    }

    /// Ends the answer with `bytes` bytes of `file` from `offset`: a small part is read into the output, which
    /// costs less than a second system call to the socket; a larger one is sent by the kernel without a copy. A
    /// file that turns out to be shorter ends the connection.
    pub fn file(mut self, file: File, offset: u64, bytes: u64) -> Answer {
        if !self.end_head(bytes) || bytes == 0 {
            return Answer::of(self.status, 0, Tail::None);
        }
        if bytes <= FILE_INLINE_BYTES_MAX {
            let start = self.out.len();
            self.out.resize(start + bytes as usize, 0);
            if file.read_exact_at(&mut self.out[start..], offset).is_ok() {
                return Answer::of(self.status, bytes, Tail::None);
            }
            self.out.truncate(start);
        }
        Answer::of(self.status, bytes, Tail::File { file: Arc::new(file), offset, left: bytes })
    }

    /// Ends the answer with several ranges of `file`, which has `bytes` in all and that media type, each in a part
    /// of its own (RFC 9110, 14.6). Writes Content-Type.
    pub(crate) fn file_parts(
        mut self,
        file: File,
        bytes: u64,
        media_type: &'static str,
        ranges: Vec<Range<u64>>,
    ) -> Answer {
        let parts = Parts::new(file, bytes, media_type, ranges);
        write::field(self.out, "Content-Type", parts.content_type().as_bytes());
        let body_bytes = parts.content_length();
        match self.end_head(body_bytes) {
            true => {
                let rest = Some(Box::new(Rest::of_parts(parts)));
                Answer { status: self.status, body_bytes, tail: Tail::None, rest }
            }
            false => Answer::of(self.status, 0, Tail::None),
        }
    }

    /// Ends the head; whether a body is to follow it.
    #[inline]
    fn end_head(&mut self, bytes: u64) -> bool {
        // RFC 9110, 15.3.6: a 205 has no content, and says so.
        let bytes = if self.status == Status::RESET_CONTENT { 0 } else { bytes };
        // RFC 9110, 8.6: no Content-Length in a 204, and in a 304 only the one that a 200 would have.
        if !self.status.is_bodiless() {
            write::content_length(self.out, bytes);
        }
        self.out.extend_from_slice(b"\r\n");
        !self.head_only && !self.status.is_bodiless() && self.status != Status::RESET_CONTENT
    }
}

/// A finished answer.
#[derive(Debug)]
pub struct Answer {
    pub(crate) status: Status,
    /// Bytes of the body.
    pub(crate) body_bytes: u64,
    pub(crate) tail: Tail,
    /// What comes after the tail.
    pub(crate) rest: Option<Box<Rest>>,
}

impl Answer {
    #[inline]
    fn of(status: Status, body_bytes: u64, tail: Tail) -> Answer {
        Answer { status, body_bytes, tail, rest: None }
    }
}
