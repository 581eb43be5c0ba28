//! Answers and their latencies by slice of a window, for the series, in memory that does not grow.

use tare_model::trial::SeriesSlice;

/// Width of a slice, nanoseconds, until a window outgrows [`SLICES_MAX`].
pub(crate) const SLICE_NS: u64 = 100_000_000;

/// Most slices of a window (almost 7 minutes of them); then neighbours are joined and slices twice as wide.
const SLICES_MAX: usize = 4096;

/// A last slice that is shorter than such a part of the others is joined to the one before it.
const SHORTEST: u64 = 10;

/// Classes of latency in a slice: powers of two from [`FINEST_NS`] to two minutes, each in 32 equal parts.
const CLASSES: usize = 800;
const FINEST_NS: u64 = 256;

/// Answers by slice of the window: slice `k` covers `[origin + k·width, origin + (k+1)·width)`.
#[derive(Debug)]
pub(crate) struct Slices {
    origin_ns: u64,
    width_ns: u64,
    /// Slices before the current one.
    len: usize,
    current_end_ns: u64,
    /// Answers by slice and class of latency. Its pages cost nothing until they are written to.
    counts: Vec<u32>,
}

impl Slices {
    pub(crate) fn new() -> Self {
        let counts = vec![0; SLICES_MAX * CLASSES];
        Slices { origin_ns: 0, width_ns: SLICE_NS, len: 0, current_end_ns: SLICE_NS, counts }
    }

    pub(crate) fn begin(&mut self, origin_ns: u64) {
        self.counts[..(self.len + 1) * CLASSES].fill(0);
        self.origin_ns = origin_ns;
        self.width_ns = SLICE_NS;
        self.len = 0;
        self.current_end_ns = origin_ns.saturating_add(SLICE_NS);
    }

    /// Counts answers of one latency at `now_ns`.
    #[inline]
    pub(crate) fn count(&mut self, now_ns: u64, latency_ns: u64, count: u64) {
        if now_ns >= self.current_end_ns {
            self.advance(now_ns);
        }
        let cell = &mut self.counts[self.len * CLASSES + class_of(latency_ns)];
        *cell = cell.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// Makes the slice that holds `now_ns` the current one. Time that does not come back is not waited for:
    /// a jump of years still takes few steps, as slices widen on the way.
    #[cold]
    fn advance(&mut self, now_ns: u64) {
        while now_ns >= self.current_end_ns {
            self.len += 1;
            if self.len == SLICES_MAX {
                self.widen();
            }
            let slices = self.len as u64 + 1;
            self.current_end_ns = self.origin_ns.saturating_add(self.width_ns.saturating_mul(slices));
        }
    }

    fn widen(&mut self) {
        for k in 0..SLICES_MAX / 2 {
            for class in 0..CLASSES {
                let pair = [2 * k, 2 * k + 1].map(|from| self.counts[from * CLASSES + class]);
                self.counts[k * CLASSES + class] = pair[0].saturating_add(pair[1]);
            }
        }
        self.counts[SLICES_MAX / 2 * CLASSES..].fill(0);
        self.len = SLICES_MAX / 2;
        self.width_ns = self.width_ns.saturating_mul(2);
    }

    /// Adds up the slices of threads that share an origin, for a window that ends at `end_ns`. The last slice ends there
    /// too: cut off, or longer by what is too short for a rate of its own. What threads counted while they were handing
    /// over, microseconds later, belongs to it.
    pub(crate) fn sum<'a>(all: impl Iterator<Item = &'a Slices> + Clone, end_ns: u64) -> Vec<SeriesSlice> {
        let Some(first) = all.clone().next() else { return Vec::new() };
        let (origin_ns, width_ns) =
            (first.origin_ns, all.clone().map(|s| s.width_ns).max().unwrap_or(SLICE_NS));
        let window_ns = end_ns.saturating_sub(origin_ns).max(1);
        let len = (window_ns + width_ns - width_ns / SHORTEST).div_euclid(width_ns).max(1);
        let len = usize::try_from(len).unwrap_or(SLICES_MAX).min(2 * SLICES_MAX);
        let mut sums = vec![0u64; len * CLASSES];
        for slices in all {
            let joined = usize::try_from(width_ns / slices.width_ns).unwrap_or(1).max(1);
            for (k, counts) in slices.counts.chunks(CLASSES).take(slices.len + 1).enumerate() {
                let at = (k / joined).min(len - 1) * CLASSES;
                for (sum, count) in sums[at..at + CLASSES].iter_mut().zip(counts) {
                    *sum += u64::from(*count);
                }
            }
        }
        let stamp = |k: usize| match k + 1 {
            last if last == len => end_ns,
            before => origin_ns.saturating_add(width_ns.saturating_mul(before as u64)),
        };
        sums.chunks(CLASSES).enumerate().map(|(k, counts)| summary(stamp(k), counts)).collect()
    }
}

fn summary(end_ns: u64, counts: &[u64]) -> SeriesSlice {
    let requests: u64 = counts.iter().sum();
    let quantile = |quantile: f64| {
        let rank = ((requests as f64 * quantile).ceil() as u64).max(1);
        let mut below = 0;
        let class = counts.iter().position(|count| {
            below += count;
            below >= rank
        });
        class.map(middle_of)
    };
    SeriesSlice { end_ns, requests, p50_ns: quantile(0.5), p99_ns: quantile(0.99) }
}

#[inline]
fn class_of(latency_ns: u64) -> usize {
    let units = latency_ns / FINEST_NS;
    let shift = (63 - (units | 32).leading_zeros()) - 5;
    ((shift as usize) * 32 + (units >> shift) as usize).min(CLASSES - 1)
}

/// The latency in the middle of a class, nanoseconds.
fn middle_of(class: usize) -> u64 {
    let shift = (class / 32).saturating_sub(1);
    let low = (class - shift * 32) as u64;
    (low << shift) * FINEST_NS + (FINEST_NS << shift) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn slices_of_threads_add_up() {
        let mut threads = [Slices::new(), Slices::new()];
        for slices in &mut threads {
            slices.begin(1000);
        }
        for (thread, at_ns) in [
            (0, 1000),
            (1, SLICE_NS),
            (0, SLICE_NS + 1000),
            (1, 3 * SLICE_NS + 999),
            (1, 3 * SLICE_NS + SLICE_NS / 2),
        ] {
            threads[thread].count(at_ns, 5_000, 1);
        }
        let counts = |end_ns| {
            let sums = Slices::sum(threads.iter(), end_ns);
            sums.iter().map(|slice| (slice.end_ns, slice.requests)).collect::<Vec<_>>()
        };
        let end_ns = 3 * SLICE_NS + SLICE_NS / 4;
        let expected =
            [(SLICE_NS + 1000, 2), (2 * SLICE_NS + 1000, 1), (3 * SLICE_NS + 1000, 1), (end_ns, 1)];
        assert_eq!(counts(end_ns), expected);
        let just_after = 3 * SLICE_NS + 1050;
        assert_eq!(counts(just_after)[2], (just_after, 2), "50 ns are too short for a rate");
        assert_eq!(counts(1001), [(1001, 5)]);
        let sums = Slices::sum(threads.iter(), end_ns);
        assert!(sums.iter().all(|slice| slice.p50_ns.is_some_and(|ns| ns.abs_diff(5_000) < 130)));
        assert_eq!(Slices::sum([].iter(), end_ns), []);
    }

    proptest! {
        // Each case goes over megabytes.
        #![proptest_config(ProptestConfig::with_cases(8))]

        /// Long windows get wider slices; nothing is lost and memory does not grow.
        #[test]
        fn counts_survive_widening(steps in prop::collection::vec(0u64..4_000_000_000_000, 1..50), other in 0u64..1000) {
            let mut slices = [Slices::new(), Slices::new()];
            slices[0].begin(5);
            slices[1].begin(5);
            let capacity = slices[0].counts.capacity();
            let mut now_ns = 5;
            for step in &steps {
                now_ns += step;
                slices[0].count(now_ns, *step, 1);
            }
            for k in 0..other {
                slices[1].count(5 + k * 10_000_000, 7, 1);
            }
            prop_assert_eq!(slices[0].counts.capacity(), capacity);
            let sums = Slices::sum(slices.iter(), now_ns + 1);
            prop_assert_eq!(sums.iter().map(|s| s.requests).sum::<u64>(), steps.len() as u64 + other);
            prop_assert!(sums.is_sorted_by_key(|s| s.end_ns) && sums.len() <= 2 * SLICES_MAX);
            prop_assert_eq!(sums.last().map(|s| s.end_ns), Some(now_ns + 1));
        }

        /// A class is at most a 32nd wide, in order, and its middle is within.
        #[test]
        fn classes_tell_latencies_apart(latency_ns in 0u64..120_000_000_000) {
            let class = class_of(latency_ns);
            let middle_ns = middle_of(class);
            prop_assert_eq!(class_of(middle_ns), class);
            prop_assert!(middle_ns.abs_diff(latency_ns) as f64 <= 128.0 + latency_ns as f64 / 60.0);
        }
    }
}
