//! All rings of an observer together.

use std::io;
use tare_sys::perf::Ring;

/// The least that a ring is of use with.
const LEAST_BYTES: usize = 64 << 10;
/// Of a ring, what samples may fill between two drains: a drain may come late.
const FILLED: f64 = 0.5;
/// Bytes of a sample beside its chain and its copy of a stack, at most: its header, numbers and registers.
const HEAD_BYTES: usize = 320;

/// The first failure, after all were tried.
pub(super) fn enable(rings: &[Ring], on: bool) -> io::Result<()> {
    rings.iter().map(|ring| ring.enable(on)).fold(Ok(()), io::Result::and)
}

/// Bytes of the ring of each of so many CPUs: as many as wanted, and fewer where all together would have more than `all`. A power of two.
pub(super) fn bytes_of_each(wanted: usize, cpus: usize, all: usize) -> usize {
    let share = (all / cpus.max(1)).max(LEAST_BYTES);
    let most = if share.is_power_of_two() { share } else { share.next_power_of_two() / 2 };
    wanted.min(most)
}

/// Samples a second of a CPU whose chains have so many frames and whose copies so many bytes: as many as asked, and no more than such a
/// ring has room for between two drains.
pub(super) fn rate_hz(
    asked_hz: u32,
    ring_bytes: usize,
    chain_max: u16,
    stack_bytes: u32,
    drain_hz: f64,
) -> u32 {
    let sample_bytes = HEAD_BYTES + 8 * usize::from(chain_max) + stack_bytes as usize;
    let fits = FILLED * ring_bytes as f64 / sample_bytes as f64 * drain_hz;
    asked_hz.min(fits as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn all_rings_together_have_a_bound_and_no_more_samples_than_they_hold() {
        for (cpus, each) in [(1, 4 * MIB), (16, 4 * MIB), (17, 2 * MIB), (64, MIB), (512, MIB / 8)] {
            let bytes = bytes_of_each(4 * MIB, cpus, 64 * MIB);
            assert_eq!(bytes, each, "{cpus} CPUs");
            assert!(bytes * cpus <= 64 * MIB);
        }
        assert_eq!(bytes_of_each(MIB / 2, 2, 64 * MIB), MIB / 2);
        // On few CPUs what was asked for fits; on many it does not, and some is left.
        assert_eq!(rate_hz(999, 4 * MIB, 127, 8192, 20.0), 999);
        let of_many = rate_hz(999, MIB / 8, 127, 8192, 20.0);
        assert!((100..200).contains(&of_many), "{of_many}");
        assert_eq!(rate_hz(999, MIB / 8, 127, 8192, 0.0), 1);
    }
}
