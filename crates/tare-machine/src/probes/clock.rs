//! The effective clock of one CPU: how many cycles a second it really does.

use super::place::on_cpu;
use tare_model::Missing;
use tare_model::probes::{EffectiveClock, Spread};
use tare_sys::clock::probe_hz;
use tare_sys::time::monotonic_ns;

/// Samples that are kept, at most.
const SAMPLES_MAX: usize = 4096;

/// Samples the clock of `cpu` for `duration_ns`, at least once.
///
/// # Errors
/// Why there is no sample.
pub fn run(cpu: u32, duration_ns: u64) -> Result<EffectiveClock, Missing> {
    summary(&samples(cpu, duration_ns)?)
}

/// Samples in hertz; never none.
pub(super) fn samples(cpu: u32, duration_ns: u64) -> Result<Vec<f64>, Missing> {
    on_cpu(cpu, duration_ns, move || {
        let end_ns = monotonic_ns().saturating_add(duration_ns);
        let mut samples = Vec::new();
        loop {
            let sample = probe_hz(cpu);
            let is_over = monotonic_ns() >= end_ns || samples.len() >= SAMPLES_MAX;
            match sample {
                Ok(hz) => samples.push(hz),
                Err(error) if is_over && samples.is_empty() => return Err(Missing::new(error.to_string())),
                Err(_) => {}
            }
            if is_over {
                return Ok(samples);
            }
        }
    })
}

pub(super) fn summary(samples: &[f64]) -> Result<EffectiveClock, Missing> {
    let spread = Spread::of(samples).ok_or_else(|| Missing::new("no sample ran undisturbed"))?;
    Ok(EffectiveClock {
        hz: spread,
        min_hz: samples.iter().copied().fold(f64::INFINITY, f64::min),
        max_hz: samples.iter().copied().fold(0.0, f64::max),
    })
}
