//! `redis-benchmark`, which comes with Redis and Valkey: its reports as text, with `-q` and with `--csv`.

use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::numbers::{ms_in_ns, positive, share, whole};
use crate::result::{LatencySummary, Quantiles, RESULTS_MAX, ToolOutput, ToolResult, short};
use crate::shapes::Shapes;
use std::time::Duration;
use tare_model::{Missing, Reading};

const NAME: &str = "redis-benchmark";

/// All three reports.
pub(crate) const FORMAT: Format = Format {
    name: NAME,
    gets_wrong: &[
        "its one thread is often busy all the time before the server is, and it does not say so (hint: --threads)",
        "its percentiles omit the waiting of requests that a slow answer kept from being sent",
        "with -P it counts the latency of a whole pipeline for each request in it",
        "its rate is from a time in whole milliseconds: a run of 50 ms is uncertain by 2 %",
        "before version 7 it counts answers that are errors as completed requests",
    ],
    detect,
    read,
    shapes: SHAPES,
};

const SHAPES: Shapes = Shapes {
    lines: &[
        "# requests completed in # seconds",
        "# parallel clients",
        "#% <= # milliseconds ..",
        ".. # requests per second",
        ".. # requests per second, p50=# msec",
    ],
    units: &[],
    documents: &[],
};

/// It opens connections before each of its tests: 64, then a pause of 50 ms, then the next 64.
pub(crate) const GENERATOR: Generator = Generator {
    program: NAME,
    senders: Senders::Workers,
    set_up: SetUp { steady_for: Duration::from_millis(120), at_most: Duration::from_secs(5) },
    rate_options: &[],
    chatter: &["WARNING: Could not fetch server CONFIG"],
    format: Some(&FORMAT),
};

/// Starts of lines that say what went wrong.
const COMPLAINTS: [&str; 3] = ["Error from server:", "Could not connect to Redis at ", "Error: "];
/// Most columns of the CSV report that are read.
const COLUMNS_MAX: usize = 64;
const CSV_HEAD: &str = "\"test\",\"rps\",";
const PER_SECOND: &str = " requests per second";

/// Progress ends with carriage returns, and so shares a line of the text with what follows it.
fn lines(printed: &str) -> impl Iterator<Item = &str> {
    printed.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty())
}

fn is_progress(line: &str) -> bool {
    line.contains(": rps=") && line.contains(" (overall: ")
}

fn detect(printed: &str) -> bool {
    let is_quiet = |line: &str| {
        quiet(line).is_some_and(|(.., rest)| rest.starts_with(", p50=") && rest.ends_with(" msec"))
    };
    let is_refusal = |line: &str| line.starts_with(COMPLAINTS[1]);
    let says =
        |line: &str| is_progress(line) || is_quiet(line) || is_refusal(line) || line.starts_with(CSV_HEAD);
    lines(printed).any(says)
        || (lines(printed).any(|line| title(line).is_some()) && printed.contains(" parallel clients"))
}

fn title(line: &str) -> Option<&str> {
    line.strip_prefix("====== ")?.strip_suffix(" ======")
}

/// Name, rate and the rest of a line with both.
fn quiet(line: &str) -> Option<(&str, f64, &str)> {
    let (before, rest) = line.split_once(PER_SECOND)?;
    let (name, rate) = before.rsplit_once(": ")?;
    Some((name, positive(rate)?, rest))
}

fn read(printed: &str) -> ToolOutput {
    let mut reader = Reader::default();
    for line in lines(printed) {
        reader.read(line);
    }
    reader.end_result();
    reader.output
}

#[derive(Default)]
struct Reader {
    output: ToolOutput,
    /// Of the text report: the result that lines belong to.
    current: Option<Current>,
    /// Columns of the CSV report.
    columns: Option<Vec<String>>,
}

struct Current {
    result: ToolResult,
    part: Part,
    mean_ns: Option<u64>,
    quantiles: Quantiles,
}

/// Where in the report of one test a line stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Head,
    Percentiles,
    /// Shares below round latencies: no latency that was measured.
    Cumulative,
    LatencyNames,
    LatencyValues([Column; 6]),
}

/// A figure of the latency summary, or a column of the CSV report.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Mean,
    /// In thousandths.
    Quantile(u16),
    Unknown,
}

impl Column {
    /// By its name: `avg`, `min`, `max` or `p99`.
    fn of(name: &str) -> Column {
        let percent = name.strip_prefix('p').and_then(|percent| percent.parse::<u16>().ok());
        match (name, percent) {
            ("avg", _) => Column::Mean,
            ("min", _) => Column::Quantile(0),
            ("max", _) => Column::Quantile(1000),
            (_, Some(percent @ 0..=100)) => Column::Quantile(percent * 10),
            _ => Column::Unknown,
        }
    }
}

impl Reader {
    fn read(&mut self, line: &str) {
        if self.output.results.len() >= RESULTS_MAX {
            return;
        }
        if COMPLAINTS.iter().any(|complaint| line.starts_with(complaint)) {
            self.output.complaint.get_or_insert_with(|| short(line));
        } else if let Some(name) = title(line) {
            self.end_result();
            self.current = Some(Current::new(name));
        } else if line.starts_with(CSV_HEAD) {
            let columns = || line.trim_matches('"').split("\",\"");
            let fits = columns().take(COLUMNS_MAX + 1).count() <= COLUMNS_MAX;
            // Without columns no row is read.
            self.columns = Some(if fits { columns().map(short).collect() } else { Vec::new() });
        } else if line.starts_with('"') && line.ends_with('"') {
            self.read_row(line);
        } else if let Some(current) = &mut self.current {
            current.read(line);
        } else if let Some((name, rate_hz, rest)) = quiet(line) {
            let mut quiet = Current::new(name);
            quiet.result.rate_hz = Reading::Measured(rate_hz);
            let median = rest.strip_prefix(", p50=").and_then(|rest| rest.strip_suffix(" msec"));
            if let Some(ns) = median.and_then(ms_in_ns) {
                quiet.quantiles.note(0.5, ns);
            }
            self.keep(quiet, "-q");
        }
    }

    /// A row of the CSV report. Names are printed as they are, quotation marks included, so columns count from the end.
    fn read_row(&mut self, line: &str) {
        let line = line.strip_prefix('"').and_then(|line| line.strip_suffix('"')).unwrap_or_default();
        let before_6 = || vec!["test".to_owned(), "rps".to_owned()];
        let columns = self.columns.clone().unwrap_or_else(before_6);
        let mut values: Vec<&str> = line.rsplitn(columns.len(), "\",\"").collect();
        values.reverse();
        let Some((name, values)) =
            values.split_first().filter(|(_, values)| values.len() + 1 == columns.len())
        else {
            return;
        };
        let mut row = Current::new(name);
        for (column, value) in columns.iter().skip(1).zip(values) {
            match column.strip_suffix("_ms") {
                Some(latency) => {
                    row.latency(Column::of(latency.strip_suffix("_latency").unwrap_or(latency)), value)
                }
                None if column == "rps" => {
                    row.result.rate_hz = positive(value).map_or(row.result.rate_hz, Reading::Measured);
                }
                None => {}
            }
        }
        if row.result.rate_hz.value().is_some() {
            self.keep(row, "--csv");
        }
    }

    fn end_result(&mut self) {
        if let Some(current) = self.current.take() {
            self.push(current);
        }
    }

    /// A result of a report that has no more than a rate.
    fn keep(&mut self, mut short_report: Current, option: &str) {
        fn missing<T>(what: &str, option: &str) -> Reading<T> {
            let why = format!("{NAME} {option} prints the rate, not {what}");
            Reading::Missing(Missing::with_remedy(why, format!("leave out {option}")))
        }
        short_report.result.operations = missing("the number of requests", option);
        short_report.result.window_ns = missing("its time", option);
        short_report.result.connections = missing("the number of clients", option);
        self.push(short_report);
    }

    fn push(&mut self, current: Current) {
        if self.output.results.len() < RESULTS_MAX {
            self.output.results.push(current.into_result());
        }
    }
}

impl Current {
    fn new(name: &str) -> Self {
        let mut result = ToolResult::unsaid(NAME);
        result.name = Some(short(name));
        // It stops at the first one, or counts them as answers.
        result.errors = Reading::missing("redis-benchmark does not count errors");
        Current { result, part: Part::Head, mean_ns: None, quantiles: Quantiles::default() }
    }

    /// A line of the text report.
    fn read(&mut self, line: &str) {
        match line {
            "Latency by percentile distribution:" => return self.part = Part::Percentiles,
            "Cumulative distribution of latencies:" => return self.part = Part::Cumulative,
            "latency summary (msec):" => return self.part = Part::LatencyNames,
            _ => {}
        }
        let words: Vec<&str> = line.split_whitespace().take(16).collect();
        match (self.part, words.as_slice()) {
            (Part::LatencyNames, names) => {
                let mut columns = [Column::Unknown; 6];
                columns.iter_mut().zip(names).for_each(|(column, name)| *column = Column::of(name));
                self.part = Part::LatencyValues(columns);
            }
            (Part::LatencyValues(columns), values) => {
                columns.iter().zip(values).for_each(|(column, value)| self.latency(*column, value));
                self.part = Part::Head;
            }
            (Part::Percentiles, [percent, "<=", ms, "milliseconds", ..]) => {
                let quantile = percent.strip_suffix('%').and_then(share);
                if let Some((quantile, ns)) = quantile.zip(ms_in_ns(ms)) {
                    self.quantiles.note(quantile, ns);
                }
            }
            (Part::Cumulative, [_, "<=", ..]) => {}
            (_, ["throughput", "summary:", rate, ..] | [rate, "requests", "per", "second"]) => {
                if let Some(rate_hz) = positive(rate) {
                    self.result.rate_hz = Reading::Measured(rate_hz);
                }
            }
            (_, [count, "requests", "completed", "in", seconds, "seconds"]) => {
                if let Ok(count) = count.parse() {
                    self.result.operations = Reading::Measured(count);
                }
                if let Some(ns) = positive(seconds).and_then(|seconds| whole(seconds * 1e9)) {
                    self.result.window_ns = Reading::Measured(ns);
                }
            }
            (_, [clients, "parallel", "clients"]) => {
                if let Ok(clients) = clients.parse() {
                    self.result.connections = Reading::Measured(clients);
                }
            }
            (_, [bytes, "bytes", "payload"]) => self.result.set("payload bytes", bytes),
            (Part::Head, _) if !is_progress(line) => {
                if let Some((setting, value)) = line.split_once(": ") {
                    self.result.set(setting, value.trim());
                }
            }
            _ => {}
        }
    }

    fn latency(&mut self, column: Column, ms: &str) {
        let Some(ns) = ms_in_ns(ms) else { return };
        match column {
            Column::Mean => self.mean_ns = Some(ns),
            Column::Quantile(thousandths) => self.quantiles.note(f64::from(thousandths) / 1e3, ns),
            Column::Unknown => {}
        }
    }

    fn into_result(mut self) -> ToolResult {
        let mean_ns = self.mean_ns.map_or_else(
            || Reading::missing("this report of redis-benchmark has no mean latency"),
            Reading::Measured,
        );
        if let Some(latency) = LatencySummary::of(mean_ns, std::mem::take(&mut self.quantiles)) {
            self.result.latency = Reading::Measured(latency);
        }
        if let Some(window_ns) = self.window_ns() {
            self.result.window_ns = Reading::Measured(window_ns);
        }
        self.result
    }

    /// The time was printed in hundredths of a second and is known in whole milliseconds, from which the rate was made:
    /// requests over rate, where the two agree.
    fn window_ns(&self) -> Option<u64> {
        let ToolResult { operations, rate_hz, window_ns, .. } = &self.result;
        let by_rate_s = *operations.value()? as f64 / rate_hz.value()?;
        let printed_s = *window_ns.value()? as f64 / 1e9;
        ((by_rate_s - printed_s).abs() <= 0.005_001)
            .then(|| whole(by_rate_s * 1e3)?.checked_mul(1_000_000))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_a_run_of_several_tests_stay_apart() {
        let output = read(include_str!("../../tests/fixtures/redis-benchmark/text.txt"));
        let names: Vec<_> = output.results.iter().filter_map(|result| result.name.as_deref()).collect();
        assert_eq!(names, ["SET", "GET"]);
        for result in &output.results {
            let (count, ns) = (*result.operations.value().unwrap(), *result.window_ns.value().unwrap());
            let (rate_hz, printed_hz) = (count as f64 * 1e9 / ns as f64, *result.rate_hz.value().unwrap());
            assert!((rate_hz / printed_hz - 1.0).abs() < 1e-5, "{rate_hz} {printed_hz}");
        }
    }

    /// Made from the source of redis-benchmark 5: no such version could be had here.
    #[test]
    fn reports_of_older_versions_of_redis_benchmark() {
        let read = |text: &str| read(text).results;
        let text = "====== PING_INLINE ======\n  100000 requests completed in 1.40 seconds\n  50 parallel clients\n  \
                3 bytes payload\n  keep alive: 1\n\n99.99% <= 1 milliseconds\n100.00% <= 1 milliseconds\n71428.57 requests per second\n";
        let [old] = &read(text)[..] else { panic!() };
        assert_eq!((old.operations.value(), old.window_ns.value()), (Some(&100_000), Some(&1_400_000_000)));
        assert_eq!((old.rate_hz.value(), old.connections.value()), (Some(&71428.57), Some(&50)));
        // Whole milliseconds that were cut off are no latencies.
        assert!(old.latency.value().is_none());
        for text in ["\"SET\",\"71428.57\"\n", "SET: 71428.57 requests per second\n"] {
            let [old] = &read(text)[..] else { panic!("{text}") };
            assert_eq!((old.name.as_deref(), old.rate_hz.value()), (Some("SET"), Some(&71428.57)));
        }
        let text = "\"test\",\"rps\",\"p50_latency_ms\"\n\"eval 'return \"a\",\"b\"' 0\",\"5.00\",\"0.5\"\n";
        let [quoted] = &read(text)[..] else { panic!() };
        assert_eq!(quoted.name.as_deref(), Some("eval 'return \"a\",\"b\"' 0"));
    }
}
