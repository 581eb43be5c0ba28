//! What looks at a thread found, and how closely it must be looked at.
//!
//! A sample is for splitting the time that a thread sleeps. One that neither slept nor woke for a while, as its
//! `schedstat` tells, is doing what it did at the last sample: it is sampled where that is read, if it ran at all, and
//! such a sample counts for those that were left out. Each sample is a wake-up on a CPU that has other things to do.

use super::parse::Schedstat;
use crate::sleep::Why;
use crate::tape::Reading;
use std::collections::BTreeMap;

/// For so long after it slept or woke, and at the beginning of a window, a thread is looked at each time: at least, and for
/// twice as long as `schedstat` is read apart, which is longer where there are many threads.
const RESTLESS_NS: u64 = 100_000_000;
const RESTLESS_READINGS: u64 = 2;
/// A thread that ran or waited for more of the time than this has little sleep to be split.
const BUSY_SHARE: f64 = 0.9;

/// The samples of one thread in one window.
#[derive(Debug, Default)]
pub(super) struct StateSamples {
    counts: BTreeMap<Option<Why>, u64>,
    /// The last turn in which it was looked at, and what was found.
    last: Option<(u64, Option<Why>)>,
    /// What `schedstat` said first in this window, and last.
    first: Option<Schedstat>,
    schedstat: Option<Schedstat>,
    /// It slept between the last two readings of `schedstat`.
    dozed: bool,
    /// It has slept since it was sampled, as far as is known.
    slept: bool,
    restless_until_ns: u64,
}

impl StateSamples {
    /// Forgets the last window.
    pub(super) fn begin(&mut self, now_ns: u64) {
        *self =
            StateSamples { restless_until_ns: now_ns.saturating_add(RESTLESS_NS), ..StateSamples::default() };
    }

    pub(super) fn is_restless(&self, now_ns: u64) -> bool {
        now_ns <= self.restless_until_ns
    }

    /// Takes what `schedstat` tells.
    pub(super) fn heed(&mut self, schedstat: &Reading) {
        let Some(schedstat) = Schedstat::of(schedstat) else { return };
        let before = self.schedstat.replace(schedstat);
        self.first.get_or_insert(schedstat);
        self.dozed = before.is_some_and(|before| has_slept(before, schedstat));
        self.slept &= self.dozed;
        if let Some(before) = before.filter(|before| !is_steady(*before, schedstat)) {
            let apart_ns = schedstat.at_ns.saturating_sub(before.at_ns);
            let restless_ns = RESTLESS_NS.max(RESTLESS_READINGS.saturating_mul(apart_ns));
            self.restless_until_ns = schedstat.at_ns.saturating_add(restless_ns);
        }
    }

    /// What `schedstat` said last.
    pub(super) fn last(&self) -> Option<Schedstat> {
        self.schedstat
    }

    /// Whether it is known to have slept all the time that it was looked at in this window.
    pub(super) fn has_only_slept(&self) -> bool {
        self.first.zip(self.schedstat).is_some_and(|(first, last)| has_slept(first, last))
    }

    /// Counts once more what was found last of a thread that sleeps and that `schedstat`, heeded since, tells not to have run
    /// in between; false where that is not known.
    pub(super) fn repeat(&mut self, tick: u64) -> bool {
        match self.last {
            Some((_, found @ Some(_))) if self.slept => self.add(found, tick),
            _ => return false,
        }
        true
    }

    /// Takes what a sample found at this tick; `None`: running or ready. Of the ticks that were left out, the
    /// earlier half found what the look before did.
    pub(super) fn add(&mut self, found: Option<Why>, tick: u64) {
        let (last_tick, last) = self.last.unwrap_or((tick.saturating_sub(1), found));
        let ticks = tick.saturating_sub(last_tick);
        if ticks == 0 {
            return;
        }
        for (why, count) in [(last, ticks / 2), (found, ticks - ticks / 2)] {
            if count > 0 {
                *self.counts.entry(why).or_default() += count;
            }
        }
        // A reading right behind the look may be of another sleep already, unless it tells of none that ended.
        (self.last, self.slept) = (Some((tick, found)), self.dozed);
    }

    /// Whether the last sample found it running or ready.
    pub(super) fn was_ready(&self) -> bool {
        self.last.is_some_and(|(_, found)| found.is_none())
    }

    /// How many there were of each kind.
    pub(super) fn counts(&self) -> impl Iterator<Item = (Option<Why>, u64)> {
        self.counts.iter().map(|(why, count)| (*why, *count))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

/// Whether a thread slept (or waited, without an end: only its state tells these apart) all the time between two readings.
fn has_slept(before: Schedstat, now: Schedstat) -> bool {
    now.used_ns() == before.used_ns() && now.slices == before.slices
}

/// Whether it did, or ran and waited for nearly all of the time.
fn is_steady(before: Schedstat, now: Schedstat) -> bool {
    let used_ns = now.used_ns().saturating_sub(before.used_ns());
    let elapsed_ns = now.at_ns.saturating_sub(before.at_ns);
    has_slept(before, now) || used_ns as f64 >= BUSY_SHARE * elapsed_ns as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tare_model::schedule::Sleep;

    fn heed(state_samples: &mut StateSamples, at_ns: u64, text: &str) {
        state_samples.heed(&Reading { at_ns, source: 0, bytes: text.as_bytes() });
    }

    #[test]
    fn a_thread_is_looked_at_closely_for_a_while_after_it_slept_or_woke() {
        let mut state_samples = StateSamples::default();
        state_samples.begin(0);
        assert!(state_samples.is_restless(RESTLESS_NS) && !state_samples.is_restless(RESTLESS_NS + 1));
        let second = 1_000_000_000;
        heed(&mut state_samples, second, "100 100 7\n");
        heed(&mut state_samples, 2 * second, "100 100 7\n");
        assert!(!state_samples.is_restless(2 * second), "it slept");
        heed(&mut state_samples, 3 * second, "600000100 310000100 99\n");
        assert!(!state_samples.is_restless(3 * second), "it ran or waited");
        heed(&mut state_samples, 4 * second, "1000000100 310000100 99\n");
        assert!(state_samples.is_restless(4 * second + RESTLESS_NS), "it slept for some of the time");
        heed(&mut state_samples, 5 * second, "1000000100 310000100 100\n");
        assert!(
            state_samples.is_restless(5 * second + RESTLESS_NS),
            "it woke, and ran too shortly to be seen"
        );
        assert!(state_samples.is_restless(7 * second), "it is known a second apart");
        heed(&mut state_samples, 6 * second, "nonsense");
        assert!(!state_samples.is_restless(7 * second + 1));
    }

    #[test]
    fn a_sample_counts_for_those_left_out_before_it() {
        let (lock, timer) = (Some(Sleep::Lock.into()), Some(Sleep::Timer.into()));
        let mut state_samples = StateSamples::default();
        state_samples.add(lock, 3);
        state_samples.add(lock, 3);
        state_samples.add(lock, 4);
        state_samples.add(timer, 9);
        assert_eq!(
            state_samples.counts().collect::<BTreeMap<_, _>>(),
            BTreeMap::from([(lock, 4), (timer, 3)])
        );
    }

    #[test]
    fn who_slept_on_need_not_be_looked_at_again() {
        let lock = Some(Sleep::Lock.into());
        let mut state_samples = StateSamples::default();
        heed(&mut state_samples, 1, "5 5 7\n");
        assert!(!state_samples.repeat(1), "nothing is known");
        state_samples.add(lock, 1);
        heed(&mut state_samples, 2, "5 5 7\n");
        assert!(!state_samples.repeat(6), "it may have woken between the sample and the first reading");
        state_samples.add(lock, 6);
        heed(&mut state_samples, 3, "5 5 7\n");
        assert!(state_samples.repeat(11));
        heed(&mut state_samples, 4, "5 5 8\n");
        assert!(!state_samples.repeat(16), "it woke");
        state_samples.add(None, 16);
        heed(&mut state_samples, 5, "5 5 8\n");
        assert!(!state_samples.repeat(21), "it was about to run");
        assert_eq!(
            state_samples.counts().collect::<BTreeMap<_, _>>(),
            BTreeMap::from([(lock, 13), (None, 3)])
        );
    }

    proptest! {
        #[test]
        fn samples_are_as_many_as_ticks(steps in prop::collection::vec((1u64..9, prop::bool::ANY), 1..50)) {
            let mut state_samples = StateSamples::default();
            let mut tick = 0;
            for &(step, asleep) in &steps {
                tick += step;
                state_samples.add(asleep.then(|| Sleep::Event.into()), tick);
            }
            let counted: u64 = state_samples.counts().map(|(_, count)| count).sum();
            prop_assert_eq!(counted, tick - steps[0].0 + 1);
        }
    }
}
