//! Preconditions and ranges (RFC 9110, 13.2.2 and 14.2).

use std::ops::Range;

use tare_http::date::parse_date;
use tare_http::request::{Head, Method};
use tare_sys::file::Facts;

use crate::handler::Request;

/// What identifies one state of a file.
pub(super) struct Validators {
    /// A strong entity tag, from time, size and coding. Where the time is of whole seconds and there is no coding it has nginx's form; two
    /// states of a file within one second have two tags, and so have two forms of it.
    pub(super) etag: String,
    pub(super) modified_unix_s: u64,
    bytes: u64,
}

/// What of a file is to be sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Selected {
    /// All of it.
    Whole,
    /// These ranges, at least one, each of at least one byte, in the order asked for.
    Parts(Vec<Range<u64>>),
    /// Nothing: the client has it.
    NotModified,
    /// Nothing: a condition does not hold.
    Failed,
    /// Nothing: no byte of it was asked for.
    Unsatisfiable,
}

impl Validators {
    pub(super) fn new(facts: &Facts, coding: Option<&'static str>, now_unix_s: u64) -> Validators {
        let Facts { bytes, modified_unix_s, modified_ns, .. } = *facts;
        let within = if modified_ns > 0 { format!(".{modified_ns:x}") } else { String::new() };
        let form = coding.map_or_else(String::new, |coding| format!("-{coding}"));
        Validators {
            etag: format!("\"{modified_unix_s:x}{within}-{bytes:x}{form}\""),
            // RFC 9110, 8.8.2.1: never later than the answer's Date.
            modified_unix_s: u64::try_from(modified_unix_s).unwrap_or(0).min(now_unix_s),
            bytes,
        }
    }

    /// Whether the field of that name is `*`, or a list of entity tags with ours. Weak comparison takes `W/` for the same (RFC 9110,
    /// 8.8.3.2).
    fn is_in(&self, head: &Head<'_>, name: &str, weak: bool) -> bool {
        head.field(name) == Some(b"*")
            || head.list(name).any(|tag| {
                let tag = if weak { tag.strip_prefix(b"W/").unwrap_or(tag) } else { tag };
                tag == self.etag.as_bytes()
            })
    }
}

/// Goes through the preconditions in the order of RFC 9110, 13.2.2.
pub(super) fn select(request: &Request<'_>, own: &Validators) -> Selected {
    let head = request.head();
    let date = |name| head.field(name).and_then(parse_date);
    if head.field("if-match").is_some() {
        if !own.is_in(head, "if-match", false) {
            return Selected::Failed;
        }
    } else if date("if-unmodified-since").is_some_and(|since| own.modified_unix_s > since) {
        return Selected::Failed;
    }
    if head.field("if-none-match").is_some() {
        if own.is_in(head, "if-none-match", true) {
            return Selected::NotModified;
        }
    } else if date("if-modified-since").is_some_and(|since| own.modified_unix_s <= since) {
        return Selected::NotModified;
    }
    let Some(range) = head.field("range") else { return Selected::Whole };
    let current = match head.field("if-range") {
        None => true,
        Some(tag) if tag.starts_with(b"\"") => tag == own.etag.as_bytes(),
        Some(value) => parse_date(value) == Some(own.modified_unix_s),
    };
    // RFC 9110, 14.2: Range is defined for GET alone.
    if request.method() != Method::Get || !current {
        return Selected::Whole;
    }
    parts(range, own.bytes)
}

/// Most ranges of one answer: each costs a head of some hundred bytes, whatever its own size.
const RANGES_MAX: usize = 64;

/// The ranges of bytes that are asked for. Where RFC 9110, 14.2 leaves a choice it is nginx's: a malformed set is
/// refused, more bytes than the whole or more than [`RANGES_MAX`] ranges get the whole.
fn parts(value: &[u8], bytes: u64) -> Selected {
    let Some((unit, set)) = value.split_at_checked(6) else { return Selected::Whole };
    if !unit.eq_ignore_ascii_case(b"bytes=") || set.is_empty() {
        return Selected::Whole;
    }
    let (mut ranges, mut sum) = (Vec::new(), 0u64);
    // Empty elements of a list count for nothing (RFC 9110, 5.6.1.2).
    let elements = set.split(|b| *b == b',').map(trim).filter(|element| !element.is_empty());
    for spec in elements {
        let Some((start, end)) = range(spec, bytes) else { return Selected::Unsatisfiable };
        if start < end {
            if ranges.len() == RANGES_MAX {
                return Selected::Whole;
            }
            sum = sum.saturating_add(end - start);
            ranges.push(start..end);
        } else if start == 0 {
            return Selected::Whole;
        }
    }
    match ranges.is_empty() {
        true => Selected::Unsatisfiable,
        false if sum > bytes => Selected::Whole,
        false => Selected::Parts(ranges),
    }
}

/// Start and end of one range, cut to the file; the end is not above the start where no byte is in it. `None` for
/// what is no range.
fn range(spec: &[u8], bytes: u64) -> Option<(u64, u64)> {
    let text = std::str::from_utf8(spec).ok()?;
    let (first, last) = text.split_once('-')?;
    // White space is allowed around a list's elements, and taken around numbers as nginx does.
    let (first, last) = (first.trim_matches([' ', '\t']), last.trim_matches([' ', '\t']));
    // A number that is too large is beyond every file (RFC 9110, 14.1.2), as the largest is.
    let number = |digits: &str| match !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        true => Some(digits.parse::<u64>().unwrap_or(u64::MAX)),
        false => None,
    };
    match (first, last) {
        ("", suffix) => number(suffix).map(|suffix| (bytes.saturating_sub(suffix), bytes)),
        (first, "") => number(first).map(|first| (first, bytes)),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            Some((first, last.saturating_add(1).min(bytes)))
        }
    }
}

/// Without the white space around it (`OWS` of RFC 9110, 5.6.3).
fn trim(element: &[u8]) -> &[u8] {
    let is_space = |b: &u8| matches!(b, b' ' | b'\t');
    let begin = element.iter().position(|b| !is_space(b)).unwrap_or(element.len());
    let end = element.iter().rposition(|b| !is_space(b)).map_or(begin, |last| last + 1);
    &element[begin..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_to_the_file_or_refused() {
        let several = |ranges: &[Range<u64>]| Selected::Parts(ranges.to_vec());
        let one = |range: Range<u64>| Selected::Parts(vec![range]);
        let cases = [
            ("bytes=0-0", one(0..1)),
            ("bytes=2-4", one(2..5)),
            ("Bytes= 2 - 4 ", one(2..5)),
            ("bytes=2-", one(2..10)),
            ("bytes=2-100", one(2..10)),
            ("bytes=-3", one(7..10)),
            ("bytes=-100", one(0..10)),
            ("bytes=0-18446744073709551615", one(0..10)),
            ("bytes=0-1,3-4", several(&[0..2, 3..5])),
            ("bytes=8-, 0-1,-1", several(&[8..10, 0..2, 9..10])),
            ("bytes=100-, 3-4", one(3..5)),
            ("bytes=0-5,5-9", Selected::Whole),
            ("bytes=10-", Selected::Unsatisfiable),
            ("bytes=-0", Selected::Unsatisfiable),
            ("bytes=5-4", Selected::Unsatisfiable),
            ("bytes=a-b", Selected::Unsatisfiable),
            ("bytes=+1-2", Selected::Unsatisfiable),
            ("bytes=-", Selected::Unsatisfiable),
            ("bytes=1-2,", one(1..3)),
            ("bytes=,0-0", one(0..1)),
            ("bytes=0-0, ,\t,2-2", several(&[0..1, 2..3])),
            ("bytes=\t1-2\t", one(1..3)),
            ("bytes=0-99999999999999999999999", one(0..10)),
            ("bytes=-99999999999999999999999", one(0..10)),
            ("bytes=,", Selected::Unsatisfiable),
            ("bytes=1-2-3", Selected::Unsatisfiable),
            ("bytes=99999999999999999999-", Selected::Unsatisfiable),
            ("bytes=", Selected::Whole),
            ("byte", Selected::Whole),
            ("lines=1-2", Selected::Whole),
        ];
        for (value, wanted) in cases {
            assert_eq!(parts(value.as_bytes(), 10), wanted, "{value}");
        }
        assert_eq!(parts(b"bytes=0-", 0), Selected::Whole);
        assert_eq!(parts(b"bytes=1-", 0), Selected::Unsatisfiable);
        let many =
            |n: u64| format!("bytes={}", (0..n).map(|i| format!("{i}-{i}")).collect::<Vec<_>>().join(","));
        assert!(matches!(parts(many(64).as_bytes(), 1000), Selected::Parts(p) if p.len() == 64));
        assert_eq!(parts(many(65).as_bytes(), 1000), Selected::Whole);
    }
}
