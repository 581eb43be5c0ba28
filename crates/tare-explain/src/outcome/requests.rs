//! Requests, latency and trials in the form of the outcome.

use crate::accounting::Closed;
use crate::capacity::levels::Accounting;
use crate::capacity::runs::{are_timed_apart, counts};
use std::collections::BTreeMap;
use tare_model::Missing;
use tare_model::latency::Latencies;
use tare_model::metrics::wakeups;
use tare_model::observation::Role;
use tare_model::outcome::{LatencySummary, PerRole, Requests, SutWakeups, SwitchesPerRequest, TrialSummary};
use tare_model::plan::Purpose;
use tare_model::trial::{ErrorKind, Measure, Reasons, Said, Trial};

/// The requests of the asked level.
pub(crate) fn requests(accounting: &Accounting) -> Requests {
    let pool = &accounting.asked.pool;
    let count = |kind: ErrorKind| pool.answered.errors.get(&kind).copied().unwrap_or(0.0) as u64;
    let cpu_ns =
        |run_s: Option<f64>| run_s.and_then(|run_s| pool.per_request(run_s)).map(|cost_s| cost_s * 1e9);
    let switches = |of: fn(&crate::accounting::Thread) -> Option<f64>| {
        pool.sum_of(Role::Sut, of).and_then(|switches| pool.per_request(switches))
    };
    Requests {
        count: pool
            .answered
            .requests
            .filter(|_| !accounting.asked.trials.is_empty())
            .map(|count| count as u64),
        errors: ErrorKind::ALL.into_iter().map(|kind| (kind.name().to_owned(), count(kind))).collect(),
        error_reasons: named(error_reasons(accounting)),
        cpu_ns_per_request: PerRole {
            sut: cpu_ns(pool.sut.as_ref().map(|sut| sut.run_s)),
            load: cpu_ns(pool.load.as_ref().map(|load| load.run_s)),
        },
        switches_per_request: SwitchesPerRequest {
            voluntary: switches(|thread| thread.switched.voluntary),
            involuntary: switches(|thread| thread.switched.involuntary),
        },
        sut_wakeups_per_request: sut_wakeups(accounting).into(),
    }
}

/// Why requests of the asked level failed, by kind.
pub(crate) fn error_reasons(accounting: &Accounting) -> Reasons {
    let mut all = Said::default();
    let details = || accounting.samples().filter_map(|sample| sample.detail.as_ref());
    details().for_each(|of| all.add(of.said.clone()));
    let mut failed: BTreeMap<String, u64> = BTreeMap::new();
    for (status, count) in details().flat_map(|of| &of.status_codes).filter(|(status, _)| **status >= 400) {
        *failed.entry(format!("status {status}")).or_default() += count;
    }
    // Some of them may have been expected, or are failures of another kind.
    let errors = accounting.asked.pool.answered.errors.get(&ErrorKind::Status).copied().unwrap_or(0.0);
    if errors > 0.0 && failed.values().sum::<u64>() == errors as u64 {
        all.reasons.insert(ErrorKind::Status, failed);
    }
    all.reasons
}

/// With the names of kinds.
pub(crate) fn named(reasons: Reasons) -> BTreeMap<String, BTreeMap<String, u64>> {
    reasons.into_iter().map(|(kind, of_kind)| (kind.name().to_owned(), of_kind)).collect()
}

fn sut_wakeups(accounting: &Accounting) -> Result<SutWakeups, Missing> {
    let pool = &accounting.asked.pool;
    let Some(count) = pool.switches.wake_ups.by_sut else { return Err(why_uncounted(accounting)) };
    let sut = pool.per_request(count).ok_or_else(|| Missing::new("the requests could not be counted"))?;
    Ok(SutWakeups { sut })
}

/// Of the first trial that says so.
fn why_uncounted(accounting: &Accounting) -> Missing {
    let absences = accounting.record.trials.iter().flat_map(|trial| &trial.observation.absences);
    let mut reasons =
        absences.filter(|absence| absence.metric == wakeups::SUT.id).map(|one| one.reason.clone());
    reasons.next().unwrap_or_else(|| Missing::new("wake-ups of one SUT thread by another were not counted"))
}

/// Latency of the asked level: from the merged histograms, or as a foreign generator printed it.
pub(crate) fn latency(accounting: &Accounting) -> LatencySummary {
    match accounting.latencies() {
        Some(latencies) => summary_of(&latencies),
        None => printed(accounting),
    }
}

/// The figures of a histogram.
pub(crate) fn summary_of(latencies: &Latencies) -> LatencySummary {
    let at = |quantile| latencies.quantile_ns(quantile).map(|ns| ns as f64);
    LatencySummary {
        p50: at(0.5),
        p75: at(0.75),
        p90: at(0.9),
        p99: at(0.99),
        p99_9: at(0.999),
        p99_99: at(0.9999),
        max: latencies.max_ns().map(|ns| ns as f64),
        mean: latencies.mean_ns().filter(|mean| mean.is_finite()),
        stdev: latencies.stdev_ns().filter(|stdev| stdev.is_finite()),
    }
}

/// Percentiles cannot be merged: of several trials' printed ones the median trial's is taken.
fn printed(accounting: &Accounting) -> LatencySummary {
    let mut by_quantile: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (quantile, ns) in accounting.samples().flat_map(|sample| &sample.printed_quantiles_ns) {
        let thousandths = (quantile * 1e4).round() as u64;
        by_quantile.entry(thousandths).or_default().push(*ns as f64);
    }
    let at = |quantile: u64| by_quantile.get(&quantile).and_then(|values| tare_stats::median(values));
    LatencySummary {
        p50: at(5_000),
        p90: at(9_000),
        p99: at(9_900),
        p99_9: at(9_990),
        max: at(10_000),
        ..LatencySummary::default()
    }
}

/// Every trial, in order.
pub(crate) fn trials(accounting: &Accounting) -> Vec<TrialSummary> {
    accounting
        .record
        .trials
        .iter()
        .zip(&*accounting.windows)
        .map(|(trial, window)| summary(accounting, trial, window))
        .collect()
}

fn summary(accounting: &Accounting, trial: &Trial, window: &Closed) -> TrialSummary {
    let level = accounting.http.and_then(|http| http.levels.get(trial.level as usize));
    let connections = match &trial.sample {
        Measure::Command(_) => None,
        Measure::Http(sample) => {
            let planned = accounting.http.zip(level).and_then(|(http, level)| http.connections_of(level));
            planned.or_else(|| sample.connections.value().copied())
        }
    };
    let (name, value, sut_cpu_ns) = match &trial.sample {
        Measure::Command(run) => {
            let cpu_ns = run.user_ns as f64 + run.system_ns as f64;
            let name =
                if counts(run, are_timed_apart(accounting.record, run.command)) { "run" } else { "observed" };
            (name, Some(window.answered.elapsed_s), Some(cpu_ns))
        }
        Measure::Http(_) => {
            let name = match level.map(|level| level.purpose) {
                Some(Purpose::Saturating) => "saturating",
                Some(Purpose::Reference) => "reference",
                _ => "asked",
            };
            let cost_s = window.sut.as_ref().and_then(|sut| window.per_request(sut.run_s));
            (name, window.rate_interleaved_hz(), cost_s.map(|cost_s| cost_s * 1e9))
        }
    };
    let (residual_ratio, residuals) = window.residuals();
    let open = residuals.into_iter().filter(|(_, ratio)| *ratio > 0.0);
    let residual_of = open.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(of, _)| of);
    TrialSummary {
        seq: trial.seq,
        level: name.to_owned(),
        stage: level.and_then(|level| level.stage).map(|_| trial.level + 1),
        connections,
        elapsed_s: window.answered.elapsed_s,
        value,
        sut_cpu_ns,
        clock_hz: window.clock_hz(),
        transfer_ns: crate::capacity::core_latency::transfer_ns(&trial.observation),
        residual_ratio,
        residual_of,
    }
}
