//! When each request is due: once in each slot of 1/rate, at an instant drawn at random within it.
//!
//! A fixed gap would meet what repeats by itself (the period of a quota, a timer) always at the same place. A slot each keeps the rate.

use std::time::Duration;
use tare_stats::SplitMix64;

/// The instants of one of `workers` that share the schedule, from the beginning of a window, ascending: it has each so manieth slot.
pub(super) fn instants(
    rate_hz: f64,
    window: Duration,
    worker: usize,
    workers: usize,
    seed: u64,
) -> Vec<Duration> {
    let slots = (rate_hz * window.as_secs_f64()).round() as usize;
    let mut random = SplitMix64::new(seed);
    let instants = (0..slots).map(|slot| {
        let share = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        (slot, Duration::from_secs_f64((slot as f64 + share) / rate_hz))
    });
    instants.filter(|(slot, _)| slot % workers == worker).map(|(_, instant)| instant).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slot_has_one_request_of_one_worker() {
        let window = Duration::from_secs(3);
        let mut all: Vec<Duration> = (0..4).flat_map(|worker| instants(20.0, window, worker, 4, 7)).collect();
        all.sort_unstable();
        assert_eq!(all.len(), 60);
        for (slot, instant) in all.iter().enumerate() {
            assert_eq!((instant.as_secs_f64() * 20.0) as usize, slot);
        }
        assert_ne!(instants(20.0, window, 0, 4, 8), instants(20.0, window, 0, 4, 7));
    }
}
