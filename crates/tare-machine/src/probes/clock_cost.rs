//! What it costs to look at the clock, which is taken off short measurements.

use tare_sys::time::monotonic_ns;

/// What one reading of the monotonic clock costs, nanoseconds: the median of back-to-back readings.
pub(super) fn clock_cost_ns() -> f64 {
    let mut costs_ns = [0u64; 101];
    for cost_ns in &mut costs_ns {
        let start_ns = monotonic_ns();
        *cost_ns = monotonic_ns() - start_ns;
    }
    costs_ns.sort_unstable();
    costs_ns[costs_ns.len() / 2] as f64
}
