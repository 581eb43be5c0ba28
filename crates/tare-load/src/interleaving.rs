//! Interleaved closed loops: each server is loaded for some milliseconds, then the next, so that bursts and slow half-seconds of the host
//! affect all of them alike. Trials one after the other would each have their own.
//!
//! Each thread of each generator computes from the clock whose turn it is.

use crate::random::Random;
use std::cmp::Ordering;

/// Most loops that are interleaved with each other.
pub const ARMS_MAX: u32 = 64;
/// Shortest turn: below a millisecond the ramp of a turn is all of it.
pub const TURN_NS_MIN: u64 = 1_000_000;
/// Longest turn (a minute).
pub const TURN_NS_MAX: u64 = 60_000_000_000;

/// When one closed loop among several sends. All of them have the same values but for their `place`.
///
/// Each has one turn in a round. Rounds come in pairs: the order of the first is random, the second has the reverse order. So what
/// changes evenly over a pair affects every arm alike (ABBA), and what is periodic does not stay on the turns of one arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interleaving {
    /// When the first round begins, on the monotonic clock.
    pub begin_ns: u64,
    /// Length of a turn, nanoseconds, [`TURN_NS_MIN`] to [`TURN_NS_MAX`].
    pub turn_ns: u64,
    /// The last part of a turn, for what is in flight: no arm sends then. Less than half of the turn.
    pub rest_ns: u64,
    /// How many arms there are, 1 to [`ARMS_MAX`].
    pub arms: u32,
    /// Which arm this one is, from 0.
    pub place: u32,
    /// Seed of the order.
    pub seed: u64,
    /// Rounds come in slices with a break after each; `None`: no break, no end.
    pub slices: Option<Slices>,
}

/// Rounds between two breaks. No arm sends in a break, so there is time to read the counters of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slices {
    /// Rounds in a slice, one or more; an even number has whole pairs.
    pub rounds: u32,
    /// Length of a break, nanoseconds, up to [`TURN_NS_MAX`].
    pub break_ns: u64,
}

impl Interleaving {
    /// Whether these values fit together.
    pub(crate) fn is_possible(&self) -> bool {
        let turn = (TURN_NS_MIN..=TURN_NS_MAX).contains(&self.turn_ns) && self.rest_ns < self.turn_ns / 2;
        let arms = (1..=ARMS_MAX).contains(&self.arms) && self.place < self.arms;
        let slices = self.slices.is_none_or(|slices| slices.rounds > 0 && slices.break_ns <= TURN_NS_MAX);
        turn && arms && slices
    }

    /// When slice `slice` (from 0) begins and when its last turn is over; without slices all is the first one, which has no end.
    pub fn slice_ns(&self, slice: u64) -> (u64, u64) {
        let Some(Slices { rounds, .. }) = self.slices else { return (self.begin_ns, u64::MAX) };
        let begin_ns = self.begin_of(slice.saturating_mul(u64::from(rounds)), 0);
        (begin_ns, begin_ns.saturating_add(self.round_ns().saturating_mul(u64::from(rounds))))
    }

    fn round_ns(&self) -> u64 {
        self.turn_ns.saturating_mul(u64::from(self.arms))
    }

    /// When turn `turn` of round `round` begins.
    fn begin_of(&self, round: u64, turn: u32) -> u64 {
        let breaks_ns = self
            .slices
            .map_or(0, |Slices { rounds, break_ns }| (round / u64::from(rounds)).saturating_mul(break_ns));
        let turns = round.saturating_mul(u64::from(self.arms)).saturating_add(u64::from(turn));
        self.begin_ns.saturating_add(turns.saturating_mul(self.turn_ns)).saturating_add(breaks_ns)
    }

    /// Which turn of a round this arm has.
    fn turn_in(&self, round: u64) -> u32 {
        let mut order = [0u8; ARMS_MAX as usize];
        let arms = self.arms as usize;
        let order = &mut order[..arms];
        order.iter_mut().zip(0..).for_each(|(arm, place)| *arm = place);
        // Another sequence for each pair of rounds, whichever was asked for before.
        let mut random = Random::new(self.seed ^ (round / 2).wrapping_mul(0xD1B5_4A32_D192_ED03), 0);
        for last in (1..arms).rev() {
            order.swap(last, (random.next() % (last as u64 + 1)) as usize);
        }
        let turn = order.iter().position(|arm| u32::from(*arm) == self.place).unwrap_or(0) as u32;
        if round % 2 == 1 { self.arms - 1 - turn } else { turn }
    }

    /// Whether it is this arm's turn, and until when that holds.
    pub(crate) fn at(&self, now_ns: u64) -> Phase {
        let next_of =
            |round: u64| Phase { is_ours: false, until_ns: self.begin_of(round, self.turn_in(round)) };
        let Some(since_ns) = now_ns.checked_sub(self.begin_ns) else { return next_of(0) };
        let (before, within_ns) = match self.slices {
            Some(Slices { rounds, break_ns }) => {
                let rounds = u64::from(rounds);
                let slice_ns = self.round_ns().saturating_mul(rounds);
                let with_break_ns = slice_ns.saturating_add(break_ns);
                let (slice, within_ns) = (since_ns / with_break_ns, since_ns % with_break_ns);
                if within_ns >= slice_ns {
                    return next_of((slice + 1) * rounds);
                }
                (slice * rounds, within_ns)
            }
            None => (0, since_ns),
        };
        let (round, turn) =
            (before + within_ns / self.round_ns(), within_ns % self.round_ns() / self.turn_ns);
        let ours = u64::from(self.turn_in(round));
        let sending_ns = self.turn_ns - self.rest_ns;
        match ours.cmp(&turn) {
            Ordering::Greater => next_of(round),
            Ordering::Equal if within_ns % self.turn_ns < sending_ns => {
                Phase { is_ours: true, until_ns: self.begin_of(round, ours as u32) + sending_ns }
            }
            Ordering::Equal | Ordering::Less => next_of(round + 1),
        }
    }
}

/// Whether it is one arm's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Phase {
    pub(crate) is_ours: bool,
    /// The end of our turn, or the beginning of our next one.
    pub(crate) until_ns: u64,
}

/// The turns of one thread, computed anew only when a phase is over.
#[derive(Debug)]
pub(crate) struct TurnClock {
    turns: Interleaving,
    phase: Phase,
    ended: bool,
}

impl TurnClock {
    pub(crate) fn new(turns: Interleaving, now_ns: u64) -> Self {
        TurnClock { turns, phase: turns.at(now_ns), ended: false }
    }

    /// Whether a request may be sent.
    #[inline]
    pub(crate) fn is_ours(&mut self, now_ns: u64) -> bool {
        if now_ns >= self.phase.until_ns {
            self.phase = self.turns.at(now_ns);
        }
        self.phase.is_ours && !self.ended
    }

    /// While others send: when our turn begins. Until then nobody needs to be woken for each answer to what is in flight,
    /// for which the server would pay. `None` in our turn, and where answers have a rest to come in, whose latencies count.
    #[inline]
    pub(crate) fn sleeps_until_ns(&mut self, now_ns: u64) -> Option<u64> {
        let sleeps = !self.is_ours(now_ns) && !self.ended && self.turns.rest_ns == 0;
        sleeps.then_some(self.phase.until_ns)
    }

    /// When what is free now may send.
    #[inline]
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        (!self.phase.is_ours && !self.ended).then_some(self.phase.until_ns)
    }

    pub(crate) fn end(&mut self) {
        self.ended = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn turns(arms: u32, place: u32, seed: u64) -> Interleaving {
        Interleaving { begin_ns: 1_000, turn_ns: TURN_NS_MIN, rest_ns: 0, arms, place, seed, slices: None }
    }

    #[test]
    fn who_is_not_to_send_sleeps_until_its_turn_unless_answers_have_a_rest() {
        let of = |rest_ns| TurnClock::new(Interleaving { rest_ns, ..turns(2, 0, 7) }, 1_000);
        let (mut plain, mut rested) = (of(0), of(TURN_NS_MIN / 4));
        let mut slept = 0;
        for at_ns in (1_000..1_000 + 40 * TURN_NS_MIN).step_by(TURN_NS_MIN as usize / 7) {
            let sleeps = plain.sleeps_until_ns(at_ns);
            assert_eq!(sleeps.is_none(), plain.is_ours(at_ns));
            if let Some(until_ns) = sleeps {
                slept += 1;
                assert!(plain.turns.at(until_ns).is_ours && !plain.turns.at(until_ns - 1).is_ours);
            }
            assert_eq!(rested.sleeps_until_ns(at_ns), None);
        }
        assert!(slept > 100, "{slept}");
        plain.end();
        assert_eq!(plain.sleeps_until_ns(1_000), None);
    }

    fn owner(arms: u32, seed: u64, turn: u64) -> Vec<u32> {
        let at_ns = 1_000 + turn * TURN_NS_MIN + TURN_NS_MIN / 2;
        (0..arms).filter(|place| turns(arms, *place, seed).at(at_ns).is_ours).collect()
    }

    proptest! {
        #[test]
        fn everybody_has_one_turn_in_a_round_and_the_next_round_is_its_mirror(
            arms in 1..=ARMS_MAX, seed: u64, pair in 0u64..1000,
        ) {
            let round = |round: u64| -> Vec<u32> {
                (0..u64::from(arms)).flat_map(|turn| owner(arms, seed, round * u64::from(arms) + turn)).collect()
            };
            let (mut first, second) = (round(2 * pair), round(2 * pair + 1));
            prop_assert_eq!(&second, &first.iter().rev().copied().collect::<Vec<_>>());
            first.sort_unstable();
            prop_assert_eq!(first, (0..arms).collect::<Vec<_>>());
        }

        /// What a phase says of its end is so: asked a nanosecond before it nothing has changed.
        #[test]
        fn a_phase_lasts_until_it_says(arms in 1u32..6, place in 0u32..6, seed: u64, now_ns in 0u64..200_000_000) {
            let turns = turns(arms, place % arms, seed);
            let phase = turns.at(now_ns);
            prop_assert!(phase.until_ns > now_ns);
            prop_assert_eq!(turns.at(phase.until_ns - 1).is_ours, phase.is_ours);
            prop_assert!(phase.is_ours || turns.at(phase.until_ns).is_ours);
            prop_assert!(phase.until_ns - now_ns <= (2 * u64::from(arms) * TURN_NS_MIN).max(1_000 + u64::from(arms) * TURN_NS_MIN));
        }
    }

    proptest! {
        /// With rests and breaks as well; and nobody's turn goes on in a rest or a break.
        #[test]
        fn slices_have_their_turns_and_nothing_between_them(
            arms in 1u32..5, place in 0u32..5, seed: u64, rounds in 1u32..5, break_ns in 0u64..5_000_000,
            rest_ns in 0..TURN_NS_MIN / 2, now_ns in 0u64..100_000_000,
        ) {
            let slices = Some(Slices { rounds, break_ns });
            let turns = Interleaving { rest_ns, slices, ..turns(arms, place % arms, seed) };
            prop_assert!(turns.is_possible());
            let phase = turns.at(now_ns);
            prop_assert!(phase.until_ns > now_ns);
            prop_assert_eq!(turns.at(phase.until_ns - 1).is_ours, phase.is_ours);
            prop_assert!(phase.is_ours || turns.at(phase.until_ns).is_ours);
            // A slice has one turn of ours in each of its rounds.
            let slice = now_ns / 10_000_000;
            let (begin_ns, end_ns) = turns.slice_ns(slice);
            let (mut at_ns, mut sending_ns) = (begin_ns, 0);
            while at_ns < end_ns {
                let phase = turns.at(at_ns);
                let until_ns = phase.until_ns.min(end_ns);
                sending_ns += if phase.is_ours { until_ns - at_ns } else { 0 };
                at_ns = until_ns;
            }
            prop_assert_eq!(sending_ns, u64::from(rounds) * (TURN_NS_MIN - rest_ns));
            prop_assert_eq!(turns.slice_ns(slice + 1).0, end_ns + break_ns);
            prop_assert!(break_ns == 0 || !turns.at(end_ns).is_ours);
        }
    }

    #[test]
    fn every_order_is_drawn() {
        let firsts = (0..400).filter(|pair| owner(2, 7, 4 * pair) == [0]).count();
        // 200, give or take four standard deviations.
        assert!((160..240).contains(&firsts), "{firsts}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(turns(2, 1, 0).is_possible());
        for wrong in [
            turns(0, 0, 0),
            turns(65, 0, 0),
            turns(2, 2, 0),
            Interleaving { turn_ns: 0, ..turns(1, 0, 0) },
            Interleaving { rest_ns: TURN_NS_MIN, ..turns(1, 0, 0) },
            Interleaving { slices: Some(Slices { rounds: 0, break_ns: 0 }), ..turns(1, 0, 0) },
        ] {
            assert!(!wrong.is_possible(), "{wrong:?}");
        }
    }
}
