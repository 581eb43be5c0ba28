//! Times of day as tools write them.

/// Seconds since 1970 and nanoseconds of `2024-05-01T12:00:00.123456789+02:00`.
pub(super) fn rfc3339(text: &str) -> Option<(i64, u32)> {
    let (date, time) = text.split_once(['T', ' '])?;
    let zone_at = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let (clock, zone) = time.split_at(zone_at);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let [year, month, day] = three(date, '-')?;
    let [hour, minute, second] = three(clock, ':')?;
    if !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
        || hour > 24
        || minute > 59
        || second > 60
        || year > 9999
    {
        return None;
    }
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset_s(zone)?;
    Some((seconds, nanoseconds(fraction)?))
}

fn three(text: &str, between: char) -> Option<[i64; 3]> {
    let mut parts = text.splitn(3, between).map(digits);
    Some([parts.next()??, parts.next()??, parts.next()??])
}

/// A number without a sign.
fn digits(text: &str) -> Option<i64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then_some(text)?.parse().ok()
}

fn offset_s(zone: &str) -> Option<i64> {
    let sign = match zone.chars().next() {
        None | Some('Z' | 'z') => return Some(0),
        Some('-') => -1,
        Some(_) => 1,
    };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    Some(sign * (digits(hours)?.min(24) * 3600 + digits(minutes)?.min(59) * 60))
}

/// Of the digits behind the point, nine of them at most.
fn nanoseconds(fraction: &str) -> Option<u32> {
    let digits = fraction.get(..fraction.len().min(9))?;
    if digits.is_empty() {
        return Some(0);
    }
    let value: u32 = digits.parse().ok()?;
    Some(value * 10_u32.pow(9 - digits.len() as u32))
}

/// Days since 1970-01-01 of the Gregorian calendar, as Howard Hinnant counts them (`days_from_civil`).
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the leap day is their last.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Seconds and nanoseconds of a number of seconds since 1970 with a fraction, read digit by digit: a double has too few for nanoseconds.
pub(super) fn unix_seconds(text: &str) -> Option<(i64, u32)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    Some((whole.parse().ok()?, nanoseconds(fraction)?))
}

/// Seconds from one time to another.
pub(super) fn seconds_between(from: (i64, u32), to: (i64, u32)) -> f64 {
    // One division of a whole number: the sum of two quotients has other last digits.
    let seconds = i128::from(to.0) - i128::from(from.0);
    (seconds * 1_000_000_000 + i128::from(to.1) - i128::from(from.1)) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_zones_and_fractions() {
        for (text, time) in [
            ("1970-01-01T00:00:00Z", (0, 0)),
            ("2024-02-29T12:00:00.5+02:00", (1_709_200_800, 500_000_000)),
            ("2026-11-28T02:45:29.406273915Z", (1_795_833_929, 406_273_915)),
            ("2000-03-01 00:00:00", (951_868_800, 0)),
            ("1999-12-31T19:00:00-05:00", (946_684_800, 0)),
        ] {
            assert_eq!(rfc3339(text), Some(time), "{text}");
        }
        for text in [
            "",
            "T",
            "2024-13-01T00:00:00Z",
            "2024-01-01",
            "2024-01-01T00:00Z",
            "2024-01-01T00:00:00.xZ",
            "2024-01-01T00:00:00+é",
            "2024-01-01T00:00:00+-9223372036854775808:00",
            "2024-01-01T00:00:00+02:-9223372036854775808",
            "2024-01-01T00:00:00+:",
            "+2024-01-01T00:00:00Z",
        ] {
            assert_eq!(rfc3339(text), None, "{text}");
        }
        assert_eq!(unix_seconds("1715587200.25"), Some((1_715_587_200, 250_000_000)));
        assert_eq!(seconds_between((1, 900_000_000), (2, 100_000_000)), 0.2);
        assert_eq!(seconds_between((2, 0), (1, 500_000_000)), -0.5);
    }
}
