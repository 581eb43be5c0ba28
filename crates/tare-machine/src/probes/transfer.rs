//! How far two CPUs are apart: what a cache line takes from one to the other, by two threads that hand a number to and fro.
//!
//! Some 20 ns between two threads of a core, 30 to 60 within a cache that cores share, 100 and more between such caches or sockets. A
//! hypervisor puts the CPUs of a guest on cores as it likes, and tells the guest nothing of it: what passes between a server
//! and its load generator costs then more or less, with no sign in clock, steal or topology.

use super::place::{on_first, pin};
use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tare_model::Missing;
use tare_model::probes::{Spread, Transfer};
use tare_sys::time::monotonic_ns;

/// Round trips of a sample: some microseconds, so that most samples hold no interrupt.
const BATCH: u64 = 50;
/// Samples that are kept, at most.
const SAMPLES_MAX: usize = 10_000;
/// Fewer are no figure.
const SAMPLES_MIN: usize = 5;
/// Turns of a waiting loop between two looks at the clock.
const SPINS: u32 = 256;
/// How long [`look`] takes where both CPUs are free.
const LOOK_NS: u64 = 500_000;
/// How long the two may wait for each other on busy CPUs: both must run at the same time, and each may have to wait for its turn.
const PATIENCE_NS: u64 = 20_000_000;

/// A line of its own, whatever the length of lines here (128 bytes where they come in pairs).
#[repr(align(128))]
struct Line(AtomicU64);

/// Hands a number to and fro between two CPUs for `duration_ns`.
///
/// # Errors
/// Why one of the threads could not run, or that both never ran at the same time.
pub fn run(cpus: [u32; 2], duration_ns: u64) -> Result<Transfer, Missing> {
    if cpus[0] == cpus[1] {
        return Err(Missing::new("one CPU alone: nothing travels"));
    }
    let line = Arc::new(Line(AtomicU64::new(0)));
    let deadline_ns = monotonic_ns().saturating_add(duration_ns).saturating_add(PATIENCE_NS);
    let echo = {
        let line = Arc::clone(&line);
        move || pin(cpus[1]).map(|()| echo(&line, deadline_ns))
    };
    std::thread::Builder::new()
        .name("tare-probe".into())
        .spawn(echo)
        .map_err(|error| Missing::new(format!("no thread for the probe: {error}")))?;
    on_first(cpus, duration_ns.saturating_add(PATIENCE_NS), move || {
        let mut samples_ns = Vec::new();
        let mut sent = 0;
        // The first is for the caches, and for whoever comes later.
        let _ = sample_ns(&line, &mut sent, deadline_ns);
        let end_ns = monotonic_ns().saturating_add(duration_ns);
        while samples_ns.len() < SAMPLES_MAX && monotonic_ns() < end_ns {
            let Some(sample_ns) = sample_ns(&line, &mut sent, deadline_ns) else { break };
            samples_ns.push(sample_ns);
        }
        line.0.store(u64::MAX, Ordering::SeqCst);
        summary(cpus, &samples_ns)
    })
}

/// A sample of half a millisecond.
///
/// # Errors
/// As [`run`].
pub fn look(cpus: [u32; 2]) -> Result<Transfer, Missing> {
    run(cpus, LOOK_NS)
}

fn summary(cpus: [u32; 2], samples_ns: &[f64]) -> Result<Transfer, Missing> {
    let transfer_ns =
        Spread::of(samples_ns).filter(|_| samples_ns.len() >= SAMPLES_MIN).ok_or_else(|| {
            Missing::with_remedy(
                format!("CPUs {} and {} hardly ran at the same time", cpus[0], cpus[1]),
                "look again when the machine is less busy",
            )
        })?;
    Ok(Transfer { cpus, transfer_ns })
}

/// Nanoseconds of one way, of a batch; `None` where nobody answered in time.
fn sample_ns(line: &Line, sent: &mut u64, deadline_ns: u64) -> Option<f64> {
    let begin_ns = monotonic_ns();
    for _ in 0..BATCH {
        line.0.store(*sent + 1, Ordering::SeqCst);
        await_value(line, deadline_ns, |value| value == *sent + 2)?;
        *sent += 2;
    }
    Some((monotonic_ns() - begin_ns) as f64 / (2 * BATCH) as f64)
}

/// Answers each odd number with the next one, until it shall end or nobody asks any more.
fn echo(line: &Line, deadline_ns: u64) {
    while let Some(asked) = await_value(line, deadline_ns, |value| value % 2 == 1) {
        if asked == u64::MAX {
            return;
        }
        // Who asks may have ended meanwhile; its last word must stand.
        let _ = line.0.compare_exchange(asked, asked + 1, Ordering::SeqCst, Ordering::SeqCst);
    }
}

fn await_value(line: &Line, deadline_ns: u64, wanted: impl Fn(u64) -> bool) -> Option<u64> {
    loop {
        for _ in 0..SPINS {
            let value = line.0.load(Ordering::SeqCst);
            if wanted(value) {
                return Some(value);
            }
            spin_loop();
        }
        if monotonic_ns() >= deadline_ns {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_takes_nanoseconds_between_two_cpus_of_this_machine() {
        let allowed = tare_sys::affinity::get(0).unwrap();
        let [one, .., other] = allowed[..] else { return };
        // Longer than others may keep one of both CPUs.
        let found = run([one, other], 100_000_000).unwrap();
        let ns = found.transfer_ns;
        assert!(found.cpus == [one, other] && (1.0..100_000.0).contains(&ns.median), "{found:?}");
        assert!(ns.low <= ns.median && ns.median <= ns.high);
    }

    #[test]
    fn a_cpu_that_is_one_or_not_there_has_no_distance() {
        let cpu = tare_sys::affinity::get(0).unwrap()[0];
        assert!(run([cpu, cpu], 1_000_000).unwrap_err().why.contains("nothing travels"));
        let begun = std::time::Instant::now();
        assert!(run([cpu, tare_sys::affinity::CPUS_MAX - 1], 1_000_000).is_err());
        assert!(run([tare_sys::affinity::CPUS_MAX - 1, cpu], 1_000_000).is_err());
        // Whoever waits for nobody gives up.
        assert!(begun.elapsed() < std::time::Duration::from_secs(1));
    }
}
