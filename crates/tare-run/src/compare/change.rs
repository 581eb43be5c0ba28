//! From logarithms to relative changes.

use tare_model::comparison::Change;
use tare_stats::{Analysis, Interval};

/// The relative change of an analysis, with an interval of logarithms; `None` where that is not finite.
pub(super) fn change(analysis: &Analysis, interval: Interval) -> Option<Change> {
    let Interval { lo, hi } = interval.map(f64::exp_m1)?;
    Some(Change { value: analysis.mean.value.exp_m1(), interval: [lo, hi] })
}
