//! What a second hardware thread of a core is worth: arithmetic that keeps the core's units busy, on one sibling
//! alone and on both together, interleaved.

use super::arithmetic::compute;
use super::place::on_each;
use tare_model::probes::{CpuReading, Smt, Spread};
use tare_model::{Missing, Reading};
use tare_sys::time::monotonic_ns;

/// Slices alone and slices together.
const TURNS: u32 = 5;
/// Rounds between two looks at the clock.
const BATCH: u32 = 2000;

/// Measures the two CPUs for `duration_ns` in all.
///
/// # Errors
/// Why one of them cannot be used.
pub fn run(cpus: [u32; 2], duration_ns: u64) -> Result<Smt, Missing> {
    let slice_ns = duration_ns / u64::from(2 * TURNS);
    let (mut alone_hz, mut together_hz) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        alone_hz.push(slice_hz(&cpus[..1], slice_ns)?);
        together_hz.push(slice_hz(&cpus, slice_ns)?);
    }
    judge(cpus, &alone_hz, &together_hz)
}

/// Rounds per second of all `cpus` at the same time.
fn slice_hz(cpus: &[u32], slice_ns: u64) -> Result<f64, Missing> {
    // Each begins once its thread is there, some 50 µs apart of milliseconds.
    let rates = on_each(cpus, slice_ns, move || Ok(rounds_hz(slice_ns)));
    rates.into_iter().map(|CpuReading { found, .. }| found.ok()).sum()
}

fn rounds_hz(slice_ns: u64) -> f64 {
    let begin_ns = monotonic_ns();
    let mut rounds = 0u64;
    loop {
        compute::<8>(BATCH);
        rounds += u64::from(BATCH);
        let taken_ns = monotonic_ns() - begin_ns;
        if taken_ns >= slice_ns.max(1) {
            return rounds as f64 * 1e9 / taken_ns as f64;
        }
    }
}

fn judge(cpus: [u32; 2], alone_hz: &[f64], together_hz: &[f64]) -> Result<Smt, Missing> {
    let both = Spread::of(alone_hz).zip(Spread::of(together_hz));
    let (alone_hz, together_hz) =
        both.filter(|(alone, _)| alone.median > 0.0).ok_or_else(|| Missing::new("no slice ran"))?;
    Ok(Smt { cpus, alone_hz, together_hz, second_thread_cores: together_hz.median / alone_hz.median - 1.0 })
}

/// The siblings, or why there are none, kept as it is.
pub(super) fn on_siblings(siblings: Reading<[u32; 2]>, duration_ns: u64) -> Reading<Smt> {
    match siblings {
        Reading::Measured(cpus) => run(cpus, duration_ns).into(),
        Reading::Missing(missing) => Reading::Missing(missing),
        Reading::NotApplicable { not_applicable } => Reading::NotApplicable { not_applicable },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_thread_is_worth_what_it_adds() {
        let smt = judge([0, 8], &[99.0, 100.0, 101.0], &[121.0, 119.0, 120.0]).unwrap();
        assert!((smt.second_thread_cores - 0.2).abs() < 1e-12);
        assert!(judge([0, 8], &[0.0], &[1.0]).is_err() && judge([0, 8], &[], &[]).is_err());
    }

    #[test]
    fn two_cpus_do_no_less_than_nothing() {
        let allowed = tare_sys::affinity::get(0).unwrap();
        let smt = run([allowed[0], allowed[allowed.len() - 1]], 10_000_000).unwrap();
        assert!(smt.alone_hz.median > 0.0 && smt.together_hz.samples == TURNS);
        let none = Reading::NotApplicable { not_applicable: "no SMT".into() };
        assert_eq!(on_siblings(none, 1), Reading::NotApplicable { not_applicable: "no SMT".into() });
    }
}
