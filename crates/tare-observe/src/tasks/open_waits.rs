//! Waits that were open where a window began or ended.
//!
//! The kernel adds a wait to `schedstat` when it ends, all of it at once. Under a quota one lasts most of a tenth of a second: the
//! first that ends in a window began before it, and the last one is not in it. What of them lay before an edge follows from
//! two readings: a thread cannot run and wait for longer than has passed, so that any more was waited before the first of
//! them. Where it also slept in between, this is a lower bound.

use super::parse::Schedstat;
use super::watched::{Source, Watched};
use crate::tape::Tape;
use std::time::{Duration, Instant};
use tare_machine::procs;

/// Shorter ones are not distinguished from the steps of `schedstat`'s run, which grows with the ticks of the clock, 1 to 10 ms apart; nor are
/// longer ones of which less than this lay beyond an edge. Both edges have it so: what is left out falls out on average.
const LONG_NS: u64 = 10_000_000;
/// After the window it is read so often, and for so long at most, until the wait that was open is over: a quota's periods are a tenth
/// of a second unless somebody chose otherwise.
const POLL: Duration = Duration::from_millis(5);
const POLL_MAX: Duration = Duration::from_millis(300);

/// How much of the first wait that ended in these readings lay before the first of them, nanoseconds; 0 where none ended, and
/// below [`LONG_NS`].
///
/// A wait that is open at a reading hides as much of it there, so the reading that shows most tells.
pub(super) fn before_ns(readings: &[Schedstat]) -> u64 {
    let Some(first) = readings.first() else { return 0 };
    let has_ended = |pair: &&[Schedstat]| pair[1].wait_ns > pair[0].wait_ns;
    let Some(ended) = readings.windows(2).find(has_ended).map(|pair| pair[1]) else { return 0 };
    let waited_ns = |schedstat: &Schedstat| schedstat.wait_ns.saturating_sub(first.wait_ns);
    let beyond_ns = |schedstat: &Schedstat| {
        let (run_ns, waited_ns) = (schedstat.run_ns.saturating_sub(first.run_ns), waited_ns(schedstat));
        let used_ns = run_ns.saturating_add(waited_ns);
        used_ns.saturating_sub(schedstat.at_ns.saturating_sub(first.at_ns))
    };
    let most_ns = readings.iter().map(beyond_ns).max().unwrap_or(0);
    Some(most_ns.min(waited_ns(&ended))).filter(|open_ns| *open_ns >= LONG_NS).unwrap_or(0)
}

/// The longest wait that ended between two of these readings; several that did count as one.
fn longest_ns(readings: &[Schedstat]) -> u64 {
    let steps = readings.windows(2).map(|pair| pair[1].wait_ns.saturating_sub(pair[0].wait_ns));
    steps.max().unwrap_or(0)
}

/// A thread whose wait may be open at the end of the window.
pub(super) struct Open<'w> {
    watched: &'w Watched,
    at: u32,
    /// From the edge on.
    readings: Vec<Schedstat>,
}

impl<'w> Open<'w> {
    /// `None` for one that has no long waits, or sleeps.
    pub(super) fn new(at: u32, watched: &'w Watched, readings: &[Schedstat], stat: &str) -> Option<Open<'w>> {
        let is_ready = || procs::parse_stat(stat).is_some_and(|stat| stat.state == 'R');
        let may_wait = !watched.gone && longest_ns(readings) >= LONG_NS && is_ready();
        let edge = readings.last().filter(|_| may_wait)?;
        Some(Open { watched, at, readings: vec![*edge] })
    }

    /// It was seen to run or to have waited since the edge, or has ended.
    fn is_over(&self) -> bool {
        match self.readings.as_slice() {
            [edge, .., last] => {
                (last.run_ns, last.wait_ns, last.slices) != (edge.run_ns, edge.wait_ns, edge.slices)
            }
            _ => false,
        }
    }
}

/// Follows those threads until their waits are over, for a moment at most; how much of them lay in the window, by thread.
pub(super) fn follow(mut open: Vec<Open>) -> Vec<(u32, u64)> {
    let began = Instant::now();
    let mut tape = Tape::default();
    let mut over = Vec::new();
    while !open.is_empty() {
        std::thread::sleep(POLL);
        open.retain_mut(|one| {
            tape.clear();
            let read = one
                .watched
                .file(Source::Schedstat)
                .map(|file| tape.record(0, file, Source::Schedstat.bytes_max()));
            let schedstat = tape.last().as_ref().and_then(Schedstat::of);
            one.readings.extend(schedstat);
            let is_gone = !matches!(read, Some(Ok(())));
            if is_gone || one.is_over() || began.elapsed() >= POLL_MAX {
                over.push((one.at, before_ns(&one.readings)));
                return false;
            }
            true
        });
    }
    over
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Scene;
    use crate::watch::Watch;
    use proptest::prelude::*;
    use tare_machine::Root;
    use tare_model::observation::Role;

    const MS: u64 = 1_000_000;

    fn schedstat(at_ms: u64, run_ms: u64, wait_ms: u64) -> Schedstat {
        Schedstat { at_ns: at_ms * MS, run_ns: run_ms * MS, wait_ns: wait_ms * MS, slices: wait_ms }
    }

    #[test]
    fn what_was_waited_before_the_first_reading_is_what_does_not_fit_behind_it() {
        // It had waited for 40 of 70 ms.
        let held = [
            schedstat(1000, 500, 100),
            schedstat(1020, 500, 100),
            schedstat(1040, 510, 170),
            schedstat(1060, 530, 170),
        ];
        assert_eq!(before_ns(&held), 40 * MS);
        // A wait that began and ended in between; none at all; nothing.
        assert_eq!(before_ns(&[schedstat(0, 0, 0), schedstat(100, 30, 70), schedstat(200, 60, 140)]), 0);
        assert_eq!(before_ns(&[schedstat(0, 0, 0), schedstat(100, 100, 0)]), 0);
        assert_eq!(before_ns(&[]), 0);
        // It slept as well: at least so long.
        assert_eq!(before_ns(&[schedstat(0, 0, 0), schedstat(40, 0, 70)]), 30 * MS);
        // Each reading but the last fell where another wait was open for as long: two dozen threads of a pool behind a quota.
        let hidden = [(0, 0, 0), (58, 3, 55), (157, 5, 152), (257, 8, 249), (1012, 25, 1018)];
        assert_eq!(before_ns(&hidden.map(|(at, run, wait)| schedstat(at, run, wait))), 31 * MS);
        // Counters that run backwards are nobody's wait.
        assert_eq!(before_ns(&[schedstat(50, 90, 90), schedstat(0, 0, 120)]), 30 * MS);
        // What ticks may hide is nothing.
        assert_eq!(before_ns(&[schedstat(0, 0, 0), schedstat(20, 4, 24)]), 0);
    }

    proptest! {
        /// A thread under a quota, read wherever the edge falls, whose run grows with ticks of 4 ms while it runs: what is found is right
        /// to a tick, and to what is not known.
        #[test]
        fn an_edge_anywhere_in_a_period_is_found(
            run_ms in 8u64..80,
            edge_ms in 0u64..100,
            apart_ms in 1u64..40,
        ) {
            let at = |at_ms: u64| {
                let (periods, in_period) = (at_ms / 100, at_ms % 100);
                let running = in_period >= 100 - run_ms;
                let waits = periods + u64::from(running);
                let ran_ms = in_period.saturating_sub(100 - run_ms);
                schedstat(at_ms, periods * run_ms + ran_ms / 4 * 4, waits * (100 - run_ms))
            };
            let readings: Vec<Schedstat> = (0..400 / apart_ms).map(|number| at(1000 + edge_ms + number * apart_ms)).collect();
            let open_ms = if edge_ms < 100 - run_ms { edge_ms } else { 0 };
            let found_ms = before_ns(&readings) / MS;
            // Where a step is read, the next wait may be open, for so long at most.
            let missed_ms = apart_ms.saturating_sub(run_ms) + 4;
            prop_assert!(found_ms <= open_ms + 4, "{found_ms} of {open_ms} ms");
            let known_ms = open_ms.saturating_sub(missed_ms);
            prop_assert!(found_ms >= known_ms || known_ms < LONG_NS / MS, "{found_ms} of {open_ms} ms");
        }
    }

    /// A thread of a tree, as its `stat` and `schedstat` say.
    fn thread(root: &std::path::Path) -> Watched {
        let task = root.join("proc/7/task/7");
        std::fs::create_dir_all(&task).unwrap();
        std::fs::write(task.join("stat"), stat('R')).unwrap();
        std::fs::write(task.join("schedstat"), "100000000 100000000 7\n").unwrap();
        let scene = Scene::new(Watch::default(), &Root::at(root));
        Watched::open(&scene, 7, 7, Role::Sut).unwrap()
    }

    fn stat(state: char) -> String {
        format!("7 (web) {state}{}\n", " 1".repeat(49))
    }

    /// The edge is now, and there were waits of 50 ms.
    fn open(watched: &Watched, state: char) -> Option<Open<'_>> {
        let now_ns = tare_sys::time::monotonic_ns();
        let before = Schedstat { at_ns: now_ns - 60 * MS, ..schedstat(0, 90, 50) };
        Open::new(
            3,
            watched,
            &[before, Schedstat { at_ns: now_ns, slices: 7, ..schedstat(0, 100, 100) }],
            &stat(state),
        )
    }

    #[test]
    fn a_wait_that_is_open_at_the_end_is_followed_until_it_is_over() {
        let dir = tempfile::tempdir().unwrap();
        let watched = thread(dir.path());
        assert!(open(&watched, 'S').is_none(), "it sleeps");
        let at_edge = open(&watched, 'R').unwrap();
        let schedstat = dir.path().join("proc/7/task/7/schedstat");
        let ends = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            // It had waited for 370 ms by then, 340 of them before the edge.
            std::fs::write(schedstat, "100000000 470000000 8\n").unwrap();
        });
        let found = follow(vec![at_edge]);
        ends.join().unwrap();
        let [(3, open_ns)] = found[..] else { panic!("{found:?}") };
        // It is seen 5 ms later, or much later on a machine that has other things to do.
        assert!((100 * MS..=340 * MS).contains(&open_ns), "{open_ns}");
    }

    #[test]
    fn one_that_never_ends_is_not_followed_for_long() {
        let dir = tempfile::tempdir().unwrap();
        let watched = thread(dir.path());
        let began = Instant::now();
        assert_eq!(follow(vec![open(&watched, 'R').unwrap()]), [(3, 0)]);
        assert!(began.elapsed() >= POLL_MAX);
        assert!(follow(Vec::new()).is_empty());
    }
}
