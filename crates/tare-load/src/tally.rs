//! What one thread counts in one window, all of its memory allocated beforehand.

use tare_record::latency::Latencies;
use tare_record::trial::ErrorKind;

/// The kinds of errors, in the order of the counters.
pub(crate) const ERROR_KINDS: [ErrorKind; 5] =
    [ErrorKind::Connect, ErrorKind::Io, ErrorKind::Timeout, ErrorKind::Status, ErrorKind::Malformed];

/// Width of a slice, nanoseconds, until a window outgrows [`SLICES_MAX`].
pub(crate) const SLICE_NS: u64 = 100_000_000;

/// Most slices of a window (almost 7 minutes of them); then neighbours are joined and slices twice as wide.
const SLICES_MAX: usize = 4096;

/// Everything one thread counted from one cut to the next.
#[derive(Debug)]
pub(crate) struct Tally {
    /// The thread's own stamp when it began.
    pub(crate) begin_ns: u64,
    /// The thread's own stamp when it handed over.
    pub(crate) end_ns: u64,
    pub(crate) answers: u64,
    pub(crate) errors: [u64; ERROR_KINDS.len()],
    pub(crate) bytes_in: u64,
    pub(crate) latency: Latencies,
    pub(crate) lateness: Latencies,
    pub(crate) slices: Slices,
    /// Open loop: arrivals that fell due in the window.
    pub(crate) scheduled: Option<u64>,
    /// Sent or due, and unanswered at the end.
    pub(crate) in_flight: u64,
    /// Open at the end.
    pub(crate) connections: u32,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Tally {
            begin_ns: 0,
            end_ns: 0,
            answers: 0,
            errors: [0; ERROR_KINDS.len()],
            bytes_in: 0,
            latency: Latencies::new(),
            lateness: Latencies::new(),
            slices: Slices::new(),
            scheduled: None,
            in_flight: 0,
            connections: 0,
        }
    }

    /// Forgets all counts and begins a window; slices count from `origin_ns`, which all threads share.
    pub(crate) fn begin(&mut self, origin_ns: u64, begin_ns: u64) {
        self.begin_ns = begin_ns;
        self.end_ns = begin_ns;
        self.slices.begin(origin_ns);
    }

    /// Forgets all counts, keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.answers = 0;
        self.errors = [0; ERROR_KINDS.len()];
        self.bytes_in = 0;
        self.latency.clear();
        self.lateness.clear();
        self.scheduled = None;
        self.in_flight = 0;
        self.connections = 0;
    }

    /// A whole answer at `now_ns` to a request whose latency counts from `origin_ns`.
    #[inline]
    pub(crate) fn answered(&mut self, origin_ns: u64, now_ns: u64, status: u16) {
        self.answers += 1;
        self.latency.record(now_ns.saturating_sub(origin_ns));
        self.slices.count(now_ns);
        if status >= 400 {
            self.failed(ErrorKind::Status);
        }
    }

    pub(crate) fn failed(&mut self, kind: ErrorKind) {
        self.errors[index_of(kind)] += 1;
    }
}

/// Position of a kind in [`ERROR_KINDS`].
fn index_of(kind: ErrorKind) -> usize {
    match kind {
        ErrorKind::Connect => 0,
        ErrorKind::Io => 1,
        ErrorKind::Timeout => 2,
        ErrorKind::Status => 3,
        ErrorKind::Malformed => 4,
    }
}

/// Answers by slice of the window: slice `k` covers `[origin + k·width, origin + (k+1)·width)`.
#[derive(Debug)]
pub(crate) struct Slices {
    origin_ns: u64,
    width_ns: u64,
    /// Of the slices before the current one.
    counts: Vec<u64>,
    current: u64,
    current_end_ns: u64,
}

impl Slices {
    fn new() -> Self {
        let counts = Vec::with_capacity(SLICES_MAX);
        Slices { origin_ns: 0, width_ns: SLICE_NS, counts, current: 0, current_end_ns: SLICE_NS }
    }

    fn begin(&mut self, origin_ns: u64) {
        self.origin_ns = origin_ns;
        self.width_ns = SLICE_NS;
        self.counts.clear();
        self.current = 0;
        self.current_end_ns = origin_ns.saturating_add(SLICE_NS);
    }

    #[inline]
    fn count(&mut self, now_ns: u64) {
        if now_ns >= self.current_end_ns {
            self.advance(now_ns);
        }
        self.current += 1;
    }

    /// Makes the slice that holds `now_ns` the current one. Time that does not come back is not waited for:
    /// a jump of years still takes few steps, as slices widen on the way.
    #[cold]
    fn advance(&mut self, now_ns: u64) {
        while now_ns >= self.current_end_ns {
            self.counts.push(self.current);
            self.current = 0;
            if self.counts.len() == SLICES_MAX {
                self.widen();
            }
            let slices = self.counts.len() as u64 + 1;
            self.current_end_ns = self.origin_ns.saturating_add(self.width_ns.saturating_mul(slices));
        }
    }

    fn widen(&mut self) {
        for k in 0..SLICES_MAX / 2 {
            self.counts[k] = self.counts[2 * k] + self.counts[2 * k + 1];
        }
        self.counts.truncate(SLICES_MAX / 2);
        self.width_ns = self.width_ns.saturating_mul(2);
    }

    /// Adds up the slices of threads that share an origin, for a window that ends at `end_ns`:
    /// (end stamp, answers) of each. The last slice is cut off at the end; what threads counted while they
    /// were handing over, microseconds after it, belongs to it.
    pub(crate) fn sum<'a>(all: impl Iterator<Item = &'a Slices> + Clone, end_ns: u64) -> Vec<(u64, u64)> {
        let Some(first) = all.clone().next() else { return Vec::new() };
        let (origin_ns, width_ns) =
            (first.origin_ns, all.clone().map(|s| s.width_ns).max().unwrap_or(SLICE_NS));
        let window_ns = end_ns.saturating_sub(origin_ns).max(1);
        let len = usize::try_from(window_ns.div_ceil(width_ns)).unwrap_or(SLICES_MAX).min(2 * SLICES_MAX);
        let mut sums = vec![0; len];
        for slices in all {
            let joined = usize::try_from(width_ns / slices.width_ns).unwrap_or(1).max(1);
            for (k, count) in slices.counts.iter().chain([&slices.current]).enumerate() {
                sums[(k / joined).min(len - 1)] += count;
            }
        }
        let stamp = |k: usize| end_ns.min(origin_ns.saturating_add(width_ns.saturating_mul(k as u64 + 1)));
        sums.into_iter().enumerate().map(|(k, count)| (stamp(k), count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn kinds_and_counters_agree() {
        for (index, kind) in ERROR_KINDS.into_iter().enumerate() {
            assert_eq!(index_of(kind), index);
        }
    }

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
            (1, 3 * SLICE_NS + 1100),
        ] {
            threads[thread].count(at_ns);
        }
        let end_ns = 3 * SLICE_NS + 1050;
        let expected =
            [(SLICE_NS + 1000, 2), (2 * SLICE_NS + 1000, 1), (3 * SLICE_NS + 1000, 1), (end_ns, 1)];
        assert_eq!(Slices::sum(threads.iter(), end_ns), expected);
        assert_eq!(Slices::sum([].iter(), end_ns), []);
    }

    proptest! {
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
                slices[0].count(now_ns);
            }
            for k in 0..other {
                slices[1].count(5 + k * 10_000_000);
            }
            prop_assert_eq!(slices[0].counts.capacity(), capacity);
            let sums = Slices::sum(slices.iter(), now_ns + 1);
            prop_assert_eq!(sums.iter().map(|s| s.1).sum::<u64>(), steps.len() as u64 + other);
            prop_assert!(sums.is_sorted_by_key(|s| s.0) && sums.len() <= 2 * SLICES_MAX);
            prop_assert_eq!(sums.last().map(|s| s.0), Some(now_ns + 1));
        }
    }
}
