//! Decoding a chunked body piece by piece (RFC 9112, 7.1).

use crate::limits::Limits;
use crate::refusal::Refusal;

/// A decoder of one chunked body. Chunk extensions and trailer fields are checked and dropped.
#[derive(Debug, Clone, Copy)]
pub struct Decoder {
    state: State,
    /// Size of the chunk being read, then what is left of it, in bytes.
    chunk_bytes: u64,
    /// Decoded bytes so far.
    body_bytes: u64,
    /// Bytes of extensions and trailers so far.
    overhead_bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    SizeStart,
    Size,
    /// White space after the size or after an extension; only an extension may follow.
    SizeSpace,
    /// After `;`: the extension's name comes.
    NameStart,
    Name,
    /// White space after the name: a value or the next extension may follow.
    NameSpace,
    /// After `=`: a token or a quoted string comes.
    ValueStart,
    Value,
    Quoted,
    QuotedPair,
    QuotedEnd,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLf,
    EndLf,
    Done,
}

/// What a call of [`Decoder::decode`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the input that belong to this body and are done with.
    pub consumed: usize,
    /// Whether the body is complete.
    pub done: bool,
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder { state: State::SizeStart, chunk_bytes: 0, body_bytes: 0, overhead_bytes: 0 }
    }
}

impl Decoder {
    /// Decodes from `input`, appending to `body`, up to the body's end or the input's.
    pub fn decode(&mut self, input: &[u8], body: &mut Vec<u8>, limits: &Limits) -> Result<Progress, Refusal> {
        let mut at = 0;
        while at < input.len() && self.state != State::Done {
            if self.state == State::Data {
                let here = (input.len() - at).min(usize::try_from(self.chunk_bytes).unwrap_or(usize::MAX));
                body.extend_from_slice(&input[at..at + here]);
                self.chunk_bytes -= here as u64;
                at += here;
                if self.chunk_bytes == 0 {
                    self.state = State::DataCr;
                }
            } else {
                self.state = self.step(input[at], limits)?;
                at += 1;
            }
        }
        Ok(Progress { consumed: at, done: self.state == State::Done })
    }

    fn step(&mut self, byte: u8, limits: &Limits) -> Result<State, Refusal> {
        Ok(match (self.state, byte) {
            (State::SizeStart | State::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => self.digit(byte)?,
            (State::SizeStart, _) => return Err(Refusal::Chunk("no chunk size")),
            (State::Size | State::Name | State::Value | State::QuotedEnd, b'\r') => State::SizeLf,
            (State::Size | State::SizeSpace, b' ' | b'\t') => self.overhead(State::SizeSpace, limits)?,
            (State::Size | State::SizeSpace, b';') => self.overhead(State::NameStart, limits)?,
            (State::Size | State::SizeSpace, _) => return Err(Refusal::Chunk("bad chunk size")),
            (
                State::NameStart
                | State::Name
                | State::NameSpace
                | State::ValueStart
                | State::Value
                | State::Quoted
                | State::QuotedPair
                | State::QuotedEnd,
                _,
            ) => {
                let next = extension(self.state, byte).ok_or(Refusal::Chunk("bad chunk extension"))?;
                self.overhead(next, limits)?
            }
            (State::SizeLf, b'\n') => self.size_known(limits)?,
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::SizeStart,
            (State::DataCr | State::DataLf, _) => return Err(Refusal::Chunk("chunk longer than its size")),
            (State::TrailerStart, b'\r') => State::EndLf,
            (State::TrailerStart | State::TrailerName, b) if is_token(b) => {
                self.trailer(State::TrailerName, limits)?
            }
            (State::TrailerName, b':') => self.trailer(State::TrailerValue, limits)?,
            (State::TrailerValue, b'\r') => State::TrailerLf,
            (State::TrailerValue, b) if is_text(b) => self.trailer(State::TrailerValue, limits)?,
            (State::TrailerLf, b'\n') => State::TrailerStart,
            (State::TrailerStart | State::TrailerName | State::TrailerValue, _) => {
                return Err(Refusal::Chunk("bad trailer field"));
            }
            (State::EndLf, b'\n') => State::Done,
            (State::SizeLf | State::TrailerLf | State::EndLf, _) => {
                return Err(Refusal::Chunk("CR without LF"));
            }
            (State::Data | State::Done, _) => self.state,
        })
    }

    fn digit(&mut self, byte: u8) -> Result<State, Refusal> {
        let value = char::from(byte).to_digit(16).unwrap_or(0);
        if self.chunk_bytes >> 60 != 0 {
            return Err(Refusal::Chunk("chunk size overflows"));
        }
        self.chunk_bytes = self.chunk_bytes << 4 | u64::from(value);
        // Leading zeroes have no end of their own: they count as overhead.
        self.overhead_bytes += usize::from(self.chunk_bytes == 0);
        if self.overhead_bytes > 4096 {
            return Err(Refusal::Chunk("endless chunk size"));
        }
        Ok(State::Size)
    }

    fn size_known(&mut self, limits: &Limits) -> Result<State, Refusal> {
        if self.chunk_bytes == 0 {
            return Ok(State::TrailerStart);
        }
        self.body_bytes = self.body_bytes.saturating_add(self.chunk_bytes);
        if self.body_bytes > limits.body_bytes { Err(Refusal::BodyTooLarge) } else { Ok(State::Data) }
    }

    fn overhead(&mut self, next: State, limits: &Limits) -> Result<State, Refusal> {
        self.overhead_bytes += 1;
        if self.overhead_bytes > limits.chunk_overhead_bytes {
            return Err(Refusal::Chunk("chunk extensions too long"));
        }
        Ok(next)
    }

    fn trailer(&mut self, next: State, limits: &Limits) -> Result<State, Refusal> {
        self.overhead_bytes += 1;
        if self.overhead_bytes > limits.chunk_overhead_bytes { Err(Refusal::HeadTooLarge) } else { Ok(next) }
    }
}

/// The next state within extensions: `*( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )` (RFC 9112, 7.1.1). `None` where the byte
/// does not fit.
fn extension(state: State, byte: u8) -> Option<State> {
    Some(match (state, byte) {
        (State::NameStart | State::ValueStart, b' ' | b'\t') => state,
        (State::NameStart | State::Name, b) if is_token(b) => State::Name,
        (State::Name | State::NameSpace, b' ' | b'\t') => State::NameSpace,
        (State::Name | State::NameSpace, b'=') => State::ValueStart,
        (State::Name | State::NameSpace | State::Value | State::QuotedEnd, b';') => State::NameStart,
        (State::ValueStart, b'"') => State::Quoted,
        (State::ValueStart | State::Value, b) if is_token(b) => State::Value,
        (State::Value | State::QuotedEnd, b' ' | b'\t') => State::SizeSpace,
        (State::Quoted, b'"') => State::QuotedEnd,
        (State::Quoted, b'\\') => State::QuotedPair,
        (State::Quoted | State::QuotedPair, b) if is_text(b) => State::Quoted,
        _ => return None,
    })
}

/// Field content: visible bytes, space, tab and the bytes above ASCII (RFC 9110, 5.5).
fn is_text(b: u8) -> bool {
    matches!(b, b'\t' | b' '..=b'~' | 0x80..)
}

/// A byte of a token (RFC 9110, 5.6.2).
fn is_token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)
}
