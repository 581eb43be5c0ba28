//! [netperf](https://github.com/HewlettPackard/netperf): its classic tables, what the omni tests print with `-o` and `-k`, and its interim results (`-D`).

use super::shared::{MORE, add_summary, kind};
use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::metrics::{Metrics, Sample};
use crate::numbers::{positive, share, whole};
use crate::reader::{Input, Reader};
use crate::result::{LatencySummary, Quantiles, RESULTS_MAX, ToolOutput, ToolResult, short};
use crate::shapes::Shapes;
use std::collections::BTreeSet;
use std::time::Duration;
use tare_model::{Missing, Reading};

const NAME: &str = "netperf";

const GETS_WRONG: &[&str] = &[
    "of bulk data it counts bits and no operations: an operation is a byte here",
    "one connection and one thread: it is often busy all the time before the network is",
    "a request waits for the answer before it (unless -b is given): latencies leave out how long it would have waited",
    "what UDP's sender counts may never have arrived: the second line is the receiver's",
    "percentiles come from a histogram with steps of some per cent",
];

/// The end of each test.
pub(crate) const FORMAT: Format =
    Format { name: NAME, gets_wrong: GETS_WRONG, detect, read: summary, shapes: SHAPES };

/// Rows of its tables are numbers alone, as anybody prints them.
const SHAPES: Shapes = Shapes {
    lines: &[
        "THROUGHPUT=#",
        "ELAPSED_TIME=#",
        "MEAN_LATENCY=#",
        "MIN_LATENCY=#",
        "MAX_LATENCY=#",
        "P#_LATENCY=#",
        // Not measured.
        "MEAN_LATENCY=-#",
        "MIN_LATENCY=-#",
        "MAX_LATENCY=-#",
        "P#_LATENCY=-#",
    ],
    units: &[],
    documents: &[],
};

/// It has one thread, and a connection for control beside the one that it loads.
pub(crate) const GENERATOR: Generator = Generator {
    program: NAME,
    senders: Senders::All,
    set_up: SetUp { steady_for: Duration::from_millis(100), at_most: Duration::from_millis(400) },
    rate_options: &[],
    chatter: &["catcher: timer popped"],
    format: Some(&FORMAT),
};

/// All of it, with units of bytes where bytes were counted.
pub(crate) const READER: Reader = Reader {
    name: NAME,
    gets_wrong: GETS_WRONG,
    detect: |input| detect(input.text) || input.head().any(|line| interim(line).is_some()),
    read,
};

/// `MIGRATED TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to localhost () port 0 AF_INET`.
fn title(line: &str) -> Option<&str> {
    let (name, rest) = line.split_once(" TEST from ")?;
    (rest.contains(" port ") && rest.contains(" to ")).then(|| name.strip_prefix("MIGRATED ").unwrap_or(name))
}

fn detect(printed: &str) -> bool {
    // Long texts of others are not looked at line by line.
    if ![" TEST from ", "THROUGHPUT=", "establish control: "].iter().any(|part| printed.contains(part)) {
        return false;
    }
    let mut has_rate = false;
    printed.lines().any(|line| {
        let has_units = has_rate && line.starts_with("THROUGHPUT_UNITS=");
        has_rate |= line.starts_with("THROUGHPUT=");
        title(line).is_some()
            || has_units
            || line.starts_with("establish control: are you sure there is a netserver")
    })
}

/// Bytes for a unit of bits or bytes; `None` where it counts transactions.
fn bytes_in(unit: &str) -> Option<f64> {
    match unit.trim_end_matches("/sec").trim_end_matches("/s").trim() {
        "10^3bits" => Some(1e3 / 8.0),
        "10^6bits" => Some(1e6 / 8.0),
        "10^9bits" => Some(1e9 / 8.0),
        "Bytes" => Some(1.0),
        "KBytes" => Some(1024.0),
        "MBytes" => Some(1_048_576.0),
        "GBytes" => Some(1_073_741_824.0),
        _ => None,
    }
}

/// What was found of one test.
#[derive(Default)]
struct Test {
    name: String,
    /// Of the table: bytes for a unit of its rate, and whether it is a table of transactions.
    unit: Option<f64>,
    transactions: bool,
    udp: bool,
    rate: Option<f64>,
    seconds: Option<f64>,
    mean_ns: Option<u64>,
    quantiles: Quantiles,
    settings: Vec<(String, String)>,
}

fn summary(printed: &str) -> ToolOutput {
    let (mut output, mut tests) = (ToolOutput::default(), Vec::<Test>::new());
    let (mut heads, mut keys): (Option<Vec<&str>>, _) = (None, BTreeSet::new());
    for line in printed.lines().map(str::trim_end) {
        if let Some(name) = title(line) {
            (heads, keys) = (None, BTreeSet::new());
            tests.push(Test::of(name));
        } else if ["establish control", "netperf: ", "send_", "recv_", "shutdown_control"]
            .iter()
            .any(|start| line.starts_with(start))
        {
            output.complaint.get_or_insert_with(|| short(line));
        } else if let Some((key, value)) = line.split_once('=').filter(|(key, _)| is_key(key)) {
            // With -P 0 there is no title: a key that comes again is of another run.
            let is_again = !keys.insert(key);
            if is_again {
                keys = BTreeSet::from([key]);
            }
            if is_again || tests.is_empty() {
                tests.push(Test::default());
            }
            tests.last_mut().into_iter().for_each(|test| test.keyword(key, value.trim()));
        } else if let Some(test) = tests.last_mut() {
            if line.contains(',') {
                let values: Vec<&str> = line.split(',').map(str::trim).take(1000).collect();
                match &heads {
                    Some(heads) => {
                        heads.iter().zip(values).for_each(|(head, value)| test.column(head, value))
                    }
                    None => heads = Some(values),
                }
            } else {
                test.table(line);
            }
        }
        if tests.len() > RESULTS_MAX {
            tests.pop();
            output.complaint.get_or_insert_with(|| "more runs than are kept".to_owned());
            break;
        }
    }
    output.results = tests.into_iter().filter_map(Test::into_result).collect();
    output
}

fn is_key(key: &str) -> bool {
    !key.is_empty()
        && key.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

impl Test {
    /// That with this title.
    fn of(name: &str) -> Test {
        Test {
            name: name.to_owned(),
            transactions: name.contains("REQUEST/RESPONSE") || name.ends_with("_RR"),
            udp: name.contains("UDP"),
            ..Test::default()
        }
    }

    /// `THROUGHPUT=54623.45`; times are in microseconds.
    fn keyword(&mut self, key: &str, value: &str) {
        let ns = || positive(value).and_then(|us| whole(us * 1e3));
        match key {
            "THROUGHPUT" => self.rate = positive(value),
            "THROUGHPUT_UNITS" => self.unit = bytes_in(value),
            "ELAPSED_TIME" => self.seconds = positive(value),
            "MEAN_LATENCY" => self.mean_ns = ns(),
            "MIN_LATENCY" => self.note(Some(0.0), ns()),
            "MAX_LATENCY" => self.note(Some(1.0), ns()),
            "PROTOCOL" | "DIRECTION" | "REQUEST_SIZE" | "RESPONSE_SIZE" | "LOCAL_CPU_UTIL"
            | "REMOTE_CPU_UTIL" | "STDDEV_LATENCY" => {
                self.settings.push((key.to_owned(), value.to_owned()));
            }
            key => {
                let percent = key.strip_prefix('P').and_then(|key| key.strip_suffix("_LATENCY"));
                self.note(percent.and_then(share), ns());
            }
        }
    }

    /// The same by the heads of -o.
    fn column(&mut self, head: &str, value: &str) {
        let percent = head
            .strip_suffix("th Percentile Latency Microseconds")
            .map(|percent| format!("P{percent}_LATENCY"));
        let key = match head {
            "Throughput" => "THROUGHPUT",
            "Throughput Units" => "THROUGHPUT_UNITS",
            "Elapsed Time (sec)" => "ELAPSED_TIME",
            "Mean Latency Microseconds" => "MEAN_LATENCY",
            "Minimum Latency Microseconds" => "MIN_LATENCY",
            "Maximum Latency Microseconds" => "MAX_LATENCY",
            "Stddev Latency Microseconds" => "STDDEV_LATENCY",
            "Protocol" => "PROTOCOL",
            "Direction" => "DIRECTION",
            _ => percent.as_deref().unwrap_or_default(),
        };
        self.keyword(key, value);
    }

    fn note(&mut self, quantile: Option<f64>, ns: Option<u64>) {
        if let (Some(quantile), Some(ns)) = (quantile, ns) {
            self.quantiles.note(quantile, ns);
        }
    }

    /// Lines of the classic table: heads in words, then numbers.
    fn table(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().take(24).collect();
        if self.unit.is_none() {
            self.unit = words.iter().find_map(|word| bytes_in(word));
        }
        let numbers: Vec<f64> = words.iter().map_while(|word| positive(word)).collect();
        if numbers.len() != words.len() {
            return;
        }
        let (seconds, rate) = match *numbers.as_slice() {
            [_, _, _, _, seconds, rate, ..] if self.transactions => (seconds, rate),
            // Of UDP: size, message, seconds, sent, errors, rate; then the receiver's: size, seconds, received, rate.
            [_, _, seconds, _, _, rate, ..] if self.udp => (seconds, rate),
            [_, seconds, _, rate] if self.udp && self.rate.is_some() => (seconds, rate),
            [_, _, _, seconds, rate, ..] if !self.transactions && !self.udp => (seconds, rate),
            _ => return,
        };
        (self.seconds, self.rate) = (Some(seconds), Some(rate));
    }

    fn into_result(self) -> Option<ToolResult> {
        let rate = self.rate?;
        let mut result = ToolResult::unsaid(NAME);
        result.name = Some(self.name).filter(|name| !name.is_empty());
        let rate_hz = rate * self.unit.filter(|_| !self.transactions).unwrap_or(1.0);
        result.rate_hz = Reading::Measured(rate_hz);
        if self.unit.is_some() && !self.transactions {
            result.set("operation", "a byte");
        }
        if let Some(seconds) = self.seconds.filter(|seconds| *seconds > 0.0) {
            // Neither is printed with all its digits, and the count is not printed at all.
            result.operations = whole(rate_hz * seconds).map_or(result.operations, Reading::Measured);
            result.window_ns = whole(seconds * 1e9).map_or(result.window_ns, Reading::Measured);
        }
        result.connections = Reading::Measured(1);
        result.errors = Reading::Missing(Missing::new("netperf counts no failures"));
        result.bytes_in = Reading::Missing(Missing::new("netperf does not print bytes"));
        for (name, value) in &self.settings {
            result.set(name, value);
        }
        let mean_ns = self
            .mean_ns
            .map_or_else(|| Reading::missing("netperf has not printed a mean latency"), Reading::Measured);
        if let Some(latency) = LatencySummary::of(mean_ns, self.quantiles) {
            result.latency = Reading::Measured(latency);
        }
        Some(result)
    }
}

/// `Interim result: 9441.23 10^6bits/s over 1.000 seconds ending at 1361234567.123`: rate, unit, end.
fn interim(line: &str) -> Option<(f64, &str, f64)> {
    let words: Vec<&str> = line.strip_prefix("Interim result: ")?.split_whitespace().take(9).collect();
    let [rate, unit, "over", _, "seconds", "ending", "at", end, ..] = words.as_slice() else { return None };
    Some((rate.parse().ok()?, *unit, end.parse().ok()?))
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut benchmark = String::new();
    for (line, number) in input.text.lines().zip(1..) {
        if let Some(name) = title(line) {
            name.clone_into(&mut benchmark);
        } else if let Some((rate, unit, at_s)) = interim(line) {
            let (value, unit) = bytes_in(unit).map_or((rate, "op/s"), |bytes| (rate * bytes, "B/s"));
            let sample = Sample { value, at_s: Some(at_s), ..Sample::default() };
            metrics.sample(number, kind(&benchmark, "interim result", unit, MORE), sample);
        } else if line.starts_with("Interim result:") {
            metrics.skip(number, line, "the line is cut off, or has no numbers");
        }
    }
    add_summary(&FORMAT, input.text, metrics);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_receivers_line_of_udp_counts() {
        let text = "UDP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to h () port 0 AF_INET\nSocket  Message  Elapsed      Messages\n\
            Size    Size     Time         Okay Errors   Throughput\nbytes   bytes    secs            #      #   10^6bits/sec\n\n\
            212992   65507   10.00      100000      0    80.00\n212992           10.00       50000           40.00\n";
        let [one] = &summary(text).results[..] else { panic!() };
        assert_eq!((one.rate_hz.value(), one.operations.value()), (Some(&5e6), Some(&50_000_000)));
    }

    #[test]
    fn runs_without_a_title_are_launches() {
        let run = |rate: u32| {
            format!("PROTOCOL=TCP\nTHROUGHPUT={rate}\nTHROUGHPUT_UNITS=Trans/s\nELAPSED_TIME=10.00\n")
        };
        let text = run(100) + &run(200) + &run(300);
        assert!(FORMAT.detects(&text));
        let read = crate::load_metrics::of(&FORMAT, &text);
        let rate = &read.metrics[0];
        assert_eq!(
            (rate.samples.as_slice(), rate.launches.as_slice()),
            (&[100.0, 200.0, 300.0][..], &[0, 1, 2][..])
        );
    }

    #[test]
    fn keys_of_a_test_with_a_title_are_of_it() {
        let text = include_str!("../../tests/fixtures/netperf/documented_keywords.txt");
        assert_eq!(summary(&text.repeat(2)).results.len(), 2);
        let many = summary(&text.repeat(RESULTS_MAX + 2));
        assert_eq!((many.results.len(), many.complaint.is_some()), (RESULTS_MAX, true));
    }

    #[test]
    fn units_are_powers_as_they_say() {
        assert_eq!(
            (bytes_in("10^6bits/sec"), bytes_in("KBytes/sec"), bytes_in("Trans/s")),
            (Some(125_000.0), Some(1024.0), None)
        );
    }
}
