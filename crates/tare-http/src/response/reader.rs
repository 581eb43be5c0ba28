//! The answers on one connection, in pieces of any size.

use super::head::{Answer, CHUNK_LINE_BYTES_MAX, Framing, Heads, Malformed};
use crate::chunked::{Bounds, Decoder};

/// Bodies are counted and dropped, so that they may have any length.
const BOUNDS: Bounds =
    Bounds { body_bytes: u64::MAX, overhead_bytes: CHUNK_LINE_BYTES_MAX, each_chunk: true, padding: true };

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
        at: Decoder,
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
                Framing::Chunked => self.state = State::Chunked { at: Decoder::default(), answer },
                Framing::UntilClose => self.state = State::UntilClose(answer),
            }
        }
        self.read_body(bytes, used, listener)
    }

    // Apart, so that an answer that comes whole is read in few instructions.
    #[inline(never)]
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
                let progress = at.read(rest, &BOUNDS, |data| {
                    answer.body_bytes = answer.body_bytes.saturating_add(data.len() as u64);
                    listener.body(data);
                })?;
                let (used, answer) = (used + progress.consumed, *answer);
                if progress.done {
                    self.state = State::Head;
                    return Ok(Step::Answer { used, answer });
                }
                Ok(Step::More { used })
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
