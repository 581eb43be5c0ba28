//! Samples as few bytes: differences of whole numbers as variable-length integers, anything else as it is.
//!
//! A packed series is `count`, `kind`, then the values. Whole numbers (every stamp and nearly every metric) are
//! differenced once or twice, whichever is shorter, divided by what all differences have in common (clock ticks
//! are multiples of 10 ms) and written as LEB128 of the zigzag form; a run of zeros is one zero and its length.
//! All arithmetic wraps, so every value of 64 bits survives. The bytes are deflated at the end: a few ticks per
//! sample need two bits, not eight.

use crate::observation::{Observation, Sample};
use flate2::read::DeflateDecoder;
use flate2::{Compress, Compression, FlushCompress, Status};
use std::cell::RefCell;
use std::collections::HashSet;
use std::io::Read;

/// The bytes were not made by [`pack_whole`] or [`pack_values`], or hold more than was allowed.
#[derive(Debug, PartialEq, Eq)]
pub struct BadPack;

const KIND_RAW: u8 = 0;
const ORDERS: [u8; 2] = [1, 2];
const VARINT_BYTES_MAX: u64 = 10;
/// Whole numbers up to here are exact in an `f64`.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// Packs values that are all whole numbers as such, and any others bit for bit.
pub fn pack_values(values: &[f64]) -> Vec<u8> {
    let whole: Option<Vec<i64>> = values.iter().map(|&value| whole(value)).collect();
    if let Some(whole) = whole {
        return pack_whole(&whole);
    }
    let mut bytes = Vec::with_capacity(values.len() * 8 + 10);
    put_varint(&mut bytes, values.len() as u64);
    bytes.push(KIND_RAW);
    values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
    deflate(&bytes)
}

/// The values that [`pack_values`] packed, at most `max` of them.
pub fn unpack_values(packed: &[u8], max: u64) -> Result<Vec<f64>, BadPack> {
    let bytes = inflate(packed, max)?;
    let mut rest = bytes.as_slice();
    let count = take_count(&mut rest, max)?;
    if rest.first() != Some(&KIND_RAW) {
        return Ok(parse_whole(&bytes, max)?.into_iter().map(|value| value as f64).collect());
    }
    let (values, []) = rest[1..].as_chunks::<8>() else { return Err(BadPack) };
    let values: Vec<f64> = values.iter().map(|raw| f64::from_le_bytes(*raw)).collect();
    if values.len() == count { Ok(values) } else { Err(BadPack) }
}

/// Packs whole numbers, in the order of differencing that comes out shorter.
pub fn pack_whole(values: &[i64]) -> Vec<u8> {
    let [once, twice] = ORDERS.map(|order| deflate(&differences(values, order)));
    if twice.len() < once.len() { twice } else { once }
}

/// The whole numbers that [`pack_whole`] packed, at most `max` of them.
pub fn unpack_whole(packed: &[u8], max: u64) -> Result<Vec<i64>, BadPack> {
    parse_whole(&inflate(packed, max)?, max)
}

fn parse_whole(bytes: &[u8], max: u64) -> Result<Vec<i64>, BadPack> {
    let mut rest = bytes;
    let count = take_count(&mut rest, max)?;
    let (&order, mut rest) = rest.split_first().ok_or(BadPack)?;
    if !ORDERS.contains(&order) {
        return Err(BadPack);
    }
    let common = take_varint(&mut rest)?.cast_signed();
    // Zero runs let few bytes stand for many values: memory grows with what is decoded, never with `count`.
    let mut values: Vec<i64> = Vec::with_capacity(count.min(rest.len()));
    while values.len() < count {
        let head = values.len() < usize::from(order);
        match unzigzag(take_varint(&mut rest)?) {
            0 if !head => {
                let run = take_varint(&mut rest)?;
                if run >= (count - values.len()) as u64 {
                    return Err(BadPack);
                }
                values.extend(std::iter::repeat_n(0, run as usize + 1));
            }
            value => values.push(if head { value } else { value.wrapping_mul(common) }),
        }
    }
    if !rest.is_empty() {
        return Err(BadPack);
    }
    for level in (1..=usize::from(order)).rev() {
        for at in level..values.len() {
            values[at] = values[at].wrapping_add(values[at - 1]);
        }
    }
    Ok(values)
}

/// The series before it is deflated.
fn differences(values: &[i64], order: u8) -> Vec<u8> {
    let mut differences = values.to_vec();
    for level in 1..=usize::from(order) {
        for at in (level..differences.len()).rev() {
            differences[at] = differences[at].wrapping_sub(differences[at - 1]);
        }
    }
    let (head, tail) = differences.split_at(differences.len().min(usize::from(order)));
    let common = tail.iter().fold(0, |common, value| gcd(common, value.unsigned_abs()));
    // A common divisor of 2^63 (all differences zero or the smallest number) would not fit; 1 always does.
    let common = i64::try_from(common).unwrap_or(1).max(1);
    let mut bytes = Vec::with_capacity(values.len() * 3 + 16);
    put_varint(&mut bytes, values.len() as u64);
    bytes.push(order);
    put_varint(&mut bytes, common.cast_unsigned());
    head.iter().for_each(|&value| put_varint(&mut bytes, zigzag(value)));
    let mut at = 0;
    while at < tail.len() {
        put_varint(&mut bytes, zigzag(tail[at] / common));
        let run = tail[at..].iter().take_while(|value| **value == 0).count();
        if run > 0 {
            put_varint(&mut bytes, run as u64 - 1);
        }
        at += run.max(1);
    }
    bytes
}

/// Of zlib's levels. At 1 the deflater that a whole build links (zlib-rs, for compressed debug sections) leaves a fifth more than that of a
/// build of this crate alone.
const LEVEL: Compression = Compression::new(3);

/// Bytes of any kind, deflated.
pub fn deflate(bytes: &[u8]) -> Vec<u8> {
    DEFLATER.with_borrow_mut(|deflater| {
        deflater.reset();
        // More than bytes that cannot be compressed take, so that one turn is enough.
        let mut packed = Vec::with_capacity(bytes.len() + bytes.len() / 64 + 64);
        loop {
            let rest = bytes.get(deflater.total_in() as usize..).unwrap_or_default();
            match deflater.compress_vec(rest, &mut packed, FlushCompress::Finish) {
                Ok(Status::Ok | Status::BufError) => packed.reserve(packed.len().max(64)),
                // It cannot fail; if it ever did, the reader would say that the column is damaged.
                Ok(Status::StreamEnd) | Err(_) => return packed,
            }
        }
    })
}

thread_local! {
    /// Made once: its tables are far larger than most of what is packed.
    static DEFLATER: RefCell<Compress> = RefCell::new(Compress::new(LEVEL, false));
}

fn inflate(packed: &[u8], max: u64) -> Result<Vec<u8>, BadPack> {
    // No value takes more bytes than a varint of 64 bits does, and the head is four of those at most.
    inflate_to(packed, max.saturating_add(4).saturating_mul(VARINT_BYTES_MAX))
}

/// What [`deflate`] packed, if it is no longer than that.
pub fn inflate_to(packed: &[u8], bytes_max: u64) -> Result<Vec<u8>, BadPack> {
    let mut bytes = Vec::new();
    let read = DeflateDecoder::new(packed).take(bytes_max.saturating_add(1)).read_to_end(&mut bytes);
    match read {
        Ok(length) if length as u64 <= bytes_max => Ok(bytes),
        _ => Err(BadPack),
    }
}

/// The value as a whole number, if reading it back gives the same bits.
fn whole(value: f64) -> Option<i64> {
    let exact =
        value.abs() <= WHOLE_MAX && value.fract() == 0.0 && (value != 0.0 || value.is_sign_positive());
    exact.then_some(value as i64)
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -((value & 1).cast_signed())
}

fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Result<u64, BadPack> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or(BadPack)?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(BadPack)
}

fn take_count(bytes: &mut &[u8], max: u64) -> Result<usize, BadPack> {
    match take_varint(bytes)? {
        count if count <= max => usize::try_from(count).map_err(|_| BadPack),
        _ => Err(BadPack),
    }
}

/// How many bytes the columns of an observation take in a record, names and the file's own order not counted.
pub fn packed_bytes(observation: &Observation) -> u64 {
    let mut axes: HashSet<Vec<u8>> = HashSet::new();
    let mut bytes = 0;
    for column in &observation.columns {
        let (axis, values) = packed(&column.samples);
        let axis_bytes = axis.len() as u64;
        bytes += values.len() as u64;
        if axes.insert(axis) {
            bytes += axis_bytes;
        }
    }
    bytes
}

/// Stamps and values.
pub fn packed(samples: &[Sample]) -> (Vec<u8>, Vec<u8>) {
    let stamps: Vec<i64> = samples.iter().map(|sample| sample.at_ns.cast_signed()).collect();
    let values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
    (pack_whole(&stamps), pack_values(&values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAX: u64 = 1 << 20;

    #[test]
    fn ticks_and_rests_are_small() {
        let ticks: Vec<f64> = (0..1000).map(|at| f64::from(at / 3) * 1e7).collect();
        assert!(pack_values(&ticks).len() < 300);
        assert!(pack_values(&[5e9; 100_000]).len() < 24);
        let steady: Vec<i64> = (0..1000).map(|at| at * 50_000_000).collect();
        assert!(pack_whole(&steady).len() < 24);
    }

    #[test]
    fn a_run_longer_than_its_series_is_refused() {
        // 3 values, first order, divisor 1, head 0, then a run of 2^63 zeros.
        let mut bytes = vec![3, 1, 1, 0, 0];
        put_varint(&mut bytes, u64::MAX / 2);
        assert_eq!(parse_whole(&bytes, MAX), Err(BadPack));
        assert_eq!(unpack_whole(&pack_whole(&[7; 9]), 8), Err(BadPack));
    }

    fn values() -> impl Strategy<Value = Vec<f64>> {
        let whole = prop_oneof![Just(0i64), 0..5i64, -(1i64 << 53)..(1i64 << 53)];
        prop_oneof![
            prop::collection::vec(whole.prop_map(|value| value as f64), 0..40),
            prop::collection::vec(prop::num::f64::ANY, 0..40),
        ]
    }

    proptest! {
        #[test]
        fn values_survive(values in values()) {
            let back = unpack_values(&pack_values(&values), MAX).unwrap();
            let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&back), bits(&values));
        }

        #[test]
        fn stamps_survive(values: Vec<i64>) {
            prop_assert_eq!(unpack_whole(&pack_whole(&values), MAX).unwrap(), values);
        }

        #[test]
        fn anything_else_is_an_error_or_a_bounded_series(bytes: Vec<u8>) {
            for packed in [&bytes, &deflate(&bytes)] {
                let counts = [
                    unpack_whole(packed, MAX).map_or(0, |values| values.len()),
                    unpack_values(packed, MAX).map_or(0, |values| values.len()),
                ];
                prop_assert!(counts.iter().all(|&count| count as u64 <= MAX));
            }
        }
    }
}
