//! The answers on one connection, in pieces of any size.

use super::head::{Answer, CHUNK_LINE_BYTES_MAX, Framing, Heads, Malformed};

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
