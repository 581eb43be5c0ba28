//! Reading a chunked body piece by piece (RFC 9112, 7.1): one grammar for requests and answers.

use crate::limits::Limits;
use crate::refusal::Refusal;

/// A decoder of one chunked body. Chunk extensions and trailer fields are checked and dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoder {
    state: State,
    /// Size of the chunk being read, then what is left of it, in bytes.
    chunk_bytes: u64,
    /// Decoded bytes so far.
    body_bytes: u64,
    /// Leading zeroes of the size being read.
    zeroes: usize,
    /// Bytes of extensions and trailers so far.
    overhead_bytes: usize,
}

/// Leading zeroes that a size is padded with: what is above only costs time.
const ZEROES_MAX: usize = 64;

/// How much of a chunked body is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Longest body, decoded.
    pub body_bytes: u64,
    /// Most bytes of extensions and of trailer fields.
    pub overhead_bytes: usize,
    /// Whether extensions of each chunk, and the trailer, are bounded for themselves: a body without a bound has any number of chunks.
    pub each_chunk: bool,
    /// Whether white space may stand behind a size or an extension's value, against the grammar: old servers pad sizes, and clients take it.
    pub padding: bool,
}

impl From<&Limits> for Bounds {
    /// Those of a request's body.
    fn from(limits: &Limits) -> Bounds {
        let Limits { body_bytes, chunk_overhead_bytes: overhead_bytes, .. } = *limits;
        Bounds { body_bytes, overhead_bytes, each_chunk: false, padding: false }
    }
}

/// What is wrong with a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It breaks this rule of the grammar.
    Grammar(&'static str),
    /// A size, or extensions, are longer than the bound.
    LineTooLong,
    /// The trailer is longer than the bound.
    TrailerTooLong,
    /// The body is longer than the bound.
    BodyTooLarge,
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        match fault {
            Fault::Grammar(rule) => Refusal::Chunk(rule),
            Fault::LineTooLong => Refusal::Chunk("chunk size or extensions are too long"),
            Fault::TrailerTooLong => Refusal::HeadTooLarge,
            Fault::BodyTooLarge => Refusal::BodyTooLarge,
        }
    }
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

/// What a call of [`Decoder::read`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the input that belong to this body and are done with.
    pub consumed: usize,
    /// Whether the body is complete.
    pub done: bool,
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder { state: State::SizeStart, chunk_bytes: 0, body_bytes: 0, zeroes: 0, overhead_bytes: 0 }
    }
}

impl Decoder {
    /// Decodes from `input` up to the body's end or the input's, and gives the data to `data` in pieces.
    ///
    /// # Errors
    /// [`Fault`]; nothing that follows can be read.
    pub fn read(
        &mut self,
        input: &[u8],
        bounds: &Bounds,
        mut data: impl FnMut(&[u8]),
    ) -> Result<Progress, Fault> {
        let mut at = 0;
        while at < input.len() && self.state != State::Done {
            if self.state == State::Data {
                let here = (input.len() - at).min(usize::try_from(self.chunk_bytes).unwrap_or(usize::MAX));
                data(&input[at..at + here]);
                self.chunk_bytes -= here as u64;
                at += here;
                if self.chunk_bytes == 0 {
                    self.state = State::DataCr;
                }
            } else {
                self.state = self.step(input[at], bounds)?;
                at += 1;
            }
        }
        Ok(Progress { consumed: at, done: self.state == State::Done })
    }

    fn step(&mut self, byte: u8, bounds: &Bounds) -> Result<State, Fault> {
        Ok(match (self.state, byte) {
            (State::SizeStart | State::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                self.digit(byte, bounds)?
            }
            (State::Size | State::Name | State::Value | State::QuotedEnd, b'\r') => State::SizeLf,
            (State::SizeSpace, b'\r') if bounds.padding => State::SizeLf,
            (State::Size | State::SizeSpace, b' ' | b'\t') => self.overhead(State::SizeSpace, bounds)?,
            (State::Size | State::SizeSpace, b';') => self.overhead(State::NameStart, bounds)?,
            (State::SizeLf, b'\n') => self.size_known(bounds)?,
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::SizeStart,
            (State::TrailerStart, b'\r') => State::EndLf,
            (State::TrailerStart | State::TrailerName, b) if is_token(b) => {
                self.trailer(State::TrailerName, bounds)?
            }
            (State::TrailerName, b':') => self.trailer(State::TrailerValue, bounds)?,
            (State::TrailerValue, b'\r') => State::TrailerLf,
            (State::TrailerValue, b) if is_text(b) => self.trailer(State::TrailerValue, bounds)?,
            (State::TrailerLf, b'\n') => State::TrailerStart,
            (State::EndLf, b'\n') => State::Done,
            (State::Data | State::Done, _) => self.state,
            (state, byte) => match extension(state, byte) {
                Some(next) => self.overhead(next, bounds)?,
                None => return Err(Fault::Grammar(broken_rule(state, byte))),
            },
        })
    }

    fn digit(&mut self, byte: u8, bounds: &Bounds) -> Result<State, Fault> {
        let value = char::from(byte).to_digit(16).unwrap_or(0);
        if self.chunk_bytes >> 60 != 0 {
            return Err(Fault::Grammar("chunk size is too large"));
        }
        self.chunk_bytes = self.chunk_bytes << 4 | u64::from(value);
        // Other digits end by themselves, with the largest number.
        self.zeroes += usize::from(self.chunk_bytes == 0);
        if self.zeroes > ZEROES_MAX.min(bounds.overhead_bytes) {
            Err(Fault::LineTooLong)
        } else {
            Ok(State::Size)
        }
    }

    fn size_known(&mut self, bounds: &Bounds) -> Result<State, Fault> {
        self.zeroes = 0;
        if bounds.each_chunk {
            self.overhead_bytes = 0;
        }
        if self.chunk_bytes == 0 {
            return Ok(State::TrailerStart);
        }
        self.body_bytes = self.body_bytes.checked_add(self.chunk_bytes).ok_or(Fault::BodyTooLarge)?;
        if self.body_bytes > bounds.body_bytes { Err(Fault::BodyTooLarge) } else { Ok(State::Data) }
    }

    fn overhead(&mut self, next: State, bounds: &Bounds) -> Result<State, Fault> {
        self.overhead_bytes += 1;
        if self.overhead_bytes > bounds.overhead_bytes { Err(Fault::LineTooLong) } else { Ok(next) }
    }

    fn trailer(&mut self, next: State, bounds: &Bounds) -> Result<State, Fault> {
        self.overhead_bytes += 1;
        if self.overhead_bytes > bounds.overhead_bytes { Err(Fault::TrailerTooLong) } else { Ok(next) }
    }
}

/// In words, which rule the byte breaks that does not fit there.
#[cold]
fn broken_rule(state: State, byte: u8) -> &'static str {
    match state {
        State::SizeStart => "chunk size is not a number",
        State::SizeLf | State::TrailerLf | State::EndLf => "CR without LF",
        State::DataCr if byte == b'\n' => "LF without CR",
        // Of a chunk that is shorter than its size, the next line is taken for its data.
        State::DataCr | State::DataLf => "chunk does not end where its size says",
        _ if byte == b'\n' => "LF without CR",
        State::Size => "chunk size is not a number",
        State::SizeSpace => "white space after a chunk size or extension",
        State::TrailerStart | State::TrailerName | State::TrailerValue => "trailer field breaks the grammar",
        _ => "chunk extension breaks the grammar",
    }
}

/// The next state within extensions: `*( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )` (RFC 9112, 7.1.1). `None` where the byte
/// does not fit, and for what is no part of an extension.
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
