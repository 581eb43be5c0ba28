//! Writing the head of an answer into a byte buffer, which grows only until it is warm.

use crate::date::{DATE_BYTES, write_date};
use crate::status::Status;

const OK_LINE: &[u8; 17] = b"HTTP/1.1 200 OK\r\n";
const DATE_FIELD: &[u8; 6] = b"Date: ";
const STAMP_BYTES: usize = OK_LINE.len() + DATE_FIELD.len() + DATE_BYTES + 2;

/// The start of every answer within one second: status line and Date, formatted once.
#[derive(Debug, Clone, Copy)]
pub struct Stamp {
    ok: [u8; STAMP_BYTES],
    unix_s: u64,
}

impl Stamp {
    /// The stamp of a second, counted from 1970-01-01 UTC.
    pub fn new(unix_s: u64) -> Stamp {
        let mut ok = [0; STAMP_BYTES];
        let (line, date) = ok.split_at_mut(OK_LINE.len());
        line.copy_from_slice(OK_LINE);
        date[..6].copy_from_slice(DATE_FIELD);
        date[6..6 + DATE_BYTES].copy_from_slice(&write_date(unix_s));
        date[6 + DATE_BYTES..].copy_from_slice(b"\r\n");
        Stamp { ok, unix_s }
    }

    /// The second that this is the stamp of.
    pub fn unix_s(&self) -> u64 {
        self.unix_s
    }
}

/// Status line and Date (RFC 9110, 6.6.1: an origin server with a clock sends it).
#[inline]
pub fn start(out: &mut Vec<u8>, stamp: &Stamp, status: Status) {
    if status == Status::OK {
        out.extend_from_slice(&stamp.ok);
    } else {
        out.extend_from_slice(b"HTTP/1.1 ");
        number(out, u64::from(status.code()));
        out.push(b' ');
        out.extend_from_slice(status.reason().as_bytes());
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&stamp.ok[OK_LINE.len()..]);
    }
}

/// A field line. Bytes that cannot stand in a value (CR, LF, NUL and other controls) become spaces, so that no
/// value can end the field and begin another.
pub fn field(out: &mut Vec<u8>, name: &'static str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend(value.iter().map(|b| if matches!(b, b'\t' | b' '..=b'~' | 0x80..) { *b } else { b' ' }));
    out.extend_from_slice(b"\r\n");
}

/// A field line of which both parts stand in the program's text.
#[inline]
pub fn static_field(out: &mut Vec<u8>, name: &'static str, value: &'static str) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The Content-Length field.
#[inline]
pub fn content_length(out: &mut Vec<u8>, bytes: u64) {
    out.extend_from_slice(b"Content-Length: ");
    number(out, bytes);
    out.extend_from_slice(b"\r\n");
}

/// A decimal number.
#[inline]
pub fn number(out: &mut Vec<u8>, value: u64) {
    // Lengths of small bodies.
    if value < 10 {
        return out.push(b'0' + value as u8);
    }
    if value < 100 {
        return out.extend_from_slice(&[b'0' + (value / 10) as u8, b'0' + (value % 10) as u8]);
    }
    long_number(out, value);
}

fn long_number(out: &mut Vec<u8>, value: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}
