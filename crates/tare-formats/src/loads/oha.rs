//! [oha](https://github.com/hatoo/oha): its summary as text and as JSON (`--output-format json`), and its table of requests.

use super::http_errors::kind_of;
use super::printed::{quantile, runs, seconds_ns};
use crate::documents::objects;
use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::json;
use crate::metrics::{Kind, Metrics, Sample};
use crate::numbers::{positive, share, whole};
use crate::reader::{Input, Reader};
use crate::result::measured;
use crate::result::{LatencySummary, Quantiles, ToolOutput, ToolResult, add_errors, short};
use crate::rows::fields;
use crate::shapes::Shapes;
use crate::units::in_base;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tare_model::Reading;
use tare_model::outcome::Better;
use tare_model::trial::ErrorKind;

const NAME: &str = "oha";
/// What is in flight when the time is over; no failure.
const ABORTED: &str = "aborted due to deadline";
const HEADER: &str = "request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status";

/// The summary.
pub(crate) const FORMAT: Format = Format {
    name: NAME,
    gets_wrong: &[
        "its Requests/sec counts requests that failed, and those that were broken off when the time was over",
        "its success rate calls answers with an error status successes, and requests that time out are in no percentile",
        "with -q latencies leave out how long a request should have been sent before, unless --latency-correction is given",
        "its window includes the time in which connections are opened",
    ],
    detect: |printed| is_text(printed) || is_json(printed),
    read: |printed| match is_json(printed) {
        true => read_json(printed),
        false => read_text(printed),
    },
    shapes: SHAPES,
};

const SHAPES: Shapes = Shapes {
    lines: &[
        "Total: # ~",
        "Slowest: # ~",
        "Fastest: # ~",
        "Average: # ~",
        "Requests/sec: #",
        "Total data: # ~",
        "#% in # ~",
        "Total: # 10 ~",
        "Slowest: # 10 ~",
        "Fastest: # 10 ~",
        "Average: # 10 ~",
        "#% in # 10 ~",
        "[* # responses",
    ],
    units: &[
        "ns", "us", "µs", "μs", "ms", "s", "sec", "secs", "min", "h", "hr", "B", "KiB", "MiB", "GiB", "TiB",
    ],
    documents: &[&["\"requestsPerSec\""]],
};

/// Tokio's runtime: any of its threads sends.
pub(crate) const GENERATOR: Generator = Generator {
    program: NAME,
    senders: Senders::All,
    set_up: SetUp { steady_for: Duration::from_millis(100), at_most: Duration::from_millis(400) },
    rate_options: &["-q"],
    chatter: &[],
    format: Some(&FORMAT),
};

/// hey's summary is the same but for this line.
pub(super) fn is_text(printed: &str) -> bool {
    printed.lines().any(|line| line.trim_start_matches(char::is_whitespace).starts_with("Success rate:\t"))
}

fn is_json(printed: &str) -> bool {
    printed.contains("\"successRate\":")
        && printed.contains("\"requestsPerSec\":")
        && printed.contains("\"latencyPercentiles\":")
}

#[derive(Default)]
struct Figures {
    seconds: Option<f64>,
    rate_hz: Option<f64>,
    mean_ns: Option<u64>,
    quantiles: Quantiles,
    bytes_in: Option<u64>,
    statuses: Vec<(u32, u64)>,
    has_statuses: bool,
    reasons: Vec<(String, u64)>,
}

fn read_text(printed: &str) -> ToolOutput {
    let mut output = ToolOutput::default();
    for run in runs(printed, |line| line == "Summary:") {
        add(&mut output, of_text(&run));
    }
    output
}

/// Adds a run to what was read before.
fn add(output: &mut ToolOutput, figures: Figures) {
    let (result, complaint) = figures.into_result();
    output.results.extend(result);
    if output.complaint.is_none() {
        output.complaint = complaint;
    }
}

fn of_text(lines: &[&str]) -> Figures {
    let mut figures = Figures::default();
    // Only the first table of percentiles is of all answers.
    let (mut tables, mut in_errors) = (0, false);
    for line in lines {
        let mut words: Vec<&str> = line.split_whitespace().take(30).collect();
        // The unit is that of the slowest request: of more than ten seconds `10 sec`, of more than ten minutes `10 min`.
        let tens = match words[..] {
            [.., "10", "sec" | "min"] => 10.0,
            _ => 1.0,
        };
        if tens > 1.0 {
            words.remove(words.len() - 2);
        }
        let time = |value: &str, unit: &str| {
            let (seconds, base) = in_base(tens * positive(value)?, unit);
            (base == "s").then_some(seconds)
        };
        let ns = |value: &str, unit: &str| time(value, unit).and_then(seconds_ns);
        match words[..] {
            ["Total:", value, unit] => figures.seconds = time(value, unit),
            ["Average:", value, unit] => figures.mean_ns = ns(value, unit),
            ["Slowest:", value, unit] => {
                ns(value, unit).into_iter().for_each(|ns| figures.quantiles.note(1.0, ns));
            }
            ["Fastest:", value, unit] => {
                ns(value, unit).into_iter().for_each(|ns| figures.quantiles.note(0.0, ns));
            }
            ["Requests/sec:", rate] => figures.rate_hz = positive(rate),
            ["Total", "data:", size, unit] => figures.bytes_in = bytes(size, unit),
            ["Response", "time", "distribution:"] | ["Response", "time", "distribution", ..] => tables += 1,
            [percent, "in", value, unit] if tables == 1 => {
                if let Some((share, ns)) = share(percent.trim_end_matches('%')).zip(ns(value, unit)) {
                    figures.quantiles.note(share, ns);
                }
            }
            ["Status", "code", "distribution:"] => figures.has_statuses = true,
            ["Error", "distribution:"] => in_errors = true,
            [status, count, "responses"] if figures.has_statuses && !in_errors => {
                let pair = status.trim_matches(['[', ']']).parse().ok().zip(count.parse().ok());
                figures.statuses.extend(pair);
            }
            [count, _, ..] if in_errors && count.starts_with('[') => {
                let reason = line.split_once("] ").map_or("", |(_, reason)| reason);
                let count = count.trim_matches(['[', ']']).parse().unwrap_or(0);
                figures.reasons.push((short(reason), count));
            }
            _ => {}
        }
    }
    figures
}

fn bytes(size: &str, unit: &str) -> Option<u64> {
    let scale = match unit {
        "B" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "GiB" => 1_073_741_824.0,
        "TiB" => 1_099_511_627_776.0,
        _ => return None,
    };
    whole(positive(size)? * scale)
}

fn read_json(printed: &str) -> ToolOutput {
    let mut output = ToolOutput::default();
    for run in objects(printed, &[&["\"requestsPerSec\""]])
        .iter()
        .filter(|run| run["summary"]["requestsPerSec"].is_number())
    {
        add(&mut output, of_json(run));
    }
    output
}

fn of_json(run: &Value) -> Figures {
    let summary = &run["summary"];
    let ns = |value: &Value| json::number(value).and_then(seconds_ns);
    let mut figures = Figures {
        seconds: json::number(&summary["total"]),
        rate_hz: json::number(&summary["requestsPerSec"]),
        mean_ns: ns(&summary["average"]),
        bytes_in: summary["totalData"].as_u64(),
        has_statuses: run["statusCodeDistribution"].is_object(),
        ..Figures::default()
    };
    for (quantile, key) in [(0.0, "fastest"), (1.0, "slowest")] {
        ns(&summary[key]).into_iter().for_each(|ns| figures.quantiles.note(quantile, ns));
    }
    for (name, value) in run["latencyPercentiles"].as_object().into_iter().flatten() {
        if let Some((quantile, ns)) = quantile(name).zip(ns(value)) {
            figures.quantiles.note(quantile, ns);
        }
    }
    let statuses = run["statusCodeDistribution"].as_object().into_iter().flatten();
    figures
        .statuses
        .extend(statuses.filter_map(|(status, count)| Some((status.parse().ok()?, count.as_u64()?))));
    let reasons = run["errorDistribution"].as_object().into_iter().flatten();
    figures.reasons.extend(reasons.map(|(reason, count)| (short(reason), count.as_u64().unwrap_or(0))));
    figures
}

impl Figures {
    fn into_result(self) -> (Option<ToolResult>, Option<String>) {
        let failures = || self.reasons.iter().filter(|(reason, _)| !reason.contains(ABORTED));
        let complaint = failures().next().map(|(reason, _)| reason.clone());
        if self.rate_hz.is_none() {
            return (None, complaint);
        }
        let mut result = ToolResult::unsaid(NAME);
        result.rate_hz = measured(self.rate_hz, result.rate_hz);
        result.window_ns = measured(self.seconds.and_then(seconds_ns), result.window_ns);
        result.bytes_in = measured(self.bytes_in, result.bytes_in);
        let answers = self.statuses.iter().map(|(_, count)| *count).fold(0, u64::saturating_add);
        // Errors stand behind the statuses: without these neither is known.
        if self.has_statuses {
            let mut errors = BTreeMap::new();
            for (_, count) in self.statuses.iter().filter(|(status, _)| *status >= 400) {
                add_errors(&mut errors, ErrorKind::Status, *count);
            }
            failures().for_each(|(reason, count)| add_errors(&mut errors, kind_of(reason), *count));
            result.operations = Reading::Measured(answers);
            result.errors = Reading::Measured(errors);
        }
        let aborted = self.reasons.iter().find(|(reason, _)| reason.contains(ABORTED));
        aborted.iter().for_each(|(reason, count)| result.set(reason, &count.to_string()));
        result.latency = if self.has_statuses && answers == 0 {
            Reading::missing("no request was answered")
        } else {
            let mean_ns = measured(self.mean_ns, Reading::missing("oha has not printed a mean latency"));
            measured(LatencySummary::of(mean_ns, self.quantiles), result.latency)
        };
        (Some(result), complaint)
    }
}

/// The table of requests (`--output-format csv`).
pub(crate) const READER: Reader = Reader {
    name: "oha-csv",
    gets_wrong: &[
        "requests that failed, such as those that timed out, are not in the table: its percentiles are of answers alone",
        "the table does not say which worker sent a request, nor when it should have been sent",
    ],
    detect: |input| input.head().any(|line| line == HEADER),
    read: read_table,
};

fn read_table(input: &Input<'_>, metrics: &mut Metrics) {
    let (mut in_table, mut launch) = (false, 0);
    let mut statuses: BTreeMap<u16, u64> = BTreeMap::new();
    for (line, number) in input.text.lines().zip(1..) {
        if line.trim_end() == HEADER {
            // Another table is another run.
            launch += u32::from(in_table);
            in_table = true;
            continue;
        }
        if !in_table || !line.starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        let row = fields(line);
        let [start, dns, dialup, delay, duration, bytes, status] = row.as_slice() else {
            metrics.skip(number, line, "not as many fields as columns: the line is cut off");
            continue;
        };
        let (Ok(at_s), Ok(status)) = (start.parse::<f64>(), status.parse::<u16>()) else {
            metrics.skip(number, line, "the start or the status is no number");
            continue;
        };
        *statuses.entry(status).or_default() += 1;
        let figures = [
            ("request-duration", duration, "s", Some(Better::Lower)),
            ("Response-delay", delay, "s", Some(Better::Lower)),
            ("DNS", dns, "s", Some(Better::Lower)),
            ("DNS+dialup", dialup, "s", Some(Better::Lower)),
            ("bytes", bytes, "B", None),
        ];
        for (name, text, unit, better) in figures {
            let kind = Kind { benchmark: "", name, unit, better };
            match text.parse() {
                Ok(value) => {
                    metrics.sample(
                        number,
                        kind,
                        Sample { value, launch, at_s: Some(at_s), ..Sample::default() },
                    );
                }
                Err(_) => metrics.skip(number, line, &format!("{name} is no number")),
            }
        }
    }
    if statuses.is_empty() {
        metrics.skip(1, HEADER, "the table has no rows: no request was answered");
    }
    let all: u64 = statuses.values().sum();
    let failed: u64 = statuses.range(400..).map(|(_, count)| *count).sum();
    statuses.iter().for_each(|(status, count)| metrics.set(&format!("status {status}"), &count.to_string()));
    if failed > 0 {
        let text =
            format!("{failed} of {all} answers have an error status, and their times are among the others");
        metrics.warn(
            "tool-counts-failures",
            &text,
            "make the server answer as it should, or leave these rows out",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_slow_requests_are_read() {
        let text = "Summary:\n  Success rate:\t100.00%\n  Total:\t2.5000 10 sec\n  Slowest:\t1.2000 10 sec\n  Fastest:\t0.0100 10 sec\n  \
                    Average:\t0.5000 10 sec\n  Requests/sec:\t4.0000\n\nResponse time distribution:\n  50.00% in 0.4000 10 sec\n\n\
                    Status code distribution:\n  [200] 100 responses\n";
        let [result] = &read_text(text).results[..] else { panic!("{:?}", read_text(text)) };
        let latency = result.latency.value().unwrap();
        assert_eq!(latency.mean_ns.value(), Some(&5_000_000_000));
        assert!(
            latency.quantiles_ns.contains(&(0.5, 4_000_000_000))
                && latency.quantiles_ns.contains(&(1.0, 12_000_000_000))
        );
    }

    #[test]
    fn what_was_broken_off_at_the_end_is_no_failure() {
        let text = "Summary:\n  Success rate:\t80.00%\n  Total:\t1.0000 secs\n  Requests/sec:\t14.0000\n\n\
            Response time distribution:\n  50.00% in 1.5000 ms\n\nStatus code distribution:\n  [200] 8 responses\n  [503] 2 responses\n\n\
            Error distribution:\n  [3] aborted due to deadline\n  [1] Connection refused (os error 111)\n";
        let output = read_text(text);
        let result = &output.results[0];
        assert_eq!(result.operations.value(), Some(&10));
        assert_eq!(
            result.errors.value(),
            Some(&BTreeMap::from([(ErrorKind::Connect, 1), (ErrorKind::Status, 2)]))
        );
        assert_eq!(result.latency.value().unwrap().quantiles_ns, [(0.5, 1_500_000)]);
        assert_eq!(output.complaint.as_deref(), Some("Connection refused (os error 111)"));
    }

    #[test]
    fn only_the_first_percentiles_are_of_all_answers() {
        let text = "Summary:\n  Success rate:\t100.00%\n  Requests/sec:\t14.0000\nResponse time distribution:\n  50.00% in 0.0010 secs\n\
            Response time distribution (2xx only):\n  50.00% in 0.0020 secs\n";
        assert_eq!(read_text(text).results[0].latency.value().unwrap().quantiles_ns, [(0.5, 1_000_000)]);
    }
}
