//! What the generator counted of the requests, or of a run.

use crate::accounting::raw::ratio::sum;
use std::collections::BTreeMap;
use tare_model::trial::{ErrorKind, HttpSample, Measure, Unsent};

/// Answers of one window, or of several.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answered {
    /// As the generator measured it (http), or start to exit (commands).
    pub elapsed_s: f64,
    /// Answers; `None` where a foreign generator's count could not be read, and for commands.
    pub requests: Option<f64>,
    pub errors: BTreeMap<ErrorKind, f64>,
    /// Requests that an open loop should have sent; `None` for a closed loop.
    pub scheduled: Option<f64>,
    /// Time that all requests took together: over `elapsed_s` it is how many were in flight. Where latencies are not known, as many as there are
    /// connections.
    pub in_flight_s: Option<f64>,
    /// A stage: by how many more requests waited for a connection at its end than at its beginning.
    pub more_unsent: Option<f64>,
    /// A stage: requests by which answers fell behind the schedule to the end of the window, beyond chance. They may all be on connections.
    pub fell_behind: f64,
}

/// Fewer slices say nothing of the second half of a window.
const SLICES_MIN: usize = 8;

impl Answered {
    pub(super) fn of(sample: &Measure) -> Answered {
        match sample {
            Measure::Http(http) => Answered {
                elapsed_s: http.elapsed_ns as f64 / 1e9,
                requests: http.requests.value().map(|count| *count as f64),
                errors: http.errors.iter().map(|(kind, count)| (*kind, *count as f64)).collect(),
                scheduled: http.scheduled.map(|count| count as f64),
                in_flight_s: in_flight_s(http),
                more_unsent: http.detail.as_ref().and_then(|detail| detail.unsent).map(more),
                fell_behind: fell_behind(http).unwrap_or(0.0),
            },
            Measure::Command(command) => {
                Answered { elapsed_s: command.wall_ns as f64 / 1e9, ..Answered::default() }
            }
        }
    }

    pub(super) fn absorb(&mut self, other: &Answered) {
        self.elapsed_s += other.elapsed_s;
        self.requests = sum(self.requests, other.requests);
        self.scheduled = sum(self.scheduled, other.scheduled);
        self.in_flight_s = sum(self.in_flight_s, other.in_flight_s);
        self.more_unsent = sum(self.more_unsent, other.more_unsent);
        self.fell_behind += other.fell_behind;
        for (kind, count) in &other.errors {
            *self.errors.entry(*kind).or_default() += count;
        }
    }

    /// Answers per second; `None` where they could not be counted.
    pub fn rate_hz(&self) -> Option<f64> {
        self.requests.filter(|_| self.elapsed_s > 0.0).map(|count| count / self.elapsed_s)
    }

    /// Requests in flight on average.
    pub fn in_flight(&self) -> Option<f64> {
        self.in_flight_s.filter(|_| self.elapsed_s > 0.0).map(|seconds| seconds / self.elapsed_s)
    }

    /// Failed attempts of any kind.
    pub fn failed(&self) -> f64 {
        self.errors.values().sum()
    }

    /// Those of them that have no answer.
    pub fn answerless(&self) -> f64 {
        self.errors.iter().filter(|(kind, _)| **kind != ErrorKind::Status).map(|(_, count)| count).sum()
    }

    /// Whether at least half of the errors are of these kinds, which makes what stands behind those the cause of them.
    pub fn fails_mostly_by(&self, kinds: &[ErrorKind]) -> bool {
        let of = |kind: &ErrorKind| self.errors.get(kind).copied().unwrap_or(0.0);
        kinds.iter().map(of).sum::<f64>() >= 0.5 * self.failed().max(1.0)
    }

    /// Errors as a share of all attempts. A status error is an answer too; the others have none.
    pub fn error_share(&self) -> f64 {
        let attempts = (self.requests.unwrap_or(0.0) + self.answerless()).max(self.failed());
        if attempts > 0.0 { self.failed() / attempts } else { 0.0 }
    }
}

fn more(unsent: Unsent) -> f64 {
    unsent.at_end as f64 - unsent.at_begin as f64
}

/// Requests without an answer in the whole window or, where these are fewer, twice those of its second half: a server that is slow from the
/// start has them in the first half alone, a rate that grows or falls has answers for them in one half. Of a slow server's requests in flight
/// there are now more and now fewer: chance is twice the root of their number.
fn fell_behind(http: &HttpSample) -> Option<f64> {
    http.detail.as_ref()?.unsent?;
    let scheduled = http.scheduled? as f64;
    let errors: u64 =
        http.errors.iter().filter(|(kind, _)| **kind != ErrorKind::Status).map(|(_, n)| n).sum();
    let in_all = scheduled - *http.requests.value()? as f64 - errors as f64;
    let half = http.slices.len() / 2;
    let (first, second) = http.slices.split_at_checked(half).filter(|_| http.slices.len() >= SLICES_MIN)?;
    let lasted_ns = second.last()?.0.checked_sub(first.last()?.0)?;
    let due = scheduled * lasted_ns as f64 / http.elapsed_ns.max(1) as f64;
    let late = due - second.iter().map(|(_, count)| *count as f64).sum::<f64>();
    let chance = 2.0 * (http.in_flight.value().copied().unwrap_or(0) as f64).sqrt();
    Some((in_all.min(2.0 * late) - chance).max(0.0))
}

fn in_flight_s(http: &HttpSample) -> Option<f64> {
    let timed = http.latency.value().filter(|latencies| latencies.count() > 0);
    let of_latencies =
        timed.and_then(|latencies| Some(latencies.mean_ns()? / 1e9 * latencies.count() as f64));
    let of_connections =
        || http.connections.value().map(|count| f64::from(*count) * http.elapsed_ns as f64 / 1e9);
    of_latencies.or_else(of_connections).filter(|seconds| *seconds > 0.0)
}
