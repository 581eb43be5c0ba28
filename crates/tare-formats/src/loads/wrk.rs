//! [wrk](https://github.com/wg/wrk): a closed loop over HTTP/1.1.

use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::loads::autocannon;
use crate::numbers::{Scaled, ms_in_ns, positive, share};
use crate::result::{
    LatencySummary, Quantiles, RESULTS_MAX, ToolOutput, ToolResult, add_errors, measured, short,
};
use crate::shapes::Shapes;
use std::collections::BTreeMap;
use std::time::Duration;
use tare_model::Reading;
use tare_model::trial::ErrorKind;

/// wrk's summary.
pub(crate) const FORMAT: Format = Format {
    name: "wrk",
    gets_wrong: &[
        "its percentiles hold requests that were never sent: for each latency above the mean interval of a connection, wrk adds \
         made-up ones to make up for requests that it omitted",
        "its rate counts answers with an error status as requests",
        "its window includes the time in which connections are opened",
    ],
    // autocannon's first line is the same.
    detect: |printed| is_summary(printed) && !is_of_wrk2(printed) && !autocannon::is_text(printed),
    read: |printed| read("wrk", printed),
    shapes: SHAPES,
};

/// Its lines of figures, and wrk2's. Rows of the spectrum are numbers alone, as anybody prints them.
pub(super) const SHAPES: Shapes = Shapes {
    lines: &[
        "# threads and # connections",
        "Latency # * # *",
        "#% #",
        "# requests in #, # read",
        "Socket errors: connect #, read #, write #, timeout #",
        "Non-2xx or 3xx responses: #",
        "Requests/sec: #",
    ],
    units: &["us", "ms", "s", "m", "h", "B", "KB", "MB", "GB", "TB", "PB"],
    documents: &[],
};

/// Each thread opens all its connections before it sends; the first thread only waits.
pub(crate) const GENERATOR: Generator = Generator {
    program: "wrk",
    senders: Senders::Workers,
    set_up: SetUp { steady_for: Duration::from_millis(100), at_most: Duration::from_millis(400) },
    rate_options: &[],
    chatter: &[],
    format: Some(&FORMAT),
};

/// Whether `printed` has a line of a summary that wrk and wrk2 have in common.
pub(crate) fn is_summary(printed: &str) -> bool {
    let is_of_summary = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().take(8).collect();
        matches!(words.as_slice(), ["Running", _, "test", "@", _] | [_, "requests", "in", _, _, "read"])
            || matches!(words.as_slice(), ["Requests/sec:", _] if line.starts_with('R')) // hey's is indented.
    };
    printed.lines().any(is_of_summary) || is_refusal(printed)
}

/// Whether it says that nobody answered, and no more: wrk tries to connect before it prints anything else. Others have such lines among their own.
fn is_refusal(printed: &str) -> bool {
    let mut lines = printed.lines().map(str::trim_end).filter(|line| !line.is_empty()).peekable();
    lines.peek().is_some() && lines.all(is_refused)
}

/// `unable to connect to 127.0.0.1:8080 Connection refused`: host, port, and the system's own words.
fn is_refused(line: &str) -> bool {
    let rest = line.strip_prefix("unable to connect to ").and_then(|rest| rest.split_once(' '));
    rest.is_some_and(|(address, why)| {
        let parts = address.rsplit_once(':');
        parts.is_some_and(|(host, port)| !host.is_empty() && !port.is_empty())
            && why.starts_with(|c: char| c.is_ascii_uppercase())
    })
}

/// Whether it is the summary of wrk2, as far as that can be known: short runs without `--latency` print the same as wrk.
pub(crate) fn is_of_wrk2(printed: &str) -> bool {
    printed.contains("Thread calibration: mean lat.:")
        || printed.contains("Latency Distribution (HdrHistogram - ")
}

/// Reads the summary of `tool`, wrk or wrk2.
pub(crate) fn read(tool: &str, printed: &str) -> ToolOutput {
    // One run after another prints one summary after another.
    let mut runs = vec![Summary::default()];
    for line in printed.lines().map(str::trim) {
        let begins = line.starts_with("Running ") && runs.last().is_some_and(|last| last.url.is_some());
        if begins && runs.len() < RESULTS_MAX {
            runs.push(Summary::default());
        }
        if let Some(last) = runs.last_mut() {
            last.read(line);
        }
    }
    let mut whole = ToolOutput::default();
    for run in runs {
        let ToolOutput { results, complaint } = run.into_output(tool);
        whole.results.extend(results);
        whole.complaint = whole.complaint.or(complaint);
    }
    whole
}

#[derive(Debug, Default)]
struct Summary {
    url: Option<String>,
    threads: Option<String>,
    connections: Option<u32>,
    requests: Option<u64>,
    bytes_in: Option<u64>,
    duration: Option<Scaled>,
    rate_hz: Option<f64>,
    errors: BTreeMap<ErrorKind, u64>,
    quantiles: Quantiles,
    spectrum: Spectrum,
    latency: LatencyLine,
    complaint: Option<String>,
}

/// Where in wrk2's tables of latencies a line stands.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Spectrum {
    #[default]
    Outside,
    /// Rows of value, share, count and 1/(1-share).
    Rows,
    /// With -U it prints what latencies would be without the waiting: not what it is for.
    Uncorrected,
}

/// The line of the table with the latencies.
#[derive(Debug, Default)]
struct LatencyLine {
    mean_ns: Option<u64>,
    /// Its third column: the greatest, or in some builds of wrk2 the 99th percentile.
    third_ns: Option<u64>,
    third_is_p99: bool,
}

impl Summary {
    fn read(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().take(16).collect();
        match words.as_slice() {
            ["Running", _, "test", "@", url] => self.url = Some((*url).to_owned()),
            [threads, "threads", "and", connections, "connections"] => {
                self.threads = Some((*threads).to_owned());
                self.connections = connections.parse().ok();
            }
            ["Latency", "Distribution", "(HdrHistogram", "-", "Uncorrected", ..] => {
                self.spectrum = Spectrum::Uncorrected;
            }
            [dashes] if dashes.starts_with("-----") => self.spectrum = Spectrum::Outside,
            ["Detailed", "Percentile", "spectrum:"] if self.spectrum == Spectrum::Outside => {
                self.spectrum = Spectrum::Rows;
            }
            // In milliseconds, with more digits than the percentiles above it.
            [ms, share, _count, _inverse] if self.spectrum == Spectrum::Rows => {
                if let (Some(ns), Some(quantile)) = (ms_in_ns(ms), positive(share)) {
                    self.quantiles.note(quantile, ns);
                }
            }
            ["Thread", "Stats", "Avg", "Stdev", "99%", ..] => self.latency.third_is_p99 = true,
            ["Latency", mean, _stdev, third, _within] => {
                (self.latency.mean_ns, self.latency.third_ns) = (time_ns(mean), time_ns(third));
            }
            [percent, time] if percent.ends_with('%') && self.spectrum != Spectrum::Uncorrected => {
                if let (Some(quantile), Some(ns)) = (share(percent.trim_end_matches('%')), time_ns(time)) {
                    self.quantiles.note(quantile, ns);
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
            ["Requests/sec:", rate] => self.rate_hz = positive(rate),
            ["unable", "to", "connect", ..] => {
                self.complaint.get_or_insert_with(|| short(line));
            }
            _ => {}
        }
    }

    fn count(&mut self, kind: ErrorKind, count: &str) {
        add_errors(&mut self.errors, kind, count.trim_end_matches(',').parse().unwrap_or(0));
    }

    /// The rate has more digits than the duration, so the window is requests over rate where that agrees with the printed
    /// duration as far as it was rounded.
    fn window_ns(&self) -> Option<u64> {
        let printed = self.duration?;
        let by_rate_ns = || Some(self.requests? as f64 / self.rate_hz? * 1e9);
        let agrees = |by_rate_ns: &f64| (by_rate_ns - printed.value).abs() <= printed.rounding;
        by_rate_ns().filter(agrees).map(|ns| ns.round() as u64).or(printed.rounded())
    }

    fn into_output(mut self, tool: &str) -> ToolOutput {
        if self.requests.is_none() && self.rate_hz.is_none() {
            return ToolOutput { results: Vec::new(), complaint: self.complaint };
        }
        let mut result = ToolResult::unsaid(tool);
        if let Some(ns) = self.latency.third_ns {
            self.quantiles.note(if self.latency.third_is_p99 { 0.99 } else { 1.0 }, ns);
        }
        if self.requests == Some(0) {
            // wrk prints zeros then.
            result.latency = Reading::missing("no request was answered");
        } else if let Some(latency) = LatencySummary::of(
            measured(
                self.latency.mean_ns,
                Reading::missing(format!("{tool} has not printed a mean latency")),
            ),
            std::mem::take(&mut self.quantiles),
        ) {
            result.latency = Reading::Measured(latency);
        }
        if self.requests.is_some() {
            // A kind of error that did not occur is not printed.
            result.errors = Reading::Measured(std::mem::take(&mut self.errors));
        }
        result.window_ns = measured(self.window_ns(), result.window_ns);
        result.operations = measured(self.requests, result.operations);
        result.rate_hz = measured(self.rate_hz, result.rate_hz);
        result.bytes_in = measured(self.bytes_in, result.bytes_in);
        result.connections = measured(self.connections, result.connections);
        for (setting, value) in [("url", self.url), ("threads", self.threads)] {
            value.iter().for_each(|value| result.set(setting, value));
        }
        ToolOutput { results: vec![result], complaint: self.complaint }
    }
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

fn time_ns(text: &str) -> Option<u64> {
    Scaled::parse(text, &TIME_NS)?.rounded()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_of_wrk_where_it_stands_alone_or_beside_a_run() {
        let refused = "unable to connect to 127.0.0.1:8080 Connection refused\n";
        let run = "Running 1s test @ http://127.0.0.1:8080/\n";
        for printed in [refused.to_owned(), refused.repeat(2), format!("{run}{refused}")] {
            assert!(FORMAT.detects(&printed), "{printed}");
            let complaint = FORMAT.read(&printed).complaint;
            assert!(complaint.is_some_and(|says| says.starts_with("unable to connect")), "{printed}");
        }
        for printed in [
            "unable to connect to the database\n",
            "unable to connect to db:5432\n",
            "unable to connect to db:5432 after 3 tries\n",
            "unable to connect to :5432 Connection refused\n",
            "starting\nunable to connect to db:5432 Connection refused\n",
            "  unable to connect to db:5432 Connection refused\n",
            "\n",
        ] {
            assert!(!FORMAT.detects(printed), "{printed}");
        }
    }
}
