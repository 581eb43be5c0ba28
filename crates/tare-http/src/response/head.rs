//! The head of an answer: what it says, and where its body ends.

use crate::chunked::Fault;
use httparse::Status;
use std::borrow::Cow;

/// Longest head that is read, in bytes: status line, headers and the empty line.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Most headers in one head.
pub const HEADERS_MAX: usize = 128;

/// Longest line of a chunk's size (with its extensions) and longest run of trailers, in bytes.
pub(super) const CHUNK_LINE_BYTES_MAX: usize = 4096;

/// A longer Location is cut: it is only shown.
const SHOWN_CHARS_MAX: usize = 500;

/// An answer that is not HTTP/1, or contradicts itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The status line or a header breaks the grammar.
    #[error("the answer's head is not HTTP/1: {0}")]
    Head(httparse::Error),
    /// More header fields than [`HEADERS_MAX`], which no rule of HTTP bounds.
    #[error("the answer has more than {HEADERS_MAX} header fields, which is tare's own limit")]
    TooManyHeaders,
    /// No empty line within [`HEAD_BYTES_MAX`].
    #[error("the answer's head is longer than {HEAD_BYTES_MAX} bytes")]
    HeadTooLong,
    /// A status outside 100..=999.
    #[error("the answer's status {0} is not an HTTP status")]
    Status(u16),
    /// `Content-Length` is not a decimal number, or was given twice with different values.
    #[error("the answer's Content-Length is not one decimal number")]
    ContentLength,
    /// `Content-Length` beside `Transfer-Encoding`: two claims about where the answer ends.
    #[error("the answer has both Content-Length and Transfer-Encoding")]
    TwoFramings,
    /// The chunked coding, or a trailer field, breaks this rule of its grammar.
    #[error("the answer's chunked coding is broken: {0}")]
    Chunk(&'static str),
    /// A chunk's size line or the trailers are longer than the bound.
    #[error("the answer's chunk line or trailers are longer than {CHUNK_LINE_BYTES_MAX} bytes")]
    ChunkLineTooLong,
    /// `101 Switching Protocols`, which no request of ours asks for.
    #[error("the server switched protocols unasked")]
    SwitchedProtocols,
}

const TOO_MANY: &str = "more than 128 header fields, tare's own limit";
const _: () = assert!(HEADERS_MAX == 128 && HEAD_BYTES_MAX == 16 * 1024);

impl Malformed {
    fn of(error: httparse::Error) -> Malformed {
        match error {
            httparse::Error::TooManyHeaders => Malformed::TooManyHeaders,
            error => Malformed::Head(error),
        }
    }

    /// The rule that was broken, in a few words: there is a fixed number of them, so that they can be counted.
    pub fn rule(self) -> &'static str {
        match self {
            Malformed::Head(error) => match error {
                httparse::Error::HeaderName => "header name is not a token",
                httparse::Error::HeaderValue => "header value holds a control character",
                httparse::Error::NewLine => "CR without LF",
                httparse::Error::TooManyHeaders => TOO_MANY,
                httparse::Error::Version => "not HTTP/1",
                httparse::Error::Status | httparse::Error::Token => "status line breaks the grammar",
            },
            Malformed::TooManyHeaders => TOO_MANY,
            Malformed::HeadTooLong => "head is longer than 16 KiB, tare's own limit",
            Malformed::Status(_) => "status is not a number from 100 to 999",
            Malformed::ContentLength => "Content-Length is not one decimal number",
            Malformed::TwoFramings => "both Content-Length and Transfer-Encoding",
            Malformed::Chunk(rule) => rule,
            Malformed::ChunkLineTooLong => "chunk size, extensions or trailer are too long",
            Malformed::SwitchedProtocols => "the server switched protocols",
        }
    }
}

impl From<Fault> for Malformed {
    fn from(fault: Fault) -> Malformed {
        match fault {
            Fault::Grammar(rule) => Malformed::Chunk(rule),
            Fault::LineTooLong | Fault::TrailerTooLong => Malformed::ChunkLineTooLong,
            // There is no bound but the largest number.
            Fault::BodyTooLarge => Malformed::Chunk("chunk size is too large"),
        }
    }
}

/// Where the body of an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// After this many bytes (0: no body).
    Length(u64),
    /// After the last chunk and its trailers.
    Chunked,
    /// When the server closes the connection.
    UntilClose,
}

/// What the head of an answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Its length, the empty line included.
    pub len: usize,
    /// The status code.
    pub status: u16,
    /// Where the body ends.
    pub framing: Framing,
    /// Whether the connection may carry another request afterwards.
    pub keep_alive: bool,
}

/// Parses heads, and recognises the last good one by its bytes.
#[derive(Debug)]
pub struct Heads {
    to_head: bool,
    pub(super) known: Vec<u8>,
    known_head: Head,
    /// Where the first redirect led to, if one said so.
    pub redirected_to: Option<String>,
}

impl Heads {
    /// A parser for answers to one kind of request; `to_head`: the method is HEAD, so no answer has a body.
    ///
    /// Memory is allocated here and never again, but for the first redirect.
    pub fn new(to_head: bool) -> Self {
        let known_head = Head { len: 0, status: 0, framing: Framing::UntilClose, keep_alive: false };
        Heads { to_head, known: Vec::with_capacity(HEAD_BYTES_MAX), known_head, redirected_to: None }
    }

    /// The head at the start of `bytes`; `None` while its end has not come.
    ///
    /// # Errors
    /// [`Malformed`] when no continuation could make this a head.
    #[inline]
    pub fn parse(&mut self, bytes: &[u8]) -> Result<Option<Head>, Malformed> {
        if !self.known.is_empty() && bytes.starts_with(&self.known) {
            return Ok(Some(self.known_head));
        }
        self.parse_fully(bytes)
    }

    /// How many whole answers with the last good head stand at the start of `bytes`, at most `most`, and how long each
    /// is; `None` where that head does not say how long its body is.
    #[inline]
    pub fn repeated(&self, bytes: &[u8], most: usize) -> Option<Repeated> {
        let Head { len, status, framing: Framing::Length(body_bytes), keep_alive } = self.known_head else {
            return None;
        };
        let each = len.checked_add(usize::try_from(body_bytes).ok()?)?;
        let alike = bytes.chunks_exact(each).take(most);
        let count = alike.take_while(|answer| answer.starts_with(&self.known)).count();
        Some(Repeated { count, bytes_each: each, answer: Answer { status, keep_alive, body_bytes } })
    }

    #[cold]
    fn parse_fully(&mut self, bytes: &[u8]) -> Result<Option<Head>, Malformed> {
        let Some(head) = parse_head(bytes, self.to_head)? else {
            return if bytes.len() >= HEAD_BYTES_MAX { Err(Malformed::HeadTooLong) } else { Ok(None) };
        };
        if head.len > HEAD_BYTES_MAX {
            return Err(Malformed::HeadTooLong);
        }
        if head.status >= 200 {
            self.known.clear();
            self.known.extend_from_slice(&bytes[..head.len]);
            self.known_head = head;
        }
        if is_redirect(head.status) {
            self.saw_redirect(header(&bytes[..head.len], "location").as_deref());
        }
        Ok(Some(head))
    }

    /// An answer that [redirects](is_redirect) said where to; the first one is kept.
    pub fn saw_redirect(&mut self, location: Option<&[u8]>) {
        if self.redirected_to.is_none() {
            self.redirected_to = location.map(shown);
        }
    }
}

/// Whether an answer with this status sends its client elsewhere.
pub fn is_redirect(status: u16) -> bool {
    matches!(status, 301..=303 | 307 | 308)
}

/// A value as it can be shown: without controls, and no longer than a line or a few.
fn shown(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    text.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS_MAX).collect()
}

/// The full parser. A minor version that came after 1 is read as 1 (RFC 9110, 6.2).
fn parse_head(bytes: &[u8], to_head: bool) -> Result<Option<Head>, Malformed> {
    const AT: usize = b"HTTP/1.".len();
    let is_newer =
        bytes.starts_with(b"HTTP/1.") && bytes.get(AT).is_some_and(|minor| (b'2'..=b'9').contains(minor));
    if !is_newer {
        return parse_known(bytes, to_head);
    }
    let mut copy = [0; HEAD_BYTES_MAX];
    let len = bytes.len().min(copy.len());
    copy[..len].copy_from_slice(&bytes[..len]);
    copy[AT] = b'1';
    parse_known(&copy[..len], to_head)
}

/// RFC 9112 section 6.3 as a client.
fn parse_known(bytes: &[u8], to_head: bool) -> Result<Option<Head>, Malformed> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let mut parser = httparse::ParserConfig::default();
    // Folded lines are one value (RFC 9112, 5.2).
    parser.allow_obsolete_multiline_headers_in_responses(true);
    let len = match parser.parse_response(&mut response, bytes).map_err(Malformed::of)? {
        Status::Complete(len) => len,
        Status::Partial => return Ok(None),
    };
    let status = response.code.unwrap_or(0);
    match status {
        101 => return Err(Malformed::SwitchedProtocols),
        100.. => {}
        _ => return Err(Malformed::Status(status)),
    }
    let mut claims = Claims::new(response.version == Some(1));
    for header in response.headers.iter() {
        claims.add(header.name, header.value)?;
    }
    let framing = if to_head || status < 200 || status == 204 || status == 304 {
        Framing::Length(0)
    } else {
        claims.framing()?
    };
    // HTTP/1.0 has no Transfer-Encoding: who sends it there may have lost count (RFC 9112, 6.1).
    let is_doubtful = response.version == Some(0) && claims.coding.is_some();
    let keep_alive = claims.keep_alive && !claims.close && !is_doubtful && framing != Framing::UntilClose;
    Ok(Some(Head { len, status, framing, keep_alive }))
}

/// What the headers claim about the connection and the body's end.
struct Claims {
    length: Option<u64>,
    coding: Option<Framing>,
    keep_alive: bool,
    close: bool,
}

impl Claims {
    /// HTTP/1.1 keeps connections unless a header says otherwise, HTTP/1.0 closes them.
    fn new(keep_alive: bool) -> Self {
        Claims { length: None, coding: None, keep_alive, close: false }
    }

    fn add(&mut self, name: &str, value: &[u8]) -> Result<(), Malformed> {
        if name.eq_ignore_ascii_case("content-length") {
            let length = parse_decimal(value).ok_or(Malformed::ContentLength)?;
            if self.length.is_some_and(|earlier| earlier != length) {
                return Err(Malformed::ContentLength);
            }
            self.length = Some(length);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            // Only a final `chunked` marks an end; after any other coding the body runs until the close.
            let last = tokens(value).next_back().unwrap_or_default();
            let chunked = last.eq_ignore_ascii_case(b"chunked");
            self.coding = Some(if chunked { Framing::Chunked } else { Framing::UntilClose });
        } else if name.eq_ignore_ascii_case("connection") {
            for token in tokens(value) {
                // `close` counts wherever it stands (RFC 9112 section 9.3).
                self.close |= token.eq_ignore_ascii_case(b"close");
                self.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
            }
        }
        Ok(())
    }

    fn framing(&self) -> Result<Framing, Malformed> {
        match (self.coding, self.length) {
            (Some(_), Some(_)) => Err(Malformed::TwoFramings),
            (Some(coding), None) => Ok(coding),
            (None, Some(length)) => Ok(Framing::Length(length)),
            (None, None) => Ok(Framing::UntilClose),
        }
    }
}

/// The comma-separated members of a header's value.
fn tokens(value: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(|token| token.trim_ascii())
}

/// A decimal number; identical repetitions (`5, 5`) count once, as RFC 9110 section 8.6 allows.
fn parse_decimal(value: &[u8]) -> Option<u64> {
    let mut members = tokens(value);
    let first = members.next()?;
    let number = std::str::from_utf8(first).ok()?;
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) || members.any(|m| m != first) {
        return None;
    }
    number.parse().ok()
}

/// A whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Whether the connection may carry another request.
    pub keep_alive: bool,
    /// Length of its body, without what a chunked coding adds.
    pub body_bytes: u64,
}

/// Answers alike, one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeated {
    /// How many.
    pub count: usize,
    /// Length of each, with its head.
    pub bytes_each: usize,
    /// Each of them.
    pub answer: Answer,
}

/// The value of the first header of this name in a head that was parsed; where it was folded, with a space for each fold.
pub fn header<'a>(head: &'a [u8], name: &str) -> Option<Cow<'a, [u8]>> {
    let mut lines = head.split(|&byte| byte == b'\n').skip(1).peekable();
    let value = lines.find_map(|line| {
        let colon = line.iter().position(|&byte| byte == b':')?;
        line[..colon].eq_ignore_ascii_case(name.as_bytes()).then(|| line[colon + 1..].trim_ascii())
    })?;
    let mut value = Cow::Borrowed(value);
    while let Some(fold) = lines.next_if(|line| matches!(line.first(), Some(b' ' | b'\t'))) {
        let value = value.to_mut();
        if !value.is_empty() {
            value.push(b' ');
        }
        value.extend_from_slice(fold.trim_ascii());
    }
    Some(value)
}
