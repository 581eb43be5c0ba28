//! What a wake-up takes: two threads that put each other to sleep and wake each other (by futex), on one CPU or on two.

use super::place::{on_first, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;
use tare_model::Missing;
use tare_stats::median;
use tare_sys::time::monotonic_ns;

/// Round trips that are kept, at most.
const TRIPS_MAX: usize = 100_000;
/// Longest that one waits for the other: then it looks whether it is still wanted.
const PATIENCE: Duration = Duration::from_millis(20);
/// Whose turn it is.
const ASKED: u32 = 1;
const ANSWERED: u32 = 0;
const ENDED: u32 = 2;

/// Seconds from waking a thread that sleeps on the second CPU until it runs and has woken the first one back, halved: the median of round trips, so that those in which somebody
/// else had a CPU do not count.
///
/// # Errors
/// Why one of the threads could not run.
pub fn run(cpus: [u32; 2], duration_ns: u64) -> Result<f64, Missing> {
    on_first(cpus, duration_ns, move || {
        let turn = Arc::new(AtomicU32::new(ANSWERED));
        let end_ns = monotonic_ns().saturating_add(duration_ns);
        let other = {
            let (turn, asker) = (Arc::clone(&turn), thread::current());
            let answer = move || pin(cpus[1]).map(|()| answer(&turn, &asker, end_ns));
            thread::Builder::new().name("tare-probe".into()).spawn(answer)
        };
        let other = other.map_err(|error| Missing::new(format!("no thread for the probe: {error}")))?;
        let mut trips_ns = Vec::new();
        let mut now_ns = monotonic_ns();
        while now_ns < end_ns && trips_ns.len() < TRIPS_MAX {
            turn.store(ASKED, Ordering::Release);
            other.thread().unpark();
            if !wait_for(&turn, ANSWERED, end_ns) {
                break;
            }
            let begun_ns = std::mem::replace(&mut now_ns, monotonic_ns());
            trips_ns.push((now_ns - begun_ns) as f64);
        }
        turn.store(ENDED, Ordering::Release);
        other.thread().unpark();
        // The first one holds the other's start.
        let trip_ns = median(trips_ns.get(1..).unwrap_or_default()).ok_or_else(|| {
            Missing::new(format!("CPUs {} and {} hardly ran in the time given", cpus[0], cpus[1]))
        })?;
        Ok(trip_ns / 2.0 / 1e9)
    })
}

fn answer(turn: &AtomicU32, asker: &Thread, end_ns: u64) {
    while wait_for(turn, ASKED, end_ns) {
        // Who asks may have ended meanwhile; its last word must stand.
        let _ = turn.compare_exchange(ASKED, ANSWERED, Ordering::AcqRel, Ordering::Acquire);
        asker.unpark();
    }
}

/// Sleeps until it is so; `false` when the time is over.
fn wait_for(turn: &AtomicU32, wanted: u32, end_ns: u64) -> bool {
    loop {
        match turn.load(Ordering::Acquire) {
            now if now == wanted => return true,
            ENDED => return false,
            _ if monotonic_ns() >= end_ns.saturating_add(PATIENCE.as_nanos() as u64) => return false,
            _ => thread::park_timeout(PATIENCE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_wake_each_other_on_one_cpu_and_on_two() {
        let allowed = tare_sys::affinity::get(0).unwrap();
        let (first, last) = (allowed[0], *allowed.last().unwrap());
        for cpus in [[first, first], [first, last]] {
            let woken_s = run(cpus, 100_000_000).unwrap();
            assert!((1e-8..0.1).contains(&woken_s), "{cpus:?}: {woken_s}");
        }
        assert!(run([first, tare_sys::affinity::CPUS_MAX - 1], 1_000_000).is_err());
    }
}
