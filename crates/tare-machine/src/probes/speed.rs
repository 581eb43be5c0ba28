//! How fast a core and its memory are at this moment: a sample of a millisecond, between two runs of somebody else.

use super::arithmetic::compute;
use super::memory;
use super::place::on_cpu;
use tare_model::Missing;
use tare_stats::trimmed_mean_interval;
use tare_sys::time::monotonic_ns;

/// Steps of the loop in a sample: some microseconds.
const STEPS: u32 = 1500;
/// Samples of it: half a millisecond, more on an oversubscribed core.
const SAMPLES: usize = 100;
/// For memory.
const MEMORY_NS: u64 = 300_000;
/// What a sample takes where the CPU is free, about: its buffer is made anew.
pub const LOOK_NS: u64 = 3_000_000;

/// What was seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed {
    /// A step of a loop of additions that do not wait for each other, nanoseconds: longer at a lower clock, and while somebody else computes
    /// on the core.
    pub compute_ns: f64,
    /// A load that no cache answers, nanoseconds; `None` where a program cannot drive data out of the caches.
    pub load_ns: Option<f64>,
}

/// Looks at `cpu`.
///
/// # Errors
/// Why the CPU could not be used.
pub fn look(cpu: u32) -> Result<Speed, Missing> {
    on_cpu(cpu, LOOK_NS, move || {
        let sample = |_| {
            let begin_ns = monotonic_ns();
            compute::<8>(STEPS);
            (monotonic_ns() - begin_ns) as f64 / f64::from(STEPS)
        };
        let samples: Vec<f64> = (0..SAMPLES).map(sample).collect();
        let middle = trimmed_mean_interval(&samples).filter(|middle| middle.value > 0.0);
        let compute_ns = middle.ok_or_else(|| Missing::new("the clock stood still"))?.value;
        Ok(Speed { compute_ns, load_ns: memory::load_ns(MEMORY_NS).ok() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_of_this_machine_computes_and_loads() {
        let cpu = tare_sys::affinity::get(0).unwrap()[0];
        let speed = look(cpu).unwrap();
        assert!(speed.compute_ns > 0.1 && speed.load_ns.is_none_or(|load_ns| load_ns > 1.0), "{speed:?}");
        assert!(look(tare_sys::affinity::CPUS_MAX - 1).is_err());
    }
}
