//! `pgbench`, which comes with PostgreSQL: its summary.

use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::numbers::{positive, whole};
use crate::result::{LatencySummary, Quantiles, ToolOutput, ToolResult, short};
use std::collections::BTreeMap;
use std::time::Duration;
use tare_model::trial::ErrorKind;
use tare_model::{Missing, Reading};

const NAME: &str = "pgbench";

/// The summary, with or without statement latencies.
pub(crate) const FORMAT: Format = Format {
    name: NAME,
    gets_wrong: &[
        "its one thread (-j) is often busy all the time before the server is, and it does not say so",
        "without --log it has a mean and no percentiles",
        "with -R latencies count from the scheduled time, and transactions that come too late are counted as others are unless -L is given",
    ],
    detect: |printed| {
        printed.lines().any(|line| line.starts_with("pgbench (") || line.starts_with("pgbench: error: "))
    },
    read,
};

/// It opens all connections before it sends; its first thread sends as well.
pub(crate) const GENERATOR: Generator = Generator {
    program: NAME,
    senders: Senders::All,
    set_up: SetUp { steady_for: Duration::from_millis(120), at_most: Duration::from_secs(5) },
    rate_options: &["-R", "--rate"],
    chatter: &["pgbench (", "starting vacuum", "progress:", "scale option ignored"],
    format: Some(&FORMAT),
};

fn read(printed: &str) -> ToolOutput {
    let mut result = ToolResult::unsaid(NAME);
    let (mut complaint, mut mean_ns, mut is_summary) = (None, None, false);
    for line in printed.lines().map(str::trim) {
        if line.starts_with("pgbench: error: ") || line.starts_with("pgbench: fatal: ") {
            complaint.get_or_insert_with(|| short(line));
        } else if let Some((name, value)) = line.split_once(" = ") {
            let number = value.split_whitespace().next().and_then(positive);
            match name {
                "tps" => result.rate_hz = number.map_or(result.rate_hz, Reading::Measured),
                "latency average" => mean_ns = number.and_then(|ms| whole(ms * 1e6)),
                _ => {}
            }
        } else if let Some((name, value)) = line.split_once(": ") {
            let count = || value.split([' ', '/']).next().and_then(|count| count.parse::<u64>().ok());
            match name {
                "number of transactions actually processed" => {
                    is_summary = true;
                    result.operations = count().map_or(result.operations, Reading::Measured);
                }
                "number of failed transactions" => {
                    if let Some(failed) = count() {
                        let kinds = (failed > 0).then_some((ErrorKind::Status, failed));
                        result.errors = Reading::Measured(BTreeMap::from_iter(kinds));
                    }
                }
                "number of clients" => {
                    let clients = count().and_then(|count| u32::try_from(count).ok());
                    result.connections = clients.map_or(result.connections, Reading::Measured);
                }
                "transaction type" | "scaling factor" | "query mode" | "number of threads" => {
                    result.set(name, value)
                }
                _ => {}
            }
        }
    }
    if !is_summary {
        return ToolOutput { results: Vec::new(), complaint };
    }
    // The duration is printed as it was asked for, and its own rate leaves the time of connecting out.
    let by_rate_s =
        result.operations.value().zip(result.rate_hz.value()).map(|(count, rate_hz)| *count as f64 / rate_hz);
    result.window_ns = match by_rate_s.and_then(|seconds| whole(seconds * 1e9)).filter(|ns| *ns > 0) {
        Some(ns) => Reading::Measured(ns),
        None => Reading::missing("pgbench has printed no rate"),
    };
    result.bytes_in = Reading::Missing(Missing::new("pgbench does not count bytes"));
    let mean_ns =
        mean_ns.map_or_else(|| Reading::missing("pgbench has not printed a mean latency"), Reading::Measured);
    if let Some(latency) = LatencySummary::of(mean_ns, Quantiles::default()) {
        result.latency = Reading::Measured(latency);
    }
    ToolOutput { results: vec![result], complaint }
}
