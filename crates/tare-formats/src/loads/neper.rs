//! [neper](https://github.com/google/neper) (`tcp_rr`, `tcp_stream` and others): its keys and values, and the samples of `-A`.

use super::printed::of_each;
use super::shared::{LESS, MORE, add_summary, kind};
use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::metrics::{Kind, Metrics, Sample};
use crate::numbers::{positive, share, whole};
use crate::reader::{Input, Reader};
use crate::result::{LatencySummary, Quantiles, ToolOutput, ToolResult};
use crate::shapes::Shapes;
use std::collections::HashMap;
use std::time::Duration;
use tare_model::{Missing, Reading};

const NAME: &str = "neper";

const GETS_WRONG: &[&str] = &[
    "its rate is of the samples between the first and the last interval, and other counts are of the whole run",
    "each flow waits for its answer before it sends again: latencies leave out how long requests would have waited",
    "the samples of -A count from the beginning of the run: a rate is the difference of two",
    "percentiles of each interval and flow are no percentiles of the run",
];

/// The keys.
pub(crate) const FORMAT: Format = Format { name: NAME, gets_wrong: GETS_WRONG, detect, read, shapes: SHAPES };

const SHAPES: Shapes = Shapes {
    lines: &[
        "num_flows=#",
        "num_transactions=#",
        "throughput=#",
        "throughput_Mbps=#",
        "time_start=#",
        "time_end=#",
        "latency_mean=#",
        "latency_min=#",
        "latency_max=#",
        "latency_p#=#",
    ],
    units: &[],
    documents: &[],
};

const fn generator(program: &'static str) -> Generator {
    Generator {
        program,
        senders: Senders::Workers,
        set_up: SetUp { steady_for: Duration::from_millis(100), at_most: Duration::from_millis(400) },
        rate_options: &[],
        chatter: &[],
        format: Some(&FORMAT),
    }
}

/// Threads (-T) open their flows before they send; the first thread of the process waits on a connection for control.
pub(crate) const TCP_RR: Generator = generator("tcp_rr");
/// The same of bulk data.
pub(crate) const TCP_STREAM: Generator = generator("tcp_stream");

/// The samples, and the keys with units of bytes where bytes were counted.
pub(crate) const READER: Reader = Reader {
    name: NAME,
    gets_wrong: GETS_WRONG,
    detect: |input| input.text.starts_with(HEAD) || detect(input.text),
    read: read_samples,
};

const HEAD: &str = "time,tid,flow_id,bytes_read,transactions,";

const NO_RATE: &str = "there is no throughput: it waits for its other end, or was cut off";

fn pairs(printed: &str) -> impl Iterator<Item = (&str, &str)> {
    printed.lines().filter_map(|line| line.trim_end().split_once('=')).filter(|(key, _)| !key.contains(' '))
}

fn detect(printed: &str) -> bool {
    // Long texts of others are not looked at line by line.
    if !printed.contains("control_port=") {
        return false;
    }
    let has = |name: &str| pairs(printed).any(|(key, _)| key == name);
    has("control_port") && has("test_length") && (has("num_flows") || has("throughput"))
}

fn read(printed: &str) -> ToolOutput {
    // The key that is printed first begins each run.
    let first = pairs(printed).next().map(|(key, _)| key);
    let begins = |line: &str| first.is_some() && line.split_once('=').map(|(key, _)| key) == first;
    of_each(
        printed,
        |line| begins(line).then_some(0),
        |lines| read_one(&lines.collect::<Vec<_>>().join("\n")),
    )
}

fn read_one(printed: &str) -> ToolOutput {
    let mut result = ToolResult::unsaid(NAME);
    let values: HashMap<&str, &str> = pairs(printed).take(10_000).collect();
    let value = |name: &str| values.get(name).copied().and_then(positive);
    // Errors have no pattern but the word.
    let complaint = printed.lines().find(|line| line.contains("] FATAL") || line.starts_with("fatal: "));
    let complaint = complaint.map(crate::result::short);
    let Some(rate) = value("throughput") else {
        return ToolOutput { results: Vec::new(), complaint: complaint.or_else(|| Some(NO_RATE.to_owned())) };
    };
    let units = values.get("throughput_units").copied();
    // Streams have bits, which are bytes here.
    let bytes_hz = match units {
        Some("Gbit/s" | "Gbps") => Some(rate * 1e9 / 8.0),
        Some("Mbit/s" | "Mbps") => Some(rate * 1e6 / 8.0),
        Some("Kbit/s" | "Kbps") => Some(rate * 1e3 / 8.0),
        _ => value("throughput_Mbps").map(|mbits| mbits * 1e6 / 8.0),
    };
    let window_s =
        value("time_end").zip(value("time_start")).map(|(end, start)| end - start).filter(|s| *s > 0.0);
    if let Some(ns) = window_s.and_then(|seconds| whole(seconds * 1e9)) {
        result.window_ns = Reading::Measured(ns);
    }
    result.rate_hz = Reading::Measured(bytes_hz.unwrap_or(rate));
    match bytes_hz {
        Some(_) => {
            result.set("operation", "a byte");
            result.operations =
                Reading::Missing(Missing::new("neper does not print how many bytes a stream had"));
        }
        None => {
            result.operations =
                value("num_transactions").and_then(whole).map_or(result.operations, Reading::Measured)
        }
    }
    let flows = value("num_flows").and_then(whole).and_then(|count| u32::try_from(count).ok());
    result.connections = flows.map_or(result.connections, Reading::Measured);
    result.errors = Reading::Missing(Missing::new("neper counts no failures"));
    result.bytes_in = Reading::Missing(Missing::new("neper does not print how many bytes were received"));
    for name in ["num_threads", "request_size", "response_size", "test_length", "correlation_coefficient"] {
        values.get(name).into_iter().for_each(|value| result.set(name, value));
    }
    latency(&values, &mut result);
    ToolOutput { results: vec![result], complaint }
}

/// With --percentiles newer versions print `latency_p99=0.000068`, in seconds.
fn latency(values: &HashMap<&str, &str>, result: &mut ToolResult) {
    let (mut mean_ns, mut quantiles) = (None, Quantiles::default());
    for (key, value) in values {
        let (Some(name), Some(ns)) =
            (key.strip_prefix("latency_"), positive(value).and_then(|s| whole(s * 1e9)))
        else {
            continue;
        };
        match name {
            "mean" => mean_ns = Some(ns),
            "min" => quantiles.note(0.0, ns),
            "max" => quantiles.note(1.0, ns),
            name => {
                if let Some(quantile) = name.strip_prefix('p').and_then(share) {
                    quantiles.note(quantile, ns);
                }
            }
        }
    }
    let mean_ns =
        mean_ns.map_or_else(|| Reading::missing("neper has not printed a mean latency"), Reading::Measured);
    if let Some(latency) = LatencySummary::of(mean_ns, quantiles) {
        result.latency = Reading::Measured(latency);
    }
}

fn read_samples(input: &Input<'_>, metrics: &mut Metrics) {
    if !input.text.starts_with(HEAD) {
        if read(input.text).results.is_empty() {
            FORMAT.shapes.note_unread(input.text, 1, metrics);
            return metrics.skip(1, NAME, NO_RATE);
        }
        return add_summary(&FORMAT, input.text, metrics);
    }
    let head: Vec<&str> =
        input.text.lines().next().unwrap_or_default().trim_end().split(',').take(100).collect();
    let at = |name: &str| head.iter().position(|column| *column == name);
    let (time, flow, count) = (at("time"), at("flow_id"), at("transactions"));
    // What each flow had done at its last sample, and when.
    let mut before = HashMap::<u32, (f64, f64)>::new();
    for (line, number) in input.text.lines().zip(1_u64..).skip(1).filter(|(line, _)| !line.is_empty()) {
        let words: Vec<&str> = line.trim_end().split(',').take(101).collect();
        if words == head {
            metrics.next_launch();
            before.clear();
            continue;
        }
        let value = |at: Option<usize>| words.get(at?)?.parse::<f64>().ok();
        let (Some(at_s), Some(flow)) = (value(time), value(flow).map(|flow| flow as u32)) else {
            metrics.skip(number, line, "the line is cut off, or has no numbers");
            continue;
        };
        if words.len() != head.len() {
            metrics.skip(number, line, "the line is cut off");
            continue;
        }
        let sample = |value| Sample { value, worker: Some(flow), at_s: Some(at_s), launch: 0 };
        if let Some(done) = value(count)
            && let Some((was_s, was)) = before.insert(flow, (at_s, done))
            && at_s > was_s
            && done >= was
        {
            metrics.sample(
                number,
                kind("", "transactions per second", "op/s", MORE),
                sample((done - was) / (at_s - was_s)),
            );
        }
        for (name, word) in head.iter().zip(&words).filter(|(name, _)| name.starts_with("latency_")) {
            match word.parse::<f64>() {
                Ok(value) => metrics.sample(
                    number,
                    Kind { benchmark: "", name, unit: "s", better: LESS },
                    sample(value),
                ),
                Err(_) => metrics.skip(number, line, &format!("{name} is no number")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_from_the_beginning() {
        let text = format!(
            "{HEAD}latency_p99\n10.0,0,0,1,100,0.001\n11.0,0,0,1,300,0.002\n11.5,0,1,1,50,0.003\n12.0,0,0,1,3"
        );
        let read = READER.read(&Input::of_text(&text));
        let rate = read.metrics.iter().find(|metric| metric.unit == "op/s").unwrap();
        assert_eq!((rate.samples.as_slice(), rate.at_s.as_slice()), (&[200.0][..], &[11.0][..]));
        assert_eq!(read.skipped.iter().map(|skipped| skipped.line).collect::<Vec<_>>(), [5]);
    }

    #[test]
    fn streams_are_in_bytes() {
        let text = "control_port=1\ntest_length=10\nnum_flows=2\ntime_start=5.0\ntime_end=15.0\nthroughput_units=Mbit/s\nthroughput=800.00\n";
        assert!(detect(text));
        let [one] = &read(text).results[..] else { panic!() };
        assert_eq!(
            (one.rate_hz.value(), one.window_ns.value(), one.operations.value()),
            (Some(&100e6), Some(&10_000_000_000), None)
        );
    }

    #[test]
    fn runs_behind_each_other_are_results_of_their_own() {
        let one = include_str!("../../tests/fixtures/neper/documented_tcp_rr.txt");
        let alone = read(one).results;
        assert_eq!(read(&format!("{one}{one}")).results, [alone.clone(), alone].concat());
    }
}
