//! A generator's result as the sample of a trial.

use crate::generator::Generator;
use crate::registry::{FORMATS, OTHER};
use crate::result::{ToolOutput, ToolResult};
use std::collections::BTreeMap;
use tare_model::trial::{GeneratorReport, HttpSample};
use tare_model::{Missing, Reading};

/// What a generator says it counted, from all that it printed.
///
/// `rate_hz` is the rate that it was asked for, if any: what was scheduled is counted as low as a random schedule (Poisson) has it
/// in 39 of 40 runs, for pgbench and sysbench send so. `wall_ns` is how long it ran as seen from outside: the window's length where it printed none. What it did
/// not print is missing; nothing is guessed.
pub fn http_sample(printed: &str, wall_ns: u64, rate_hz: Option<f64>) -> HttpSample {
    let output = OTHER.read(printed).unwrap_or_default();
    let results = output.results.as_slice();
    let windows = sum(results, |result| &result.window_ns, "how long it measured");
    let latency = match results {
        [one] => one.latency.value(),
        // Quantiles of several cannot be put together.
        _ => None,
    };
    let quantiles = latency.map_or(&[][..], |latency| &latency.quantiles_ns);
    let elapsed_ns = windows.value().copied().unwrap_or(wall_ns);
    HttpSample {
        elapsed_ns,
        requests: requests(&output),
        errors: results.iter().filter_map(|result| result.errors.value()).flatten().fold(
            BTreeMap::new(),
            |mut errors, (kind, count)| {
                let sum: &mut u64 = errors.entry(*kind).or_insert(0);
                *sum = sum.saturating_add(*count);
                errors
            },
        ),
        latency: Reading::Missing(Missing::with_remedy(
            "another generator's summary has a few quantiles at most, no histogram",
            "use tare's own generator",
        )),
        printed_quantiles_ns: quantiles.iter().copied().filter(|(quantile, _)| *quantile > 0.0).collect(),
        bytes_in: sum(results, |result| &result.bytes_in, "how many bytes were read"),
        in_flight: Reading::missing(unsaid("how many requests were unanswered at the end")),
        connections: match results {
            // Tests follow each other, with as many connections each.
            [first, ..] => first.connections.clone(),
            [] => Reading::missing(unsaid("how many connections there were")),
        },
        scheduled: rate_hz.map(|rate_hz| scheduled_min(rate_hz * elapsed_ns as f64 / 1e9)),
        lateness: None,
        slices: Vec::new(),
        detail: None,
    }
}

/// What a generator says beside its counts, from all that it printed and from its standard error alone.
pub fn report(generator: &Generator, printed: &str, stderr: &str) -> GeneratorReport {
    let output = OTHER.read(printed).unwrap_or_default();
    let windows = sum(&output.results, |result| &result.window_ns, "how long it measured");
    GeneratorReport { window_ns: windows.value().copied(), stderr: generator.complaints(stderr) }
}

/// The 2.5 % quantile of a Poisson count with this mean (its normal approximation).
fn scheduled_min(mean: f64) -> u64 {
    (mean - 1.96 * mean.sqrt()).max(0.0) as u64
}

fn requests(output: &ToolOutput) -> Reading<u64> {
    match (output.results.as_slice(), &output.complaint) {
        ([], Some(complaint)) => Reading::missing(format!("the generator says: {complaint}")),
        ([], None) => {
            let known: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
            Reading::Missing(Missing::with_remedy(
                "the generator's output has no summary that tare can read",
                format!("use {}, or tare's own generator", known.join(", ")),
            ))
        }
        (results, _) => sum(results, |result| &result.operations, "how many requests were answered"),
    }
}

/// Over all results; missing where one of them is.
fn sum(results: &[ToolResult], of: impl Fn(&ToolResult) -> &Reading<u64>, what: &str) -> Reading<u64> {
    let mut all = Reading::missing(unsaid(what));
    for (at, result) in results.iter().enumerate() {
        all = match (all, of(result)) {
            (_, value) if at == 0 => value.clone(),
            (Reading::Measured(sum), Reading::Measured(value)) => {
                Reading::Measured(sum.saturating_add(*value))
            }
            (Reading::Measured(_), absent) => absent.clone(),
            (absent, _) => absent,
        };
    }
    all
}

fn unsaid(what: &str) -> String {
    format!("the generator's summary does not say {what}")
}
