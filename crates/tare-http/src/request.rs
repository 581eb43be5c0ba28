//! Reading the head of a request: the server's side.

use std::mem::MaybeUninit;

use httparse::Header;

pub use crate::framing::{Framing, Version};
use crate::framing::{Seen, list, trim};
use crate::limits::{FIELDS_MAX, Limits};
pub use crate::method::Method;
use crate::refusal::Refusal;
use crate::target::Target;

/// The head of a request, borrowed from the bytes it was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head<'b> {
    /// What is asked.
    pub method: Method,
    /// The target that it is asked of.
    pub target: Target<'b>,
    /// The version spoken.
    pub version: Version,
    /// How the body ends.
    pub framing: Framing,
    /// Whether the connection stays open after the answer.
    pub persistent: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expect_continue: bool,
    /// Bytes from the start of the input to the end of the head, leading empty lines included.
    pub len: usize,
    /// The field lines and the empty line, known to be of the grammar.
    pub(crate) lines: &'b [u8],
}

impl<'b> Head<'b> {
    /// Name and value of the header fields in the order sent.
    pub fn fields(&self) -> impl Iterator<Item = (&'b [u8], &'b [u8])> + use<'b> {
        let lines = self.lines.split(|b| *b == b'\n');
        lines.filter_map(|line| {
            let colon = line.iter().position(|b| *b == b':')?;
            let value = line[colon + 1..].strip_suffix(b"\r").unwrap_or(&line[colon + 1..]);
            Some((&line[..colon], trim(value)))
        })
    }

    /// The value of the first field of that name, in any case.
    pub fn field(&self, name: &str) -> Option<&'b [u8]> {
        self.fields().find(|(n, _)| n.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    /// The elements of every field of that name, read as one comma-separated list (RFC 9110, 5.3).
    pub fn list<'n>(&self, name: &'n str) -> impl Iterator<Item = &'b [u8]> + use<'b, 'n> {
        let fields = self.fields().filter(move |(n, _)| n.eq_ignore_ascii_case(name.as_bytes()));
        fields.flat_map(|(_, value)| list(value))
    }
}

/// Reads one head from the start of `bytes`. `Ok(None)`: it is not all there yet.
///
/// What is there is checked before the rest comes, so a request that can never become good is refused at once.
/// Everything after the head belongs to the body or to the next request.
#[inline]
pub fn parse_head<'b>(bytes: &'b [u8], limits: &Limits) -> Result<Option<Head<'b>>, Refusal> {
    // Not initialised, so that it costs nothing for each request.
    let mut slots = [const { MaybeUninit::<Header<'b>>::uninit() }; FIELDS_MAX];
    let mut raw = httparse::Request::new(&mut []);
    let fields_max = limits.fields.min(FIELDS_MAX);
    match raw.parse_with_uninit_headers(bytes, &mut slots[..fields_max]) {
        Ok(httparse::Status::Complete(len)) => finish(bytes, raw, len, limits).map(Some),
        Ok(httparse::Status::Partial) => check_partial(bytes, limits).map(|()| None),
        // A malformed version and an unknown one can be distinguished only when the whole line is there.
        Err(httparse::Error::Version) if !has_first_line(bytes) => {
            check_partial(bytes, limits).map(|()| None)
        }
        Err(error) => Err(refusal_of(error, bytes)),
    }
}

#[inline]
fn finish<'b>(
    bytes: &'b [u8],
    raw: httparse::Request<'_, 'b>,
    len: usize,
    limits: &Limits,
) -> Result<Head<'b>, Refusal> {
    let (Some(method), Some(target), Some(version)) = (raw.method, raw.path, raw.version) else {
        return Err(Refusal::Malformed("request line"));
    };
    let head = &bytes[..len];
    let lines_at = raw.headers.first().map_or(len.saturating_sub(2), |first| offset(head, first.name));
    if !lines_end_with_cr_lf(head, method, raw.headers, lines_at) {
        return Err(Refusal::BareLineFeed);
    }
    if target.len() > limits.target_bytes {
        return Err(Refusal::TargetTooLong);
    }
    if len > limits.head_bytes {
        return Err(Refusal::HeadTooLarge);
    }
    let version = if version == 0 { Version::Http10 } else { Version::Http11 };
    let method = Method::from_token(method).ok_or(Refusal::Method)?;
    let target = Target::parse(target, method)?;
    let seen = Seen::gather(raw.headers)?;
    seen.check_host(version)?;
    Ok(Head {
        method,
        target,
        version,
        framing: seen.framing(version)?,
        persistent: seen.persistent(version),
        // RFC 9110, 10.1.1: the expectation of an HTTP/1.0 client is ignored.
        expect_continue: seen.expect_continue && version == Version::Http11,
        len,
        lines: &head[lines_at..],
    })
}

/// Where a part of `bytes` begins in it.
#[inline]
fn offset(bytes: &[u8], part: &str) -> usize {
    (part.as_ptr() as usize).wrapping_sub(bytes.as_ptr() as usize).min(bytes.len())
}

/// The parser takes LF alone as the end of a line, and only there: so it is enough to look before each line.
#[inline]
fn lines_end_with_cr_lf(head: &[u8], method: &str, fields: &[Header<'_>], lines_at: usize) -> bool {
    let ends = |at: usize| at >= 2 && head[at - 2] == b'\r' && head[at - 1] == b'\n';
    let start = offset(head, method);
    ends(lines_at)
        && ends(head.len())
        && fields.iter().skip(1).all(|field| ends(offset(head, field.name)))
        && (fields.is_empty() || head.ends_with(b"\r\n\r\n"))
        && (start == 0 || !has_bare_line_feed(&head[..start]))
}

/// Whether an LF stands without its CR.
fn has_bare_line_feed(head: &[u8]) -> bool {
    let first = head.first() == Some(&b'\n');
    let pairs = head.iter().zip(head.get(1..).unwrap_or_default());
    pairs.fold(first, |bare, (before, b)| bare | ((*b == b'\n') & (*before != b'\r')))
}

#[cold]
fn check_partial(bytes: &[u8], limits: &Limits) -> Result<(), Refusal> {
    if has_bare_line_feed(bytes) {
        return Err(Refusal::BareLineFeed);
    }
    if bytes.len() <= limits.head_bytes.min(limits.target_bytes) {
        return Ok(());
    }
    let start = bytes.iter().position(|b| !matches!(b, b'\r' | b'\n')).unwrap_or(bytes.len());
    let line = bytes[start..].iter().position(|b| *b == b'\n').unwrap_or(bytes.len() - start);
    // Room for a long method, two spaces and the version beside the target.
    if line > limits.target_bytes + 64 {
        return Err(Refusal::TargetTooLong);
    }
    if bytes.len() > limits.head_bytes { Err(Refusal::HeadTooLarge) } else { Ok(()) }
}

#[cold]
fn refusal_of(error: httparse::Error, bytes: &[u8]) -> Refusal {
    match error {
        httparse::Error::TooManyHeaders => Refusal::HeadTooLarge,
        httparse::Error::HeaderName => Refusal::Malformed("field name"),
        httparse::Error::HeaderValue => Refusal::Malformed("field value"),
        httparse::Error::NewLine => Refusal::Malformed("line end"),
        httparse::Error::Version if is_other_version(bytes) => Refusal::Version,
        _ => Refusal::Malformed("request line"),
    }
}

/// Whether the request line ends in a well-formed version, though not one that we speak.
fn is_other_version(bytes: &[u8]) -> bool {
    version_digits(bytes).is_some()
}

/// Where the minor version's digit stands, if the request line says `HTTP/1.d` with d ≥ 2: such a request is to
/// be read as HTTP/1.1 (RFC 9110, 2.5), which the caller does by putting a `1` there and parsing again.
pub fn higher_minor_version_at(bytes: &[u8]) -> Option<usize> {
    let at = version_digits(bytes)?;
    (bytes[at] == b'1' && matches!(bytes[at + 2], b'2'..=b'9')).then_some(at + 2)
}

fn has_first_line(bytes: &[u8]) -> bool {
    let start = bytes.iter().position(|b| !matches!(b, b'\r' | b'\n')).unwrap_or(bytes.len());
    bytes[start..].contains(&b'\n')
}

/// Position of the major digit in `HTTP/d.d` at the end of the first line.
fn version_digits(bytes: &[u8]) -> Option<usize> {
    let start = bytes.iter().position(|b| !matches!(b, b'\r' | b'\n'))?;
    let line = bytes[start..].split(|b| matches!(b, b'\r' | b'\n')).next()?;
    let word = line.len().checked_sub(9)?;
    if line.iter().filter(|b| **b == b' ').count() != 2 {
        return None;
    }
    match &line[word..] {
        [b' ', b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            Some(start + word + 6)
        }
        _ => None,
    }
}
