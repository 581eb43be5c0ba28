//! `pgbench`, which comes with PostgreSQL: its summary.

use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::loads::printed::{of_each, step_of};
use crate::numbers::{positive, whole};
use crate::result::{LatencySummary, Quantiles, ToolOutput, ToolResult, short};
use crate::shapes::Shapes;
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
        // Up to version 13 it does not say who it is.
        let starts = ["pgbench (", "pgbench: error: ", "number of transactions actually processed: "];
        printed.lines().any(|line| starts.iter().any(|start| line.starts_with(start)))
    },
    read,
    shapes: SHAPES,
};

const SHAPES: Shapes = Shapes {
    lines: &[
        "number of clients: #",
        // Of as many as were asked for.
        "number of transactions actually processed: #/#",
        "number of transactions actually processed: #",
        "number of failed transactions: # ..",
        "latency average = # ms ..",
        "tps = # ..",
    ],
    units: &[],
    documents: &[],
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

/// Starts of lines of a run, in their order.
const ORDER: [&str; 3] = ["pgbench (", "transaction type: ", "number of transactions actually processed: "];

fn read(printed: &str) -> ToolOutput {
    of_each(printed, |line| step_of(&ORDER, line), |lines| read_one(lines))
}

fn read_one(lines: &mut dyn Iterator<Item = &str>) -> ToolOutput {
    let mut result = ToolResult::unsaid(NAME);
    let (mut complaint, mut mean_ns, mut is_summary) = (None, None, false);
    for line in lines {
        if line.starts_with("pgbench: error: ") || line.starts_with("pgbench: fatal: ") {
            complaint.get_or_insert_with(|| short(line));
        } else if let Some((name, value)) = line.split_once(" = ") {
            let number = value.split_whitespace().next().and_then(positive);
            match name {
                // Up to version 13 the rate without the time of connecting stands beside this one.
                "tps" if value.ends_with("(including connections establishing)") => {
                    result.rate_hz =
                        result.rate_hz.value().copied().or(number).map_or(result.rate_hz, Reading::Measured)
                }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_behind_each_other_are_results_of_their_own() {
        let one = include_str!("../../tests/fixtures/pgbench/select.txt");
        let alone = read(one).results;
        let both = read(&format!("{one}{one}"));
        assert_eq!((both.results, both.complaint), ([alone.clone(), alone].concat(), None));
    }

    /// Made from the source of pgbench 13: no such version could be had here.
    #[test]
    fn older_versions_print_two_rates_and_no_name() {
        let one = "starting vacuum...end.\ntransaction type: <builtin: select only>\nscaling factor: 1\nquery mode: simple\n\
            number of clients: 4\nnumber of threads: 1\nduration: 1 s\nnumber of transactions actually processed: 1000\n\
            latency average = 0.351 ms\ntps = 900.5 (including connections establishing)\n\
            tps = 1000.0 (excluding connections establishing)\n";
        assert!((FORMAT.detect)(one));
        let rates = |text: &str| {
            read(text).results.iter().filter_map(|one| one.rate_hz.value().copied()).collect::<Vec<_>>()
        };
        assert_eq!((rates(one), rates(&format!("{one}{one}"))), (vec![1000.0], vec![1000.0, 1000.0]));
    }
}
