//! `memaslap` (Debian: `memcaslap`), which comes with libmemcached: its summary.

use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::loads::printed::{of_each, step_of};
use crate::numbers::{positive, whole};
use crate::result::{ToolOutput, ToolResult};
use crate::shapes::Shapes;
use std::time::Duration;
use tare_model::{Missing, Reading};

const NAME: &str = "memaslap";

/// The summary.
pub(crate) const FORMAT: Format = Format {
    name: NAME,
    gets_wrong: &[
        "it fills its windows of objects with 'set' before it counts, for a tenth of a second and more",
        "its time is in tenths of a second, and its rate is cut to a whole number",
        "it prints no latencies without --stat_freq",
    ],
    detect: |printed| printed.lines().any(|line| summary(line).is_some()) || is_beginning(printed),
    read,
    shapes: SHAPES,
};

const SHAPES: Shapes = Shapes {
    lines: &["concurrency: #", "read_bytes: #", "Run time: #s Ops: # TPS: # Net_rate: .."],
    units: &[],
    documents: &[],
};

/// It opens all connections and fills its windows before it counts; the first thread only waits.
pub(crate) const GENERATOR: Generator = Generator {
    program: "memcaslap",
    senders: Senders::Workers,
    set_up: SetUp { steady_for: Duration::from_millis(300), at_most: Duration::from_secs(5) },
    rate_options: &[],
    chatter: &[],
    format: Some(&FORMAT),
};

/// Whether it holds what it prints before it measures: one such line alone is of anybody.
fn is_beginning(printed: &str) -> bool {
    let has = |start: &str| printed.lines().any(|line| line.starts_with(start));
    printed.contains("\nwindows size: ") && (has("threads count: ") || has("set proportion: set_prop="))
}

/// Seconds, operations and rate of the last line.
fn summary(line: &str) -> Option<(f64, u64, f64)> {
    let words: Vec<&str> = line.split_whitespace().take(8).collect();
    let ["Run", "time:", seconds, "Ops:", count, "TPS:", rate, "Net_rate:"] = words.as_slice() else {
        return None;
    };
    Some((positive(seconds.strip_suffix('s')?)?, count.parse().ok()?, positive(rate)?))
}

/// Starts of lines of a run, in their order.
const ORDER: [&str; 7] = [
    "servers: ",
    "threads count: ",
    "concurrency: ",
    "windows size: ",
    "cmd_get: ",
    "written_bytes: ",
    "Run time: ",
];

fn read(printed: &str) -> ToolOutput {
    of_each(printed, |line| step_of(&ORDER, line), |lines| read_one(lines))
}

fn read_one(lines: &mut dyn Iterator<Item = &str>) -> ToolOutput {
    let mut result = ToolResult::unsaid(NAME);
    let mut is_summary = false;
    for line in lines {
        if let Some((seconds, count, rate_hz)) = summary(line) {
            is_summary = true;
            result.operations = Reading::Measured(count);
            result.rate_hz = Reading::Measured(rate_hz);
            // The rate has more digits than the time.
            let by_rate_s = count as f64 / rate_hz;
            let exact_s = if (by_rate_s - seconds).abs() <= 0.051 { by_rate_s } else { seconds };
            result.window_ns = whole(exact_s * 1e9).map_or(result.window_ns, Reading::Measured);
        } else if let Some((name, value)) = line.split_once(": ") {
            match name {
                "concurrency" => {
                    result.connections = value.parse().map_or(result.connections, Reading::Measured)
                }
                "read_bytes" => result.bytes_in = value.parse().map_or(result.bytes_in, Reading::Measured),
                "threads count" | "set proportion" | "windows size" => result.set(name, value),
                _ => {}
            }
        }
    }
    if !is_summary {
        return ToolOutput { results: Vec::new(), complaint: None };
    }
    result.errors = Reading::Missing(Missing::new("memaslap does not count errors"));
    ToolOutput { results: vec![result], complaint: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = include_str!("../../tests/fixtures/memaslap/plain.txt");

    #[test]
    fn one_line_alone_is_of_anybody() {
        assert!(FORMAT.detects(RUN));
        assert!(
            FORMAT
                .detects("servers: h:1\nthreads count: 1\nconcurrency: 8\nrun time: 1s\nwindows size: 10k\n")
        );
        assert!(!FORMAT.detects("settings\nwindows size: 3 by 4\n"));
    }

    #[test]
    fn each_run_in_a_file_is_a_launch() {
        let second = RUN.replace("TPS: 20049", "TPS: 10000");
        let read = crate::load_metrics::of(&FORMAT, &format!("{RUN}\n{second}\n"));
        let rate = &read.metrics[0];
        assert_eq!(
            (rate.samples.as_slice(), rate.launches.as_slice()),
            (&[20_049.0, 10_000.0][..], &[0, 1][..])
        );
    }

    #[test]
    fn a_second_run_that_is_cut_off_is_said() {
        let cut = RUN.split("cmd_get").next().unwrap();
        let output = read(&format!("{RUN}\n{cut}"));
        assert_eq!((output.results.len(), output.complaint.is_some()), (1, true));
    }
}
