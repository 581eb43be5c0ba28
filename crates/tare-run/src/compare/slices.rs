//! The slices of interleaved load, by the clock.

use crate::levels::nanoseconds;
use std::time::Duration;
use tare_load::Interleaving;

/// Slices that make up a length of time.
pub(super) fn slices_in(turns: &Interleaving, length: Duration) -> u64 {
    let (begin_ns, end_ns) = turns.slice_ns(0);
    let slice_ns = end_ns.saturating_sub(begin_ns).max(1);
    (nanoseconds(length) as f64 / slice_ns as f64).round().max(1.0) as u64
}

/// The slice at an instant, or the next one.
pub(super) fn slice_at(turns: &Interleaving, now_ns: u64) -> u64 {
    let (begin_ns, _) = turns.slice_ns(0);
    let length_ns = turns.slice_ns(1).0.saturating_sub(begin_ns).max(1);
    let slice = now_ns.saturating_sub(begin_ns) / length_ns;
    if now_ns < turns.slice_ns(slice).1 { slice } else { slice + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tare_load::Slices;

    proptest! {
        /// Counts are read between the end of a slice and the begin of the next.
        #[test]
        fn every_instant_has_its_slice(now_ns in 0u64..3_000_000_000, rounds in 1u32..20, break_ns in 0u64..20_000_000) {
            let turns = Interleaving {
                begin_ns: 1_000_000,
                turn_ns: 5_000_000,
                rest_ns: 1_000_000,
                arms: 3,
                place: 0,
                seed: 1,
                slices: Some(Slices { rounds, break_ns }),
            };
            let slice = slice_at(&turns, now_ns);
            prop_assert!(now_ns < turns.slice_ns(slice).1);
            prop_assert!(slice == 0 || now_ns >= turns.slice_ns(slice - 1).1);
        }
    }
}
