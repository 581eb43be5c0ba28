//! The table: a row for each probe in each state.

use super::measured::{Est, Measured, quantile};
use tare_model::outcome::Estimate;
use tare_model::probing::{ProbeFailure, ProbeRow, ProbeWindow};
use tare_model::{Missing, Reading};
use tare_stats::{mean_interval, median};

/// Fewer requests have no 99th percentile: three of them would be beyond it.
const P99_REQUESTS_MIN: usize = 300;

pub(super) fn all(measured: &Measured<'_>) -> Vec<ProbeRow> {
    let states = measured.run.states.len();
    let probes = 0..measured.run.probes.len();
    probes.flat_map(|probe| (0..states).map(move |state| row(measured, probe, state))).collect()
}

fn row(measured: &Measured<'_>, probe: usize, state: usize) -> ProbeRow {
    let run = measured.run;
    let of_row = |window: &&ProbeWindow| window.probe == probe && window.state == state;
    let windows: Vec<&ProbeWindow> = run.windows.iter().filter(of_row).collect();
    let rounds_s = measured.medians(probe, state).to_vec();
    let medians: Vec<f64> = rounds_s.iter().flatten().copied().collect();
    let median_s = mean_interval(&medians).map(|found| Estimate {
        value: found.value,
        unit: "s".into(),
        ci95: found.ci95.map(|ends| [ends.lo, ends.hi]),
    });
    let why = why_missing(&windows);
    let against_first = |found: Option<Est>, unit: &str| match (state, found) {
        (0, _) => Reading::NotApplicable { not_applicable: "the state that others are held against".into() },
        (_, Some(found)) => {
            Reading::Measured(Estimate { value: found.value, unit: unit.into(), ci95: found.ends() })
        }
        (_, None) => Reading::Missing(Missing::new("no round has a median in both states")),
    };
    let p99_s = quantile(&windows, 0.99, run.plan.timeout_s, P99_REQUESTS_MIN);
    let requests: usize = windows.iter().map(|window| requests(window) as usize).sum();
    let late: Vec<f64> = windows.iter().filter_map(|window| window.own_lateness_s).collect();
    ProbeRow {
        probe: run.probes[probe].name.clone(),
        state: run.states[state].name.clone(),
        median: median_s.map_or_else(|| Reading::Missing(Missing::new(why.clone())), Reading::Measured),
        p99_s: p99_s.map_or_else(
            || match requests < P99_REQUESTS_MIN {
                true => Reading::Missing(Missing::with_remedy(
                    format!("{requests} requests, and it takes {P99_REQUESTS_MIN}"),
                    "more rounds, a longer window or a higher rate",
                )),
                false => Reading::Missing(Missing::new("more than 1 in 100 requests failed")),
            },
            Reading::Measured,
        ),
        ratio: against_first(measured.ratio(probe, state), ""),
        added: against_first(measured.added(probe, state), "s"),
        answers: windows.iter().map(|window| window.times_s.len() as u64).sum(),
        failures: failures(&windows),
        own_lateness_s: median(&late),
        rounds_s,
    }
}

/// All requests of a window.
pub(super) fn requests(window: &ProbeWindow) -> u64 {
    let failed: u64 = window.failures.iter().map(|failure| failure.count).sum();
    window.times_s.len() as u64 + window.timed_out + failed
}

/// What failed, the most frequent first.
pub(super) fn failures(windows: &[&ProbeWindow]) -> Vec<ProbeFailure> {
    let mut all: Vec<ProbeFailure> = Vec::new();
    let timed_out = windows.iter().map(|window| window.timed_out).sum();
    let timed_out = ProbeFailure { why: "no answer within the time limit".into(), count: timed_out };
    for failure in windows.iter().flat_map(|window| &window.failures).chain([&timed_out]) {
        match all.iter_mut().find(|known| known.why == failure.why) {
            Some(known) => known.count += failure.count,
            None => all.push(failure.clone()),
        }
    }
    all.retain(|failure| failure.count > 0);
    all.sort_by_key(|failure| std::cmp::Reverse(failure.count));
    all
}

fn why_missing(windows: &[&ProbeWindow]) -> String {
    match failures(windows).first() {
        Some(most) => format!("half of the requests or more failed: {}", most.why),
        None if windows.is_empty() => "it was not measured".into(),
        None => "too few requests".into(),
    }
}
