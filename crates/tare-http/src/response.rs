//! Reading answers as a client: heads, framing and limits, without I/O and without keeping bodies.
//!
//! [`Heads`] parses heads and remembers the last good one: an answer that begins with exactly the same bytes
//! has exactly the same meaning, so comparing them *is* parsing them. Anything else, a `Date` that moved on
//! included, takes the full parser. [`AnswerReader`] follows one connection through heads, bodies and chunks
//! in pieces of any size; bodies are counted and dropped, so memory does not grow with what a server sends.

use httparse::Status;

/// Longest head that is read, in bytes: status line, headers and the empty line.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Most headers in one head.
pub const HEADERS_MAX: usize = 128;

/// Longest line of a chunk's size (with its extensions) and longest run of trailers, in bytes.
const CHUNK_LINE_BYTES_MAX: u32 = 4096;

/// An answer that is not HTTP/1, or contradicts itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The status line or a header breaks the grammar.
    #[error("the answer's head is not HTTP/1: {0}")]
    Head(httparse::Error),
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
    /// A chunk's size line or the end of its data breaks the grammar.
    #[error("the answer's chunked coding is broken")]
    Chunk,
    /// A chunk's size line or the trailers are longer than the bound.
    #[error("the answer's chunk line or trailers are longer than {CHUNK_LINE_BYTES_MAX} bytes")]
    ChunkLineTooLong,
    /// `101 Switching Protocols`, which no request of ours asks for.
    #[error("the server switched protocols unasked")]
    SwitchedProtocols,
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
    known: Vec<u8>,
    known_head: Head,
}

impl Heads {
    /// A parser for answers to one kind of request; `to_head`: the method is HEAD, so no answer has a body.
    ///
    /// Memory is allocated here and never again.
    pub fn new(to_head: bool) -> Self {
        let known_head = Head { len: 0, status: 0, framing: Framing::UntilClose, keep_alive: false };
        Heads { to_head, known: Vec::with_capacity(HEAD_BYTES_MAX), known_head }
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
        Ok(Some(head))
    }
}

/// The full parser: RFC 9112 section 6.3 as a client.
fn parse_head(bytes: &[u8], to_head: bool) -> Result<Option<Head>, Malformed> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let len = match response.parse(bytes).map_err(Malformed::Head)? {
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
    let keep_alive = claims.keep_alive && framing != Framing::UntilClose;
    Ok(Some(Head { len, status, framing, keep_alive }))
}

/// What the headers claim about the connection and the body's end.
struct Claims {
    length: Option<u64>,
    coding: Option<Framing>,
    keep_alive: bool,
}

impl Claims {
    /// HTTP/1.1 keeps connections unless a header says otherwise, HTTP/1.0 closes them.
    fn new(keep_alive: bool) -> Self {
        Claims { length: None, coding: None, keep_alive }
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
                if token.eq_ignore_ascii_case(b"close") {
                    self.keep_alive = false;
                } else if token.eq_ignore_ascii_case(b"keep-alive") {
                    self.keep_alive = true;
                }
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

/// Gets what an [`AnswerReader`] reads and drops.
pub trait Listener {
    /// The head of an answer (not of one that only announces another, as 100).
    fn head(&mut self, head: &[u8]);
    /// A piece of its body.
    fn body(&mut self, bytes: &[u8]);
}

/// Looks at nothing.
impl Listener for () {
    #[inline]
    fn head(&mut self, _head: &[u8]) {}
    #[inline]
    fn body(&mut self, _bytes: &[u8]) {}
}

/// The value of the first header of this name in a head that was parsed.
pub fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    head.split(|&byte| byte == b'\n').skip(1).find_map(|line| {
        let colon = line.iter().position(|&byte| byte == b':')?;
        line[..colon].eq_ignore_ascii_case(name.as_bytes()).then(|| line[colon + 1..].trim_ascii())
    })
}

/// How far a piece of input led.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// An answer ended after `used` bytes; the rest belongs to the next one.
    Answer {
        /// Bytes of the input that are done with.
        used: usize,
        /// The answer.
        answer: Answer,
    },
    /// More input is needed. Bytes after `used` are the start of a head: give them again, with what follows.
    More {
        /// Bytes of the input that are done with.
        used: usize,
    },
}

/// What the end of the connection means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It was the end of an answer that runs until the close.
    Answer(Answer),
    /// No answer was under way.
    Between,
    /// It cut an answer short.
    Truncated,
}

/// Follows the answers on one connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnswerReader {
    state: State,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Head,
    Length {
        left: u64,
        answer: Answer,
    },
    Chunked {
        at: Chunk,
        answer: Answer,
    },
    UntilClose(Answer),
}

impl AnswerReader {
    /// Reads on in `bytes`: what was not used of the last piece, then what came since.
    ///
    /// # Errors
    /// [`Malformed`]; the connection is of no use afterwards.
    #[inline]
    pub fn read(&mut self, heads: &mut Heads, bytes: &[u8]) -> Result<Step, Malformed> {
        self.read_to(heads, bytes, &mut ())
    }

    /// The same, with a watcher.
    ///
    /// # Errors
    /// As [`AnswerReader::read`].
    #[inline]
    pub fn read_to(
        &mut self,
        heads: &mut Heads,
        bytes: &[u8],
        listener: &mut impl Listener,
    ) -> Result<Step, Malformed> {
        let mut used = 0;
        while self.state == State::Head {
            let Some(head) = heads.parse(&bytes[used..])? else { return Ok(Step::More { used }) };
            let begin = used;
            used += head.len;
            if head.status < 200 {
                continue;
            }
            listener.head(&bytes[begin..used]);
            let mut answer = Answer { status: head.status, keep_alive: head.keep_alive, body_bytes: 0 };
            match head.framing {
                Framing::Length(length) => {
                    answer.body_bytes = length;
                    if length <= (bytes.len() - used) as u64 {
                        let end = used + length as usize;
                        listener.body(&bytes[used..end]);
                        return Ok(Step::Answer { used: end, answer });
                    }
                    self.state = State::Length { left: length, answer };
                }
                Framing::Chunked => self.state = State::Chunked { at: Chunk::FIRST, answer },
                Framing::UntilClose => self.state = State::UntilClose(answer),
            }
        }
        self.read_body(bytes, used, listener)
    }

    fn read_body(
        &mut self,
        bytes: &[u8],
        used: usize,
        listener: &mut impl Listener,
    ) -> Result<Step, Malformed> {
        let rest = &bytes[used..];
        match &mut self.state {
            State::Length { left, answer } => {
                let answer = *answer;
                let step = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                listener.body(&rest[..step]);
                *left -= step as u64;
                if *left == 0 {
                    self.state = State::Head;
                    return Ok(Step::Answer { used: used + step, answer });
                }
                Ok(Step::More { used: used + step })
            }
            State::Chunked { at, answer } => {
                let (step, done) = at.read(rest, |data| {
                    answer.body_bytes = answer.body_bytes.saturating_add(data.len() as u64);
                    listener.body(data);
                })?;
                if done {
                    let answer = *answer;
                    self.state = State::Head;
                    return Ok(Step::Answer { used: used + step, answer });
                }
                Ok(Step::More { used: used + step })
            }
            State::UntilClose(answer) => {
                answer.body_bytes = answer.body_bytes.saturating_add(rest.len() as u64);
                listener.body(rest);
                Ok(Step::More { used: bytes.len() })
            }
            State::Head => Ok(Step::More { used: bytes.len() }),
        }
    }

    /// Ends the connection; `unused` says whether bytes of an unfinished head are left over.
    /// The reader is ready for a new connection afterwards.
    pub fn end(&mut self, unused: bool) -> End {
        match std::mem::take(&mut self.state) {
            State::UntilClose(answer) => End::Answer(answer),
            State::Head if !unused => End::Between,
            _ => End::Truncated,
        }
    }

    /// Whether an answer's body is under way.
    pub fn in_body(&self) -> bool {
        self.state != State::Head
    }
}

/// Position within the chunked coding (RFC 9112 section 7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chunk {
    /// In the size line's digits; `line` counts its bytes.
    Size { size: u64, line: u32 },
    /// In the extensions after the digits.
    Extension { size: u64, line: u32 },
    /// Before the line feed that ends a size line.
    SizeEnd { size: u64 },
    /// In the data.
    Data { left: u64 },
    /// Before the carriage return after the data.
    DataEnd,
    /// Before the line feed after the data.
    DataEndLf,
    /// In the trailers: bytes so far, and whether the current line is empty so far.
    Trailer { bytes: u32, empty: bool },
    /// After a carriage return in the trailers.
    TrailerEnd { bytes: u32, empty: bool },
}

impl Chunk {
    const FIRST: Chunk = Chunk::Size { size: 0, line: 0 };

    /// Bytes used and whether the last chunk's trailers ended.
    fn read(&mut self, bytes: &[u8], mut data: impl FnMut(&[u8])) -> Result<(usize, bool), Malformed> {
        let mut used = 0;
        while used < bytes.len() {
            if let Chunk::Data { left } = self {
                let step = (bytes.len() - used).min(usize::try_from(*left).unwrap_or(usize::MAX));
                data(&bytes[used..used + step]);
                *left -= step as u64;
                used += step;
                if *left == 0 {
                    *self = Chunk::DataEnd;
                }
                continue;
            }
            let byte = bytes[used];
            used += 1;
            match self.next(byte)? {
                Some(next) => *self = next,
                None => return Ok((used, true)),
            }
        }
        Ok((used, false))
    }

    /// The position after one byte outside the data; `None` at the end of the body.
    fn next(self, byte: u8) -> Result<Option<Chunk>, Malformed> {
        Ok(Some(match (self, byte) {
            (Chunk::Size { size, line }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                let size = size.checked_mul(16).ok_or(Malformed::Chunk)? | u64::from(digit);
                Chunk::Size { size, line: within(line)? }
            }
            (Chunk::Size { line: 0, .. }, _) => return Err(Malformed::Chunk),
            (Chunk::Size { size, .. } | Chunk::Extension { size, .. }, b'\r') => Chunk::SizeEnd { size },
            (Chunk::Size { size, line }, b';' | b' ' | b'\t') => {
                Chunk::Extension { size, line: within(line)? }
            }
            (Chunk::Extension { .. }, b'\n') => return Err(Malformed::Chunk),
            (Chunk::Extension { size, line }, _) => Chunk::Extension { size, line: within(line)? },
            (Chunk::SizeEnd { size: 0 }, b'\n') => Chunk::Trailer { bytes: 0, empty: true },
            (Chunk::SizeEnd { size }, b'\n') => Chunk::Data { left: size },
            (Chunk::DataEnd, b'\r') => Chunk::DataEndLf,
            (Chunk::DataEndLf, b'\n') => Chunk::FIRST,
            (Chunk::Trailer { bytes, empty }, b'\r') => Chunk::TrailerEnd { bytes: within(bytes)?, empty },
            (Chunk::Trailer { .. }, b'\n') => return Err(Malformed::Chunk),
            (Chunk::Trailer { bytes, .. }, _) => Chunk::Trailer { bytes: within(bytes)?, empty: false },
            (Chunk::TrailerEnd { empty: true, .. }, b'\n') => return Ok(None),
            (Chunk::TrailerEnd { bytes, .. }, b'\n') => Chunk::Trailer { bytes: within(bytes)?, empty: true },
            _ => return Err(Malformed::Chunk),
        }))
    }
}

/// One byte more of a line, as long as it stays within the bound.
fn within(bytes: u32) -> Result<u32, Malformed> {
    if bytes < CHUNK_LINE_BYTES_MAX { Ok(bytes + 1) } else { Err(Malformed::ChunkLineTooLong) }
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;
