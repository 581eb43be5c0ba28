//! The SUT's own serial stages: what of it can do only one thing at a time, however many CPUs there are. They are the
//! program, so the tightest of them bounds net.

use crate::accounting::Closed;
use crate::accounting::ratio;
use crate::accounting::{Asleep, Entitlement, Loss, Thread};
use crate::capacity::downstream;
use tare_model::observation::Role;

/// More threads than these at one lock: it is as good as never free.
const LOCK_THREADS_MAX: usize = 256;
/// A thread without this share of its life to spare is a stage of its own.
const FULL: f64 = 0.9;
/// A thread that sleeps for so much of its life is kept by its sleeps.
const KEPT_MIN: f64 = 0.5;
/// Such threads do this share of the work at least.
const KEPT_RUN_MIN: f64 = 0.25;
/// A stage holds a rate that is this share of what it lets through, at least.
const HOLDS_MIN: f64 = 0.85;

/// What the serial stages take of each request, at the clock and under the load of one level.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Serial {
    /// Serving threads.
    pub threads: f64,
    /// Those that their sleeps keep.
    pub kept: Kept,
    /// Share of a request's CPU time that other threads take than those that `threads` counts.
    pub elsewhere: f64,
    /// Seconds of a request that its thread sleeps for the program's own reasons, and no other request can have it.
    pub held_s: f64,
    /// Seconds of a request in which it has the program's busiest lock to itself; 0 where threads do not wait for each
    /// other.
    pub locked_s: f64,
    /// CPU seconds of a request on one thread that is full while the others are not (a single acceptor); 0 where
    /// there is none.
    pub one_thread_s: f64,
    /// CPUs that it may use, and seconds of a request in which programs that it calls have them.
    pub cpus: f64,
    pub beside_s: f64,
    /// Seconds of a request that a program that it calls, and that is full, takes for it; 0 where none is.
    pub called_s: f64,
}

/// Serving threads that sleep for the program's own reasons for half of their life and more: a thread that hands out work is none.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Kept {
    /// Threads at once.
    pub threads: f64,
    /// Seconds of a request that they sleep.
    pub held_s: f64,
    /// Share of the CPU time of serving threads that is theirs.
    pub run_share: f64,
}

impl Kept {
    fn of(serving: &[&Thread], reasons: &[Asleep], wall_s: f64, requests: f64) -> Kept {
        let held = |thread: &Thread| reasons.iter().map(|why| thread.asleep(*why)).sum::<f64>();
        let kept: Vec<&Thread> =
            serving.iter().copied().filter(|thread| held(thread) >= KEPT_MIN * thread.wall_s).collect();
        let run_s = |threads: &[&Thread]| threads.iter().map(|thread| thread.run_s).sum::<f64>();
        let run_share = ratio(run_s(&kept), run_s(serving));
        // One that only writes a log, or wakes up by the clock, serves nobody.
        if run_share < KEPT_RUN_MIN {
            return Kept::default();
        }
        Kept {
            threads: ratio(kept.iter().map(|thread| thread.wall_s).sum(), wall_s),
            held_s: ratio(kept.iter().map(|thread| held(thread)).sum(), requests),
            run_share,
        }
    }

    /// Whether their sleeps are what holds a rate: then they have no time over.
    pub fn holds(&self, rate_hz: f64, cost_s: f64) -> bool {
        let run_s = cost_s * self.run_share;
        self.threads > 0.0
            && self.held_s > run_s
            && rate_hz >= HOLDS_MIN * self.threads / (run_s + self.held_s)
    }
}

/// A stage, and what it lets through.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tightest {
    /// Requests per second.
    pub hz: f64,
    /// Share of the service demand in what a request takes of the stage: by so much of it the rate follows the demand.
    pub demand_share: f64,
}

impl Serial {
    pub fn of(window: &Closed, rate_hz: f64) -> Serial {
        let serving: Vec<&Thread> = window.threads_of(Role::Sut).filter(|thread| thread.serves()).collect();
        let asleep = |why| serving.iter().map(|thread| thread.asleep(why)).sum::<f64>();
        let requests = rate_hz * window.span.wall_s;
        // Where several servers are loaded interleaved, all that threads do and wait for is in their own part of the time: as if it were a shorter window.
        let arms = f64::from(window.arms());
        let turns_s = window.span.wall_s / arms;
        // A single thread waits for a lock that somebody else holds: that is time in which it serves nobody.
        let alone = serving.len() == 1;
        let reasons: Vec<Asleep> =
            Asleep::PROGRAM.into_iter().filter(|why| alone || *why != Asleep::Lock).collect();
        let held: f64 = reasons.iter().copied().map(asleep).sum();
        let threads = window.sut.as_ref().map_or(0.0, |sut| sut.serving());
        Serial {
            threads,
            kept: Kept::of(&serving, &reasons, window.span.wall_s, requests),
            elsewhere: 0.0,
            held_s: ratio(held, requests),
            locked_s: if alone {
                0.0
            } else {
                locked_s(&serving, asleep(Asleep::Lock), turns_s, rate_hz * arms)
            },
            one_thread_s: ratio(full_thread_s(&serving, arms), requests),
            cpus: window.sut.as_ref().map_or(0.0, Entitlement::cpus),
            beside_s: ratio(window.sut.as_ref().map_or(0.0, |sut| sut.lost(Loss::Downstream)), requests),
            called_s: downstream::full(window).map_or(0.0, |full| ratio(full * turns_s, requests)),
        }
    }

    /// What the tightest stage lets through at a service demand of `cost_s`; `stretch` is that demand over the one at the level these
    /// figures are of (another clock, other wake-ups).
    pub fn tightest(&self, cost_s: f64, stretch: f64) -> Tightest {
        let beside_hz =
            if self.beside_s > 0.0 { self.cpus / (cost_s + self.beside_s * stretch) } else { f64::INFINITY };
        let rest = [
            1.0 / (self.locked_s * stretch),
            1.0 / (self.one_thread_s * stretch),
            beside_hz,
            1.0 / (self.called_s * stretch),
        ];
        let rest = rest.map(|hz| Tightest { hz, demand_share: 1.0 });
        let own_s = cost_s * (1.0 - self.elsewhere);
        let demand_share = ratio(own_s, own_s + self.held_s);
        let threads = Tightest { hz: self.threads / (own_s + self.held_s), demand_share };
        let none = Tightest { hz: f64::INFINITY, demand_share: 1.0 };
        let all = rest.into_iter().chain([threads]).filter(|stage| stage.hz > 0.0);
        all.fold(none, |tightest, stage| if stage.hz < tightest.hz { stage } else { tightest })
    }

    /// The same with the threads that their sleeps keep as the threads that there are.
    pub fn kept_by_sleeps(self, kept: Kept) -> Serial {
        Serial { threads: kept.threads, held_s: kept.held_s, elsewhere: 1.0 - kept.run_share, ..self }
    }
}

/// How long a request has the lock: the share of time in which it is taken, by the number of threads that wait for
/// it, over the rate. What delays its holder from outside (a queue for the CPU) is taken out: that is not the lock's.
fn locked_s(serving: &[&Thread], waited_s: f64, wall_s: f64, rate_hz: f64) -> f64 {
    let waiting = ratio(waited_s, wall_s);
    if waiting <= 0.0 {
        return 0.0;
    }
    let run_s: f64 = serving.iter().map(|thread| thread.run_s).sum();
    let queued_s: f64 = serving.iter().filter_map(|thread| thread.queue_s).sum();
    ratio(taken(serving.len(), waiting) * ratio(run_s, run_s + queued_s), rate_hz)
}

/// The share of time in which a lock is taken at which on average `waiting` of `threads` threads wait for it: the machine
/// repairman's model (closed, exponential; exact mean value analysis of one queue and a delay, Reiser and Lavenberg 1980),
/// inverted by bisection.
fn taken(threads: usize, waiting: f64) -> f64 {
    if threads > LOCK_THREADS_MAX || waiting >= threads as f64 - 1.0 {
        return 1.0;
    }
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    // Of all of a thread's time without waiting, the share with the lock.
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if repairman(threads, middle).1 < waiting { low = middle } else { high = middle }
    }
    repairman(threads, f64::midpoint(low, high)).0
}

/// (share of time taken, threads that wait) where each thread has the lock for `share` of its undisturbed time.
fn repairman(threads: usize, share: f64) -> (f64, f64) {
    let (mut in_it, mut taken) = (0.0, 0.0);
    for count in 1..=threads {
        let stay = share * (1.0 + in_it);
        let rate = count as f64 / (1.0 - share + stay);
        in_it = rate * stay;
        taken = rate * share;
    }
    (taken, in_it - taken)
}

/// Run of the one serving thread that has nothing left while the others have half of their time, of its own part of the
/// time where several servers are loaded interleaved.
fn full_thread_s(serving: &[&Thread], arms: f64) -> f64 {
    let share = |thread: &Thread| ratio(thread.run_s * arms, thread.wall_s);
    let mut by_share: Vec<&Thread> = serving.iter().copied().filter(|thread| thread.is_one()).collect();
    by_share.sort_by(|a, b| share(a).total_cmp(&share(b)));
    let Some((fullest, others)) = by_share.split_last() else { return 0.0 };
    let rest: Vec<f64> = others.iter().map(|thread| share(thread)).collect();
    let alone = share(fullest) >= FULL && tare_stats::mean(&rest).is_some_and(|mean| mean < 0.5);
    if alone { fullest.run_s } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_nobody_waits_for_is_free_and_one_that_all_wait_for_is_taken() {
        assert!(taken(4, 1e-9) < 0.01);
        assert!((taken(4, 2.9) - 1.0).abs() < 0.01);
        assert_eq!(taken(4, 3.0), 1.0);
        assert_eq!(taken(1000, 5.0), 1.0);
    }

    #[test]
    fn the_model_is_that_of_two_threads() {
        // Two threads, a lock for half of their undisturbed time: 2/5 of the time both are away or … by the balance
        // equations p(n waiting or served) ∝ 2!/(2-n)!·(s/(1-s))ⁿ = 1, 2, 2.
        let (taken, waiting) = repairman(2, 0.5);
        assert!((taken - 4.0 / 5.0).abs() < 1e-12 && (waiting - 2.0 / 5.0).abs() < 1e-12);
    }

    #[test]
    fn the_tightest_stage_counts() {
        let let_through = |serial: Serial, stretch, hz: f64| {
            let found = serial.tightest(1e-5, stretch).hz;
            assert!((found / hz - 1.0).abs() < 1e-9, "{serial:?}: {found}, not {hz}");
        };
        let serial = Serial { threads: 4.0, cpus: 4.0, ..Serial::default() };
        let_through(serial, 1.0, 4e5);
        let_through(Serial { held_s: 0.01, ..serial }, 1.0, 4.0 / 0.010_01);
        let_through(Serial { locked_s: 5e-5, ..serial }, 1.0, 2e4);
        let accepting = Serial { one_thread_s: 4e-6, ..serial };
        let_through(accepting, 1.0, 2.5e5);
        // At half the cost its one thread would let more through than all four have CPU for.
        let_through(accepting, 0.5, 4e5);
        // What it calls has its CPUs for as long as it has them itself, or can do no more itself.
        let_through(Serial { beside_s: 1e-5, ..serial }, 1.0, 2e5);
        let_through(Serial { called_s: 1e-4, ..serial }, 1.0, 1e4);
        assert_eq!(Serial::default().tightest(1e-5, 1.0), Tightest { hz: f64::INFINITY, demand_share: 1.0 });
        // A request that sleeps a thousand times as long as it computes: its demand hardly matters.
        let sleeping = Serial { held_s: 0.01, ..serial };
        assert!((sleeping.tightest(1e-5, 1.0).demand_share - 1e-5 / 0.010_01).abs() < 1e-9);
        let kept = Kept { threads: 4.0, held_s: 0.01, run_share: 0.5 };
        assert!(kept.holds(399.0, 1e-5) && !kept.holds(200.0, 1e-5) && !Kept::default().holds(4e5, 1e-5));
        // Half of a request's CPU time is another thread's: the four lose none of theirs by it.
        let_through(serial.kept_by_sleeps(Kept { held_s: 1e-5, ..kept }), 1.0, 4.0 / 1.5e-5);
    }
}
