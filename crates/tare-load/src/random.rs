//! Numbers that are random and the same each time.

use tare_stats::SplitMix64;

/// The numbers of a thread: gaps, paths, what templates leave open.
#[derive(Debug, Clone)]
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) fn new(seed: u64, thread: u32) -> Self {
        let mut mixed = SplitMix64::new(seed ^ (u64::from(thread) << 32));
        Random(SplitMix64::new(mixed.next_u64()))
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in (0, 1], so that its logarithm is finite.
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }
}
