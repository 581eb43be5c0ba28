//! `memaslap` (Debian: `memcaslap`), which comes with libmemcached: its summary.

use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::numbers::{positive, whole};
use crate::result::{ToolOutput, ToolResult};
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
    detect: |printed| {
        printed.lines().any(|line| summary(line).is_some()) || printed.contains("\nwindows size: ")
    },
    read,
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

/// Seconds, operations and rate of the last line.
fn summary(line: &str) -> Option<(f64, u64, f64)> {
    let words: Vec<&str> = line.split_whitespace().take(8).collect();
    let ["Run", "time:", seconds, "Ops:", count, "TPS:", rate, "Net_rate:"] = words.as_slice() else {
        return None;
    };
    Some((positive(seconds.strip_suffix('s')?)?, count.parse().ok()?, positive(rate)?))
}

fn read(printed: &str) -> ToolOutput {
    let mut result = ToolResult::unsaid(NAME);
    let mut is_summary = false;
    for line in printed.lines().map(str::trim) {
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
