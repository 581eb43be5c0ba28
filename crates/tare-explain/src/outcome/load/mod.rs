//! Load without accounting: from what the generator counted to a result with its warnings. Pure, as the rest.

mod facts;
mod load_warnings;
mod stages;

use crate::outcome::requests::{named, summary_of};
use facts::Facts;
use std::collections::BTreeMap;
use tare_model::load::{LoadOutcome, LoadRun, SelfCheck, SeriesPoint};
use tare_model::outcome::{GrossIs, PerRole, Requests, SCHEMA, SwitchesPerRequest};
use tare_model::trial::{ErrorKind, HttpDetail};
use tare_model::{Missing, Reading};

/// Names of the classes of status, in the order of [`HttpDetail::status_classes`].
const STATUS_CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "other"];

/// Explains a load: what it came to, whether it can be trusted, and what to know before quoting it.
pub fn explain(run: &LoadRun) -> LoadOutcome {
    let facts = Facts::of(run);
    let (warnings, valid) = load_warnings::judge(&facts);
    let (stages, followed) = stages::of(run);
    let sample = &run.sample;
    let per_s = |count: u64| count as f64 / facts.elapsed_s;
    let counted = |reading: &tare_model::Reading<u64>| reading.value().copied();
    let detail = facts.detail;
    LoadOutcome {
        schema: SCHEMA,
        workload: "load".to_owned(),
        valid,
        warnings,
        url: run.url.clone(),
        asked: run.asked.clone(),
        tls_certificate: run.tls_certificate,
        redirects: run.redirects.clone(),
        elapsed_s: facts.elapsed_s,
        rate_hz: facts.rate_hz,
        rate_is: match run.asked.open_loop {
            _ if facts.saturated() => GrossIs::LowerBound,
            // The server could not follow, or it had too few connections for it.
            true if facts.missed_schedule() => GrossIs::LowerBound,
            true => GrossIs::Offered,
            false => GrossIs::Capacity,
        },
        bytes_in_per_s: counted(&sample.bytes_in).filter(|_| facts.elapsed_s > 0.0).map(per_s),
        bytes_in: counted(&sample.bytes_in),
        bytes_out: detail.map(|detail| detail.bytes_out),
        requests: requests(&facts),
        statuses: detail.map(statuses).unwrap_or_default(),
        status_codes: detail.map(status_codes).unwrap_or_default(),
        in_flight: counted(&sample.in_flight),
        scheduled: sample.scheduled,
        capacity: run.capacity.clone(),
        stages,
        followed,
        latency_ns: sample.latency.value().map(summary_of).unwrap_or_default(),
        first_byte_ns: detail.map(|detail| summary_of(&detail.first_byte)).unwrap_or_default(),
        connect_ns: detail.map(|detail| summary_of(&detail.connect)).unwrap_or_default(),
        lateness_ns: sample.lateness.as_ref().map(summary_of),
        generator: SelfCheck {
            busy: facts.busy.clone(),
            littles_ratio: facts.littles_ratio,
            schedule_kept: facts.schedule_kept,
            clock_drift: facts.clock_drift,
        },
        series: detail.map(|detail| series(run, detail)).unwrap_or_default(),
    }
}

fn requests(facts: &Facts) -> Requests {
    let count = |kind: ErrorKind| facts.sample.errors.get(&kind).copied().unwrap_or(0);
    let threads = facts.detail.map(|detail| detail.threads.as_slice()).unwrap_or_default();
    let cpu_ns: u64 = threads.iter().map(|thread| thread.cpu_ns).sum();
    let answers = facts.answers.filter(|answers| *answers > 0 && !threads.is_empty());
    Requests {
        count: facts.answers,
        errors: ErrorKind::ALL.into_iter().map(|kind| (kind.name().to_owned(), count(kind))).collect(),
        error_reasons: facts.detail.map(|detail| named(detail.said.reasons.clone())).unwrap_or_default(),
        cpu_ns_per_request: PerRole { sut: None, load: answers.map(|count| cpu_ns as f64 / count as f64) },
        switches_per_request: SwitchesPerRequest::default(),
        sut_wakeups_per_request: Reading::Missing(Missing::with_remedy(
            "load alone does not watch the server",
            "tare run",
        )),
    }
}

fn statuses(detail: &HttpDetail) -> BTreeMap<String, u64> {
    let classes = STATUS_CLASSES.into_iter().zip(detail.status_classes);
    classes.filter(|(_, count)| *count > 0).map(|(class, count)| (class.to_owned(), count)).collect()
}

fn status_codes(detail: &HttpDetail) -> BTreeMap<String, u64> {
    detail.status_codes.iter().map(|(status, count)| (status.to_string(), *count)).collect()
}

fn series(run: &LoadRun, detail: &HttpDetail) -> Vec<SeriesPoint> {
    let mut begin_ns = run.begin_ns;
    let point = |slice: &tare_model::trial::SeriesSlice| {
        let length_s = slice.end_ns.saturating_sub(begin_ns) as f64 / 1e9;
        begin_ns = slice.end_ns;
        (length_s > 0.0).then(|| SeriesPoint {
            end_s: slice.end_ns.saturating_sub(run.begin_ns) as f64 / 1e9,
            rate_hz: slice.requests as f64 / length_s,
            p50_ns: slice.p50_ns,
            p99_ns: slice.p99_ns,
        })
    };
    detail.series.iter().filter_map(point).collect()
}
