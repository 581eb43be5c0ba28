//! One sample out of the tallies of all threads: histograms are added up, never their percentiles.

use crate::slices::Slices;
use crate::spec::{LoadSpec, Pacing};
use crate::tally::Tally;
use std::collections::BTreeMap;
use tare_model::Reading;
use tare_model::latency::Latencies;
use tare_model::trial::{ClockCheck, ErrorKind, GeneratorThread, HttpDetail, HttpSample, SeriesSlice};

/// One sample of all threads' windows.
pub(crate) fn merge(tallies: &[&Tally], tids: &[u32], end_ns: u64, spec: &LoadSpec) -> HttpSample {
    let mut latency = Latencies::new();
    let mut lateness: Option<Latencies> = None;
    let mut errors = BTreeMap::new();
    let mut scheduled: Option<u64> = None;
    for tally in tallies {
        latency.merge(&tally.times.latency);
        if let Some(count) = tally.at_end.scheduled {
            scheduled = Some(scheduled.unwrap_or(0) + count);
            lateness.get_or_insert_default().merge(&tally.times.lateness);
        }
        for (kind, count) in ErrorKind::ALL.into_iter().zip(tally.errors) {
            if count > 0 {
                *errors.entry(kind).or_insert(0) += count;
            }
        }
    }
    let series = Slices::sum(tallies.iter().map(|tally| &tally.slices), end_ns);
    HttpSample {
        elapsed_ns: elapsed_ns(tallies),
        requests: Reading::Measured(tallies.iter().map(|tally| tally.answers).sum()),
        errors,
        latency: Reading::Measured(latency),
        printed_quantiles_ns: Vec::new(),
        bytes_in: Reading::Measured(tallies.iter().map(|tally| tally.bytes_in).sum()),
        in_flight: Reading::Measured(tallies.iter().map(|tally| tally.at_end.in_flight).sum()),
        connections: Reading::Measured(tallies.iter().map(|tally| tally.at_end.connections).sum()),
        scheduled,
        lateness,
        slices: series.iter().map(|slice| (slice.end_ns, slice.requests)).collect(),
        detail: Some(Box::new(detail(tallies, tids, series, spec))),
    }
}

/// What is reported beside the counts.
fn detail(tallies: &[&Tally], tids: &[u32], series: Vec<SeriesSlice>, spec: &LoadSpec) -> HttpDetail {
    let mut detail = HttpDetail { series, ..HttpDetail::default() };
    let mut whole_apart = Latencies::new();
    for (tally, tid) in tallies.iter().zip(tids) {
        detail.connect.merge(&tally.times.connect);
        detail.first_byte.merge(&tally.times.latency);
        whole_apart.merge(&tally.times.whole_apart);
        detail.bytes_out += tally.bytes_out;
        for (fault, count) in &tally.reasons {
            *detail.said.reasons.entry(fault.kind).or_default().entry(fault.why.to_owned()).or_insert(0) +=
                count;
        }
        detail.said.redirected_to = detail.said.redirected_to.or_else(|| tally.at_end.redirected_to.clone());
        for (status, count) in (0u16..).zip(tally.status_codes.iter()).filter(|(_, count)| **count > 0) {
            *detail.status_codes.entry(status).or_insert(0) += count;
            detail.status_classes[usize::from(status / 100).wrapping_sub(1).min(5)] += count;
        }
        let (wall_ns, raw_ns, cpu_ns) = tally.clocks_ns();
        detail.threads.push(GeneratorThread {
            tid: *tid,
            wall_ns,
            cpu_ns,
            busy_poll: spec.workers.busy_poll,
        });
        if wall_ns > detail.clock.monotonic_ns {
            detail.clock = ClockCheck { monotonic_ns: wall_ns, raw_ns };
        }
    }
    // Where all of an answer came at once, its first byte came with its last.
    detail.first_byte.subtract(&whole_apart);
    tallies.iter().for_each(|tally| detail.first_byte.merge(&tally.times.first_byte_apart));
    if spec.pacing == Pacing::Closed && spec.keep_alive {
        detail.held_in_flight = Some(tallies.iter().map(|tally| tally.at_end.room).sum());
    }
    if matches!(spec.pacing, Pacing::Interleaved(_)) {
        detail.out_of_turn = Some(tallies.iter().map(|tally| tally.out_of_turn).sum());
    }
    if spec.is_multiplexed() {
        detail.streams_allowed = tallies.iter().map(|tally| tally.at_end.allowed).min();
    }
    detail
}

/// The time in which all threads together would have counted what they did at the sum of their rates.
fn elapsed_ns(tallies: &[&Tally]) -> u64 {
    let window_ns = |tally: &Tally| tally.window.end_ns.saturating_sub(tally.window.begin_ns).max(1) as f64;
    let answers: f64 = tallies.iter().map(|tally| tally.answers as f64).sum();
    let rate_per_ns: f64 = tallies.iter().map(|tally| tally.answers as f64 / window_ns(tally)).sum();
    let mean_ns = tallies.iter().map(|tally| window_ns(tally)).sum::<f64>() / tallies.len().max(1) as f64;
    let elapsed_ns = if answers > 0.0 { answers / rate_per_ns } else { mean_ns };
    elapsed_ns.round() as u64
}

/// A sample of a window that a thread did not report.
pub(crate) fn missing() -> HttpSample {
    const WHY: &str = "a generator thread did not answer";
    HttpSample {
        elapsed_ns: 0,
        requests: Reading::missing(WHY),
        errors: BTreeMap::new(),
        latency: Reading::missing(WHY),
        printed_quantiles_ns: Vec::new(),
        bytes_in: Reading::missing(WHY),
        in_flight: Reading::missing(WHY),
        connections: Reading::missing(WHY),
        scheduled: None,
        lateness: None,
        slices: Vec::new(),
        detail: None,
    }
}
