//! The request-target: which of its four forms it is, and its parts (RFC 9112, 3.2).

use std::net::Ipv6Addr;

use crate::method::Method;
use crate::refusal::Refusal;

/// The target of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'b> {
    /// The path, as sent: at least `/`, not percent-decoded; `*` for `OPTIONS *`.
    pub path: &'b str,
    /// What follows the first `?`, if there is one.
    pub query: Option<&'b str>,
    /// Host and port of an absolute-form target; it then counts instead of the Host field.
    pub authority: Option<&'b str>,
}

impl<'b> Target<'b> {
    /// Splits a target by the form that its method allows.
    #[inline]
    pub fn parse(raw: &'b str, method: Method) -> Result<Target<'b>, Refusal> {
        if raw.bytes().any(|b| REFUSED[usize::from(b)]) {
            return Err(Refusal::Target("a byte that must be percent-encoded"));
        }
        if raw.starts_with('/') {
            return Ok(Target::origin(raw, None));
        }
        Target::parse_other_form(raw, method)
    }

    #[cold]
    fn parse_other_form(raw: &'b str, method: Method) -> Result<Target<'b>, Refusal> {
        if raw == "*" {
            return match method {
                Method::Options => Ok(Target { path: "*", query: None, authority: None }),
                _ => Err(Refusal::Target("`*` is for OPTIONS alone")),
            };
        }
        let Some((scheme, rest)) = raw.split_once("://") else {
            return Err(Refusal::Target("neither a path nor an absolute URI"));
        };
        if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
            return Err(Refusal::Target("scheme is not http"));
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        if authority.is_empty() || authority.starts_with(':') || !is_host(authority.as_bytes()) {
            return Err(Refusal::Target("no valid host in the absolute URI"));
        }
        // RFC 9112, 3.2.4: an absolute URI without a path in OPTIONS means the server as a whole.
        match (rest, method) {
            ("", Method::Options) => Ok(Target { path: "*", query: None, authority: Some(authority) }),
            ("", _) => Ok(Target { path: "/", query: None, authority: Some(authority) }),
            _ => match rest.strip_prefix('?') {
                Some(query) => Ok(Target { path: "/", query: Some(query), authority: Some(authority) }),
                None => Ok(Target::origin(rest, Some(authority))),
            },
        }
    }

    #[inline]
    fn origin(raw: &'b str, authority: Option<&'b str>) -> Target<'b> {
        match raw.bytes().position(|b| b == b'?') {
            None => Target { path: raw, query: None, authority },
            Some(at) => Target { path: &raw[..at], query: Some(&raw[at + 1..]), authority },
        }
    }

    /// The value of `name` in a query of `name=value` pairs, not percent-decoded; the first one counts.
    pub fn query_value(&self, name: &str) -> Option<&'b str> {
        self.query?.split('&').find_map(|pair| match pair.split_once('=') {
            Some((n, value)) => (n == name).then_some(value),
            None => (pair == name).then_some(""),
        })
    }
}

/// Whether `value` is `uri-host [ ":" port ]` (RFC 9110, 7.2; RFC 3986, 3.2.2). An empty host is one.
#[inline]
pub fn is_host(value: &[u8]) -> bool {
    let rest = match value {
        [b'[', after @ ..] => {
            let Some(end) = after.iter().position(|b| *b == b']') else { return false };
            if !is_ip_literal(&after[..end]) {
                return false;
            }
            &after[end + 1..]
        }
        _ => {
            let end = value.iter().position(|b| !REG_NAME[usize::from(*b)]).unwrap_or(value.len());
            if value.get(end) == Some(&b'%') { behind_encoded(&value[end..]) } else { &value[end..] }
        }
    };
    match rest {
        [] => true,
        [b':', port @ ..] => is_port(port),
        _ => false,
    }
}

/// What follows a registered name, from its first `%` on: each stands before two hexadecimal digits (RFC 3986, 2.1).
#[cold]
fn behind_encoded(mut value: &[u8]) -> &[u8] {
    loop {
        value = match value {
            [b'%', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => rest,
            [b, rest @ ..] if REG_NAME[usize::from(*b)] => rest,
            _ => return value,
        };
    }
}

/// A TCP port, which may be left out after its colon.
#[inline]
fn is_port(digits: &[u8]) -> bool {
    // Of the same length, digits compare as the numbers do.
    let fits = digits.len() < 5 || (digits.len() == 5 && digits <= b"65535".as_slice());
    fits && digits.iter().all(u8::is_ascii_digit)
}

/// What stands between brackets: an IPv6 address, or one of a future version (`v1.x`).
#[cold]
fn is_ip_literal(literal: &[u8]) -> bool {
    if let [b'v' | b'V', future @ ..] = literal {
        let mut parts = future.splitn(2, |b| *b == b'.');
        let (version, address) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let is_address = |b: &u8| REG_NAME[usize::from(*b)] || *b == b':';
        return !version.is_empty()
            && version.iter().all(u8::is_ascii_hexdigit)
            && !address.is_empty()
            && address.iter().all(is_address);
    }
    std::str::from_utf8(literal).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok())
}

/// Bytes of a registered name that stand for themselves: unreserved and sub-delims (RFC 3986, 3.2.2).
static REG_NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0;
    while b < 256 {
        let c = b as u8;
        table[b] = c.is_ascii_alphanumeric()
            || matches!(c, b'-' | b'.' | b'_' | b'~')
            || matches!(c, b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=');
        b += 1;
    }
    table
};

/// Bytes that every client percent-encodes: controls, space, `"#<>`, and all that is not ASCII. `{|}^\` and the
/// backtick are no URI characters either, but browsers do send them in queries.
static REFUSED: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0;
    while b < 256 {
        let c = b as u8;
        table[b] = !c.is_ascii_graphic() || matches!(c, b'"' | b'#' | b'<' | b'>');
        b += 1;
    }
    table
};
