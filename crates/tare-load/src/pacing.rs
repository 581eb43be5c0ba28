//! When requests are to be sent: the one place that knows closed from open loop.
//!
//! An open loop's arrivals are never queued: the sequence is made again by whoever needs it, from its seed.
//! One cursor stands at the oldest arrival not yet sent, another counts what was due by some time.

use crate::interleaving::TurnClock;
use crate::random::Random;
use crate::spec::{Gaps, LoadSpec, Pacing, Stage};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// When one thread sends.
#[derive(Debug)]
pub(crate) enum Schedule {
    /// Not before the generator begins.
    Held,
    /// Whenever a connection is free.
    Closed,
    /// The same, in its turns among interleaved loops.
    Interleaved(TurnClock),
    /// When a user has paused long enough.
    Thinking(Thoughts),
    /// By its own clock.
    Open(Arrivals),
}

impl Schedule {
    /// The part of thread `thread` in the pacing of `spec`, from `begin_ns` on; `users` is how many requests it may have in
    /// flight.
    pub(crate) fn new(spec: &LoadSpec, thread: u32, begin_ns: u64, users: usize) -> Self {
        let part = (thread, spec.workers.threads);
        let random = Random::new(spec.seed, thread);
        match &spec.pacing {
            Pacing::Closed => Schedule::Closed,
            Pacing::Interleaved(turns) => Schedule::Interleaved(TurnClock::new(*turns, begin_ns)),
            Pacing::Thinking { mean_ns, gaps } => Schedule::Thinking(Thoughts {
                mean_ns: *mean_ns as f64,
                gaps: *gaps,
                random,
                due: BinaryHeap::with_capacity(users),
            }),
            Pacing::Open { rate_hz, gaps } => {
                let steady = Stage { from_hz: *rate_hz, to_hz: *rate_hz, for_ns: 1 };
                Schedule::Open(Arrivals::new(&[steady], *gaps, begin_ns, part, random))
            }
            Pacing::Stages { stages, gaps } => {
                Schedule::Open(Arrivals::new(stages, *gaps, begin_ns, part, random))
            }
        }
    }

    /// Takes one request that may be sent by `now_ns`: the stamp that its latency counts from.
    #[inline]
    pub(crate) fn take(&mut self, now_ns: u64) -> Option<u64> {
        match self {
            Schedule::Closed => Some(now_ns),
            Schedule::Interleaved(clock) => clock.is_ours(now_ns).then_some(now_ns),
            Schedule::Held | Schedule::Thinking(_) => None,
            Schedule::Open(arrivals) => arrivals.take(now_ns),
        }
    }

    /// When the next request will be due; `None`: not by any clock.
    #[inline]
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        match self {
            Schedule::Open(arrivals) => arrivals.next_due_ns(),
            Schedule::Thinking(thoughts) => thoughts.next_due_ns(),
            Schedule::Interleaved(clock) => clock.next_due_ns(),
            Schedule::Closed | Schedule::Held => None,
        }
    }

    /// Open loop: arrivals due since the beginning, and how many of them were not sent.
    pub(crate) fn due(&mut self, now_ns: u64) -> Option<Due> {
        match self {
            Schedule::Open(arrivals) => Some(arrivals.due(now_ns)),
            Schedule::Closed | Schedule::Interleaved(_) | Schedule::Held | Schedule::Thinking(_) => None,
        }
    }

    /// Nothing more is to be sent: what was not taken by now never falls due.
    pub(crate) fn end(&mut self) {
        match self {
            Schedule::Open(arrivals) => arrivals.ended = true,
            Schedule::Thinking(thoughts) => thoughts.due.clear(),
            Schedule::Interleaved(clock) => clock.end(),
            Schedule::Closed | Schedule::Held => {}
        }
    }

    /// Whether it has a clock of its own, and so requests can be late.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Schedule::Open(_))
    }

    /// Whether a free connection always has something to send.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self, Schedule::Closed)
    }
}

/// Users who pause before their next request.
#[derive(Debug)]
pub(crate) struct Thoughts {
    mean_ns: f64,
    gaps: Gaps,
    random: Random,
    /// (when, whose connection); each user at most once, so it never grows past its capacity.
    due: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Thoughts {
    /// A user of connection `c` pauses from `now_ns` on. The first pauses begin anywhere within, so that users who come at
    /// once do not stay together.
    pub(crate) fn pause(&mut self, c: u32, now_ns: u64, first: bool) {
        let mut pause_ns = match self.gaps {
            Gaps::Fixed => self.mean_ns,
            Gaps::Poisson => -self.random.unit().ln() * self.mean_ns,
        };
        if first && self.gaps == Gaps::Fixed {
            pause_ns *= self.random.unit();
        }
        self.due.push(Reverse((now_ns.saturating_add(pause_ns as u64), c)));
    }

    /// The connection of a user whose pause is over by `now_ns`.
    pub(crate) fn take(&mut self, now_ns: u64) -> Option<u32> {
        self.next_due_ns().filter(|&due_ns| due_ns <= now_ns)?;
        self.due.pop().map(|Reverse((_, c))| c)
    }

    fn next_due_ns(&self) -> Option<u64> {
        self.due.peek().map(|Reverse((due_ns, _))| *due_ns)
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
    ended: bool,
}

impl Arrivals {
    fn new(
        stages: &[Stage],
        gaps: Gaps,
        begin_ns: u64,
        (thread, threads): (u32, u32),
        random: Random,
    ) -> Self {
        let law = Law {
            gaps,
            thread: f64::from(thread),
            threads: f64::from(threads),
            profile: Profile::new(stages),
        };
        let mut first = Cursor { random, arrivals: 0.0, leg: 0, index: 0, begin_ns, due_ns: begin_ns };
        first.place(&law);
        Arrivals { law, not_due: first.clone(), unsent: first, ended: false }
    }

    #[inline]
    fn take(&mut self, now_ns: u64) -> Option<u64> {
        let due_ns = self.unsent.due_ns;
        if due_ns > now_ns || self.ended {
            return None;
        }
        self.unsent.advance(&self.law);
        Some(due_ns)
    }

    #[inline]
    fn next_due_ns(&self) -> Option<u64> {
        (!self.ended).then_some(self.unsent.due_ns)
    }

    fn due(&mut self, now_ns: u64) -> Due {
        if self.not_due.index < self.unsent.index {
            self.not_due = self.unsent.clone();
        }
        while !self.ended && self.not_due.due_ns <= now_ns {
            self.not_due.advance(&self.law);
        }
        let scheduled = if self.ended { self.unsent.index } else { self.not_due.index };
        Due { scheduled, unsent: scheduled - self.unsent.index }
    }
}

/// Which arrivals of all are one thread's.
#[derive(Debug)]
struct Law {
    gaps: Gaps,
    thread: f64,
    threads: f64,
    profile: Profile,
}

/// A place in the sequence of arrivals.
#[derive(Debug, Clone)]
struct Cursor {
    random: Random,
    begin_ns: u64,
    /// Expected number of arrivals of *all* threads before this one.
    arrivals: f64,
    /// Where in the profile that is.
    leg: usize,
    /// This thread's arrivals before this one.
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
        match law.gaps {
            // Each thread has every nth arrival, so that all together have equal gaps.
            Gaps::Fixed => self.arrivals = self.index as f64 * law.threads + law.thread,
            // Independent Poisson processes add up to one.
            Gaps::Poisson => self.arrivals -= self.random.unit().ln() * law.threads,
        }
        let since_begin_ns = law.profile.when_ns(self.arrivals, &mut self.leg);
        // Never due is the end of time, which the cast saturates to.
        self.due_ns = self.begin_ns.saturating_add((since_begin_ns + 0.5) as u64);
    }
}

/// How the rate of an open loop changes: legs of evenly changing rate, the last one steady and endless.
#[derive(Debug)]
struct Profile(Vec<Leg>);

#[derive(Debug)]
struct Leg {
    begin_ns: f64,
    /// Arrivals expected before it, and in it.
    before: f64,
    within: f64,
    /// Rate at its beginning per nanosecond, and by how much it grows in each.
    rate: f64,
    slope: f64,
}

impl Profile {
    fn new(stages: &[Stage]) -> Self {
        let (mut legs, mut begin_ns, mut before, mut end_hz) =
            (Vec::with_capacity(stages.len() + 1), 0.0, 0.0, 0.0);
        for stage in stages {
            let (rate, to, for_ns) = (stage.from_hz / 1e9, stage.to_hz / 1e9, stage.for_ns as f64);
            let within = (rate + to) / 2.0 * for_ns;
            legs.push(Leg { begin_ns, before, within, rate, slope: (to - rate) / for_ns });
            (begin_ns, before, end_hz) = (begin_ns + for_ns, before + within, stage.to_hz);
        }
        legs.push(Leg { begin_ns, before, within: f64::INFINITY, rate: end_hz / 1e9, slope: 0.0 });
        Profile(legs)
    }

    /// When this many arrivals are expected to have come, nanoseconds from the beginning; asked in ascending order, `leg`
    /// remembers where. The root of `rate·t + slope·t²/2 = n` in the form that does not cancel.
    #[inline]
    fn when_ns(&self, arrivals: f64, leg: &mut usize) -> f64 {
        while *leg + 1 < self.0.len() && arrivals >= self.0[*leg].before + self.0[*leg].within {
            *leg += 1;
        }
        let Leg { begin_ns, before, rate, slope, .. } = self.0[*leg];
        let n = (arrivals - before).max(0.0);
        let divisor =
            if slope == 0.0 { rate } else { (rate + (rate * rate + 2.0 * slope * n).max(0.0).sqrt()) / 2.0 };
        match divisor > 0.0 {
            true => begin_ns + n / divisor,
            false if slope > 0.0 => begin_ns,
            false => f64::INFINITY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BEGIN_NS: u64 = 1_000_000_000_000;

    fn arrivals(rate_hz: f64, gaps: Gaps, thread: u32, threads: u32) -> Arrivals {
        open(rate_hz, gaps, (thread, threads), 7)
    }

    fn open(rate_hz: f64, gaps: Gaps, part: (u32, u32), seed: u64) -> Arrivals {
        let steady = Stage { from_hz: rate_hz, to_hz: rate_hz, for_ns: 1 };
        Arrivals::new(&[steady], gaps, BEGIN_NS, part, Random::new(seed, part.0))
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
        let first = |thread, seed| open(1e3, Gaps::Poisson, (thread, 2), seed).unsent.due_ns;
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

    #[test]
    fn pauses_end_in_order_and_spread_at_first() {
        let random = Random::new(1, 0);
        let mut thoughts = Thoughts { mean_ns: 1000.0, gaps: Gaps::Fixed, random, due: BinaryHeap::new() };
        (0..100).for_each(|c| thoughts.pause(c, 0, true));
        assert_eq!(thoughts.take(0), None);
        let early = std::iter::from_fn(|| thoughts.take(500)).count();
        assert!((25..75).contains(&early), "{early}");
        assert_eq!(std::iter::from_fn(|| thoughts.take(1000)).count(), 100 - early);
        thoughts.pause(7, 5000, false);
        assert_eq!(
            (thoughts.next_due_ns(), thoughts.take(5999), thoughts.take(6000)),
            (Some(6000), None, Some(7))
        );
    }

    #[test]
    fn a_pause_in_the_profile_sends_nothing() {
        let stage = |from_hz, to_hz| Stage { from_hz, to_hz, for_ns: 1_000_000_000 };
        let stages =
            [stage(0.0, 0.0), stage(10.0, 10.0), stage(0.0, 0.0), stage(0.0, 20.0), stage(20.0, 0.0)];
        let mut arrivals = Arrivals::new(&stages, Gaps::Fixed, 0, (0, 1), Random::new(0, 0));
        let sent = until(&mut arrivals, u64::MAX - 1);
        let in_stage = |k: u64| sent.iter().filter(|&&ns| ns / 1_000_000_000 == k).count();
        assert_eq!([0, 1, 2, 3, 4].map(in_stage), [0, 10, 0, 10, 10]);
        assert_eq!((arrivals.next_due_ns(), sent.len()), (Some(u64::MAX), 30));
    }

    proptest! {
        /// However the rate changes, arrivals are in order, and as many as the area under the profile by any time.
        #[test]
        fn a_profile_has_the_area_that_was_asked(
            stages in prop::collection::vec((0f64..5e3, 0f64..5e3, 1_000_000u64..2_000_000_000), 1..6),
            threads in 1u32..4,
            share in 0f64..1.0,
        ) {
            let stages: Vec<Stage> =
                stages.iter().map(|&(from_hz, to_hz, for_ns)| Stage { from_hz, to_hz, for_ns }).collect();
            let total_ns: u64 = stages.iter().map(|stage| stage.for_ns).sum();
            let end_ns = (total_ns as f64 * share) as u64;
            let (mut area, mut at_ns) = (0.0, 0);
            for stage in &stages {
                let within_ns = end_ns.saturating_sub(at_ns).min(stage.for_ns) as f64;
                let end_hz = stage.from_hz + (stage.to_hz - stage.from_hz) * within_ns / stage.for_ns as f64;
                area += (stage.from_hz + end_hz) / 2.0 * within_ns / 1e9;
                at_ns += stage.for_ns;
            }
            let mut sent = 0;
            for thread in 0..threads {
                let mut part = Arrivals::new(&stages, Gaps::Fixed, 0, (thread, threads), Random::new(0, thread));
                let stamps = until(&mut part, end_ns);
                prop_assert!(stamps.is_sorted());
                sent += stamps.len();
            }
            prop_assert!((sent as f64 - area).abs() <= 1.001, "{} of {}", sent, area);
        }

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
