//! [hey](https://github.com/rakyll/hey): its summary, and its table of requests (`-o csv`).

use super::http_errors::kind_of;
use super::printed::{runs, seconds_ns};
use super::{ghz, oha};
use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::metrics::{Kind, Metrics, Sample};
use crate::numbers::{positive, share};
use crate::reader::{Input, Reader};
use crate::result::measured;
use crate::result::{LatencySummary, Quantiles, ToolOutput, ToolResult, add_errors, short};
use crate::shapes::Shapes;
use std::collections::BTreeMap;
use std::time::Duration;
use tare_model::Reading;
use tare_model::outcome::Better;
use tare_model::trial::ErrorKind;

const NAME: &str = "hey";
const HEADER: &str =
    "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset";

/// The summary.
pub(crate) const FORMAT: Format = Format {
    name: NAME,
    gets_wrong: &[
        "its rate counts requests that failed and answers with an error status",
        "times are printed in steps of 0.1 ms, and requests that failed are in none",
        "with -q each worker waits for its answer before it sends again: latencies leave out how long a request should have been sent before",
        "of a run with -z only the first million latencies are kept",
    ],
    detect: |printed| {
        let has = |start: &str| printed.lines().any(|line| line.starts_with(start));
        let is_one = has("Details (average, fastest, slowest):")
            || has("  Requests/sec:\t") && has("Response time histogram:");
        // oha and ghz print the same, and one line more.
        is_one && !oha::is_text(printed) && !printed.lines().any(ghz::is_line)
    },
    read,
    shapes: SHAPES,
};

const SHAPES: Shapes = Shapes {
    lines: &[
        "Total: # secs",
        "Slowest: # secs",
        "Fastest: # secs",
        "Average: # secs",
        "Requests/sec: #",
        "Total data: # bytes",
        // Some versions print the sign twice.
        "#%% in # secs",
        "#% in # secs",
        "[* # responses",
    ],
    units: &[],
    documents: &[],
};

/// Go's runtime: any of its threads sends.
pub(crate) const GENERATOR: Generator = Generator {
    program: NAME,
    senders: Senders::All,
    set_up: SetUp { steady_for: Duration::from_millis(100), at_most: Duration::from_millis(400) },
    // -q is of each worker.
    rate_options: &[],
    chatter: &[],
    format: Some(&FORMAT),
};

/// Part of the summary that a line stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Other,
    Status,
    Errors,
}

fn read(printed: &str) -> ToolOutput {
    let runs = runs(printed, |line| line == "Summary:");
    let mut output = ToolOutput::default();
    for run in &runs {
        let (result, complaint) = one(run);
        output.results.extend(result);
        output.complaint = output.complaint.or(complaint);
    }
    output
}

fn one(lines: &[&str]) -> (Option<ToolResult>, Option<String>) {
    let mut result = ToolResult::unsaid(NAME);
    let (mut part, mut errors, mut answers, mut complaint) = (Part::Other, BTreeMap::new(), None, None);
    let (mut mean_ns, mut quantiles, mut size) = (None, Quantiles::default(), None);
    for line in lines {
        // 0.0000 is anything below the smallest step, and no time.
        let ns = |seconds: &str| positive(seconds).and_then(seconds_ns).filter(|ns| *ns > 0);
        match line.split_whitespace().take(30).collect::<Vec<_>>()[..] {
            ["Total:", seconds, "secs"] => result.window_ns = measured(ns(seconds), result.window_ns),
            ["Average:", seconds, "secs"] => mean_ns = ns(seconds),
            ["Fastest:", seconds, "secs"] => ns(seconds).into_iter().for_each(|ns| quantiles.note(0.0, ns)),
            ["Slowest:", seconds, "secs"] => ns(seconds).into_iter().for_each(|ns| quantiles.note(1.0, ns)),
            ["Requests/sec:", rate] => result.rate_hz = measured(positive(rate), result.rate_hz),
            ["Total", "data:", bytes, "bytes"] => size = bytes.parse().ok(),
            ["Status", "code", "distribution:"] => (part, answers) = (Part::Status, answers.or(Some(0_u64))),
            ["Error", "distribution:"] => part = Part::Errors,
            // Too few answers for a percentile are "0% in 0.0000 secs".
            [percent, "in", seconds, "secs"] => {
                let share = share(percent.trim_end_matches('%')).filter(|share| *share > 0.0);
                if let Some((share, ns)) = share.zip(ns(seconds)) {
                    quantiles.note(share, ns);
                }
            }
            [status, count, "responses"] if part == Part::Status => {
                let count: u64 = count.parse().unwrap_or(0);
                answers = Some(answers.unwrap_or(0).saturating_add(count));
                if status.trim_matches(['[', ']']).parse().is_ok_and(|status: u32| status >= 400) {
                    add_errors(&mut errors, ErrorKind::Status, count);
                }
            }
            [count, _, ..] if part == Part::Errors && count.starts_with('[') => {
                add_errors(&mut errors, kind_of(line), count.trim_matches(['[', ']']).parse().unwrap_or(0));
                complaint.get_or_insert_with(|| short(line.split_once('\t').map_or(line, |(_, why)| why)));
            }
            _ => {}
        }
    }
    if result.rate_hz.value().is_none() {
        return (None, complaint);
    }
    result.latency = match answers {
        Some(0) => Reading::missing("no request was answered"),
        _ => {
            let mean_ns = measured(mean_ns, Reading::missing("hey has not printed a mean latency"));
            measured(LatencySummary::of(mean_ns, quantiles), result.latency)
        }
    };
    // The rate is of answers and failures, and has more digits than the time, which is rounded to 0.1 ms.
    let failures = errors.iter().filter(|(kind, _)| **kind != ErrorKind::Status).map(|(_, count)| *count);
    let all = failures.fold(answers.unwrap_or(0), u64::saturating_add);
    if let Some((&rate_hz, &printed_ns)) = result.rate_hz.value().zip(result.window_ns.value()) {
        let by_rate_ns = all as f64 / rate_hz * 1e9;
        if (by_rate_ns - printed_ns as f64).abs() <= 50_001.0 {
            result.window_ns = Reading::Measured(by_rate_ns.round() as u64);
        }
    }
    // Errors stand behind the status codes: without these they are not known.
    if answers.is_some() {
        result.errors = Reading::Measured(errors);
    }
    result.operations = measured(answers, result.operations);
    result.bytes_in = measured(size, result.bytes_in);
    (Some(result), complaint)
}

/// The table of requests.
pub(crate) const READER: Reader = Reader {
    name: "hey-csv",
    gets_wrong: &[
        "requests that failed, such as those that timed out, are not in the table: its percentiles are of answers alone",
        "times are printed in steps of 0.1 ms",
        "the table does not say which worker sent a request, nor when it should have been sent",
    ],
    detect: |input| input.head().any(|line| line == HEADER),
    read: read_table,
};

fn read_table(input: &Input<'_>, metrics: &mut Metrics) {
    let names: Vec<&str> = HEADER.split(',').take(6).collect();
    let (mut in_table, mut launch, mut any, mut statuses) = (false, 0, false, BTreeMap::<u16, u64>::new());
    let (mut longest, mut steps) = (0.0_f64, 0_u64);
    for (line, number) in input.text.lines().zip(1..) {
        let line = line.trim_end();
        if line == HEADER {
            // Another table is another run.
            launch += u32::from(in_table);
            in_table = true;
            continue;
        }
        let fields: Vec<&str> = line.split(',').take(9).collect();
        if !in_table || !line.starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        let [.., status, offset] = fields[..] else { continue };
        if fields.len() != 8 {
            metrics.skip(number, line, "not as many fields as columns: the line is cut off");
            continue;
        }
        let (Ok(status), Ok(at_s)) = (status.parse::<u16>(), offset.parse::<f64>()) else {
            metrics.skip(number, line, "the status or the offset is no number");
            continue;
        };
        any = true;
        *statuses.entry(status).or_default() += 1;
        for (name, value) in names.iter().zip(&fields) {
            let kind = Kind { benchmark: "", name, unit: "s", better: Some(Better::Lower) };
            let Ok(value) = value.parse::<f64>() else {
                metrics.skip(number, line, &format!("{name} is no number"));
                continue;
            };
            if *name == "response-time" {
                longest = longest.max(value);
                steps += u64::from(value < 0.001);
            }
            metrics.sample(number, kind, Sample { value, launch, at_s: Some(at_s), ..Sample::default() });
        }
    }
    if !any {
        metrics.skip(1, HEADER, "the table has no rows: no request was answered");
    }
    for (status, count) in &statuses {
        metrics.set(&format!("status {status}"), &count.to_string());
    }
    let (all, failed) = statuses.iter().fold((0, 0), |(all, failed), (status, count)| {
        (all + count, failed + if *status >= 400 { *count } else { 0 })
    });
    if failed > 0 {
        let text =
            format!("{failed} of {all} answers have an error status, and their times are among the others");
        metrics.warn(
            "tool-counts-failures",
            &text,
            "make the server answer as it should, or leave these rows out",
        );
    }
    if steps * 2 > all {
        let text = format!("{steps} of {all} response times are below 1 ms and printed in steps of 0.1 ms");
        metrics.warn(
            "tool-rounds-latencies",
            &text,
            "measure times this short with a tool that prints microseconds",
        );
    }
}
