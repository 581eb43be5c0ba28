//! What looks at a thread found, and how closely it must be looked at.
//!
//! A look is for splitting the time that a thread sleeps. One that neither slept nor woke for a while, as its
//! `schedstat` tells, is doing what it did at the last look: it is looked at where that is read, if it ran at all, and
//! such a look counts for those that were left out. Each look is a wake-up on a CPU that has other things to do.

use super::parse::Told;
use crate::sleep::Why;
use crate::tape::Reading;
use std::collections::BTreeMap;

/// For so long after it slept or woke, and at the beginning of a window, a thread is looked at each time: at least, and for
/// twice as long as `schedstat` is read apart, which is longer where there are many threads.
const RESTLESS_NS: u64 = 100_000_000;
const RESTLESS_READINGS: u64 = 2;
/// A thread that ran or waited for more of the time than this has little sleep to be split.
const BUSY_SHARE: f64 = 0.9;

/// The looks at one thread in one window.
#[derive(Debug, Default)]
pub(super) struct Looks {
    counts: BTreeMap<Option<Why>, u64>,
    /// The last turn in which it was looked at, and what was found.
    last: Option<(u64, Option<Why>)>,
    /// What `schedstat` told last.
    told: Option<Told>,
    /// It slept between the last two readings of `schedstat`.
    dozed: bool,
    /// It has slept since it was looked at, as far as is told.
    slept: bool,
    restless_until_ns: u64,
}

impl Looks {
    /// Forgets the last window.
    pub(super) fn begin(&mut self, now_ns: u64) {
        *self = Looks { restless_until_ns: now_ns.saturating_add(RESTLESS_NS), ..Looks::default() };
    }

    pub(super) fn is_restless(&self, now_ns: u64) -> bool {
        now_ns <= self.restless_until_ns
    }

    /// Takes what `schedstat` tells.
    pub(super) fn heed(&mut self, schedstat: &Reading) {
        let Some(told) = Told::of(schedstat) else { return };
        let before = self.told.replace(told);
        self.dozed = before.is_some_and(|before| has_slept(before, told));
        self.slept &= self.dozed;
        if let Some(before) = before.filter(|before| !is_steady(*before, told)) {
            let apart_ns = told.at_ns.saturating_sub(before.at_ns);
            let restless_ns = RESTLESS_NS.max(RESTLESS_READINGS.saturating_mul(apart_ns));
            self.restless_until_ns = told.at_ns.saturating_add(restless_ns);
        }
    }

    /// Counts once more what was found last of a thread that sleeps and that `schedstat`, heeded since, tells not to have run
    /// in between; false where that is not told.
    pub(super) fn repeat(&mut self, turn: u64) -> bool {
        match self.last {
            Some((_, found @ Some(_))) if self.slept => self.add(found, turn),
            _ => return false,
        }
        true
    }

    /// Takes what a look found in this turn of looks; `None`: running or ready. Of the turns that were left out, the
    /// earlier half found what the look before did.
    pub(super) fn add(&mut self, found: Option<Why>, turn: u64) {
        let (last_turn, last) = self.last.unwrap_or((turn.saturating_sub(1), found));
        let turns = turn.saturating_sub(last_turn);
        if turns == 0 {
            return;
        }
        for (why, count) in [(last, turns / 2), (found, turns - turns / 2)] {
            if count > 0 {
                *self.counts.entry(why).or_default() += count;
            }
        }
        // A reading right behind the look may be of another sleep already, unless it tells of none that ended.
        (self.last, self.slept) = (Some((turn, found)), self.dozed);
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
fn has_slept(before: Told, now: Told) -> bool {
    now.used_ns() == before.used_ns() && now.turns == before.turns
}

/// Whether it did, or ran and waited for nearly all of the time.
fn is_steady(before: Told, now: Told) -> bool {
    let used_ns = now.used_ns().saturating_sub(before.used_ns());
    let elapsed_ns = now.at_ns.saturating_sub(before.at_ns);
    has_slept(before, now) || used_ns as f64 >= BUSY_SHARE * elapsed_ns as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tare_model::schedule::Sleep;

    fn heed(looks: &mut Looks, at_ns: u64, text: &str) {
        looks.heed(&Reading { at_ns, source: 0, bytes: text.as_bytes() });
    }

    #[test]
    fn a_thread_is_looked_at_closely_for_a_while_after_it_slept_or_woke() {
        let mut looks = Looks::default();
        looks.begin(0);
        assert!(looks.is_restless(RESTLESS_NS) && !looks.is_restless(RESTLESS_NS + 1));
        let second = 1_000_000_000;
        heed(&mut looks, second, "100 100 7\n");
        heed(&mut looks, 2 * second, "100 100 7\n");
        assert!(!looks.is_restless(2 * second), "it slept");
        heed(&mut looks, 3 * second, "600000100 310000100 99\n");
        assert!(!looks.is_restless(3 * second), "it ran or waited");
        heed(&mut looks, 4 * second, "1000000100 310000100 99\n");
        assert!(looks.is_restless(4 * second + RESTLESS_NS), "it slept for some of the time");
        heed(&mut looks, 5 * second, "1000000100 310000100 100\n");
        assert!(looks.is_restless(5 * second + RESTLESS_NS), "it woke, and ran too shortly to be seen");
        assert!(looks.is_restless(7 * second), "it is told a second apart");
        heed(&mut looks, 6 * second, "nonsense");
        assert!(!looks.is_restless(7 * second + 1));
    }

    #[test]
    fn a_look_counts_for_those_left_out_before_it() {
        let (lock, timer) = (Some(Sleep::Lock.into()), Some(Sleep::Timer.into()));
        let mut looks = Looks::default();
        looks.add(lock, 3);
        looks.add(lock, 3);
        looks.add(lock, 4);
        looks.add(timer, 9);
        assert_eq!(looks.counts().collect::<BTreeMap<_, _>>(), BTreeMap::from([(lock, 4), (timer, 3)]));
    }

    #[test]
    fn who_slept_on_need_not_be_looked_at_again() {
        let lock = Some(Sleep::Lock.into());
        let mut looks = Looks::default();
        heed(&mut looks, 1, "5 5 7\n");
        assert!(!looks.repeat(1), "nothing is known");
        looks.add(lock, 1);
        heed(&mut looks, 2, "5 5 7\n");
        assert!(!looks.repeat(6), "it may have woken between the look and the first reading");
        looks.add(lock, 6);
        heed(&mut looks, 3, "5 5 7\n");
        assert!(looks.repeat(11));
        heed(&mut looks, 4, "5 5 8\n");
        assert!(!looks.repeat(16), "it woke");
        looks.add(None, 16);
        heed(&mut looks, 5, "5 5 8\n");
        assert!(!looks.repeat(21), "it was about to run");
        assert_eq!(looks.counts().collect::<BTreeMap<_, _>>(), BTreeMap::from([(lock, 13), (None, 3)]));
    }

    proptest! {
        #[test]
        fn looks_are_as_many_as_turns(steps in prop::collection::vec((1u64..9, prop::bool::ANY), 1..50)) {
            let mut looks = Looks::default();
            let mut turn = 0;
            for &(step, asleep) in &steps {
                turn += step;
                looks.add(asleep.then(|| Sleep::Event.into()), turn);
            }
            let counted: u64 = looks.counts().map(|(_, count)| count).sum();
            prop_assert_eq!(counted, turn - steps[0].0 + 1);
        }
    }
}
