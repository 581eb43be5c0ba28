//! A histogram of [HdrHistogram](https://github.com/HdrHistogram/HdrHistogram_c), as its log format keeps it: base64 of a zlib stream (version 2).

use std::io::Read;

/// Cookies of a compressed histogram and of what is in it, without the digit that tells the size of words.
const COMPRESSED: u32 = 0x1c84_9304;
const PLAIN: u32 = 0x1c84_9303;
/// Larger ones are none of a load generator.
const BYTES_MAX: u64 = 1 << 20;

/// (greatest value of a step, how many), ascending.
#[derive(Debug, PartialEq)]
pub(super) struct Histogram(pub Vec<(u64, u64)>);

impl Histogram {
    pub fn decode(text: &str) -> Option<Histogram> {
        let bytes = base64(text)?;
        let (cookie, rest) = (be32(&bytes, 0)?, bytes.get(8..)?);
        if cookie & !0xf0 != COMPRESSED {
            return None;
        }
        let mut plain = Vec::new();
        flate2::read::ZlibDecoder::new(rest).take(BYTES_MAX).read_to_end(&mut plain).ok()?;
        if be32(&plain, 0)? & !0xf0 != PLAIN {
            return None;
        }
        let digits = be32(&plain, 12).filter(|digits| *digits <= 5)?;
        let lowest = u64::from(be32(&plain, 16)?) << 32 | u64::from(be32(&plain, 20)?);
        // Steps of one unit reach so far that each is within the digits.
        let half = (2 * 10_u64.pow(digits)).next_power_of_two().trailing_zeros().max(1) - 1;
        let unit = lowest.max(1).ilog2();
        counts(plain.get(40..)?, half, unit).map(Histogram)
    }

    pub fn count(&self) -> u64 {
        self.0.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// The value that this share of all is not above.
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        let rank = (quantile * self.count() as f64).ceil().max(1.0) as u64;
        let mut sum = 0_u64;
        self.0.iter().find_map(|(value, count)| {
            sum = sum.saturating_add(*count);
            (sum >= rank).then_some(*value)
        })
    }
}

/// Counts in ZigZag LEB128; a negative one is so many steps without any.
fn counts(mut bytes: &[u8], half: u32, unit: u32) -> Option<Vec<(u64, u64)>> {
    let (mut found, mut index) = (Vec::new(), 0_u64);
    while !bytes.is_empty() {
        let count = zigzag(&mut bytes)?;
        if count <= 0 {
            index = index.checked_add(count.unsigned_abs().max(1))?;
            continue;
        }
        let steps = 1_u64 << half;
        let bucket = (index >> half).saturating_sub(1);
        let within = if index >> half == 0 { index } else { (index & (steps - 1)) + steps };
        let shift = u32::try_from(bucket).ok()?.checked_add(unit)?;
        // A greater one is of values beyond 64 bits.
        shift.checked_add(half).filter(|bits| *bits < 62)?;
        found.push((((within + 1) << shift) - 1, count.unsigned_abs()));
        index += 1;
    }
    Some(found)
}

fn zigzag(bytes: &mut &[u8]) -> Option<i64> {
    let mut value = 0_u64;
    for place in 0..9 {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        // The ninth byte has eight bits.
        let bits = if place == 8 { *first } else { *first & 0x7f };
        value |= u64::from(bits) << (7 * place);
        if first & 0x80 == 0 {
            break;
        }
    }
    Some((value >> 1) as i64 ^ -((value & 1) as i64))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let (mut out, mut bits, mut held) = (Vec::with_capacity(text.len() * 3 / 4), 0_u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_grow_with_their_values() {
        // 5 steps without any, 2 of value 5, 2053 steps without any, 1 of 2070 or 2071.
        let mut bytes = vec![9, 4];
        bytes.extend([0x89, 0x20, 2]);
        assert_eq!(counts(&bytes, 10, 0), Some(vec![(5, 2), (2071, 1)]));
        assert_eq!(counts(&[4], 10, 0), Some(vec![(0, 2)]));
        assert_eq!(zigzag(&mut &[0x89, 0x20][..]), Some(-2053));
        assert_eq!(zigzag(&mut &[0x80][..]), None);
    }

    #[test]
    fn a_step_beyond_all_values_is_none() {
        // So many steps without any that the exponent is near the end of its numbers, in ZigZag: twice as many less 1.
        let steps = u64::from(u32::MAX - 2) << 10;
        let mut left = 2 * steps - 1;
        let mut bytes = Vec::new();
        while left >= 0x80 {
            bytes.push((left & 0x7f) as u8 | 0x80);
            left >>= 7;
        }
        bytes.extend([left as u8, 2]);
        assert_eq!(zigzag(&mut bytes.as_slice()), Some(-(steps as i64)));
        assert_eq!(counts(&bytes, 10, 0), None);
    }

    #[test]
    fn what_is_no_histogram_is_none() {
        for text in ["", "AAAA", "HISTFAAAAfB4nC2R", "not base64!"] {
            assert_eq!(Histogram::decode(text), None, "{text}");
        }
    }
}
