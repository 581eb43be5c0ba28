//! Figures with their intervals.

use crate::accounting::Closed;
use crate::capacity::level::Level;
use tare_model::outcome::{Estimate, Stopped, Target};
use tare_stats::Interval;

/// A figure of the pooled trials with its interval, which is made on the log: rates and times are never negative
/// and their disturbances are factors.
///
/// `None` where the figure could not be had.
pub(crate) fn estimate(
    level: &Level,
    unit: &str,
    figure: impl Fn(&Closed) -> Option<f64>,
) -> Option<Estimate> {
    let value = figure(&level.pool).filter(|value| value.is_finite())?;
    let ln = |window: &Closed| figure(window).map(f64::ln).filter(|ln| ln.is_finite());
    let ci95 = level.interval(ln).and_then(|interval| interval.map(f64::exp));
    Some(Estimate { value, unit: unit.to_owned(), ci95: ci95.map(|interval| [interval.lo, interval.hi]) })
}

/// The estimate of trials that ended by what was known of it: with the interval that holds for all evaluations, or none.
pub(crate) fn stopped(estimate: Estimate, stopping: Option<&Stopped>) -> Estimate {
    let Some(stopping) = stopping.filter(|stopping| stopping.target == Target::Gross) else {
        return estimate;
    };
    let around = |factor: f64| Interval::new(estimate.value / factor, estimate.value * factor);
    let ci95 = stopping.reached.map(|reached| reached.asinh().exp()).and_then(around);
    Estimate { ci95: ci95.map(|interval| [interval.lo, interval.hi]), ..estimate }
}
