//! [autocannon](https://github.com/mcollina/autocannon): its tables on standard error, and its JSON (`-j`).

use super::printed::{cells, plain, quantile, runs, seconds_ns};
use crate::documents::objects;
use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::json;
use crate::numbers::{positive, whole, without_thousands};
use crate::result::measured;
use crate::result::{LatencySummary, Quantiles, ToolOutput, ToolResult, add_errors};
use crate::shapes::Shapes;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tare_model::Reading;
use tare_model::trial::ErrorKind;

const NAME: &str = "autocannon";

/// The tables or the JSON.
pub(crate) const FORMAT: Format = Format {
    name: NAME,
    gets_wrong: &[
        "latencies are whole milliseconds, and what is below one is printed as 0 ms (left out here)",
        "its requests are those that were sent: answers are only in the rate, which is sampled once a second, so its 2.5% and 97.5% are \
         of a few whole seconds and no interval",
        "a request that times out, or whose connection the server closes, is in no percentile, and the closed one is not even an error",
        "its one JavaScript thread is often busy all the time before the server is",
        "figures per second come from a histogram, and are exact to three digits",
        "with -R it adds made-up latencies for requests that it omitted, unless -C is given",
    ],
    detect: |printed| is_text(printed) || is_json(printed),
    read: |printed| match is_text(printed) {
        true => read_text(printed),
        false => ToolOutput {
            results: objects(printed, &[&["\"non2xx\""]]).iter().filter_map(of_json).collect(),
            complaint: None,
        },
    },
    shapes: SHAPES,
};

const SHAPES: Shapes = Shapes {
    lines: &[
        "# connections ..",
        "│ Latency │ # ms │ # ms │ # ms │ # ms │ # ms │ # ms │ # ms │",
        "│ Req/Sec │ # │ # │ # │ # │ # │ # │ # │",
        "* of samples: #",
        "# 2xx responses, # non 2xx responses",
        "# requests in #s, # ~ read",
        "# errors (# timeouts)",
    ],
    units: &[",", "k", "M", "B", "kB", "MB", "GB", "TB"],
    documents: &[&["\"non2xx\""]],
};

/// A program of node, and named so while it runs: its first thread sends, with -w worker threads.
pub(crate) const GENERATOR: Generator = Generator {
    program: NAME,
    senders: Senders::All,
    set_up: SetUp { steady_for: Duration::from_millis(100), at_most: Duration::from_millis(400) },
    rate_options: &["-R", "--overallRate"],
    // Its result is on standard error: what went wrong is counted there.
    chatter: &[
        "Running ",
        "┌",
        "│",
        "├",
        "└",
        "Req/Bytes counts",
        "# of samples",
        "0",
        "1",
        "2",
        "3",
        "4",
        "5",
        "6",
        "7",
        "8",
        "9",
    ],
    format: Some(&FORMAT),
};

/// Whether there is a line of its tables that nobody else prints. wrk's first lines are the same.
pub(crate) fn is_text(printed: &str) -> bool {
    plain(printed).lines().any(|line| {
        line.starts_with("│ Req/Sec ")
            || line.starts_with("│ Latency ")
            || line == "Req/Bytes counts sampled once per second."
    })
}

fn is_json(printed: &str) -> bool {
    printed.contains("\"p97_5\":") && printed.contains("\"non2xx\":") && printed.contains("\"latency\":")
}

/// Decimal units of bytes, and `k` of counts.
fn counted(text: &str) -> Option<f64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number = without_thousands(number)?;
    let scale = match unit.trim().trim_end_matches('B') {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        _ => return None,
    };
    Some(positive(&number)? * scale)
}

#[derive(Default)]
struct Run {
    url: Option<String>,
    connections: Option<u32>,
    /// The names of the columns of the table that the next rows are of.
    columns: Vec<String>,
    in_percentiles: bool,
    quantiles: Quantiles,
    mean_ns: Option<u64>,
    rate_hz: Option<f64>,
    samples: Option<f64>,
    window_ns: Option<u64>,
    bytes_in: Option<u64>,
    errors: BTreeMap<ErrorKind, u64>,
    answers: Option<u64>,
    printed: Option<u64>,
    is_whole: bool,
}

fn read_text(printed: &str) -> ToolOutput {
    let printed = plain(printed);
    let runs = runs(&printed, |line| line.starts_with("Running ") && line.contains(" test @ "));
    let results = runs.iter().filter_map(|lines| {
        let mut run = Run::default();
        lines.iter().for_each(|line| run.read(line));
        run.into_result()
    });
    ToolOutput { results: results.collect(), complaint: None }
}

impl Run {
    fn read(&mut self, line: &str) {
        if let Some(cells) = cells(line) {
            return self.row(&cells);
        }
        let words: Vec<&str> = line.split_whitespace().take(10).collect();
        match words.as_slice() {
            ["Running", _, "test", "@", url] | ["Running", _, "requests", "test", "@", url] => {
                self.url = Some((*url).to_owned());
            }
            [count, "connections", ..] => self.connections = count.parse().ok(),
            ["#", "of", "samples:", count] => self.samples = positive(count),
            [all, "requests", "in", time, bytes, unit, "read"] => {
                self.printed = counted(all).and_then(whole);
                self.is_whole = true;
                self.window_ns = positive(time.trim_end_matches(['s', ','])).and_then(seconds_ns);
                self.bytes_in = counted(&format!("{bytes}{unit}")).and_then(whole);
            }
            [all, "errors", timeouts, "timeouts)"] => {
                let timeouts = count(timeouts.trim_start_matches('('));
                add_errors(&mut self.errors, ErrorKind::Timeout, timeouts);
                add_errors(&mut self.errors, ErrorKind::Io, count(all).saturating_sub(timeouts));
            }
            [good, "2xx", "responses,", other, "non", "2xx", "responses"] => {
                self.answers = Some(count(good).saturating_add(count(other)));
                add_errors(&mut self.errors, ErrorKind::Status, count(other));
            }
            [other, "requests", "with", "mismatched", "body"] => {
                add_errors(&mut self.errors, ErrorKind::Unexpected, count(other));
            }
            _ => {}
        }
    }

    fn row(&mut self, row: &[&str]) {
        match row {
            ["Stat", columns @ ..] => self.columns = columns.iter().map(|name| (*name).to_owned()).collect(),
            ["Percentile", "Latency (ms)"] => self.in_percentiles = true,
            ["Latency", values @ ..] => {
                for (column, value) in self.columns.iter().zip(values) {
                    let ns = value.strip_suffix(" ms").and_then(counted).and_then(|ms| whole(ms * 1e6));
                    match (ns, quantile(column)) {
                        (Some(ns), Some(quantile)) => note(&mut self.quantiles, quantile, ns),
                        (ns, None) if column == "Avg" => self.mean_ns = ns,
                        _ => {}
                    }
                }
            }
            ["Req/Sec", values @ ..] => {
                let mean = self.columns.iter().zip(values).find(|(column, _)| *column == "Avg");
                self.rate_hz = mean.and_then(|(_, value)| counted(value));
            }
            [percent, ms] if self.in_percentiles => {
                let ns = counted(ms).and_then(|ms| whole(ms * 1e6));
                if let Some((quantile, ns)) = crate::numbers::share(percent).zip(ns) {
                    note(&mut self.quantiles, quantile, ns);
                }
            }
            _ => {}
        }
    }

    fn into_result(self) -> Option<ToolResult> {
        if self.rate_hz.is_none() && !self.is_whole {
            return None;
        }
        let mut result = ToolResult::unsaid(NAME);
        // The requests that are printed are those that were sent. Answers are counted where some are not 2xx; else they are the mean of
        // so many samples times their number, to three digits.
        let by_rate = || self.rate_hz.zip(self.samples).and_then(|(mean, samples)| whole(mean * samples));
        // Before version 5 it does not say how many samples there were, and the printed requests are answers.
        let printed = || self.printed.filter(|_| self.samples.is_none());
        let answers = self.answers.or_else(by_rate).or_else(printed);
        result.operations = measured(answers, result.operations);
        result.rate_hz = measured(self.rate_hz, result.rate_hz);
        result.window_ns = measured(self.window_ns, result.window_ns);
        result.bytes_in = measured(self.bytes_in, result.bytes_in);
        result.connections = measured(self.connections, result.connections);
        if self.is_whole {
            result.errors = Reading::Measured(self.errors);
        }
        if answers == Some(0) {
            result.latency = Reading::missing("no request was answered");
        } else {
            let mean_ns =
                measured(self.mean_ns, Reading::missing("autocannon has not printed a mean latency"));
            let latency = LatencySummary::of(mean_ns, self.quantiles);
            result.latency = measured(latency, result.latency);
        }
        self.url.iter().for_each(|url| result.set("url", url));
        Some(result)
    }
}

/// 0 ms is anything below the smallest step, and no latency.
fn note(quantiles: &mut Quantiles, quantile: f64, ns: u64) {
    if ns > 0 {
        quantiles.note(quantile, ns);
    }
}

fn count(text: &str) -> u64 {
    counted(text).and_then(whole).unwrap_or(0)
}

fn of_json(run: &Value) -> Option<ToolResult> {
    let (requests, latency) = (&run["requests"], &run["latency"]);
    let answers = requests["total"].as_u64().filter(|_| run["non2xx"].is_number())?;
    let of = |name: &str| run[name].as_u64().unwrap_or(0);
    let mut result = ToolResult::unsaid(NAME);
    result.operations = Reading::Measured(answers);
    result.rate_hz = measured(json::number(&requests["average"]), result.rate_hz);
    result.window_ns = measured(json::number(&run["duration"]).and_then(seconds_ns), result.window_ns);
    result.bytes_in = measured(run["throughput"]["total"].as_u64(), result.bytes_in);
    let connections = run["connections"].as_u64().and_then(|count| u32::try_from(count).ok());
    result.connections = measured(connections, result.connections);
    let mut errors = BTreeMap::new();
    let (failed, timeouts) = (of("errors"), of("timeouts"));
    add_errors(&mut errors, ErrorKind::Timeout, timeouts);
    // Those that are in flight at the end are no more than connections and pipelining allow; the others were lost, and are in no figure.
    let in_flight = of("connections").saturating_mul(of("pipelining").max(1));
    let lost = requests["sent"].as_u64().unwrap_or(0).saturating_sub(answers);
    let lost = lost.saturating_sub(failed).saturating_sub(in_flight);
    add_errors(&mut errors, ErrorKind::Io, failed.saturating_sub(timeouts).saturating_add(lost));
    add_errors(&mut errors, ErrorKind::Status, of("non2xx"));
    add_errors(&mut errors, ErrorKind::Unexpected, of("mismatches"));
    result.errors = Reading::Measured(errors);
    result.latency = match answers {
        0 => Reading::missing("no request was answered"),
        _ => measured(latency_of(latency), result.latency),
    };
    for setting in ["url", "pipelining", "workers"] {
        if !run[setting].is_null() {
            result.set(setting, &json::text(&run[setting]));
        }
    }
    Some(result)
}

fn latency_of(latency: &Value) -> Option<LatencySummary> {
    let mut quantiles = Quantiles::default();
    for (name, value) in latency.as_object()? {
        // `p97_5` is 97.5 %. `min` is the least that is not 0.
        let quantile = quantile(&name.replace('_', ".")).filter(|quantile| *quantile > 0.0);
        let ns = json::number(value).and_then(|ms| whole(ms * 1e6));
        if let Some((quantile, ns)) = quantile.zip(ns) {
            note(&mut quantiles, quantile, ns);
        }
    }
    let mean_ns = json::number(&latency["average"]).and_then(|ms| whole(ms * 1e6));
    LatencySummary::of(
        measured(mean_ns, Reading::missing("autocannon has not printed a mean latency")),
        quantiles,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_the_sum_of_the_samples_and_not_what_was_sent() {
        let [result] = &read_text(include_str!("../../tests/fixtures/autocannon/timeouts.txt")).results[..]
        else {
            panic!()
        };
        // 220 were sent, 15 of them timed out, 10 were in flight at the end.
        assert_eq!(result.operations.value(), Some(&195));
        assert_eq!(result.errors.value(), Some(&BTreeMap::from([(ErrorKind::Timeout, 15)])));
    }

    #[test]
    fn requests_that_the_server_dropped_are_errors() {
        let [result] =
            &(FORMAT.read)(include_str!("../../tests/fixtures/autocannon/dropped.json")).results[..]
        else {
            panic!()
        };
        // 203 were sent on 3 connections, 0 answered, 0 are said to have failed.
        assert_eq!(result.errors.value(), Some(&BTreeMap::from([(ErrorKind::Io, 200)])));
        assert!(result.latency.value().is_none());
    }

    #[test]
    fn numbers_have_commas_and_units() {
        for (text, value) in [
            ("5,568.5", Some(5568.5)),
            ("5.568,5", None),
            ("55,68", None),
            ("1.08 MB", Some(1.08e6)),
            ("0 B", Some(0.0)),
            ("2k", Some(2e3)),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(counted(text), value, "{text}");
        }
    }
}
