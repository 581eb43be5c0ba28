//! Latency histograms: merged, never averaged, and stored in HdrHistogram's own V2 format.

use crate::hexadecimal::hexadecimal;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{
    Deserializer as HdrDeserializer, Serializer as _, V2DeflateSerializer, V2Serializer,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::Error as _};

/// Longest latency that is distinguished, in nanoseconds (two minutes); longer ones count as this.
pub const LATENCY_NS_MAX: u64 = 120_000_000_000;

/// A histogram of latencies in nanoseconds, 3 significant digits.
#[derive(Debug, Clone, PartialEq)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        Latencies::new()
    }
}

impl Latencies {
    /// An empty histogram from 1 ns to [`LATENCY_NS_MAX`], all memory allocated now.
    #[allow(clippy::expect_used)]
    pub fn new() -> Self {
        // The bounds are constants that the library accepts (low >= 1, high >= 2 * low, 0..=5 digits).
        Latencies(Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("constant bounds are valid"))
    }

    /// Counts one latency; never allocates.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        self.0.saturating_record(latency_ns.max(1));
    }

    /// Adds `count` latencies of the same value.
    pub fn record_n(&mut self, latency_ns: u64, count: u64) {
        self.0.saturating_record_n(latency_ns.max(1), count);
    }

    /// Adds another histogram's counts to this one's.
    pub fn merge(&mut self, other: &Latencies) {
        // Same bounds and digits by construction; a foreign histogram is resized by `add`.
        self.0.add(&other.0).ok();
    }

    /// Takes away counts that are a part of this one's.
    pub fn subtract(&mut self, part: &Latencies) {
        // Refused, and nothing changed, where it is no part.
        self.0.subtract(&part.0).ok();
    }

    /// Forgets all counts, keeps the memory.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// Number of latencies counted.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The value at a quantile in 0..=1, in nanoseconds; `None` when nothing was counted.
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        (!self.0.is_empty()).then(|| self.0.value_at_quantile(quantile))
    }

    /// Mean in nanoseconds; `None` when nothing was counted.
    pub fn mean_ns(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.mean())
    }

    /// Standard deviation in nanoseconds; `None` when nothing was counted.
    pub fn stdev_ns(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.stdev())
    }

    /// Largest value in nanoseconds; `None` when nothing was counted.
    pub fn max_ns(&self) -> Option<u64> {
        (!self.0.is_empty()).then(|| self.0.max())
    }

    /// The histogram itself, for logs and plots.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.0
    }
}

/// A histogram of latencies made small, to keep many: HdrHistogram's compressed V2 form.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Packed(Vec<u8>);

impl Packed {
    /// Makes it small.
    pub fn new(latencies: &Latencies) -> Self {
        let mut bytes = Vec::new();
        // Writing to memory fails only where there is none left; the histogram is then missed by `unpack`.
        V2DeflateSerializer::new().serialize(&latencies.0, &mut bytes).ok();
        Packed(bytes)
    }

    /// The histogram again; `None` when it is not whole.
    pub fn unpack(&self) -> Option<Latencies> {
        HdrDeserializer::new().deserialize(&mut self.0.as_slice()).ok().map(Latencies)
    }
}

impl Serialize for Latencies {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&self.0, &mut bytes).map_err(S::Error::custom)?;
        serializer.serialize_str(&hexadecimal(&bytes))
    }
}

impl<'de> Deserialize<'de> for Latencies {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes: Option<Vec<u8>> = text
            .as_bytes()
            .chunks(2)
            .map(|pair| std::str::from_utf8(pair).ok().and_then(|digits| u8::from_str_radix(digits, 16).ok()))
            .collect();
        let bytes = bytes.ok_or_else(|| D::Error::custom("a histogram is hexadecimal digits"))?;
        let histogram = HdrDeserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|error| D::Error::custom(format!("not a V2 histogram: {error:?}")))?;
        Ok(Latencies(histogram))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_the_disk() {
        let mut latencies = Latencies::new();
        for value in [1, 900, 131_000, 40_000_000, LATENCY_NS_MAX * 3] {
            latencies.record(value);
        }
        let text = serde_json::to_string(&latencies).unwrap();
        let back: Latencies = serde_json::from_str(&text).unwrap();
        assert_eq!(Packed::new(&latencies).unpack().unwrap().quantile_ns(0.5), latencies.quantile_ns(0.5));
        assert_eq!(Packed::default().unpack(), None);
        assert_eq!(back.count(), 5);
        assert_eq!(back.quantile_ns(0.5), latencies.quantile_ns(0.5));
        for bad in ["\"zz\"", "\"00\"", "\"0\"", "\"é\"", "3"] {
            assert!(serde_json::from_str::<Latencies>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_part_can_be_taken_away() {
        let (mut all, mut part) = (Latencies::new(), Latencies::new());
        all.record_n(900, 5);
        all.record(7_000);
        part.record_n(900, 2);
        all.subtract(&part);
        assert_eq!((all.count(), all.quantile_ns(0.75)), (4, Some(900)));
    }

    #[test]
    fn nothing_counted_is_not_zero() {
        assert_eq!(Latencies::new().quantile_ns(0.99), None);
        assert_eq!(Latencies::new().mean_ns(), None);
    }
}
