//! When requests are to be sent: the one place that knows closed from open loop.
//!
//! An open loop's arrivals are never queued: the sequence is made again by whoever needs it, from its seed.
//! One cursor stands at the oldest arrival not yet sent, another counts what was due by some time.

use crate::spec::{Gaps, LoadSpec, Pacing};

/// When one thread sends.
#[derive(Debug)]
pub(crate) enum Schedule {
    /// Not before the generator begins.
    Held,
    /// Whenever a connection is free.
    Closed,
    /// By its own clock.
    Open(Arrivals),
}

impl Schedule {
    /// The part of thread `thread` in the pacing of `spec`, from `begin_ns` on.
    pub(crate) fn new(spec: &LoadSpec, thread: u32, begin_ns: u64) -> Self {
        match spec.pacing {
            Pacing::Closed => Schedule::Closed,
            Pacing::Open { rate_hz, gaps } => {
                Schedule::Open(Arrivals::new(rate_hz, gaps, begin_ns, (thread, spec.threads), spec.seed))
            }
        }
    }

    /// Takes one request that may be sent by `now_ns`: the stamp that its latency counts from.
    #[inline]
    pub(crate) fn take(&mut self, now_ns: u64) -> Option<u64> {
        match self {
            Schedule::Closed => Some(now_ns),
            Schedule::Held => None,
            Schedule::Open(arrivals) => arrivals.take(now_ns),
        }
    }

    /// When the next request will be due; `None`: not by any clock.
    #[inline]
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        match self {
            Schedule::Open(arrivals) => Some(arrivals.unsent.due_ns),
            Schedule::Closed | Schedule::Held => None,
        }
    }

    /// Open loop: arrivals due since the beginning, and how many of them were not sent.
    pub(crate) fn due(&mut self, now_ns: u64) -> Option<Due> {
        match self {
            Schedule::Open(arrivals) => Some(arrivals.due(now_ns)),
            Schedule::Closed | Schedule::Held => None,
        }
    }

    /// Whether a free connection always has something to send.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self, Schedule::Closed)
    }
}

/// How far an open loop has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    /// Arrivals since the beginning.
    pub(crate) scheduled: u64,
    /// Those of them that no connection was free for.
    pub(crate) unsent: u64,
}

/// The arrivals of one thread of an open loop.
#[derive(Debug)]
pub(crate) struct Arrivals {
    law: Law,
    /// At the oldest arrival not yet sent.
    unsent: Cursor,
    /// At the first arrival that was not due when last asked; behind `unsent` where all was sent in time.
    not_due: Cursor,
}

impl Arrivals {
    fn new(rate_hz: f64, gaps: Gaps, begin_ns: u64, (thread, threads): (u32, u32), seed: u64) -> Self {
        let gap_ns = 1e9 / rate_hz * f64::from(threads);
        let law = match gaps {
            // Threads take turns, so that all arrivals together have equal gaps.
            Gaps::Fixed => Law::Fixed { gap_ns, offset_ns: gap_ns * f64::from(thread) / f64::from(threads) },
            // Independent Poisson processes add up to one.
            Gaps::Poisson => Law::Poisson { gap_ns },
        };
        let random = Random::new(seed, thread);
        let mut first = Cursor { random, since_begin_ns: 0.0, index: 0, begin_ns, due_ns: begin_ns };
        first.place(&law);
        Arrivals { law, not_due: first.clone(), unsent: first }
    }

    #[inline]
    fn take(&mut self, now_ns: u64) -> Option<u64> {
        let due_ns = self.unsent.due_ns;
        if due_ns > now_ns {
            return None;
        }
        self.unsent.advance(&self.law);
        Some(due_ns)
    }

    fn due(&mut self, now_ns: u64) -> Due {
        if self.not_due.index < self.unsent.index {
            self.not_due = self.unsent.clone();
        }
        while self.not_due.due_ns <= now_ns {
            self.not_due.advance(&self.law);
        }
        Due { scheduled: self.not_due.index, unsent: self.not_due.index - self.unsent.index }
    }
}

#[derive(Debug)]
enum Law {
    Fixed { gap_ns: f64, offset_ns: f64 },
    Poisson { gap_ns: f64 },
}

/// A place in the sequence of arrivals.
#[derive(Debug, Clone)]
struct Cursor {
    random: Random,
    begin_ns: u64,
    since_begin_ns: f64,
    /// Arrivals before this one.
    index: u64,
    due_ns: u64,
}

impl Cursor {
    #[inline]
    fn advance(&mut self, law: &Law) {
        self.index += 1;
        self.place(law);
    }

    /// Finds the time of arrival `index`. Fixed gaps are multiplied, not added up, so that no error grows.
    #[inline]
    fn place(&mut self, law: &Law) {
        match *law {
            Law::Fixed { gap_ns, offset_ns } => self.since_begin_ns = self.index as f64 * gap_ns + offset_ns,
            Law::Poisson { gap_ns } => self.since_begin_ns -= self.random.unit().ln() * gap_ns,
        }
        self.due_ns = self.begin_ns.saturating_add(self.since_begin_ns as u64);
    }
}

/// SplitMix64 (Steele, Lea and Flood, 2014): small, fast, and good enough for gaps.
#[derive(Debug, Clone)]
struct Random(u64);

impl Random {
    fn new(seed: u64, thread: u32) -> Self {
        let mut mixed = Random(seed ^ (u64::from(thread) << 32));
        Random(mixed.next())
    }

    #[inline]
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in (0, 1], so that its logarithm is finite.
    #[inline]
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BEGIN_NS: u64 = 1_000_000_000_000;

    fn arrivals(rate_hz: f64, gaps: Gaps, thread: u32, threads: u32) -> Arrivals {
        Arrivals::new(rate_hz, gaps, BEGIN_NS, (thread, threads), 7)
    }

    fn until(arrivals: &mut Arrivals, end_ns: u64) -> Vec<u64> {
        std::iter::from_fn(|| arrivals.take(end_ns)).collect()
    }

    #[test]
    fn threads_share_fixed_gaps() {
        let mut all: Vec<u64> = (0..3)
            .flat_map(|thread| until(&mut arrivals(3000.0, Gaps::Fixed, thread, 3), BEGIN_NS + 999_999_999))
            .collect();
        all.sort_unstable();
        assert_eq!(all.len(), 3000);
        for (k, due_ns) in all.iter().enumerate() {
            let exact = BEGIN_NS as f64 + k as f64 * 1e9 / 3000.0;
            assert!((*due_ns as f64 - exact).abs() <= 1.0, "{k}: {due_ns}");
        }
    }

    #[test]
    fn poisson_gaps_have_mean_and_deviation_of_an_exponential() {
        let stamps = until(&mut arrivals(1e6, Gaps::Poisson, 0, 1), BEGIN_NS + 1_000_000_000);
        let n = stamps.len() as f64;
        assert!((n - 1e6).abs() < 4.0 * 1e3, "{n}");
        let gaps: Vec<f64> = stamps.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.01, "{mean} {variance}");
    }

    #[test]
    fn threads_and_seeds_differ() {
        let first = |thread, seed| Arrivals::new(1e3, Gaps::Poisson, 0, (thread, 2), seed).unsent.due_ns;
        assert_ne!(first(0, 1), first(1, 1));
        assert_ne!(first(0, 1), first(0, 2));
        assert_eq!(first(0, 1), first(0, 1));
    }

    #[test]
    fn closed_loops_are_always_due_and_held_ones_never() {
        assert_eq!(Schedule::Closed.take(5), Some(5));
        assert_eq!(Schedule::Held.take(u64::MAX), None);
        assert_eq!((Schedule::Closed.due(9), Schedule::Closed.next_due_ns()), (None, None));
    }

    proptest! {
        /// However the sender lags, every arrival is sent once, in order, and counted once.
        #[test]
        fn nothing_is_lost_by_lagging(
            rate_hz in 1e2f64..1e6,
            poisson: bool,
            steps in prop::collection::vec((0u64..3_000_000, 0usize..20), 1..40),
        ) {
            let gaps = if poisson { Gaps::Poisson } else { Gaps::Fixed };
            let mut lagging = arrivals(rate_hz, gaps, 1, 2);
            let (mut now_ns, mut sent) = (BEGIN_NS, Vec::new());
            for (pause_ns, budget) in steps {
                now_ns += pause_ns;
                sent.extend((0..budget).filter_map(|_| lagging.take(now_ns)));
                let due = lagging.due(now_ns);
                prop_assert_eq!(due.scheduled - due.unsent, sent.len() as u64);
                prop_assert!(sent.iter().all(|&stamp| stamp <= now_ns));
            }
            let scheduled = lagging.due(now_ns).scheduled;
            sent.extend(until(&mut lagging, now_ns));
            prop_assert_eq!(sent.len() as u64, scheduled);
            prop_assert_eq!(sent, until(&mut arrivals(rate_hz, gaps, 1, 2), now_ns));
        }
    }
}
