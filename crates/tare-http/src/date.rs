//! HTTP dates (RFC 9110, 5.6.7): written as IMF-fixdate, read in all three forms. Neither allocates.

use std::io::Write;
use std::time::{Duration, UNIX_EPOCH};

use httpdate::HttpDate;

/// The length of an IMF-fixdate, in bytes.
pub const DATE_BYTES: usize = 29;

/// The last second of the year 9999.
const LAST_UNIX_S: u64 = 253_402_300_799;

/// `Sun, 06 Nov 1994 08:49:37 GMT` for a number of seconds since 1970-01-01 UTC, up to the year 9999.
pub fn write_date(unix_s: u64) -> [u8; DATE_BYTES] {
    let mut out = [b' '; DATE_BYTES];
    let date = HttpDate::from(UNIX_EPOCH + Duration::from_secs(unix_s.min(LAST_UNIX_S)));
    // A date of four digits a year has exactly this length.
    let _ = write!(&mut out[..], "{date}");
    out
}

/// Seconds since 1970-01-01 UTC of an IMF-fixdate, an RFC 850 date or an asctime date; `None` for anything
/// else and for times before 1970. Two digits of a year are one of 1970 to 2069.
pub fn parse_date(text: &[u8]) -> Option<u64> {
    let time = httpdate::parse_http_date(std::str::from_utf8(text).ok()?).ok()?;
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs())
}
