//! Which threads do the work, and how many of them can run at once.
//!
//! A thread works if it carries part of the CPU time, alone or with others of its kind, or if it sleeps on a disk or another server
//! while it handles something. Helpers of a runtime do not, whatever they run: they have no request.

use crate::accounting::attribute::thread::Thread;
use crate::accounting::raw::asleep::Asleep;
use crate::accounting::raw::helpers::is_helper;
use crate::accounting::raw::runtimes::{LimitedBy, Rules, Runtimes};
use std::collections::BTreeMap;
use tare_model::observation::Role;

/// Of what the busiest thread ran: as much carries a part of the work by itself.
const ALONE_SHARE: f64 = 0.05;
/// Of what all ran: as much do threads of one name together, that have too little each.
const TOGETHER_SHARE: f64 = 0.1;
/// Of what an event loop runs: as much does another loop of the same program, and no helper.
const LOOP_SHARE: f64 = 0.3;
/// Of its life asleep on a disk or a server: it is in the middle of something.
const BLOCKED_SHARE: f64 = 0.1;
/// Of what the busiest thread ran, as much at least do those that sleep there and work: who only listens to another server, or has a
/// log written, runs for less.
const BLOCKED_RUN_SHARE: f64 = 0.01;
/// Of its life asleep in a timer, where others of its name do the same.
const PAUSED_SHARE: f64 = 0.5;
/// Of what the busiest thread ran, as much at least does one that sleeps in timers and has no other of its name, if it works: a ticker,
/// whose work is by the clock, runs for less.
const PAUSED_ALONE_SHARE: f64 = 0.25;
/// Of what all ran, as much at least do those that sleep in timers and work: a runtime's own watchers wake up for less.
const PAUSED_RUN_SHARE: f64 = 0.01;

/// Threads that run so many times as much as their runtime's bound are not held by it: they work outside of the interpreter's lock.
/// A little more is run in system calls, which the bounds do not count.
const BEYOND_MAX: f64 = 1.5;

/// How many threads of the SUT can run at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Limit {
    pub threads: f64,
    pub by: LimitedBy,
}

/// Says of each thread whether it works. Other sides' threads, which are known, work if they ran at all.
pub(super) fn mark(threads: &mut [Thread], runtimes: &Runtimes) {
    let works: Vec<bool> = {
        let sut = Sut::of(threads, runtimes);
        threads.iter().map(|thread| sut.works(thread)).collect()
    };
    let none = !threads.iter().zip(&works).any(|(thread, works)| thread.id.role == Role::Sut && *works);
    for (thread, works) in threads.iter_mut().zip(works) {
        let works = match thread.id.role {
            // Who is hardly asked for anything is still there.
            Role::Sut => works || none && thread.run_s > 0.0,
            _ => thread.was_active(),
        };
        thread.works_s = if works { thread.wall_s } else { 0.0 };
    }
}

/// What the SUT's threads did together.
struct Sut<'t> {
    runtimes: &'t Runtimes,
    run_s: f64,
    fullest_s: f64,
    /// By process and name without its number: what all but the fullest of the SUT ran, and how many there are.
    kinds: BTreeMap<(u32, &'t str), (f64, usize)>,
}

impl<'t> Sut<'t> {
    fn of(threads: &'t [Thread], runtimes: &'t Runtimes) -> Sut<'t> {
        let candidates = || threads.iter().filter(|thread| is_candidate(thread));
        let fullest = candidates().max_by(|a, b| a.run_s.total_cmp(&b.run_s));
        let fullest_id = fullest.map(|thread| (thread.id.pid, thread.id.tid));
        let mut kinds: BTreeMap<(u32, &str), (f64, usize)> = BTreeMap::new();
        for thread in candidates().filter(|thread| Some((thread.id.pid, thread.id.tid)) != fullest_id) {
            let kind = kinds.entry(kind_of(thread)).or_default();
            *kind = (kind.0 + thread.run_s, kind.1 + 1);
        }
        Sut {
            runtimes,
            run_s: candidates().map(|thread| thread.run_s).sum(),
            fullest_s: fullest.map_or(0.0, |thread| thread.run_s),
            kinds,
        }
    }

    fn works(&self, thread: &Thread) -> bool {
        if !is_candidate(thread) {
            return false;
        }
        let rules = self.runtimes.of(thread.id.pid);
        if rules.is_some_and(|rules| rules.one_loop) {
            return thread.run_s >= LOOP_SHARE * self.fullest_s;
        }
        let (together_s, alike) = self.kinds.get(&kind_of(thread)).copied().unwrap_or_default();
        let is_blocked = |whys: &[Asleep], share: f64| {
            whys.iter().map(|why| thread.asleep(*why)).sum::<f64>() >= share * thread.wall_s
        };
        let is_in_timer = is_blocked(&[Asleep::Timer], PAUSED_SHARE);
        if is_in_timer && rules.is_some_and(|rules| rules.parks) {
            // The runtime's own watcher: what works there sleeps without a thread.
            return false;
        }
        if is_in_timer && alike <= 1 && thread.run_s < PAUSED_ALONE_SHARE * self.fullest_s {
            return false;
        }
        let pauses = alike > 1 && is_in_timer && together_s >= PAUSED_RUN_SHARE * self.run_s;
        thread.run_s >= ALONE_SHARE * self.fullest_s
            || together_s >= TOGETHER_SHARE * self.run_s
            || is_blocked(&[Asleep::Disk, Asleep::Downstream], BLOCKED_SHARE)
                && thread.run_s.max(together_s) >= BLOCKED_RUN_SHARE * self.fullest_s
            || pauses
    }
}

fn is_candidate(thread: &Thread) -> bool {
    thread.id.role == Role::Sut && thread.run_s > 0.0 && !is_helper(&thread.id.name)
}

fn kind_of(thread: &Thread) -> (u32, &str) {
    let name =
        thread.id.name.trim_end_matches(|letter: char| letter.is_ascii_digit() || "-_#:/".contains(letter));
    (thread.id.pid, name)
}

/// How many of the working threads can run at once by what is known of their runtimes: each process's own bound, or as many as it
/// has; `None` without one that works.
pub(super) fn limit(threads: &[Thread], runtimes: &Runtimes, wall_s: f64) -> Option<Limit> {
    let mut processes: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for thread in threads.iter().filter(|thread| thread.id.role == Role::Sut && thread.serves()) {
        let (working, running) = processes.entry(thread.id.pid).or_default();
        *working += thread.wall_s / wall_s.max(f64::MIN_POSITIVE);
        *running += thread.run_s / wall_s.max(f64::MIN_POSITIVE);
    }
    let limits = processes.into_iter().map(|(pid, (working, running))| {
        let holds_it = |rules: &Rules| !rules.is_embedded || waits_for_itself(threads, pid);
        let known = runtimes.of(pid).filter(holds_it).and_then(|rules| rules.at_once);
        let holds = |most: f64| most < working && running <= BEYOND_MAX * most;
        match known.filter(|(most, _)| holds(f64::from(*most))) {
            Some((most, by)) => Limit { threads: f64::from(most), by },
            None => Limit { threads: working, by: LimitedBy::Threads },
        }
    });
    limits.reduce(|a, b| Limit {
        threads: a.threads + b.threads,
        by: if a.by == LimitedBy::Threads { b.by } else { a.by },
    })
}

/// Whether the threads of a process that work sleep for each other most of the time: for an interpreter's lock CPython's wait in a timer.
fn waits_for_itself(threads: &[Thread], pid: u32) -> bool {
    let of = |whys: &[Asleep]| {
        let working = threads.iter().filter(|thread| thread.id.pid == pid && thread.serves());
        working.flat_map(|thread| whys.iter().map(|why| thread.asleep(*why))).sum::<f64>()
    };
    let all = of(&Asleep::SAMPLED);
    all > 0.0 && of(&[Asleep::Lock, Asleep::Parked, Asleep::Timer]) >= IN_FUTEX_MIN * all
}

/// Samples that say how many run at once, at least.
const SAMPLES_MIN: f64 = 60.0;
/// Of those samples, at most so many with more at once than the limit (what reads the next request is beside it), and at most so many with
/// fewer.
const MORE_MAX: f64 = 0.2;
const FEWER_MAX: f64 = 0.05;
/// Requests in flight for each that runs at once: with fewer it may be they that are too few.
const IN_FLIGHT_MIN: f64 = 4.0;

/// A thread that runs for more of its life is full by itself, and what the others do says nothing of a limit; unless its runtime moves work from
/// thread to thread, as Go's does.
const FULL_SHARE: f64 = 0.8;
/// Of the sleep of an interpreter's threads, as much in futexes and pauses: for its lock, and not for the world outside.
const IN_FUTEX_MIN: f64 = 0.5;
/// Of the sleep of those that work, as much in futexes: some wait for each other. (One of Go's always waits for the world outside.)
const FOR_EACH_OTHER_MIN: f64 = 0.3;

/// A limit that samples show where no runtime tells of one: threads wait for each other, most of the time so many are running or
/// ready, seldom more and hardly ever fewer, and there is work for others and a CPU. `in_flight` is `None` for a program that ends.
pub(super) fn seen(
    threads: &[Thread],
    at_once: &[u64],
    (known, runtimes): (Limit, &Runtimes),
    cpus: usize,
    in_flight: Option<f64>,
) -> Option<Limit> {
    let working = || threads.iter().filter(|thread| thread.id.role == Role::Sut && thread.serves());
    let of = |whys: &[Asleep]| {
        working().flat_map(|thread| whys.iter().map(|why| thread.asleep(*why))).sum::<f64>()
    };
    let for_each_other = of(&[Asleep::Lock, Asleep::Parked]) >= FOR_EACH_OTHER_MIN * of(&Asleep::SAMPLED);
    // Of a program that ends nobody knows whether there is work for another.
    let moves =
        |thread: &Thread| in_flight.is_some() && runtimes.of(thread.id.pid).is_some_and(|rules| rules.parks);
    let is_full = working().any(|thread| thread.run_s > FULL_SHARE * thread.wall_s && !moves(thread));
    (for_each_other && !is_full).then(|| counted(at_once, known, cpus, in_flight)).flatten()
}

fn counted(at_once: &[u64], known: Limit, cpus: usize, in_flight: Option<f64>) -> Option<Limit> {
    let sum = |counts: &[u64]| counts.iter().map(|count| *count as f64).sum::<f64>();
    let samples = sum(at_once);
    let of = |counts: &[u64]| sum(counts) / samples;
    let most = (1..at_once.len()).find(|most| of(&at_once[most + 1..]) <= MORE_MAX)?;
    let fewer = of(&at_once[..most]);
    let threads = most as f64;
    let is_below = threads + 0.5 <= known.threads && most < cpus;
    let has_work = in_flight.is_none_or(|in_flight| in_flight >= IN_FLIGHT_MIN * threads);
    (samples >= SAMPLES_MIN && fewer <= FEWER_MAX && is_below && has_work)
        .then_some(Limit { threads, by: LimitedBy::Seen })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_seen_only_where_as_many_run_nearly_always() {
        let known = Limit { threads: 2.0, by: LimitedBy::Threads };
        let seen =
            |at_once: &[u64], in_flight| counted(at_once, known, 2, in_flight).map(|limit| limit.threads);
        assert_eq!(seen(&[2, 96, 2], None), Some(1.0));
        assert_eq!(seen(&[0, 89, 9, 1, 1], Some(16.0)), Some(1.0), "a mutex of Go, held while it computes");
        assert_eq!(seen(&[8, 90, 2], Some(16.0)), None, "now and then there is nothing to do");
        assert_eq!(seen(&[2, 96, 2], Some(64.0)), Some(1.0));
        assert_eq!(seen(&[2, 96, 2], Some(1.0)), None, "one connection, one thread at once");
        assert_eq!(seen(&[60, 38, 2], None), None, "a pool with little to do");
        assert_eq!(seen(&[2, 60, 38], None), None, "both run at once");
        assert_eq!(seen(&[0, 20], None), None, "too few samples");
        assert_eq!(seen(&[], None), None);
    }
}
