//! Time that goes missing under a thread that reads the clock without pause: interrupts, other threads, and what the
//! kernel itself does not see (the hypervisor that does not report steal, firmware).

use super::place::on_each;
use tare_model::probes::{CpuReading, Gaps, Lost};
use tare_sys::process::thread_switches;
use tare_sys::time::monotonic_ns;

/// Shorter gaps are interrupts as every machine has them; a tick takes a few microseconds.
pub const THRESHOLD_NS: u64 = 10_000;

/// Watches all of `cpus` at the same time for `duration_ns` each.
pub fn run(cpus: &[u32], threshold_ns: u64, duration_ns: u64) -> Vec<CpuReading<Gaps>> {
    on_each(cpus, duration_ns, move || Ok(watch(threshold_ns, duration_ns, monotonic_ns, thread_switches)))
}

/// Reads `clock` without pause. `switches` is asked only after a gap: it is a system call.
fn watch(
    threshold_ns: u64,
    duration_ns: u64,
    mut clock: impl FnMut() -> u64,
    mut switches: impl FnMut() -> (u64, u64),
) -> Gaps {
    let (mut unseen, mut switched) = (Lost::default(), Lost::default());
    let mut switches_before = switches();
    let begin_ns = clock();
    let mut last_ns = begin_ns;
    while last_ns - begin_ns < duration_ns {
        let now_ns = clock().max(last_ns);
        let gap_ns = now_ns - last_ns;
        // What is lost while the switches are read is part of the next gap.
        last_ns = now_ns;
        if gap_ns < threshold_ns {
            continue;
        }
        let switches_now = switches();
        let lost = if switches_now == switches_before { &mut unseen } else { &mut switched };
        switches_before = switches_now;
        lost.count = lost.count.saturating_add(1);
        lost.lost_ns += gap_ns;
        lost.longest_ns = lost.longest_ns.max(gap_ns);
    }
    let window_ns = last_ns - begin_ns;
    for lost in [&mut unseen, &mut switched] {
        lost.lost_ratio = lost.lost_ns as f64 / window_ns.max(1) as f64;
    }
    Gaps { window_ns, threshold_ns, unseen, switched }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn gaps_with_and_without_a_switch_are_kept_apart() {
        // Steps of 50 ns; a switch of 4 ms after 1 ms, a gap that nobody saw of 300 µs after 7 ms.
        let (now, switched) = (Cell::new(0u64), Cell::new(0u64));
        let clock = || {
            let before = now.get();
            let lost = match before {
                1_000_000 => {
                    switched.set(1);
                    4_000_000
                }
                7_000_000 => 300_000,
                _ => 50,
            };
            now.set(before + lost);
            before + lost
        };
        let gaps = watch(THRESHOLD_NS, 10_000_000, clock, || (0, switched.get()));
        assert_eq!((gaps.unseen.count, gaps.unseen.lost_ns, gaps.unseen.longest_ns), (1, 300_000, 300_000));
        assert_eq!((gaps.switched.count, gaps.switched.lost_ns), (1, 4_000_000));
        assert!((gaps.switched.lost_ratio - 0.4).abs() < 1e-3 && gaps.window_ns >= 10_000_000);
    }

    #[test]
    fn every_cpu_is_watched_for_as_long_as_asked() {
        let cpus = tare_sys::affinity::get(0).unwrap();
        for found in run(&cpus, THRESHOLD_NS, 5_000_000) {
            let gaps = found.found.ok().unwrap();
            assert!(gaps.window_ns >= 5_000_000 && gaps.unseen.lost_ratio + gaps.switched.lost_ratio <= 1.0);
        }
    }
}
