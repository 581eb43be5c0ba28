//! [memtier_benchmark](https://github.com/RedisLabs/memtier_benchmark), of Redis and memcached: its table, and the JSON of
//! `--json-out-file`.

mod histogram;
mod json;

use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::loads::printed::of_each;
use crate::numbers::{ms_in_ns, positive, share, whole};
use crate::reader::Reader;
use crate::result::{LatencySummary, Quantiles, ToolOutput, ToolResult, short};
use crate::shapes::Shapes;
use std::time::Duration;
use tare_model::{Missing, Reading};

const NAME: &str = "memtier";

const GETS_WRONG: &[&str] = &[
    "its percentiles omit the waiting of requests that a slow answer kept from being sent, with --rate-limiting as well",
    "with --pipeline a request's time begins when it is written, so it waits for those before it",
    "of several runs (-x) it averages the percentiles of each",
    "of a run that was interrupted some versions print rates of 0",
];

/// The table.
pub(crate) const FORMAT: Format = Format { name: NAME, gets_wrong: GETS_WRONG, detect, read, shapes: SHAPES };

const SHAPES: Shapes = Shapes {
    lines: &["# Threads", "# Connections per thread", "# Requests per client", "# Seconds", "Totals #.."],
    units: &[],
    documents: &[],
};

/// Each thread opens its connections and sends on each as soon as it is open; the first thread of the process only waits.
pub(crate) const GENERATOR: Generator = Generator {
    program: "memtier_benchmark",
    senders: Senders::Workers,
    set_up: SetUp { steady_for: Duration::from_millis(100), at_most: Duration::from_millis(400) },
    // --rate-limiting is for each connection.
    rate_options: &[],
    chatter: &["[RUN #", "Writing results to stdout"],
    format: Some(&FORMAT),
};

/// The JSON.
pub(crate) const READER: Reader =
    Reader { name: NAME, gets_wrong: GETS_WRONG, detect: json::detect, read: json::read };

/// Starts of lines that say what went wrong.
const COMPLAINTS: [&str; 4] = ["connection dropped", "Connection error", "error: ", "failed to "];

fn is_head(line: &str) -> bool {
    line.starts_with("Type ") && line.contains(" Ops/sec ") && line.contains(" Misses/sec ")
}

fn detect(printed: &str) -> bool {
    // Long texts of others are not looked at line by line.
    if !printed.contains(" Ops/sec ") && !printed.contains("[RUN #") {
        return false;
    }
    printed
        .lines()
        .any(|line| is_head(line.trim_end()) || line.starts_with("[RUN #") && line.contains(" ops/sec, "))
}

/// Columns of the table by their heads, of which some are two words.
fn columns(head: &str) -> Vec<&str> {
    let mut columns: Vec<&str> = Vec::new();
    for word in head.split_whitespace().take(64) {
        match (word, columns.last_mut()) {
            ("Latency", Some(last)) if *last == "Avg." => *last = "mean",
            ("Latency", Some(last)) if last.starts_with('p') => {}
            ("Latency", _) => columns.push("mean"),
            (word, _) => columns.push(word),
        }
    }
    columns
}

fn read(printed: &str) -> ToolOutput {
    // Above the tables of a run, which are several with -x.
    let begins = |line: &str| {
        line.split_once(char::is_whitespace)
            .is_some_and(|(count, what)| what.trim() == "Threads" && count.parse::<u64>().is_ok())
    };
    of_each(printed, |line| begins(line).then_some(0), |lines| read_one(lines))
}

fn read_one(lines: &mut dyn Iterator<Item = &str>) -> ToolOutput {
    let mut result = ToolResult::unsaid(NAME);
    let (mut complaint, mut heads, mut found) = (None, Vec::new(), false);
    let (mut threads, mut per_thread, mut requests, mut seconds) = (None, None, None, None);
    for line in lines {
        if COMPLAINTS.iter().any(|start| line.starts_with(start)) {
            complaint.get_or_insert_with(|| short(line));
        } else if is_head(line) {
            heads = columns(line);
        } else if line.starts_with("Totals ") && !heads.is_empty() {
            // Of several runs the last table is of all.
            totals(&heads, line, &mut result);
            found = true;
        } else if let Some((count, what)) = line.split_once(char::is_whitespace) {
            let count = count.parse::<u64>().ok();
            match what.trim() {
                "Threads" => threads = count,
                "Connections per thread" => per_thread = count,
                "Requests per client" => requests = count,
                "Seconds" => seconds = count,
                _ => {}
            }
        }
    }
    if !found {
        return ToolOutput { results: Vec::new(), complaint };
    }
    let connections = threads.zip(per_thread).and_then(|(threads, each)| u64::checked_mul(threads, each));
    if let Some(count) = connections.and_then(|count| u32::try_from(count).ok()) {
        result.connections = Reading::Measured(count);
    }
    // The table has no counts: what was asked for, or the rate over the time that was.
    let rate_hz = result.rate_hz.value().copied().filter(|rate_hz| *rate_hz > 0.0);
    let asked = connections.zip(requests).and_then(|(count, each)| u64::checked_mul(count, each));
    let by_time = rate_hz.zip(seconds).and_then(|(rate_hz, seconds)| whole(rate_hz * seconds as f64));
    if let (Some(rate_hz), Some(count)) = (rate_hz, asked.or(by_time)) {
        result.operations = Reading::Measured(count);
        if let Some(ns) = whole(count as f64 / rate_hz * 1e9).filter(|ns| *ns > 0) {
            result.window_ns = Reading::Measured(ns);
        }
    }
    result.errors = Reading::Missing(Missing::new("memtier_benchmark counts no failures in its table"));
    result.bytes_in =
        Reading::Missing(Missing::new("memtier_benchmark prints the bytes of both directions as one"));
    ToolOutput { results: vec![result], complaint }
}

fn totals(heads: &[&str], line: &str, result: &mut ToolResult) {
    let (mut mean_ns, mut quantiles) = (None, Quantiles::default());
    for (head, value) in heads.iter().zip(line.split_whitespace()) {
        match *head {
            "Ops/sec" => result.rate_hz = positive(value).map_or(result.rate_hz.clone(), Reading::Measured),
            "mean" => mean_ns = ms_in_ns(value),
            head => {
                if let (Some(quantile), Some(ns)) = (head.strip_prefix('p').and_then(share), ms_in_ns(value))
                {
                    quantiles.note(quantile, ns);
                }
            }
        }
    }
    let mean_ns = mean_ns.map_or_else(
        || Reading::missing("memtier_benchmark has not printed a mean latency"),
        Reading::Measured,
    );
    if let Some(latency) = LatencySummary::of(mean_ns, quantiles) {
        result.latency = Reading::Measured(latency);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_names_the_columns() {
        let text = "2         Threads\n5         Connections per thread\n100       Requests per client\n\
            Type         Ops/sec     Hits/sec   Misses/sec    Avg. Latency     p50 Latency   p99.9 Latency       KB/sec \n\
            Totals      500.00         0.00       450.00         0.45496         0.39900         3.43900      3753.13 \n";
        let [one] = &read(text).results[..] else { panic!() };
        assert_eq!(
            (one.operations.value(), one.window_ns.value(), one.connections.value()),
            (Some(&1000), Some(&2_000_000_000), Some(&10))
        );
        let latency = one.latency.value().unwrap();
        assert_eq!(
            (latency.mean_ns.value(), latency.quantiles_ns.as_slice()),
            (Some(&454_960), &[(0.5, 399_000), (0.999, 3_439_000)][..])
        );
    }

    /// Before version 1.3 it printed the mean alone.
    #[test]
    fn older_tables_have_a_mean() {
        let text = "10        Seconds\nType        Ops/sec     Hits/sec   Misses/sec      Latency       KB/sec \nTotals      500.00   0.00   450.00   2.00000   37.13 \n";
        let [one] = &read(text).results[..] else { panic!() };
        assert_eq!(
            (one.operations.value(), one.latency.value().unwrap().mean_ns.value()),
            (Some(&5000), Some(&2_000_000))
        );
    }

    #[test]
    fn runs_behind_each_other_are_results_of_their_own() {
        let one = include_str!("../../../tests/fixtures/memtier/documented_table.txt");
        let alone = read(one).results;
        assert_eq!(read(&format!("{one}{one}")).results, [alone.clone(), alone].concat());
    }
}
