//! What of the CPUs nobody used.

use crate::accounting::ratio;
use crate::capacity::levels::Accounting;

/// CPUs that the program may use and nobody did, on average; `None` where they were not read.
pub(crate) fn free_cpus(accounting: &Accounting) -> Option<f64> {
    let pool = &accounting.asked.pool;
    let of = |cpu: &u32| pool.cpus.get(cpu)?.free_s();
    let free_s: f64 = accounting.sut()?.usable.iter().map(of).sum::<Option<f64>>()?;
    Some(ratio(free_s, pool.span.wall_s))
}
