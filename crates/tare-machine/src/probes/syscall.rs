//! What it costs to enter the kernel and leave it: `getppid`, which does next to nothing in between.

use super::place::on_cpu;
use std::os::unix::process::parent_id;
use tare_model::Missing;
use tare_model::probes::{Spread, Syscall};
use tare_sys::time::monotonic_ns;

/// Calls of one sample.
const BATCH: u32 = 100;
/// Samples that are kept, at most.
const SAMPLES_MAX: usize = 10_000;

/// Calls it on `cpu` for `duration_ns`.
///
/// # Errors
/// Why the CPU could not be used.
pub fn run(cpu: u32, duration_ns: u64) -> Result<Syscall, Missing> {
    on_cpu(cpu, duration_ns, move || {
        let end_ns = monotonic_ns().saturating_add(duration_ns);
        let mut samples_ns = Vec::new();
        loop {
            let start_ns = monotonic_ns();
            for _ in 0..BATCH {
                std::hint::black_box(parent_id());
            }
            let now_ns = monotonic_ns();
            samples_ns.push((now_ns - start_ns) as f64 / f64::from(BATCH));
            if now_ns >= end_ns || samples_ns.len() >= SAMPLES_MAX {
                break;
            }
        }
        let call_ns = Spread::of(&samples_ns).ok_or_else(|| Missing::new("no sample in the time given"))?;
        Ok(Syscall { cpu, call_ns })
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_call_takes_some_time() {
        let cpu = tare_sys::affinity::get(0).unwrap()[0];
        let syscall = super::run(cpu, 1_000_000).unwrap();
        assert!(syscall.call_ns.median > 0.0 && syscall.call_ns.low <= syscall.call_ns.high);
    }
}
