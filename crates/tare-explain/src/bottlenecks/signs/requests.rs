//! Requests that failed.

use crate::capacity::levels::Accounting;
use crate::capacity::schedule;

/// Whether so much failed that the figure is not a figure of the workload.
pub(crate) fn fails(accounting: &Accounting) -> bool {
    accounting.http.is_some() && schedule::fails(&accounting.asked.pool)
}
