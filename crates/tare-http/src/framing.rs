//! Which fields decide how long a body is and whether the connection stays (RFC 9112, 6 and 9.3).

use httparse::Header;

use crate::refusal::Refusal;
use crate::target::is_host;

/// The version that a request speaks. A higher minor version counts as 1.1 (RFC 9110, 2.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
}

/// How the end of a body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// So many bytes, at least one.
    Length(u64),
    /// Chunks up to the empty one ([`crate::chunked`]).
    Chunked,
}

/// What the fields of one request said about its framing, gathered in one pass over them.
#[derive(Default)]
pub(crate) struct Seen {
    hosts: u32,
    length: Option<u64>,
    codings: Option<Codings>,
    close: bool,
    keep_alive: bool,
    pub(crate) expect_continue: bool,
}

/// State of the list of transfer codings, which may be spread over several fields.
#[derive(Default, Clone, Copy)]
struct Codings {
    chunked_last: bool,
    other: bool,
    after_chunked: bool,
}

impl Seen {
    #[inline]
    pub(crate) fn gather(fields: &[Header<'_>]) -> Result<Seen, Refusal> {
        let mut seen = Seen::default();
        for field in fields {
            let name = field.name.as_bytes();
            // The length distinguishes most names before a byte of them is read.
            match name.len() {
                4 if name.eq_ignore_ascii_case(b"host") => seen.host(field.value)?,
                6 if name.eq_ignore_ascii_case(b"expect") => seen.expect(field.value)?,
                10 if name.eq_ignore_ascii_case(b"connection") => seen.connection(field.value),
                14 if name.eq_ignore_ascii_case(b"content-length") => seen.content_length(field.value)?,
                17 if name.eq_ignore_ascii_case(b"transfer-encoding") => seen.transfer_encoding(field.value),
                _ => {}
            }
        }
        Ok(seen)
    }

    #[inline]
    fn host(&mut self, value: &[u8]) -> Result<(), Refusal> {
        self.hosts += 1;
        if self.hosts > 1 {
            return Err(Refusal::Host("given twice"));
        }
        if is_host(value) { Ok(()) } else { Err(Refusal::Host("not a host and port")) }
    }

    #[cold]
    fn expect(&mut self, value: &[u8]) -> Result<(), Refusal> {
        for expectation in list(value) {
            if !expectation.eq_ignore_ascii_case(b"100-continue") {
                return Err(Refusal::Expectation);
            }
            self.expect_continue = true;
        }
        Ok(())
    }

    fn connection(&mut self, value: &[u8]) {
        for option in list(value) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    fn content_length(&mut self, value: &[u8]) -> Result<(), Refusal> {
        // 20 digits hold every u64; a list of equal values may be refused (RFC 9110, 8.6), and is.
        let digits = !value.is_empty() && value.len() <= 20 && value.iter().all(u8::is_ascii_digit);
        if !digits || self.length.is_some() {
            return Err(Refusal::ContentLength);
        }
        let number = value.iter().try_fold(0u64, |n, d| n.checked_mul(10)?.checked_add(u64::from(d - b'0')));
        self.length = Some(number.ok_or(Refusal::ContentLength)?);
        Ok(())
    }

    #[cold]
    fn transfer_encoding(&mut self, value: &[u8]) {
        let codings = self.codings.get_or_insert_default();
        for coding in list(value) {
            codings.after_chunked |= codings.chunked_last;
            codings.chunked_last = coding.eq_ignore_ascii_case(b"chunked");
            codings.other |= !codings.chunked_last;
        }
    }

    /// The body's framing, the first rule of RFC 9112, 6.3 that fits.
    #[inline]
    pub(crate) fn framing(&self, version: Version) -> Result<Framing, Refusal> {
        match (self.codings, self.length) {
            (None, None | Some(0)) => Ok(Framing::None),
            (None, Some(bytes)) => Ok(Framing::Length(bytes)),
            (Some(_), Some(_)) => Err(Refusal::AmbiguousLength),
            (Some(codings), None) => {
                if version == Version::Http10 || !codings.chunked_last || codings.after_chunked {
                    Err(Refusal::TransferEncoding)
                } else if codings.other {
                    Err(Refusal::TransferCoding)
                } else {
                    Ok(Framing::Chunked)
                }
            }
        }
    }

    #[inline]
    pub(crate) fn check_host(&self, version: Version) -> Result<(), Refusal> {
        if self.hosts == 0 && version == Version::Http11 { Err(Refusal::Host("missing")) } else { Ok(()) }
    }

    /// Whether the connection stays open after the answer (RFC 9112, 9.3).
    #[inline]
    pub(crate) fn persistent(&self, version: Version) -> bool {
        !self.close && (version == Version::Http11 || self.keep_alive)
    }
}

/// The elements of a comma-separated list, without the empty ones (RFC 9110, 5.6.1).
pub(crate) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|b| *b == b',').map(trim).filter(|element| !element.is_empty())
}

/// Without optional white space at the ends (RFC 9110, 5.6.3).
pub(crate) fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}
