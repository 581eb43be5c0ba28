//! What of the CPUs nobody used.

use crate::accounting::{Closed, ratio};
use crate::capacity::levels::Accounting;

/// CPUs that the program may use and nobody did, on average; `None` where they were not read.
pub(crate) fn free_cpus(accounting: &Accounting) -> Option<f64> {
    free_in(&accounting.asked.pool)
}

/// The same in one window.
fn free_in(window: &Closed) -> Option<f64> {
    let of = |cpu: &u32| window.cpus.get(cpu)?.free_s();
    let free_s: f64 = window.sut.as_ref()?.usable.iter().map(of).sum::<Option<f64>>()?;
    Some(ratio(free_s, window.span.wall_s))
}

/// Of the CPUs that the program may use, the share that somebody used; `None` where they were not read.
pub(crate) fn used_share(window: &Closed) -> Option<f64> {
    let usable = window.sut.as_ref()?.usable.len();
    let free = free_in(window).filter(|_| usable > 0 && window.span.wall_s > 0.0)?;
    Some(1.0 - free / usable as f64)
}
