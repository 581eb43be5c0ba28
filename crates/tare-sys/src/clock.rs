//! The effective clock of a CPU without a PMU: how fast a chain of dependent multiplies runs.
//!
//! A multiply of two registers takes 3 cycles on every x86-64 core since 2006 (Nehalem) and 2017 (Zen); each
//! waits for the one before, so a chain of n takes 3·n cycles whatever else the core could do in parallel.
//! (Chains of additions are folded by newer cores and read far too fast.)

use crate::affinity;
use crate::process::thread_switches;
use crate::time::monotonic_ns;
use std::io;

/// Samples that a probe takes, at most.
const ATTEMPTS: usize = 40;
/// Undisturbed samples that are enough.
const ENOUGH: usize = 9;
/// Undisturbed samples below which there is no figure.
const FEWEST: usize = 3;
/// The first ones find a core that has just woken up.
const WARM_UP: usize = 2;

/// Why there is no figure.
#[derive(Debug, thiserror::Error)]
pub enum ClockError {
    /// No instruction with a known latency on this architecture.
    #[error("the length of a multiply in cycles is not known on this architecture")]
    Architecture,
    /// The CPU cannot be reached.
    #[error("the probe cannot run on CPU {cpu}: {source}")]
    Unreachable {
        /// The CPU asked for.
        cpu: u32,
        /// What the kernel said.
        source: io::Error,
    },
    /// Nearly every sample was interrupted.
    #[error("only {undisturbed} of {attempts} samples on CPU {cpu} ran undisturbed")]
    Disturbed {
        /// The CPU asked for.
        cpu: u32,
        /// Samples without a context switch.
        undisturbed: usize,
        /// Samples taken.
        attempts: usize,
    },
}

/// The effective clock of `cpu` in hertz: the median of short undisturbed samples (10–20 µs each, about
/// 0.2 ms together). Moves the calling thread there and lets it back afterwards.
///
/// # Errors
/// [`ClockError`].
pub fn probe_hz(cpu: u32) -> Result<f64, ClockError> {
    let unreachable = |source| ClockError::Unreachable { cpu, source };
    let home = affinity::get(0).map_err(unreachable)?;
    affinity::set(0, &[cpu]).map_err(unreachable)?;
    let outcome = probe_here(cpu);
    affinity::set(0, &home).map_err(unreachable)?;
    outcome
}

fn probe_here(cpu: u32) -> Result<f64, ClockError> {
    let mut samples = [0.0f64; ENOUGH];
    let (mut undisturbed, mut attempts, mut since_switch) = (0, 0, 0);
    let mut before = thread_switches();
    while undisturbed < ENOUGH && attempts < ATTEMPTS {
        attempts += 1;
        let start_ns = monotonic_ns();
        let cycles = run_chain().ok_or(ClockError::Architecture)?;
        let taken_ns = monotonic_ns().saturating_sub(start_ns);
        let after = thread_switches();
        since_switch = if after == before { since_switch + 1 } else { 0 };
        before = after;
        if since_switch > WARM_UP && taken_ns > 0 {
            samples[undisturbed] = cycles as f64 * 1e9 / taken_ns as f64;
            undisturbed += 1;
        }
    }
    if undisturbed < FEWEST {
        return Err(ClockError::Disturbed { cpu, undisturbed, attempts });
    }
    let samples = &mut samples[..undisturbed];
    samples.sort_unstable_by(f64::total_cmp);
    Ok(samples[undisturbed / 2])
}

/// Runs the chain and says how many cycles it is long.
#[cfg(target_arch = "x86_64")]
fn run_chain() -> Option<u64> {
    const UNROLLED: u64 = 100;
    const ROUNDS: u64 = 150;
    const MULTIPLY_CYCLES: u64 = 3;
    // SAFETY: multiplies a register by itself and counts another down; touches no memory and no stack.
    unsafe {
        std::arch::asm!(
            "2:",
            ".rept 100",
            "imul {x}, {x}",
            ".endr",
            "dec {n}",
            "jnz 2b",
            x = inout(reg) 3u64 => _,
            n = inout(reg) ROUNDS => _,
            options(nomem, nostack),
        );
    }
    Some(UNROLLED * ROUNDS * MULTIPLY_CYCLES)
}

#[cfg(not(target_arch = "x86_64"))]
fn run_chain() -> Option<u64> {
    None
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn last_cpu() -> u32 {
        *affinity::get(0).unwrap().last().unwrap()
    }

    #[test]
    fn reads_a_clock_that_a_cpu_can_have() {
        let hz = probe_hz(last_cpu()).unwrap();
        assert!((4e8..8e9).contains(&hz), "{hz}");
        assert_eq!(affinity::get(0).unwrap().len(), affinity::get(std::process::id()).unwrap().len());
    }

    #[test]
    fn reads_about_the_same_beside_a_busy_loop() {
        let cpu = last_cpu();
        let alone = probe_hz(cpu).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let busy = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                affinity::set(0, &[cpu]).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            }
        });
        // The clock of a shared host changes all the time; only a figure many times too low would hold others' time slices.
        let shared: Vec<f64> = (0..5).filter_map(|_| probe_hz(cpu).ok()).collect();
        stop.store(true, Ordering::Relaxed);
        busy.join().unwrap();
        assert!(!shared.is_empty());
        assert!(shared.iter().all(|hz| (0.5..2.0).contains(&(hz / alone))), "{alone} {shared:?}");
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error() {
        assert!(matches!(probe_hz(affinity::CPUS_MAX - 1), Err(ClockError::Unreachable { .. })));
    }
}
