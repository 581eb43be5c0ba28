//! What a reader must know before quoting a figure of a sweep.

use super::level::Launches;
use super::pace::BLOCKS_MIN;
use tare_model::scaling::ScaleLevel;
use tare_model::warning::Warning;
use tare_stats::{mean, stdev};

/// Launches of a level that differ by this (standard deviation over mean) are not steady.
const SPREAD_MAX: f64 = 0.1;

/// The warnings of levels and their launches, which are in the same order.
pub(super) fn warnings(all: &[Launches], levels: &[ScaleLevel], blocks: u32) -> Vec<Warning> {
    [few_blocks(blocks), not_valid(all), generator(all), unsteady(levels), chosen(all)]
        .into_iter()
        .flatten()
        .collect()
}

fn few_blocks(blocks: u32) -> Option<Warning> {
    let text =
        format!("{blocks} blocks were measured, fewer than {BLOCKS_MIN}: the intervals are wide or missing");
    (blocks < BLOCKS_MIN).then(|| warning("few-blocks", text, "let it run to its end, or give more --blocks"))
}

fn not_valid(all: &[Launches]) -> Option<Warning> {
    let bad: Vec<(f64, usize, String)> = all
        .iter()
        .filter_map(|launches| {
            let (count, why) = launches.not_valid();
            Some((launches.n, count, why?))
        })
        .collect();
    let (_, _, why) = bad.first()?;
    let count: usize = bad.iter().map(|(_, count, _)| count).sum();
    let text = format!(
        "{count} launches are not valid and left out (at {}): {why}",
        list(bad.iter().map(|bad| bad.0))
    );
    Some(warning("launches-not-valid", text, "'tare run' at one of these levels says more"))
}

fn generator(all: &[Launches]) -> Option<Warning> {
    let limited = all.iter().filter(|launches| launches.seen().is_some_and(|seen| seen.generator_limits));
    let limited: Vec<f64> = limited.map(|launches| launches.n).collect();
    let text = format!(
        "the load generator was the bottleneck at {}: the figure there is a lower bound, and the curve is flat too early",
        list(limited.iter().copied())
    );
    let hint = "give the generator more CPUs (--load-cpus, --load-threads), or let it run on another host";
    (!limited.is_empty()).then(|| warning("generator-limits", text, hint))
}

fn unsteady(levels: &[ScaleLevel]) -> Option<Warning> {
    let spread = |level: &&ScaleLevel| {
        let spread = stdev(&level.samples).zip(mean(&level.samples)).map(|(spread, mean)| spread / mean);
        spread.is_some_and(|spread| spread > SPREAD_MAX)
    };
    let wide: Vec<f64> = levels.iter().filter(spread).map(|level| level.n).collect();
    let text = format!(
        "launches differ by more than {:.0} % (standard deviation) at {}",
        100.0 * SPREAD_MAX,
        list(wide.iter().copied())
    );
    let hint = "'tare doctor' says what disturbs this machine; more --budget makes the intervals narrower";
    (!wide.is_empty()).then(|| warning("unsteady-launches", text, hint))
}

/// Which of several printed results it is.
fn chosen(all: &[Launches]) -> Option<Warning> {
    let name = all.iter().find_map(|launches| launches.figure()?.of_result.clone())?;
    let text = format!("the program prints several results; the figure is '{name}'");
    Some(warning("figure-chosen", text, "choose another with --benchmark or --metric"))
}

fn list(values: impl Iterator<Item = f64>) -> String {
    values.map(|value| value.to_string()).collect::<Vec<String>>().join(", ")
}

fn warning(id: &str, text: String, hint: &str) -> Warning {
    Warning { id: id.to_owned(), text, hint: hint.to_owned() }
}
