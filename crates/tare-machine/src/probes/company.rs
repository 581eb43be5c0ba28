//! Whether somebody else computes on the core: a loop that takes all of a core's units is halved by a busy other hyperthread, of
//! another guest as well, which neither the clock nor steal tells. One chain, each step of which waits for the step before, leaves
//! most units free and is hardly slowed: the one over the other is how oversubscribed the core is, whatever its clock.

use super::arithmetic::compute;
use super::place::on_cpu;
use tare_model::Missing;
use tare_model::probes::Company;
use tare_stats::quantile;
use tare_sys::time::monotonic_ns;

/// Steps of each loop in a sample: some microseconds.
const STEPS: u32 = 1500;
/// Samples that are kept, at most.
const SAMPLES_MAX: usize = 50_000;
/// So many samples are few enough to be all of a busy moment.
const SAMPLES_MIN: usize = 20;
/// The core is its own in a sample that is as fast as this quantile of all, or nearly.
const ALONE_QUANTILE: f64 = 0.01;
/// So many times as slow is oversubscribed: a second thread that is as busy makes it about 2.
const OVERSUBSCRIBED: f64 = 1.5;
/// Slower than this is no company but an interrupt, or time that was stolen.
const INTERRUPTED: f64 = 4.0;

/// Computes on `cpu` for `duration_ns`.
///
/// # Errors
/// Why the CPU could not be used, or what there was too little of.
pub fn run(cpu: u32, duration_ns: u64) -> Result<Company, Missing> {
    on_cpu(cpu, duration_ns, move || {
        let end_ns = monotonic_ns().saturating_add(duration_ns);
        let mut ratios = Vec::new();
        while ratios.len() < SAMPLES_MAX {
            let start_ns = monotonic_ns();
            compute::<8>(STEPS);
            let middle_ns = monotonic_ns();
            compute::<1>(STEPS);
            let now_ns = monotonic_ns();
            ratios.push((middle_ns - start_ns) as f64 / (now_ns - middle_ns).max(1) as f64);
            if now_ns >= end_ns {
                break;
            }
        }
        judge(cpu, &ratios)
    })
}

fn judge(cpu: u32, ratios: &[f64]) -> Result<Company, Missing> {
    let alone = quantile(ratios, ALONE_QUANTILE).filter(|alone| *alone > 0.0);
    let alone = alone.ok_or_else(|| Missing::new("no sample in the time given"))?;
    let slower: Vec<f64> = ratios.iter().map(|ratio| ratio / alone).filter(|by| *by < INTERRUPTED).collect();
    if slower.len() < SAMPLES_MIN {
        return Err(Missing::new(format!("{} samples in the time given are too few", slower.len())));
    }
    let oversubscribed: Vec<f64> = slower.iter().copied().filter(|by| *by >= OVERSUBSCRIBED).collect();
    Ok(Company {
        cpu,
        samples: u32::try_from(slower.len()).unwrap_or(u32::MAX),
        oversubscribed_ratio: oversubscribed.len() as f64 / slower.len() as f64,
        slower_by: quantile(&oversubscribed, 0.5),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_halves_a_core_is_company_and_what_stops_it_is_none() {
        let mut ratios = vec![0.8; 60];
        ratios.extend([1.68; 30]);
        ratios.extend([9.0; 10]);
        let company = judge(3, &ratios).unwrap();
        assert_eq!((company.cpu, company.samples), (3, 90));
        assert!((company.oversubscribed_ratio - 1.0 / 3.0).abs() < 1e-9);
        assert!((company.slower_by.unwrap() - 2.1).abs() < 1e-9);
        let alone = judge(3, &[0.8; 50]).unwrap();
        assert_eq!((alone.oversubscribed_ratio, alone.slower_by), (0.0, None));
        assert!(judge(3, &[]).is_err() && judge(3, &[1.0; 5]).is_err() && judge(3, &[0.0; 50]).is_err());
    }

    proptest! {
        #[test]
        fn a_share_is_one_whatever_the_loops_are(ratios in prop::collection::vec(0.01..50.0f64, 0..200), scale in 0.1..10.0f64) {
            let scaled: Vec<f64> = ratios.iter().map(|ratio| ratio * scale).collect();
            match (judge(0, &ratios), judge(0, &scaled)) {
                (Ok(one), Ok(other)) => {
                    prop_assert!((0.0..=1.0).contains(&one.oversubscribed_ratio));
                    prop_assert!((one.oversubscribed_ratio - other.oversubscribed_ratio).abs() < 0.05);
                    prop_assert_eq!(one.slower_by.is_some(), one.oversubscribed_ratio > 0.0);
                }
                (one, other) => prop_assert!(one.is_err() || other.is_err()),
            }
        }
    }

    #[test]
    fn a_cpu_of_this_machine_has_some_samples() {
        let cpu = tare_sys::affinity::get(0).unwrap()[0];
        let company = run(cpu, 200_000_000).unwrap();
        assert!(company.cpu == cpu && (0.0..=1.0).contains(&company.oversubscribed_ratio));
    }
}
