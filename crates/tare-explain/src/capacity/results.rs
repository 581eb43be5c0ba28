//! The results of a benchmark from run to run: what `--precision` is for where a program prints them.

use std::collections::BTreeMap;
use tare_model::trial::{Measure, Trial};
use tare_stats::{Analysis, Sequence};

/// By benchmark, metric and unit: the median of one run's samples.
type Medians = BTreeMap<(String, String, String), f64>;

/// The results that are to be made known, of each run so far.
#[derive(Debug, Default)]
pub(super) struct ByRun {
    medians: Vec<Medians>,
}

impl ByRun {
    /// Reads those of the runs that came since.
    pub fn follow(&mut self, trials: &[&Trial]) {
        let new = trials.iter().skip(self.medians.len());
        self.medians.extend(new.map(|trial| medians(trial)));
    }

    /// Each metric's medians over their mean. Left out are those that a run did not print, and those that were not above 0 in one; `None`
    /// where none is left.
    pub fn shares(&self) -> Option<Vec<Vec<f64>>> {
        let of_metric = |key| -> Option<Vec<f64>> {
            let values: Option<Vec<f64>> =
                self.medians.iter().map(|run: &Medians| run.get(key).copied()).collect();
            let values = values.filter(|values| values.iter().all(|value| *value > 0.0))?;
            let mean = tare_stats::mean(&values)?;
            Some(values.iter().map(|value| value / mean).collect())
        };
        let all: Vec<Vec<f64>> = self.medians.first()?.keys().filter_map(of_metric).collect();
        (!all.is_empty()).then_some(all)
    }
}

fn medians(trial: &Trial) -> Medians {
    let Measure::Command(run) = &trial.sample else { return Medians::new() };
    let metrics = run.results.iter().flat_map(|results| &results.metrics);
    let key = |name: &str| name.to_owned();
    let of_metric = |metric: &tare_model::tool::ToolMetric| {
        let value = tare_stats::median(&metric.samples)?;
        Some(((key(&metric.benchmark), key(&metric.name), key(&metric.unit)), value))
    };
    metrics.filter(|metric| metric.is_target).filter_map(of_metric).collect()
}

/// What is known of the series that is known least, each by an interval of its own; `None` before all have one. What was the same in every
/// run, as a count of allocations, is known.
pub(super) fn widest(plan: &Sequence, series: &[Vec<f64>]) -> Option<Analysis> {
    let half = |analysis: &Analysis| analysis.interval.hi - analysis.interval.lo;
    let varying = series.iter().filter(|values| !is_constant(values));
    let all: Option<Vec<Analysis>> = varying.map(|values| plan.analyse(&[values])).collect();
    all?.into_iter().max_by(|one, other| half(one).total_cmp(&half(other)))
}

/// Whether all are the same.
pub(super) fn is_constant(values: &[f64]) -> bool {
    values.iter().all(|value| Some(value) == values.first())
}
