//! What was measured in each trial, metric by metric.

use crate::accounting::Closed;
use crate::capacity::level::Level;
use crate::capacity::levels::Accounting;
use crate::capacity::{estimate, runs, summary};
use tare_model::outcome::{Better, Estimate, Metric};

/// The metrics of the asked level.
pub(crate) fn metrics(accounting: &Accounting) -> Vec<Metric> {
    if accounting.http.is_none() {
        let cpu_s = |window: &Closed| {
            let run_s = window.sut.as_ref()?.run_s;
            (window.span.trials > 0).then(|| run_s / f64::from(window.span.trials))
        };
        return vec![
            gross(accounting, "time", "s", Better::Lower, runs::mean_s),
            metric(accounting, "cpu_time", "s", Better::Lower, cpu_s),
        ];
    }
    let cpu_s = |window: &Closed| window.per_request(window.sut.as_ref()?.run_s);
    let mut metrics = vec![
        gross(accounting, "throughput", "req/s", Better::Higher, Closed::rate_hz),
        metric(accounting, "cpu_per_request", "s", Better::Lower, cpu_s),
    ];
    metrics.extend([("p50", 0.5), ("p99", 0.99)].map(|(name, quantile)| latency(accounting, name, quantile)));
    metrics
}

/// The metric that gross is of: with the interval of gross.
fn gross(
    accounting: &Accounting,
    name: &str,
    unit: &str,
    better: Better,
    figure: impl Fn(&Closed) -> Option<f64>,
) -> Metric {
    let level = accounting.gross_level();
    let found = estimate::estimate(&level, unit, &figure)
        .map(|found| estimate::stopped(found, accounting.stopping.as_ref()));
    of(name, unit, better, samples(&level, figure), found)
}

fn metric(
    accounting: &Accounting,
    name: &str,
    unit: &str,
    better: Better,
    figure: impl Fn(&Closed) -> Option<f64>,
) -> Metric {
    let found = estimate::estimate(&accounting.asked, unit, &figure);
    of(name, unit, better, samples(&accounting.asked, figure), found)
}

/// A percentile of each trial's latencies: their geometric mean.
fn latency(accounting: &Accounting, name: &str, quantile: f64) -> Metric {
    let trials = accounting.samples();
    let each: Vec<Option<f64>> = trials.map(|sample| summary::quantile_s(sample, quantile)).collect();
    let all: Option<Vec<f64>> = each.iter().map(|seconds| seconds.map(f64::ln)).collect();
    let mean = all.as_deref().and_then(tare_stats::mean_interval);
    Metric {
        name: name.to_owned(),
        unit: "s".to_owned(),
        better: Better::Lower,
        samples: each.into_iter().flatten().collect(),
        estimate: mean.map(|mean| mean.value.exp()),
        interval: mean.and_then(|mean| mean.ci95).map(|interval| [interval.lo.exp(), interval.hi.exp()]),
    }
}

fn samples(level: &Level, figure: impl Fn(&Closed) -> Option<f64>) -> Vec<f64> {
    let values = level.trials.iter().filter_map(figure);
    values.filter(|value| value.is_finite()).collect()
}

fn of(name: &str, unit: &str, better: Better, samples: Vec<f64>, found: Option<Estimate>) -> Metric {
    Metric {
        name: name.to_owned(),
        unit: unit.to_owned(),
        better,
        samples,
        estimate: found.as_ref().map(|estimate| estimate.value),
        interval: found.and_then(|estimate| estimate.ci95),
    }
}
