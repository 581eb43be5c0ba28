//! [vegeta](https://github.com/tsenart/vegeta): its reports as text, JSON and histogram.

use super::http_errors::kind_of;
use super::printed::{quantile, runs, whole_ns};
use crate::documents::objects;
use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::json;
use crate::numbers::positive;
use crate::result::measured;
use crate::result::{LatencySummary, Quantiles, ToolOutput, ToolResult, add_errors, short};
use crate::shapes::Shapes;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tare_model::Reading;
use tare_model::trial::ErrorKind;

const NAME: &str = "vegeta";

/// A report.
pub(crate) const FORMAT: Format = Format {
    name: NAME,
    gets_wrong: &[
        "its rate is that of sending, requests that failed included; its throughput (read here) counts successes, over a time that goes \
         on until the last answer",
        "latencies of requests that failed, also of connections that were refused, are in its percentiles",
        "percentiles are estimated (t-digest), from the time at which a request was sent: when it sends late, latencies leave that out",
        "kinds of errors are listed without their counts",
    ],
    detect: |printed| is_text(printed) || is_json(printed) || is_histogram(printed),
    read,
    shapes: SHAPES,
};

const SHAPES: Shapes = Shapes {
    lines: &[
        "Requests [total, rate, throughput] #, #, #",
        "Duration [total, attack, wait] #, #, #",
        "Latencies [min, mean, 50, 90, 95, 99, max] #, #, #, #, #, #, #",
        "Latencies [mean, 50, 95, 99, max] #, #, #, #, #",
        "Bytes In [total, mean] #, #",
        "Status Codes [code:count] #:#..",
        // A row of the histogram.
        "[* * # #% ..",
    ],
    units: &["ns", "us", "µs", "μs", "ms", "s", "m", "h"],
    documents: &[&["\"status_codes\""]],
};

/// Go's runtime: any of its threads sends. It opens connections while it runs, as many as requests wait.
pub(crate) const GENERATOR: Generator = Generator {
    program: NAME,
    senders: Senders::All,
    set_up: SetUp { steady_for: Duration::from_millis(100), at_most: Duration::from_millis(400) },
    rate_options: &["-rate", "--rate"],
    chatter: &[],
    format: Some(&FORMAT),
};

fn is_text(printed: &str) -> bool {
    printed.lines().any(|line| {
        line.starts_with("Requests ") && line.contains("[total")
            || line.starts_with("Latencies ") && line.contains(" [m")
    })
}

fn is_json(printed: &str) -> bool {
    printed.contains("\"bytes_in\":")
        && printed.contains("\"status_codes\":")
        && printed.contains("\"earliest\":")
}

fn is_histogram(printed: &str) -> bool {
    printed.lines().any(|line| {
        line.starts_with("Bucket ") && line.split_whitespace().take(5).eq(["Bucket", "#", "%", "Histogram"])
    })
}

fn read(printed: &str) -> ToolOutput {
    let mut output = ToolOutput::default();
    if is_json(printed) {
        for report in objects(printed, &[&["\"status_codes\""]]) {
            output.results.extend(of_json(&report));
            let first = report["errors"].as_array().and_then(|errors| errors.iter().find_map(Value::as_str));
            output.complaint = output.complaint.or(first.map(short));
        }
        return output;
    }
    for run in runs(printed, |line| line.starts_with("Requests ") || line.starts_with("Bucket ")) {
        let (result, complaint) = one(&run);
        output.results.extend(result);
        output.complaint = output.complaint.or(complaint);
    }
    output
}

/// The names in brackets and the values behind them: `[total, rate]  200, 201.21`.
fn pairs(line: &str) -> Option<Vec<(&str, &str)>> {
    let (_, behind) = line.split_once('[')?;
    let (names, values) = behind.split_once(']')?;
    let values = values.split(',').map(str::trim);
    Some(names.split(',').map(str::trim).zip(values).take(32).collect())
}

fn one(lines: &[&str]) -> (Option<ToolResult>, Option<String>) {
    let mut result = ToolResult::unsaid(NAME);
    let (mut mean_ns, mut quantiles) = (None, Quantiles::default());
    let (mut codes, mut reasons, mut in_errors) = (None, Vec::new(), false);
    let (mut counted, mut in_histogram) = (None, false);
    for line in lines {
        let first = line.split_whitespace().next().unwrap_or_default();
        let pairs = pairs(line).unwrap_or_default();
        let of = |name: &str| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        match first {
            "Requests" => {
                result.rate_hz = measured(of("throughput").and_then(positive), result.rate_hz);
                of("rate").into_iter().for_each(|rate| result.set("rate of sending", rate));
                of("total").into_iter().for_each(|total| result.set("requests sent", total));
            }
            "Duration" => result.window_ns = measured(of("total").and_then(whole_ns), result.window_ns),
            "Latencies" => {
                mean_ns = of("mean").and_then(whole_ns);
                for (name, value) in &pairs {
                    let named = quantile(name).or_else(|| crate::numbers::share(name));
                    if let Some((quantile, ns)) = named.zip(whole_ns(value)) {
                        quantiles.note(quantile, ns);
                    }
                }
            }
            "Bytes" if line.starts_with("Bytes In") => {
                result.bytes_in = measured(of("total").and_then(|total| total.parse().ok()), result.bytes_in);
            }
            "Status" => {
                let listed = line.split_once(']').map_or("", |(_, listed)| listed).split_whitespace();
                let parsed = listed.filter_map(|pair| pair.split_once(':'));
                codes = Some(
                    parsed
                        .filter_map(|(code, count)| Some((code.parse().ok()?, count.parse().ok()?)))
                        .collect(),
                );
            }
            "Error" => in_errors = true,
            "Bucket" => (in_histogram, counted) = (true, Some(0_u64)),
            _ if in_errors && !line.is_empty() => reasons.push(*line),
            _ if in_histogram && line.starts_with('[') => {
                let count = line.split_once(']').and_then(|(_, rest)| rest.split_whitespace().next());
                let count = count.and_then(|count| count.parse().ok()).unwrap_or(0);
                counted = counted.map(|sum| sum.saturating_add(count));
            }
            _ => {}
        }
    }
    let complaint = reasons.first().map(|reason| short(reason));
    if result.rate_hz.value().is_none() && counted.is_none() && codes.is_none() {
        return (None, complaint);
    }
    // A histogram holds requests that failed.
    result.operations = measured(counted, result.operations);
    finish(&mut result, codes, &reasons, mean_ns, quantiles);
    (Some(result), complaint)
}

/// What follows from the status codes; 0 stands for no answer.
fn finish(
    result: &mut ToolResult,
    codes: Option<Vec<(u32, u64)>>,
    reasons: &[&str],
    mean_ns: Option<u64>,
    quantiles: Quantiles,
) {
    let mean_ns = measured(mean_ns, Reading::missing("vegeta has not printed a mean latency"));
    let latency = LatencySummary::of(mean_ns, quantiles);
    result.latency = measured(latency, Reading::missing("vegeta has not printed latencies"));
    let Some(codes) = codes else { return };
    let sum = |of: fn(u32) -> bool| {
        codes.iter().filter(|(code, _)| of(*code)).map(|(_, count)| *count).fold(0, u64::saturating_add)
    };
    let (answers, lost) = (sum(|code| code > 0), sum(|code| code == 0));
    result.operations = Reading::Measured(answers);
    let mut errors = BTreeMap::new();
    add_errors(&mut errors, ErrorKind::Status, sum(|code| code >= 400));
    // Reasons have no counts: they tell the kind where all are of one. A status is written as `404 Not Found`.
    let is_status =
        |reason: &str| reason.split_once(' ').is_some_and(|(code, _)| code.parse::<u32>().is_ok());
    let mut kinds = reasons.iter().filter(|reason| !is_status(reason)).map(|reason| kind_of(reason));
    let kind = kinds.next().filter(|first| kinds.all(|kind| kind == *first)).unwrap_or(ErrorKind::Io);
    add_errors(&mut errors, kind, lost);
    result.errors = Reading::Measured(errors);
    if answers == 0 {
        result.latency = Reading::missing("no request was answered");
    }
}

fn of_json(report: &Value) -> Option<ToolResult> {
    let codes = report["status_codes"].as_object()?;
    let codes =
        codes.iter().filter_map(|(code, count)| Some((code.parse().ok()?, count.as_u64()?))).collect();
    let mut result = ToolResult::unsaid(NAME);
    let (attack, wait) = (report["duration"].as_u64(), report["wait"].as_u64());
    let window_ns = attack.zip(wait).map(|(attack, wait)| attack.saturating_add(wait));
    result.window_ns = measured(window_ns, result.window_ns);
    result.rate_hz = measured(json::number(&report["throughput"]), result.rate_hz);
    result.bytes_in = measured(report["bytes_in"]["total"].as_u64(), result.bytes_in);
    for (name, key) in [("rate of sending", "rate"), ("requests sent", "requests")] {
        result.set(name, &json::text(&report[key]));
    }
    let mut quantiles = Quantiles::default();
    for (name, value) in report["latencies"].as_object().into_iter().flatten() {
        if let Some((quantile, ns)) = quantile(name).zip(value.as_u64()) {
            quantiles.note(quantile, ns);
        }
    }
    let mean_ns = json::number(&report["latencies"]["mean"]).and_then(crate::numbers::whole);
    let reasons: Vec<&str> =
        report["errors"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    finish(&mut result, Some(codes), &reasons, mean_ns, quantiles);
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_json_of_one_attack_say_the_same() {
        let of = |text| read(text).results.remove(0);
        let text = of(include_str!("../../tests/fixtures/vegeta/mixed.txt"));
        let json = of(include_str!("../../tests/fixtures/vegeta/json_mixed.json"));
        assert_eq!((text.operations.value(), json.operations.value()), (Some(&38), Some(&38)));
        assert_eq!(text.errors, json.errors);
        assert_eq!(text.errors.value().unwrap()[&ErrorKind::Status], 20);
    }

    #[test]
    fn older_versions_print_fewer_percentiles() {
        let text = "Requests      [total, rate]             1200, 120.00\n\
            Duration      [total, attack, wait]     10.094965987s, 9.949883921s, 145.082066ms\n\
            Latencies     [mean, 50, 95, 99, max]   113.172398ms, 108.272568ms, 140.18235ms, 247.771566ms, 264.815246ms\n\
            Status Codes  [code:count]              200:1200\n";
        let result = read(text).results.remove(0);
        let latency = result.latency.value().unwrap();
        assert_eq!(latency.quantiles_ns[0], (0.5, 108_272_568));
        assert_eq!((latency.quantiles_ns.len(), result.rate_hz.value()), (4, None));
        assert_eq!(result.window_ns.value(), Some(&10_094_965_987));
    }
}
