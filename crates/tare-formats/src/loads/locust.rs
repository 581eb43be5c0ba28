//! [Locust](https://locust.io): the tables that it prints at the end.

use super::printed::of_each;
use crate::format::Format;
use crate::generator::{Generator, Senders, SetUp};
use crate::numbers::{ms_in_ns, positive, share};
use crate::result::measured;
use crate::result::{LatencySummary, Quantiles, ToolOutput, ToolResult, add_errors, short};
use crate::shapes::Shapes;
use std::collections::BTreeMap;
use std::time::Duration;
use tare_model::Reading;
use tare_model::trial::ErrorKind;

const NAME: &str = "locust";

/// The tables. The last of each kind is of the whole test.
pub(crate) const FORMAT: Format = Format {
    name: NAME,
    gets_wrong: &[
        "one Python process sends some hundred to a few thousand requests per second: it is often busy before the server is",
        "response times are rounded to two digits, and at least to milliseconds",
        "its requests and rate count those that failed, with all their response times",
        "a user that waits for an answer sends nothing meanwhile: percentiles leave out how long requests should have been sent before",
    ],
    detect: |printed| printed.lines().any(is_head),
    read,
    shapes: SHAPES,
};

const SHAPES: Shapes = Shapes {
    lines: &[
        "Aggregated # #(#%) | # # # * | # ..",
        // Percentiles.
        "Aggregated #..",
        "None Aggregated #..",
    ],
    units: &[],
    documents: &[],
};

/// One thread of Python with its own scheduler; with --processes there are more of them. Users are started one after another.
pub(crate) const GENERATOR: Generator = Generator {
    program: NAME,
    senders: Senders::All,
    set_up: SetUp { steady_for: Duration::from_millis(200), at_most: Duration::from_secs(1) },
    rate_options: &[],
    // Its result is on standard error, between lines of its log.
    chatter: &[
        "[",
        "Type ",
        "--------",
        "GET ",
        "POST ",
        "Aggregated",
        "Response time percentiles",
        "Error report",
        "# occ",
    ],
    format: Some(&FORMAT),
};

fn is_head(line: &str) -> bool {
    // Version 1 has a blank in front, and its first table no types.
    let line = line.trim_start();
    (line.starts_with("Type ") || line.starts_with("Name "))
        && line.contains(" # reqs")
        && (line.contains("# fails ") && line.contains('|') || line.contains(" 50% "))
}

fn read(printed: &str) -> ToolOutput {
    of_each(printed, |line| line.contains(": Starting Locust ").then_some(0), |lines| read_one(lines))
}

fn read_one(lines: &mut dyn Iterator<Item = &str>) -> ToolOutput {
    let mut whole = None;
    let (mut quantiles, mut percents) = (Quantiles::default(), Vec::new());
    let (mut in_errors, mut complaint) = (false, None);
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().take(40).collect();
        match words.as_slice() {
            ["Type", "Name", names @ .., "#", "reqs"] if is_head(line) => {
                percents = names.iter().map(|name| share(name.trim_end_matches('%'))).collect();
            }
            // The first column is empty, for there is no method.
            ["Aggregated", count, failed, "|", mean, min, max, _, "|", rate, ..] => {
                let failed = failed.split_once('(').map_or(*failed, |(count, _)| count);
                // Percentiles stand behind: the greatest of them is rounded as the others are.
                for (quantile, ms) in [(0.0, min), (1.0, max)] {
                    // 0 ms is anything below one.
                    ms_in_ns(ms).filter(|ns| *ns > 0).into_iter().for_each(|ns| quantiles.note(quantile, ns));
                }
                whole = Some([*count, failed, *mean, *rate]);
            }
            ["Aggregated", values @ .., _] | ["None", "Aggregated", values @ .., _]
                if !percents.is_empty() =>
            {
                for (percent, ms) in percents.iter().zip(values) {
                    if let Some((quantile, ns)) = percent.zip(ms_in_ns(ms)).filter(|(_, ns)| *ns > 0) {
                        quantiles.note(quantile, ns);
                    }
                }
            }
            ["Error", "report"] => in_errors = true,
            [count, what @ ..] if in_errors && count.parse::<u64>().is_ok() => {
                complaint.get_or_insert_with(|| short(&what.join(" ")));
            }
            _ => {}
        }
    }
    let result = whole.and_then(|whole| of(whole, quantiles));
    ToolOutput { results: result.into_iter().collect(), complaint }
}

fn of(whole: [&str; 4], quantiles: Quantiles) -> Option<ToolResult> {
    let [count, failed, mean, rate] = whole;
    let mut result = ToolResult::unsaid(NAME);
    let count: u64 = count.parse().ok()?;
    result.operations = Reading::Measured(count);
    result.rate_hz = measured(positive(rate), result.rate_hz);
    let mut errors = BTreeMap::new();
    // A status or a connection: the table does not say which.
    add_errors(&mut errors, ErrorKind::Unexpected, failed.parse().unwrap_or(0));
    result.errors = Reading::Measured(errors);
    let mean_ns = measured(ms_in_ns(mean), Reading::missing("Locust has not printed a mean response time"));
    result.latency = match count {
        0 => Reading::missing("no request was answered"),
        _ => measured(LatencySummary::of(mean_ns, quantiles), result.latency),
    };
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_table_is_of_the_whole_test() {
        let [result] = &read(include_str!("../../tests/fixtures/locust/headless.txt")).results[..] else {
            panic!()
        };
        assert_eq!((result.operations.value(), result.rate_hz.value()), (Some(&227), Some(&69.54)));
        let latency = result.latency.value().unwrap();
        assert!(latency.quantiles_ns.contains(&(0.999, 69_000_000)), "{latency:?}");
        assert_eq!(result.errors.value(), Some(&BTreeMap::from([(ErrorKind::Unexpected, 50)])));
    }

    #[test]
    fn runs_behind_each_other_are_results_of_their_own() {
        let one = include_str!("../../tests/fixtures/locust/headless.txt");
        let alone = read(one).results;
        assert_eq!(read(&format!("{one}{one}")).results, [alone.clone(), alone].concat());
    }
}
