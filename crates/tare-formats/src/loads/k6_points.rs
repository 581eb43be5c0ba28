//! Single measurements of k6, whether they come as lines of JSON or of CSV.

use super::time::seconds_between;
use crate::metrics::{Kind, Metrics, Sample};
use std::collections::BTreeMap;
use tare_model::outcome::Better;

/// Most sums that are kept.
const SUMS_MAX: usize = 1000;
/// Most seconds that are kept, over all sums.
const SECONDS_MAX: usize = 1_000_000;

/// What a metric holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Counter,
    Gauge,
    /// Of true and false, 1 and 0.
    Rate,
    Trend,
}

/// What is known of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    pub holds: Holds,
    /// `time` (in milliseconds), `data` (in bytes) or nothing.
    pub contains: Contains,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contains {
    Time,
    Data,
    Other,
}

/// What k6 itself measures.
pub(super) fn built_in(name: &str) -> Option<Known> {
    let known = |holds, contains| Some(Known { holds, contains });
    match name {
        "http_reqs" | "iterations" | "dropped_iterations" | "ws_sessions" | "ws_msgs_sent"
        | "ws_msgs_received" => known(Holds::Counter, Contains::Other),
        "data_sent" | "data_received" => known(Holds::Counter, Contains::Data),
        "vus" | "vus_max" => known(Holds::Gauge, Contains::Other),
        "checks" | "http_req_failed" => known(Holds::Rate, Contains::Other),
        "iteration_duration" | "group_duration" | "ws_connecting" | "ws_session_duration" | "ws_ping" => {
            known(Holds::Trend, Contains::Time)
        }
        _ if name.starts_with("http_req_") || name.starts_with("grpc_req_") => {
            known(Holds::Trend, Contains::Time)
        }
        _ => None,
    }
}

/// A value in base units: k6 has times in milliseconds.
pub(super) fn in_base(known: Known, value: f64) -> (f64, &'static str) {
    match known.contains {
        Contains::Time => (value / 1e3, "s"),
        Contains::Data => (value, "B"),
        Contains::Other => (value, ""),
    }
}

/// Which way is better of a metric with this name.
pub(super) fn better(name: &str, known: Known) -> Option<Better> {
    match (name, known) {
        ("http_req_failed" | "dropped_iterations", _) => Some(Better::Lower),
        ("checks", _) => Some(Better::Higher),
        (_, Known { holds: Holds::Trend, contains: Contains::Time }) => Some(Better::Lower),
        _ => None,
    }
}

/// Which way is better of a counter's rate: what k6 itself counts is work that was done, what a script counts may be errors.
pub(super) fn better_rate(name: &str, known: Known) -> Option<Better> {
    let is_work = || {
        let is_data = |known: &Known| known.contains == Contains::Data;
        built_in(name).is_some_and(|known| known.holds == Holds::Counter && !is_data(&known))
    };
    better(name, known).or_else(|| is_work().then_some(Better::Higher))
}

/// One measurement.
pub(super) struct Point<'a> {
    pub line: u64,
    pub metric: &'a str,
    pub value: f64,
    /// Seconds and nanoseconds since 1970.
    pub at: (i64, u32),
    pub scenario: &'a str,
    pub group: &'a str,
    pub status: &'a str,
}

#[derive(Default)]
struct Sum {
    total: f64,
    count: u64,
    seconds: BTreeMap<i64, f64>,
    line: u64,
}

/// Sums of counters and shares of rates; samples of the others go on at once.
#[derive(Default)]
pub(super) struct Points {
    sums: BTreeMap<(String, String), (Known, Sum)>,
    begun: Option<(i64, u32)>,
    seconds: Option<(i64, i64)>,
    requests: u64,
    failed: u64,
    dropped: f64,
    benchmark: String,
}

impl Points {
    pub fn add(&mut self, known: Known, point: &Point<'_>, metrics: &mut Metrics) {
        let (seconds, _) = point.at;
        let begun = *self.begun.get_or_insert(point.at);
        let (first, last) = self.seconds.unwrap_or((seconds, seconds));
        self.seconds = Some((first.min(seconds), last.max(seconds)));
        // The scenario of a script without any is `default`, and each group begins with `::`.
        self.benchmark.clear();
        self.benchmark.push_str(if point.scenario == "default" { "" } else { point.scenario });
        self.benchmark.push_str(point.group);
        if point.metric == "http_req_duration" {
            self.requests += 1;
            // 0 is no answer; other protocols have statuses of their own.
            self.failed +=
                u64::from(point.status.parse::<u32>().is_ok_and(|status| status == 0 || status >= 400));
        }
        if point.metric == "dropped_iterations" {
            self.dropped += point.value;
        }
        if matches!(known.holds, Holds::Counter | Holds::Rate) {
            return self.sum(known, point, metrics);
        }
        let (value, unit) = in_base(known, point.value);
        let better = better(point.metric, known);
        // One that reached no server took 0 s: that is no latency.
        let lost = point.status == "0" && known.holds == Holds::Trend;
        let name = if lost { format!("{} without an answer", point.metric) } else { point.metric.to_owned() };
        let better = better.filter(|_| !lost);
        let kind = Kind { benchmark: &self.benchmark, name: &name, unit, better };
        let at_s = seconds_between(begun, point.at);
        metrics.sample(point.line, kind, Sample { value, at_s: Some(at_s), ..Sample::default() });
    }

    fn sum(&mut self, known: Known, point: &Point<'_>, metrics: &mut Metrics) {
        let key = (self.benchmark.clone(), point.metric.to_owned());
        if self.sums.len() >= SUMS_MAX && !self.sums.contains_key(&key) {
            return metrics.skip(point.line, point.metric, "more counters than are kept");
        }
        let (_, sum) = self.sums.entry(key).or_insert((known, Sum { line: point.line, ..Sum::default() }));
        sum.total += point.value;
        sum.count += 1;
        if sum.seconds.len() < SECONDS_MAX {
            *sum.seconds.entry(point.at.0).or_default() += point.value;
        }
    }

    /// Whether there was any.
    pub fn any(&self) -> bool {
        self.begun.is_some()
    }

    pub fn finish(self, metrics: &mut Metrics) {
        let (first, last) = self.seconds.unwrap_or_default();
        let length = usize::try_from(last.saturating_sub(first)).unwrap_or(usize::MAX);
        let fits = length.saturating_mul(self.sums.len()) <= SECONDS_MAX;
        for ((benchmark, name), (known, sum)) in &self.sums {
            let better = better(name, *known);
            let (unit, per_second) = match (known.contains, name.as_str()) {
                (Contains::Data, _) => ("B", "B/s"),
                (_, "http_reqs") => ("req", "req/s"),
                (_, "iterations" | "dropped_iterations") => ("iteration", "iteration/s"),
                _ => ("", "1/s"),
            };
            if known.holds == Holds::Rate {
                let kind = Kind { benchmark, name, unit: "", better };
                metrics.sample(sum.line, kind, sum.total / sum.count as f64);
                metrics.set_of(kind, "count", &sum.count.to_string());
                continue;
            }
            metrics.sample(sum.line, Kind { benchmark, name, unit, better }, sum.total);
            let series = format!("{name} per second");
            let better = better_rate(name, *known);
            // The first and the last second were not measured from their beginning to their end. A second without any counts as 0.
            let whole = first.saturating_add(1)..last;
            if !fits {
                metrics.skip(sum.line, &series, "more seconds than are kept");
                continue;
            }
            for second in whole {
                let value = sum.seconds.get(&second).copied().unwrap_or(0.0);
                let at_s = Some(second.saturating_sub(first) as f64);
                let kind = Kind { benchmark, name: &series, unit: per_second, better };
                metrics.sample(sum.line, kind, Sample { value, at_s, ..Sample::default() });
            }
        }
        warn(self.requests, self.failed, self.dropped, metrics);
    }
}

/// What the figures of a test show.
pub(super) fn warn(requests: u64, failed: u64, dropped: f64, metrics: &mut Metrics) {
    if failed > 0 {
        let text = format!(
            "{failed} of {requests} requests failed, and their times and number are among the others"
        );
        let hint = "look at http_req_duration of expected_response:true, and at requests less failures";
        metrics.warn("tool-counts-failures", &text, hint);
    }
    if dropped > 0.0 {
        let text = format!(
            "{dropped} iterations were not begun when they were due, for all users were busy: no latency has their waiting"
        );
        metrics.warn("tool-percentiles-omit-waiting", &text, "raise maxVUs, or ask for a lower rate");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_of_the_script_may_count_anything() {
        let known = Known { holds: Holds::Counter, contains: Contains::Other };
        let names = ["http_reqs", "dropped_iterations", "login_errors", "http_req_errors"];
        let (mut points, mut metrics) = (Points::default(), Metrics::new("k6-json"));
        for (metric, second) in names.into_iter().flat_map(|name| [0, 1, 2].map(|second| (name, second))) {
            let at = (second, 0);
            let point = Point { line: 1, metric, value: 1.0, at, scenario: "", group: "", status: "" };
            points.add(known, &point, &mut metrics);
        }
        points.finish(&mut metrics);
        let read = metrics.finish(&[]);
        let better = names.map(|name| {
            let series = format!("{name} per second");
            read.metrics.iter().find(|metric| metric.name == series).unwrap().better
        });
        assert_eq!(better, [Some(Better::Higher), Some(Better::Lower), None, None]);
    }

    #[test]
    fn a_series_that_would_be_endless_is_said_and_not_kept() {
        let (mut points, mut metrics) = (Points::default(), Metrics::new("k6-json"));
        let known = Known { holds: Holds::Counter, contains: Contains::Other };
        for at in [(i64::MIN, 0), (i64::MAX, 0)] {
            let point =
                Point { line: 1, metric: "http_reqs", value: 1.0, at, scenario: "", group: "", status: "" };
            points.add(known, &point, &mut metrics);
        }
        points.finish(&mut metrics);
        let read = metrics.finish(&[]);
        assert_eq!((read.metrics.len(), read.skipped_count), (1, 1));
    }
}
