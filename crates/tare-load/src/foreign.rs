//! Reading the summaries that other generators print.
//!
//! wrk's and wrk2's are understood. Their "Requests/sec" has more digits than their duration, so the window is
//! taken from it where the two agree.

use std::collections::BTreeMap;
use tare_model::trial::{ErrorKind, HttpSample};
use tare_model::{Missing, Reading};

/// What a foreign generator says it counted, from all that it printed.
///
/// `wall_ns` is how long it ran as seen from outside: the window's length where it printed none. What it did
/// not print is missing; nothing is guessed.
pub fn read_summary(printed: &str, wall_ns: u64) -> HttpSample {
    let mut summary = Summary::default();
    for line in printed.lines() {
        summary.read(line.trim());
    }
    summary.into_sample(wall_ns)
}

#[derive(Debug, Default)]
struct Summary {
    connections: Option<u32>,
    requests: Option<u64>,
    bytes_in: Option<u64>,
    duration: Option<Scaled>,
    rate_hz: Option<f64>,
    errors: BTreeMap<ErrorKind, u64>,
    quantiles: Vec<(f64, u64)>,
    latency_ns_max: Option<u64>,
    complaint: Option<String>,
}

impl Summary {
    fn read(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [_, "threads", "and", connections, "connections"] => self.connections = connections.parse().ok(),
            ["Latency", _mean, _stdev, max, _within] => {
                self.latency_ns_max = Some(max).and_then(|max| time_ns(max))
            }
            [percent, time] if percent.ends_with('%') => {
                let percent = percent.trim_end_matches('%').parse::<f64>().ok();
                if let (Some(percent @ 0.0..=100.0), Some(ns)) = (percent, time_ns(time)) {
                    // Shifted in decimal, so that 99.9 becomes 0.999 and not its neighbour.
                    self.quantiles.push(((percent * 1e6).round() / 1e8, ns));
                }
            }
            [count, "requests", "in", duration, bytes, "read"] => {
                self.requests = count.parse().ok();
                self.duration = Scaled::parse(duration.trim_end_matches(','), &TIME_NS);
                self.bytes_in = Scaled::parse(bytes, &BYTES).and_then(|bytes| bytes.rounded());
            }
            ["Socket", "errors:", "connect", connect, "read", read, "write", write, "timeout", timeout] => {
                self.count(ErrorKind::Connect, connect);
                self.count(ErrorKind::Io, read);
                self.count(ErrorKind::Io, write);
                self.count(ErrorKind::Timeout, timeout);
            }
            ["Non-2xx", "or", "3xx", "responses:", count] => self.count(ErrorKind::Status, count),
            ["Requests/sec:", rate] => self.rate_hz = rate.parse().ok(),
            ["unable", "to", "connect", ..] => self.complaint = Some(line.chars().take(200).collect()),
            _ => {}
        }
    }

    fn count(&mut self, kind: ErrorKind, count: &str) {
        if let Ok(count @ 1..) = count.trim_end_matches(',').parse::<u64>() {
            let sum = self.errors.entry(kind).or_insert(0);
            *sum = sum.saturating_add(count);
        }
    }

    /// The window: requests over rate where that agrees with the printed duration as far as it was rounded.
    fn elapsed_ns(&self) -> Option<u64> {
        let printed = self.duration?;
        let by_rate_ns = self.requests? as f64 / self.rate_hz? * 1e9;
        let agrees = (by_rate_ns - printed.value).abs() <= printed.rounding;
        if agrees { Some(by_rate_ns.round() as u64) } else { printed.rounded() }
    }

    fn into_sample(mut self, wall_ns: u64) -> HttpSample {
        let counted =
            |what: &str| Missing::new(format!("the generator's summary does not say how many {what}"));
        let requests = match (self.requests, self.complaint.take()) {
            (Some(requests), _) => Reading::Measured(requests),
            (None, Some(complaint)) => Reading::missing(format!("the generator says: {complaint}")),
            (None, None) => Reading::Missing(Missing::with_remedy(
                "the generator's output has no summary that tare can read",
                "use wrk or wrk2, or tare's own generator",
            )),
        };
        let any = requests.value().is_some_and(|&requests| requests > 0);
        if let Some(max_ns) = self.latency_ns_max.filter(|_| any) {
            self.quantiles.retain(|quantile| quantile.0 < 1.0);
            self.quantiles.push((1.0, max_ns));
        }
        HttpSample {
            elapsed_ns: self.elapsed_ns().or(self.duration.and_then(|d| d.rounded())).unwrap_or(wall_ns),
            requests,
            errors: self.errors,
            latency: Reading::Missing(Missing::with_remedy(
                "another generator's summary has a few quantiles at most, no histogram",
                "use tare's own generator",
            )),
            printed_quantiles_ns: if any { self.quantiles } else { Vec::new() },
            bytes_in: self.bytes_in.ok_or_else(|| counted("bytes were read")).into(),
            in_flight: Err(counted("requests were unanswered at the end")).into(),
            connections: self.connections.ok_or_else(|| counted("connections there were")).into(),
            scheduled: None,
            lateness: None,
            slices: Vec::new(),
            detail: None,
        }
    }
}

/// A printed number with two decimals and a unit, in base units.
#[derive(Debug, Clone, Copy)]
struct Scaled {
    value: f64,
    /// Largest error that its rounding can have made.
    rounding: f64,
}

/// wrk counts time in thousands below a minute and in sixties above.
const TIME_NS: [(&str, f64); 5] = [("us", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9)];
const BYTES: [(&str, f64); 6] = [
    ("B", 1.0),
    ("KB", 1024.0),
    ("MB", 1_048_576.0),
    ("GB", 1_073_741_824.0),
    ("TB", 1_099_511_627_776.0),
    ("PB", 1_125_899_906_842_624.0),
];

impl Scaled {
    fn parse(text: &str, units: &[(&str, f64)]) -> Option<Scaled> {
        let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
        let scale = units.iter().find(|(name, _)| *name == unit)?.1;
        let value = number.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0)? * scale;
        Some(Scaled { value, rounding: 0.005_001 * scale })
    }

    fn rounded(&self) -> Option<u64> {
        (self.value < u64::MAX as f64).then(|| self.value.round() as u64)
    }
}

fn time_ns(text: &str) -> Option<u64> {
    Scaled::parse(text, &TIME_NS)?.rounded()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WALL_NS: u64 = 77;

    fn summarise(text: &str) -> String {
        let sample = read_summary(text, WALL_NS);
        let rate_hz = sample.requests.value().map(|&count| count as f64 * 1e9 / sample.elapsed_ns as f64);
        format!(
            "requests {:?} in {} ns = {rate_hz:.2?}/s, errors {:?}\nbytes {:?}, connections {:?}, quantiles {:?}",
            sample.requests,
            sample.elapsed_ns,
            sample.errors,
            sample.bytes_in,
            sample.connections,
            sample.printed_quantiles_ns,
        )
    }

    #[test]
    fn summaries_of_real_runs() {
        let captured = [
            ("wrk -t8 -c64 -d2s", include_str!("../tests/fixtures/wrk_plain.txt")),
            ("wrk -t2 -c16 -d2s --latency", include_str!("../tests/fixtures/wrk_latency.txt")),
            ("all 404", include_str!("../tests/fixtures/wrk_404.txt")),
            ("connections that break", include_str!("../tests/fixtures/wrk_read_errors.txt")),
            ("answers past --timeout 1s", include_str!("../tests/fixtures/wrk_timeout.txt")),
            ("nobody listens", include_str!("../tests/fixtures/wrk_refused.txt")),
            ("wrk2, composed by hand", include_str!("../tests/fixtures/wrk2_composed.txt")),
        ];
        insta::assert_snapshot!(
            captured.map(|(what, text)| format!("{what}:\n{}", summarise(text))).join("\n\n")
        );
    }

    #[test]
    fn what_cannot_be_read_is_missing() {
        for text in ["", "Summary:\n  Success rate: 100.00%", "  12 requests in"] {
            let sample = read_summary(text, WALL_NS);
            assert!(sample.requests.value().is_none() && sample.bytes_in.value().is_none(), "{text:?}");
            assert_eq!(sample.elapsed_ns, WALL_NS);
        }
    }

    #[test]
    fn the_printed_duration_is_used_where_the_rate_contradicts_it() {
        let text = "  100 requests in 2.00s, 1.00KB read\nRequests/sec:  500.00";
        assert_eq!(read_summary(text, WALL_NS).elapsed_ns, 2_000_000_000);
        let minutes = "  1000000 requests in 1.50m, 1.00GB read\nRequests/sec:  11111.23";
        assert_eq!(read_summary(minutes, WALL_NS).elapsed_ns, 89_999_037_010);
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "\\PC{0,200}", lines in prop::collection::vec(
            ("(Latency|Requests/sec:|Socket errors: connect|[0-9]{1,25} requests in|[0-9]{1,3}%)", "[-0-9.,a-zA-Z ]{0,40}"), 0..8,
        )) {
            let lines: String = lines.iter().map(|(start, rest)| format!("{start} {rest}\n")).collect();
            read_summary(&format!("{text}\n{lines}"), WALL_NS);
        }
    }
}
