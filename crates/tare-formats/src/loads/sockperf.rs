//! [sockperf](https://github.com/Mellanox/sockperf): its summary, and the log of every message (`--full-log`).

use super::printed::{of_each, step_of};
use super::shared::{LESS, add_summary, kind};
use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::metrics::{Metrics, Sample};
use crate::numbers::{positive, share, whole};
use crate::reader::{Input, Reader};
use crate::result::{LatencySummary, Quantiles, ToolOutput, ToolResult, short};
use crate::shapes::Shapes;
use std::time::Duration;
use tare_model::{Missing, Reading};

const NAME: &str = "sockperf";

const GETS_WRONG: &[&str] = &[
    "what it calls latency is half of a round trip, unless --full-rtt is given",
    "its figures leave out the beginning and the end of the run: their window is about half of one of one second",
    "with --mps its times begin when a message was sent, not when it was due",
    "under-load measures one message of a hundred unless --reply-every is given",
    "its greatest percentiles of few observations are all the greatest value",
];

/// The summary.
pub(crate) const FORMAT: Format =
    Format { name: NAME, gets_wrong: GETS_WRONG, detect, read: summary, shapes: SHAPES };

const SHAPES: Shapes = Shapes {
    lines: &[
        "sockperf: [Valid Duration] RunTime=# sec; SentMessages=#; ReceivedMessages=#",
        "sockperf: Total of # messages sent in # sec ..",
        "sockperf: ====> avg-latency=# ..",
        "sockperf: ====> avg-rtt=# ..",
        "sockperf: ---> percentile # = #",
        "sockperf: ---> <MAX> observation = #",
        "sockperf: ---> <MIN> observation = #",
    ],
    units: &[],
    documents: &[],
};

/// Its one thread sends, after a warm-up of 400 ms on the same connection.
pub(crate) const GENERATOR: Generator = Generator {
    program: NAME,
    senders: Senders::All,
    set_up: SetUp { steady_for: Duration::from_millis(400), at_most: Duration::from_secs(1) },
    rate_options: &["--mps"],
    chatter: &["sockperf: ==", "sockperf: Warmup", "sockperf: Starting", "sockperf: Test end"],
    format: Some(&FORMAT),
};

/// Every message.
pub(crate) const READER: Reader = Reader {
    name: NAME,
    gets_wrong: GETS_WRONG,
    // Wherever it stands: the summary before it is read without it otherwise.
    detect: |input| {
        input.text.contains(HEAD) && input.text.lines().any(|line| column(line.trim_end()).is_some())
    },
    read: read_log,
};

fn detect(printed: &str) -> bool {
    // Long texts of others are not looked at line by line.
    if !printed.contains("sockperf") {
        return false;
    }
    printed.lines().any(|line| line.starts_with("sockperf: ") || line.starts_with("sockperf[CLIENT]"))
}

/// What the head of the log begins with.
const HEAD: &str = "packet, txTime(sec), rxTime(sec), ";

/// What the fourth column of the log is, by its head.
fn column(head: &str) -> Option<&'static str> {
    match head.strip_prefix(HEAD)? {
        "latency(usec)" => Some("latency"),
        "rtt(usec)" => Some("round trip"),
        _ => None,
    }
}

/// A line without the codes that colour it.
fn plain(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out += part.split_once('m').map_or(part, |(_, rest)| rest);
    }
    out
}

/// Starts of lines that say what went wrong.
const COMPLAINTS: [&str; 3] = ["ERROR:", "No valid observations found", "No messages were received"];

/// Starts of lines of a run, in their order. Those of each of several servers are none of them; the last begins the log of every message.
const ORDER: [&str; 5] = [
    "== version ",
    "Warmup stage",
    "Starting test",
    "Test ended",
    "test was performed using the following parameters: ",
];

fn step(line: &str) -> Option<usize> {
    let said = line.strip_prefix("sockperf: ").map(plain);
    step_of(&ORDER, said.as_deref().unwrap_or(line))
}

fn summary(printed: &str) -> ToolOutput {
    of_each(printed, step, |lines| read_one(lines))
}

fn read_one(lines: &mut dyn Iterator<Item = &str>) -> ToolOutput {
    let mut result = ToolResult::unsaid(NAME);
    let (mut complaint, mut found, mut mean_ns, mut quantiles) = (None, false, None, Quantiles::default());
    for line in lines.map(plain) {
        let Some(line) = line.strip_prefix("sockperf: ").map(str::trim) else { continue };
        if COMPLAINTS.iter().any(|start| line.starts_with(start)) {
            complaint.get_or_insert_with(|| short(line));
        } else if let Some(valid) = line.strip_prefix("[Valid Duration] ") {
            found = true;
            let value = |name: &str| valid.split("; ").find_map(|part| part.strip_prefix(name));
            let seconds = value("RunTime=").and_then(|time| positive(time.strip_suffix(" sec")?));
            counted(&mut result, value("ReceivedMessages=").and_then(positive), seconds);
        } else if let Some(total) = line.strip_prefix("Total of ") {
            let words: Vec<&str> = total.split(' ').take(8).collect();
            if let [count, "messages", "sent", "in", seconds, ..] = words.as_slice() {
                found = true;
                counted(&mut result, positive(count), positive(seconds));
                result.set("operation", "a message that was sent; nobody answered it");
            }
        } else if let Some(mean) = line.strip_prefix("====> avg-") {
            let (what, mean) = mean.split_once('=').unwrap_or_default();
            result.set("latency is", if what == "rtt" { "a round trip" } else { "half of a round trip" });
            mean_ns = mean.split(' ').next().and_then(us_in_ns);
        } else if let Some((rank, us)) = line.strip_prefix("---> ").and_then(|line| line.split_once('=')) {
            let quantile = match rank.trim() {
                "<MAX> observation" => Some(1.0),
                "<MIN> observation" => Some(0.0),
                rank => rank.strip_prefix("percentile ").and_then(share),
            };
            if let (Some(quantile), Some(ns)) = (quantile, us_in_ns(us.trim())) {
                quantiles.note(quantile, ns);
            }
        }
    }
    if !found {
        return ToolOutput { results: Vec::new(), complaint };
    }
    result.errors =
        Reading::Missing(Missing::new("sockperf prints dropped messages, which are no failures of TCP"));
    result.bytes_in = Reading::Missing(Missing::new("sockperf does not count bytes received"));
    let mean_ns = mean_ns
        .map_or_else(|| Reading::missing("sockperf has not printed a mean latency"), Reading::Measured);
    if let Some(latency) = LatencySummary::of(mean_ns, quantiles) {
        result.latency = Reading::Measured(latency);
    }
    ToolOutput { results: vec![result], complaint }
}

fn us_in_ns(us: &str) -> Option<u64> {
    whole(positive(us)? * 1e3)
}

fn counted(result: &mut ToolResult, count: Option<f64>, seconds: Option<f64>) {
    if let Some(count) = count.and_then(whole) {
        result.operations = Reading::Measured(count);
    }
    if let (Some(count), Some(seconds)) = (count, seconds.filter(|seconds| *seconds > 0.0)) {
        result.window_ns = whole(seconds * 1e9).map_or(result.window_ns.clone(), Reading::Measured);
        result.rate_hz = Reading::Measured(count / seconds);
    }
}

fn read_log(input: &Input<'_>, metrics: &mut Metrics) {
    let mut name = None;
    for (line, number) in input.text.lines().map(str::trim_end).zip(1..) {
        if let Some(found) = column(line) {
            name = Some(found);
        } else if let Some(parameters) =
            line.strip_prefix("test was performed using the following parameters: ")
        {
            // Once in each run; the head of the table is there for each server.
            metrics.next_launch();
            metrics.set("parameters", parameters);
        } else if let Some(name) = name.filter(|_| line.starts_with(|c: char| c.is_ascii_digit())) {
            let values: Vec<f64> =
                line.split(", ").take(5).filter_map(|value| value.trim().parse().ok()).collect();
            match values.as_slice() {
                [_, sent_s, _, us] => {
                    let sample = Sample { value: us / 1e6, at_s: Some(*sent_s), ..Sample::default() };
                    metrics.sample(number, kind("", name, "s", LESS), sample);
                }
                _ => metrics.skip(number, line, "the line is cut off, or has no numbers"),
            }
        }
    }
    if name == Some("latency") {
        let text = "each latency of this log is half of a round trip, not measured in one direction";
        metrics.warn("tool-halves-round-trip", text, "measure with --full-rtt, or double the figures");
    }
    add_summary(&FORMAT, input.text, metrics);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_no_text_and_a_round_trip_is_kept_apart() {
        assert_eq!(plain("a\u{1b}[2;35mb\u{1b}[0m"), "ab");
        let of = |text: &str| summary(text).results[0].settings.clone();
        assert_eq!(
            of(include_str!("../../tests/fixtures/sockperf/ping_pong.txt"))[0].1,
            "half of a round trip"
        );
        assert_eq!(of(include_str!("../../tests/fixtures/sockperf/rtt.txt"))[0].1, "a round trip");
    }

    #[test]
    fn each_run_in_a_file_is_a_launch() {
        let launches = |text: &str| {
            let read = crate::load_metrics::of(&FORMAT, text);
            let rate = read.metrics.into_iter().find(|metric| metric.name == "throughput").unwrap();
            (rate.launches, read.warnings.len())
        };
        for run in [
            include_str!("../../tests/fixtures/sockperf/ping_pong.txt"),
            include_str!("../../tests/fixtures/sockperf/throughput.txt"),
            include_str!("../../tests/fixtures/sockperf/full_log.csv"),
        ] {
            assert_eq!(launches(run), (vec![0], 0));
            assert_eq!(launches(&format!("{run}\n{run}\n{run}")), (vec![0, 1, 2], 0));
            // One that is cut off between two others takes the place of neither.
            let log = include_str!("../../tests/fixtures/sockperf/full_log.csv");
            let cut = run.lines().take(5).collect::<Vec<_>>().join("\n");
            assert_eq!(launches(&format!("{log}\n{cut}\n{run}")).0, [0, 1]);
        }
    }

    #[test]
    fn a_message_that_is_cut_off_is_said() {
        let read = READER.read(&Input::of_text(
            "packet, txTime(sec), rxTime(sec), rtt(usec)\n0, 2.412458951, 2.412560260, 50.654\n1, 2.43\n",
        ));
        assert_eq!((read.metrics[0].samples.as_slice(), read.skipped[0].line), (&[50.654 / 1e6][..], 3));
    }
}
