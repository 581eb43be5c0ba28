//! Results of vegeta as [Go's gob](https://pkg.go.dev/encoding/gob) has them: as much of it as these results need.
//!
//! A stream says what the fields of a type are before its first value. Only a type whose first fields are those of vegeta's result is
//! read; a value says how long it is, so that what stands behind these fields is passed over.

use std::borrow::Cow;

/// The fields that are read, in the order in which they are sent.
const FIELDS: [&str; 8] = ["Attack", "Seq", "Code", "Timestamp", "Latency", "BytesOut", "BytesIn", "Error"];
/// The name of the type, with its length in front.
const NAME: &[u8] = b"\x06Result";
/// The type stands at the beginning of a file.
const HEAD: usize = 300;
/// Seconds from the year 1, which Go's times count from, to 1970.
const UNIX_AT: i64 = 62_135_596_800;

/// What is kept of one request.
#[derive(Debug, PartialEq, Default)]
pub(super) struct Hit<'a> {
    pub attack: Cow<'a, str>,
    pub code: u64,
    /// Seconds and nanoseconds since 1970.
    pub at: (i64, u32),
    pub latency_ns: f64,
    pub bytes_in: f64,
    pub error: Cow<'a, str>,
}

/// Whether a file begins with the type of vegeta's results.
pub(super) fn begins(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    let Some(message) = message(&mut rest) else { return false };
    let mut inner = message;
    int(&mut inner).is_some_and(|id| id < 0) && is_result(message)
}

/// A type's definition that names the result and, in order, its fields.
fn is_result(definition: &[u8]) -> bool {
    let head = definition.get(..definition.len().min(HEAD)).unwrap_or_default();
    let mut from = 0;
    std::iter::once(NAME.to_vec()).chain(FIELDS.iter().map(|field| named(field))).all(|name| {
        let found = head[from..].windows(name.len()).position(|window| window == name);
        from += found.unwrap_or(0);
        found.is_some()
    })
}

fn named(field: &str) -> Vec<u8> {
    let mut bytes = vec![field.len() as u8];
    bytes.extend(field.as_bytes());
    bytes
}

/// Gives each result to `found`.
///
/// # Errors
/// Why the rest cannot be read.
pub(super) fn read<'a>(bytes: &'a [u8], mut found: impl FnMut(Hit<'a>)) -> Result<(), String> {
    let (mut rest, mut result_id) = (bytes, None);
    while !rest.is_empty() {
        let at = bytes.len() - rest.len();
        let mut body = message(&mut rest).ok_or_else(|| format!("it is cut off at byte {at}"))?;
        let whole = body;
        let id = int(&mut body).ok_or_else(|| format!("no type stands at byte {at}"))?;
        if id < 0 {
            // Files may be put behind each other, each with its types.
            if is_result(whole) {
                result_id = Some(id.saturating_neg());
            }
        } else if Some(id) == result_id {
            found(hit(&mut body).ok_or_else(|| format!("the result at byte {at} is none of vegeta's"))?);
        } else {
            return Err(format!("another type stands at byte {at}"));
        }
    }
    Ok(())
}

/// The next message without its length.
fn message<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = uint(rest)?;
    take(rest, length)
}

fn take<'a>(rest: &mut &'a [u8], length: u64) -> Option<&'a [u8]> {
    let (taken, behind) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    *rest = behind;
    Some(taken)
}

/// One byte below 128; else how many bytes follow, negated.
fn uint(rest: &mut &[u8]) -> Option<u64> {
    let (&first, behind) = rest.split_first()?;
    *rest = behind;
    if first < 128 {
        return Some(u64::from(first));
    }
    let length = u64::from(first.wrapping_neg());
    let bytes = take(rest, length).filter(|bytes| bytes.len() <= 8)?;
    Some(bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// The lowest bit says whether the others are inverted.
fn int(rest: &mut &[u8]) -> Option<i64> {
    let value = uint(rest)?;
    let magnitude = (value >> 1) as i64;
    Some(if value & 1 == 1 { !magnitude } else { magnitude })
}

fn text<'a>(rest: &mut &'a [u8]) -> Option<Cow<'a, str>> {
    let length = uint(rest)?;
    take(rest, length).map(String::from_utf8_lossy)
}

/// Fields that are zero are not sent: each says how far behind the last one it is.
fn hit<'a>(rest: &mut &'a [u8]) -> Option<Hit<'a>> {
    let (mut hit, mut field) = (Hit::default(), 0_u64);
    loop {
        let step = uint(rest)?;
        field = field.checked_add(step)?;
        if step == 0 || field > FIELDS.len() as u64 {
            // Nobody sends at the beginning of the year 1.
            return (hit.at != (0, 0)).then_some(hit);
        }
        match field {
            1 => hit.attack = text(rest)?,
            3 => hit.code = uint(rest)?,
            4 => {
                let length = uint(rest)?;
                hit.at = time(take(rest, length)?)?;
            }
            5 => hit.latency_ns = int(rest)? as f64,
            7 => hit.bytes_in = uint(rest)? as f64,
            8 => hit.error = text(rest)?,
            _ => {
                uint(rest)?;
            }
        }
    }
}

/// A version, seconds in 8 bytes, nanoseconds in 4, and the zone.
fn time(bytes: &[u8]) -> Option<(i64, u32)> {
    let (&[_version], rest) = bytes.split_first_chunk::<1>()?;
    let (seconds, rest) = rest.split_first_chunk::<8>()?;
    let (nanos, _) = rest.split_first_chunk::<4>()?;
    let nanos = u32::from_be_bytes(*nanos);
    Some((i64::from_be_bytes(*seconds).checked_sub(UNIX_AT)?, nanos)).filter(|_| nanos < 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIXED: &[u8] = include_bytes!("../../tests/fixtures/vegeta-results/mixed.gob");

    #[test]
    fn numbers_are_as_the_documentation_of_gob_has_them() {
        assert_eq!(uint(&mut &[7][..]), Some(7));
        assert_eq!(uint(&mut &[0xfe, 0x01, 0x00][..]), Some(256));
        assert_eq!(
            (int(&mut &[0x02][..]), int(&mut &[0x01][..]), int(&mut &[0xff, 0x81][..])),
            (Some(1), Some(-1), Some(-65))
        );
        assert_eq!(uint(&mut &[0xfe, 0x01][..]), None);
        assert_eq!(uint(&mut &[0x80][..]), None);
    }

    #[test]
    fn what_is_cut_off_is_said_and_what_stands_before_is_kept() {
        let mut hits = 0;
        let why = read(&MIXED[..MIXED.len() - 5], |_| hits += 1).unwrap_err();
        assert!(why.starts_with("it is cut off at byte "), "{why}");
        assert_eq!(hits, 59);
        // Two attacks behind each other, each with its types.
        hits = 0;
        assert_eq!(read(&[MIXED, MIXED].concat(), |_| hits += 1), Ok(()));
        assert_eq!(hits, 120);
    }

    #[test]
    fn another_type_is_none() {
        let other = String::from_utf8_lossy(MIXED).replace("Latency", "Latenzy");
        assert!(begins(MIXED) && !begins(other.as_bytes()) && !begins(b"") && !begins(b"\x03abc"));
    }
}
