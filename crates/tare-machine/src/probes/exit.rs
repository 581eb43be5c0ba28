//! What it costs to leave a virtual machine and come back: `CPUID`, which every hypervisor must answer itself.

use super::clock_cost::clock_cost_ns;
use super::place::on_cpu;
use tare_model::Missing;
use tare_model::probes::{Durations, Exit};
use tare_sys::cpuid;
use tare_sys::time::monotonic_ns;

/// Samples that are kept, at most.
const SAMPLES_MAX: usize = 20_000;

/// Executes it on `cpu` for `duration_ns`. The cost of reading the clock is taken off.
///
/// # Errors
/// The processor has no such instruction.
pub fn run(cpu: u32, duration_ns: u64) -> Result<Exit, Missing> {
    let hypervisor = cpuid::hypervisor().ok_or_else(|| {
        Missing::new("no instruction on this architecture that a hypervisor is known to answer itself")
    })?;
    on_cpu(cpu, duration_ns, move || {
        let clock_ns = clock_cost_ns();
        let end_ns = monotonic_ns().saturating_add(duration_ns);
        let mut samples_ns = Vec::with_capacity(SAMPLES_MAX);
        loop {
            let start_ns = monotonic_ns();
            cpuid::execute();
            let now_ns = monotonic_ns();
            samples_ns.push(((now_ns - start_ns) as f64 - clock_ns).max(0.0));
            if now_ns >= end_ns || samples_ns.len() >= SAMPLES_MAX {
                break;
            }
        }
        let latency =
            Durations::of(&samples_ns).ok_or_else(|| Missing::new("no sample in the time given"))?;
        Ok(Exit { cpu, hypervisor, latency })
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_processor_that_can_say_takes_some_time_for_it() {
        let cpu = tare_sys::affinity::get(0).unwrap()[0];
        match super::run(cpu, 2_000_000) {
            Ok(exit) => assert!(exit.latency.p99_ns > 0.0 && exit.latency.min_ns <= exit.latency.p50_ns),
            Err(missing) => assert!(missing.why.contains("architecture"), "{}", missing.why),
        }
    }
}
