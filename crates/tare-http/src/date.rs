//! HTTP dates (RFC 9110, 5.6.7): written as IMF-fixdate, read in all three forms.

const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The length of an IMF-fixdate, in bytes.
pub const DATE_BYTES: usize = 29;

/// `Sun, 06 Nov 1994 08:49:37 GMT` for a number of seconds since 1970-01-01 UTC, up to the year 9999.
pub fn write_date(unix_s: u64) -> [u8; DATE_BYTES] {
    let unix_s = unix_s.min(253_402_300_799);
    let (days, second) = (unix_s / 86_400, unix_s % 86_400);
    let (year, month, day) = civil_from_days(days as i64);
    let mut out = *b"Sun, 00 Jan 0000 00:00:00 GMT";
    out[..3].copy_from_slice(DAYS[((days + 4) % 7) as usize].as_bytes());
    two_digits(&mut out[5..7], day);
    out[8..11].copy_from_slice(MONTHS[(month - 1) as usize].as_bytes());
    two_digits(&mut out[12..14], (year / 100) as u32);
    two_digits(&mut out[14..16], (year % 100) as u32);
    two_digits(&mut out[17..19], (second / 3600) as u32);
    two_digits(&mut out[20..22], (second / 60 % 60) as u32);
    two_digits(&mut out[23..25], (second % 60) as u32);
    out
}

fn two_digits(out: &mut [u8], value: u32) {
    out[0] = b'0' + (value / 10 % 10) as u8;
    out[1] = b'0' + (value % 10) as u8;
}

/// Seconds since 1970-01-01 UTC of an IMF-fixdate, an RFC 850 date or an asctime date; `None` for anything
/// else and for times before 1970. `now_unix_s` decides the century of a two-digit year: more than 50 years in
/// the future means the past.
pub fn parse_date(text: &[u8], now_unix_s: u64) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let mut words = text.split_ascii_whitespace();
    let first = words.next()?;
    let (day, month, year, clock) = if let Some(name) = first.strip_suffix(',') {
        let second = words.next()?;
        if DAYS.contains(&name) {
            (
                number(second, 2)?,
                month_of(words.next()?)?,
                i64::from(number(words.next()?, 4)?),
                words.next()?,
            )
        } else {
            let mut parts = second.split('-');
            let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
            let year = century(number(year, 2)?, now_unix_s);
            (number(day, 2)?, month_of(month)?, year, words.next()?)
        }
    } else {
        let month = month_of(words.next()?)?;
        let day = words.next()?;
        let clock = words.next()?;
        let year = i64::from(number(words.next()?, 4)?);
        let seconds = seconds_of(number(day, day.len())?, month, year, clock)?;
        return (DAYS.contains(&first) && words.next().is_none()).then_some(seconds);
    };
    if words.next() != Some("GMT") || words.next().is_some() {
        return None;
    }
    seconds_of(day, month, year, clock)
}

fn seconds_of(day: u32, month: u32, year: i64, clock: &str) -> Option<u64> {
    let mut parts = clock.split(':').map(|p| number(p, 2));
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let clock_ok = hour < 24 && minute < 60 && second <= 60 && parts.next().is_none();
    if !clock_ok || !(1..=31).contains(&day) {
        return None;
    }
    let days = days_from_civil(year, month, day);
    let seconds = days * 86_400 + i64::from(hour * 3600 + minute * 60 + second);
    u64::try_from(seconds).ok()
}

fn number(text: &str, digits: usize) -> Option<u32> {
    let ok = text.len() == digits && (1..=4).contains(&digits) && text.bytes().all(|b| b.is_ascii_digit());
    if ok { text.parse().ok() } else { None }
}

fn month_of(name: &str) -> Option<u32> {
    MONTHS.iter().position(|m| *m == name).map(|i| i as u32 + 1)
}

fn century(two_digits: u32, now_unix_s: u64) -> i64 {
    let (now, _, _) = civil_from_days((now_unix_s / 86_400) as i64);
    let year = now - now % 100 + i64::from(two_digits);
    if year > now + 50 { year - 100 } else { year }
}

/// Proleptic Gregorian date of a day number; Howard Hinnant, "chrono-compatible low-level date algorithms".
fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let of_era = z.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month as u32, day as u32)
}

/// The inverse of [`civil_from_days`].
fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let shifted = (i64::from(month) + 9) % 12;
    let of_year = (153 * shifted + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}
