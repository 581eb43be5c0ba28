//! What hyperfine says of all runs of a command.

use crate::metrics::{Kind, Metrics};

/// What it says of the runs of one file; where those of another one stand before them, it is of no more than some.
pub(super) fn summary(of: Kind<'_>, first: u32, what: &str, value: Option<f64>, metrics: &mut Metrics) {
    if first > 0 {
        metrics.metric(of).into_iter().for_each(|metric| metric.summary.clear());
    } else if let Some(value) = value {
        metrics.summary(of, what, value);
    }
}

/// That of the runs behind a mean; of several means it is not that of all.
pub(super) fn deviation(of: Kind<'_>, value: f64, metrics: &mut Metrics) {
    let is_one_of_many = metrics.metric(of).is_some_and(|metric| metric.samples.len() > 1);
    summary(of, u32::from(is_one_of_many), "stddev", Some(value), metrics);
}
