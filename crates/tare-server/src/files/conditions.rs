//! Preconditions and ranges (RFC 9110, 13.2.2 and 14.2).

use std::ops::Range;

use tare_http::date::parse_date;
use tare_http::request::Method;

use crate::handler::Request;

/// What tells one state of a file from another.
pub(super) struct Validators {
    /// A strong entity tag in nginx's form, from time and size, so that a move from or to it empties no cache.
    pub(super) etag: String,
    pub(super) modified_unix_s: u64,
    bytes: u64,
}

/// What of a file is to be sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Selected {
    /// All of it.
    Whole,
    /// These bytes, at least one.
    Part(Range<u64>),
    /// Nothing: the client has it.
    NotModified,
    /// Nothing: a condition does not hold.
    Failed,
    /// Nothing: no byte of it was asked for.
    Unsatisfiable,
}

impl Validators {
    pub(super) fn new(mtime_unix_s: i64, bytes: u64) -> Validators {
        Validators {
            etag: format!("\"{mtime_unix_s:x}-{bytes:x}\""),
            modified_unix_s: u64::try_from(mtime_unix_s).unwrap_or(0),
            bytes,
        }
    }

    /// Whether a list of entity tags holds ours. Weak comparison takes `W/` for the same (RFC 9110, 8.8.3.2).
    fn is_in(&self, mut tags: impl Iterator<Item = impl AsRef<[u8]>>, weak: bool) -> bool {
        tags.any(|tag| {
            let tag = tag.as_ref();
            let tag = if weak { tag.strip_prefix(b"W/").unwrap_or(tag) } else { tag };
            tag == b"*" || tag == self.etag.as_bytes()
        })
    }
}

/// Goes through the preconditions in the order of RFC 9110, 13.2.2.
pub(super) fn select(request: &Request<'_>, own: &Validators, now_unix_s: u64) -> Selected {
    let head = request.head();
    let date = |name| head.field(name).and_then(|value| parse_date(value, now_unix_s));
    if head.field("if-match").is_some() {
        if !own.is_in(head.list("if-match"), false) {
            return Selected::Failed;
        }
    } else if date("if-unmodified-since").is_some_and(|since| own.modified_unix_s > since) {
        return Selected::Failed;
    }
    if head.field("if-none-match").is_some() {
        if own.is_in(head.list("if-none-match"), true) {
            return Selected::NotModified;
        }
    } else if date("if-modified-since").is_some_and(|since| own.modified_unix_s <= since) {
        return Selected::NotModified;
    }
    let Some(range) = head.field("range") else { return Selected::Whole };
    let current = match head.field("if-range") {
        None => true,
        Some(tag) if tag.starts_with(b"\"") => tag == own.etag.as_bytes(),
        Some(value) => parse_date(value, now_unix_s) == Some(own.modified_unix_s),
    };
    // RFC 9110, 14.2: Range is defined for GET alone.
    if request.method() != Method::Get || !current {
        return Selected::Whole;
    }
    part(range, own.bytes)
}

/// The one range of bytes that is asked for. Several at once, another unit or a malformed set are ignored, as
/// RFC 9110, 14.2 allows: the whole is a right answer to each.
fn part(value: &[u8], bytes: u64) -> Selected {
    let spec = std::str::from_utf8(value).ok().and_then(|v| v.strip_prefix("bytes="));
    let Some((first, last)) = spec.and_then(|s| s.split_once('-')) else { return Selected::Whole };
    let number = |text: &str| match text.bytes().all(|b| b.is_ascii_digit()) {
        true => text.parse::<u64>().ok(),
        false => None,
    };
    match (first, last) {
        ("", last) => match number(last) {
            None => Selected::Whole,
            Some(0) => Selected::Unsatisfiable,
            Some(_) if bytes == 0 => Selected::Unsatisfiable,
            Some(suffix) => Selected::Part(bytes.saturating_sub(suffix)..bytes),
        },
        (first, last) => {
            let last = if last.is_empty() { Some(u64::MAX) } else { number(last) };
            match (number(first), last) {
                (Some(first), Some(last)) if first > last => Selected::Whole,
                (Some(first), Some(_)) if first >= bytes => Selected::Unsatisfiable,
                (Some(first), Some(last)) => Selected::Part(first..last.saturating_add(1).min(bytes)),
                _ => Selected::Whole,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_to_the_file_or_ignored() {
        let cases = [
            ("bytes=0-0", Selected::Part(0..1)),
            ("bytes=2-4", Selected::Part(2..5)),
            ("bytes=2-", Selected::Part(2..10)),
            ("bytes=2-100", Selected::Part(2..10)),
            ("bytes=-3", Selected::Part(7..10)),
            ("bytes=-100", Selected::Part(0..10)),
            ("bytes=10-", Selected::Unsatisfiable),
            ("bytes=-0", Selected::Unsatisfiable),
            ("bytes=5-4", Selected::Whole),
            ("bytes=0-1,3-4", Selected::Whole),
            ("bytes=a-b", Selected::Whole),
            ("bytes=+1-2", Selected::Whole),
            ("lines=1-2", Selected::Whole),
            ("bytes=-", Selected::Whole),
            ("bytes=0-18446744073709551615", Selected::Part(0..10)),
        ];
        for (value, wanted) in cases {
            assert_eq!(part(value.as_bytes(), 10), wanted, "{value}");
        }
        assert_eq!(part(b"bytes=0-", 0), Selected::Unsatisfiable);
    }
}
