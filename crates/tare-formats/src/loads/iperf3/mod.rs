//! [iperf3](https://github.com/esnet/iperf): its text, its JSON and its JSON stream, of TCP, UDP and SCTP.

mod json;
mod run;
mod text;

use super::shared::{LESS, MORE, kind};
use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::metrics::{Kind, Metrics, Sample};
use crate::numbers::whole;
use crate::reader::{Input, Reader};
use crate::result::{RESULTS_MAX, ToolOutput, ToolResult, short};
use crate::shapes::Shapes;
use run::{Row, Run, Side};
use std::time::Duration;
use tare_model::{Missing, Reading};

const NAME: &str = "iperf3";

const GETS_WRONG: &[&str] = &[
    "it counts bytes and no operations: its bit/s are B/s here, and an operation is a byte that arrived",
    "what TCP's sender counts is what it gave to the kernel: some of that may never have arrived",
    "before version 3.16 all streams are of one thread, which is often busy all the time before the network is",
    "its first intervals are of connections that still grow faster, unless -O leaves them out",
    "its text has three digits: only JSON has bytes",
];

/// The end of a test.
pub(crate) const FORMAT: Format =
    Format { name: NAME, gets_wrong: GETS_WRONG, detect, read: summary, shapes: Shapes::NONE };

/// All streams are open before any sends. Before 3.16 it has one thread, since then one for each stream, and the first waits.
pub(crate) const GENERATOR: Generator = Generator {
    program: NAME,
    senders: Senders::Workers,
    set_up: SetUp { steady_for: Duration::from_millis(100), at_most: Duration::from_millis(400) },
    // -b is in bits, for each stream.
    rate_options: &[],
    chatter: &["warning: "],
    format: Some(&FORMAT),
};

/// All intervals.
pub(crate) const READER: Reader =
    Reader { name: NAME, gets_wrong: GETS_WRONG, detect: |input| detect(input.text), read };

fn detect(printed: &str) -> bool {
    json::detect(printed) || text::detect(printed)
}

/// Whether it is what iperf 2 prints: the names are alike, and the options and the JSON of iperf3 are not there.
pub(crate) fn is_of_iperf2(input: &Input<'_>) -> bool {
    !detect(input.text) && input.head().any(text::is_head_of_2)
}

fn runs(printed: &str) -> Vec<Run> {
    if json::detect(printed) { json::runs(printed) } else { text::runs(printed) }
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    for (launch, run) in (0..).zip(runs(input.text)) {
        for (setting, value) in &run.settings {
            metrics.set(setting, value);
        }
        let several = run.has_streams();
        for row in &run.rows {
            if !row.is_total && (several || row.stream.is_some()) {
                interval(&run, row, launch, metrics);
            }
        }
        for row in run.totals() {
            total(&run, row, launch, metrics);
        }
        for (line, what, why) in &run.skipped {
            metrics.skip(*line, what, why);
        }
        if let Some((line, error)) = &run.error {
            let why =
                if error.starts_with("interrupt") { "the test was interrupted" } else { "the test failed" };
            metrics.skip(*line, error, why);
        }
        for (id, text, hint) in &run.warnings {
            metrics.warn(id, text, hint);
        }
        warn(&run, metrics);
    }
}

fn interval(run: &Run, row: &Row, launch: u32, metrics: &mut Metrics) {
    let of = match (row.stream.is_none(), row.omitted) {
        (true, true) => " of all streams (omitted)",
        (true, false) => " of all streams",
        (false, true) => " (omitted)",
        (false, false) => "",
    };
    let side = side(row);
    let sample = |value| Sample { value, launch, worker: row.stream, at_s: Some(row.end_s) };
    let name = format!("{side} throughput{of}");
    metrics.sample(row.line, kind(run.protocol, &name, "B/s", MORE), sample(row.bytes_hz));
    for (what, unit, value) in &row.more {
        let name = format!("{side} {what}{of}");
        metrics.sample(row.line, kind_of(run.protocol, &name, what, unit), sample(*value));
    }
}

fn total(run: &Run, row: &Row, launch: u32, metrics: &mut Metrics) {
    let sample = |value| Sample { value, launch, ..Sample::default() };
    let side = side(row);
    let name = format!("total {side} throughput");
    metrics.sample(row.line, kind(run.protocol, &name, "B/s", MORE), sample(row.bytes_hz));
    let name = format!("total {side} bytes");
    metrics.sample(row.line, kind(run.protocol, &name, "B", None), sample(row.bytes));
    for (what, unit, value) in &row.more {
        let name = format!("total {side} {what}");
        metrics.sample(row.line, kind_of(run.protocol, &name, what, unit), sample(*value));
    }
}

fn kind_of<'a>(protocol: &'a str, name: &'a str, what: &str, unit: &'a str) -> Kind<'a> {
    let better = if matches!(what, "congestion window" | "datagrams" | "path MTU") { None } else { LESS };
    kind(protocol, name, unit, better)
}

fn side(row: &Row) -> &'static str {
    match (row.side, row.reverse) {
        (Side::Sent, false) => "sent",
        (Side::Received, false) => "received",
        (Side::Sent, true) => "reverse sent",
        (Side::Received, true) => "reverse received",
    }
}

/// What arrived less than it was sent by so much is worth a word.
const LOST_SHARE: f64 = 0.01;

fn warn(run: &Run, metrics: &mut Metrics) {
    let bytes = |side: Side| -> f64 {
        run.totals().filter(|row| row.side == side && !row.reverse).map(|row| row.bytes).sum()
    };
    let (sent, received) = (bytes(Side::Sent), bytes(Side::Received));
    if sent > 0.0 && received == 0.0 {
        let text = "the receiver's count is not there: the figures are of what was sent, and that may not have arrived";
        metrics.warn("tool-counts-unsent", text, "let the test end by itself");
    } else if sent > 0.0 && received < sent * (1.0 - LOST_SHARE) {
        let text = format!(
            "the sender counts {sent:.0} bytes, the receiver {received:.0}: the sender's rate is no rate of the network"
        );
        metrics.warn("tool-counts-unsent", &text, "quote the receiver's rate");
    }
}

/// The summary of each test.
fn summary(printed: &str) -> ToolOutput {
    let mut output = ToolOutput::default();
    for run in runs(printed).into_iter().take(RESULTS_MAX) {
        if let Some((_, error)) = &run.error {
            output.complaint.get_or_insert_with(|| short(error));
        }
        // A text that is cut off has no end of the test.
        if let (None, Some((_, _, why))) = (run.totals().next(), run.skipped.first()) {
            output.complaint.get_or_insert_with(|| short(why));
        }
        output.results.extend(result(&run));
    }
    output
}

fn result(run: &Run) -> Option<ToolResult> {
    let mut result = ToolResult::unsaid(NAME);
    let of = |side: Side| run.totals().filter(move |row| row.side == side);
    // A test that was interrupted has no receiver's count.
    let arrived: f64 = of(Side::Received).map(|row| row.bytes).sum();
    let side = if arrived > 0.0 { Side::Received } else { Side::Sent };
    let seconds = of(side).map(|row| row.end_s - row.start_s).fold(0.0, f64::max);
    of(side).next()?;
    let bytes: f64 = of(side).map(|row| row.bytes).sum();
    let counted = whole(bytes).map_or(result.bytes_in.clone(), Reading::Measured);
    result.operations = counted.clone();
    result.bytes_in = counted;
    if let Some(ns) = whole(seconds * 1e9).filter(|ns| *ns > 0) {
        result.window_ns = Reading::Measured(ns);
    }
    result.rate_hz = Reading::Measured(of(side).map(|row| row.bytes_hz).sum());
    result.errors = Reading::Missing(Missing::new("iperf3 counts no failures"));
    result.latency = Reading::Missing(Missing::new("iperf3 measures no latency of operations"));
    result.connections = run.streams.map_or(result.connections, Reading::Measured);
    result.set(
        "operation",
        if side == Side::Received { "a byte that arrived" } else { "a byte that was sent" },
    );
    result.set("protocol", run.protocol);
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_a_byte_that_arrived() {
        let text = summary(include_str!("../../../tests/fixtures/iperf3/tcp.txt"));
        let json = summary(include_str!("../../../tests/fixtures/iperf3/tcp.json"));
        for output in [text, json] {
            let [one] = &output.results[..] else { panic!("{output:?}") };
            let rate_hz = one.rate_hz.value().unwrap();
            assert!((rate_hz * 8.0 / 400e6 - 1.0).abs() < 0.01, "{rate_hz}");
            assert_eq!(one.connections.value(), Some(&2));
            assert_eq!(one.operations, one.bytes_in);
        }
    }

    #[test]
    fn a_test_that_failed_says_why() {
        for text in [
            include_str!("../../../tests/fixtures/iperf3/refused.txt"),
            include_str!("../../../tests/fixtures/iperf3/refused.json"),
        ] {
            let output = summary(text);
            assert!(output.results.is_empty());
            assert!(output.complaint.is_some_and(|says| says.contains("Connection refused")));
        }
    }
}
