//! Requests that failed, and schedules that were kept.

use crate::accounting::Closed;
use crate::bottlenecks::signs::bounds::ERROR_SHARE_MAX;
use crate::capacity::levels::Accounting;

/// The share of its schedule that an open loop must reach.
const SCHEDULE_SHARE_MIN: f64 = 0.99;

/// Whether so much failed that the figure is not a figure of the workload.
pub(crate) fn fails(accounting: &Accounting) -> bool {
    accounting.http.is_some() && accounting.asked.pool.answered.error_share() > ERROR_SHARE_MAX
}

/// Whether an open loop got answers to what it was to send; one a trial may be on its way at the edge.
pub(crate) fn reached_schedule(pool: &Closed) -> bool {
    let (Some(scheduled), Some(requests)) = (pool.answered.scheduled, pool.answered.requests) else {
        return false;
    };
    scheduled > 0.0 && requests + f64::from(pool.span.trials) >= SCHEDULE_SHARE_MIN * scheduled
}

/// Whether an open loop got fewer answers than it was to send: its latencies then are those of a load that nobody asked
/// for, and the requests that were not sent are in none of them.
pub(crate) fn missed_schedule(pool: &Closed) -> bool {
    pool.answered.scheduled.is_some_and(|scheduled| scheduled > 0.0) && !reached_schedule(pool)
}
