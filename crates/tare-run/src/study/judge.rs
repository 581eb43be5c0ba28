//! Whether what was expected came out.

use super::expect::{Claim, Comparison, Direction, Expectation};
use super::figures::{Figure, find};
use super::interim::Intervals;
use std::collections::BTreeMap;
use tare_model::outcome::{Cause, Outcome};
use tare_model::study::{Judgement, Seen, Verdict};
use tare_stats::Interval;

/// `=` is within this share of the value.
const ABOUT: f64 = 0.1;

/// Holds an expectation to the results of a cell and of its baseline, block by block, in the same order.
///
/// A result that is not valid counts for nothing, and with it its partner. Each verdict is by a 95 % interval of its own (Student's t over the
/// blocks, which are launches of their own, or over squares of them; `intervals` says when they are analysed): of twenty expectations that are right one is expected to fall out
/// of its interval.
pub fn judge(
    expectation: &Expectation,
    baseline: &[Outcome],
    results: &[Outcome],
    intervals: &Intervals,
) -> Judgement {
    let judged = judged(expectation, baseline, results, intervals);
    let (verdict, seen) = judged.unwrap_or_else(|why| (Verdict::CouldNotTell, Seen::Nothing(why)));
    Judgement { expected: expectation.text.clone(), verdict, seen }
}

/// `Err` says why nothing can be said.
type Judged = Result<(Verdict, Seen), String>;

fn judged(
    expectation: &Expectation,
    baseline: &[Outcome],
    results: &[Outcome],
    intervals: &Intervals,
) -> Judged {
    let valid: Vec<&Outcome> = results.iter().filter(|result| result.verdict.valid).collect();
    match &expectation.claim {
        Claim::Bottleneck(cause) => bottleneck(*cause, &valid),
        Claim::Value { figure, comparison, value } => values(figure, &valid)
            .and_then(|values| by_itself(figure, *comparison, *value, &values, intervals)),
        Claim::Change { figure, direction, by } => {
            changed(figure, (*direction, *by), [baseline, results], intervals)
        }
    }
}

/// What the figures that every comparison is about differ by from the baseline's.
pub fn changes(baseline: &[Outcome], results: &[Outcome], intervals: &Intervals) -> BTreeMap<String, Seen> {
    let of = |figure: &Figure| match changed(figure, (Direction::Same, 0.0), [baseline, results], intervals) {
        Ok((_, seen)) => seen,
        Err(why) => Seen::Nothing(why),
    };
    let compared = tare_model::figure::Figure::of_servers();
    compared.filter_map(|figure| Some((figure.name().to_owned(), of(find(figure.name())?)))).collect()
}

fn changed(
    figure: &Figure,
    (direction, by): (Direction, f64),
    [baseline, results]: [&[Outcome]; 2],
    intervals: &Intervals,
) -> Judged {
    let pairs = (0..).zip(baseline.iter().zip(results));
    let valid: Vec<_> = pairs.filter(|(_, (one, other))| one.verdict.valid && other.verdict.valid).collect();
    let of = |outcomes: Vec<&Outcome>| values(figure, &outcomes);
    let before = of(valid.iter().map(|(_, (one, _))| *one).collect())?;
    let after = of(valid.iter().map(|(_, (_, other))| *other).collect())?;
    let blocks: Vec<usize> = valid.iter().map(|(block, _)| *block).collect();
    against(figure, direction, by, (&blocks, [&before, &after]), intervals)
}

/// The figure of each result; `Err` where one has none, or they are too few.
fn values(figure: &Figure, outcomes: &[&Outcome]) -> Result<Vec<f64>, String> {
    if outcomes.len() < 2 {
        return Err(format!("{} valid blocks, two are needed", outcomes.len()));
    }
    let values: Option<Vec<f64>> = outcomes.iter().map(|outcome| figure.value(outcome)).collect();
    values.ok_or_else(|| format!("no {} in a result", figure.name))
}

fn by_itself(
    figure: &Figure,
    comparison: Comparison,
    wanted: f64,
    values: &[f64],
    intervals: &Intervals,
) -> Judged {
    let (value, seen) = intervals.interval(values)?;
    let near = (ABOUT * wanted).max(figure.negligible);
    let (lo, hi) = match comparison {
        Comparison::Below => (f64::NEG_INFINITY, wanted),
        Comparison::Above => (wanted, f64::INFINITY),
        Comparison::About => (wanted - near, wanted + near),
    };
    Ok((within(seen, lo, hi), Seen::Value { value, ci95: ends(seen), unit: figure.unit }))
}

fn against(
    figure: &Figure,
    direction: Direction,
    by: f64,
    (blocks, [before, after]): (&[usize], [&[f64]; 2]),
    intervals: &Intervals,
) -> Judged {
    // What disturbs both members of a pair alike falls out.
    let changes = |of: fn(f64, f64) -> f64| {
        let pairs = before.iter().zip(after).map(|(one, other)| of(*one, *other));
        intervals.of_differences(&blocks.iter().copied().zip(pairs).collect::<Vec<_>>())
    };
    let negligible = |values: &[f64]| values.iter().all(|value| *value <= figure.negligible);
    let zero = before.iter().chain(after).any(|value| *value <= 0.0);
    if zero || negligible(before) && negligible(after) {
        let (value, seen) = changes(|one, other| other - one)?;
        // A share of nothing is nothing: what counts is beyond what is negligible.
        let (lo, hi) = room(direction, figure.negligible, -figure.negligible, figure.negligible);
        return Ok((within(seen, lo, hi), Seen::Difference { value, ci95: ends(seen), unit: figure.unit }));
    }
    let (value, seen) = changes(|one, other| (other / one).ln())?;
    let (lo, hi) = room(direction, by.ln_1p(), (-by.min(1.0)).ln_1p(), by.ln_1p());
    let ratio = seen.map(f64::exp).ok_or("the ratio is too large for a number")?;
    Ok((within(seen, lo, hi), Seen::Ratio { value: value.exp(), ci95: ends(ratio) }))
}

/// Where a change must be for the expectation to hold.
fn room(direction: Direction, up: f64, down: f64, same: f64) -> (f64, f64) {
    match direction {
        Direction::Up => (up, f64::INFINITY),
        Direction::Down => (f64::NEG_INFINITY, down),
        Direction::Same => (down, same),
    }
}

fn ends(interval: Interval) -> [f64; 2] {
    [interval.lo, interval.hi]
}

fn within(seen: Interval, lo: f64, hi: f64) -> Verdict {
    if lo <= seen.lo && seen.hi <= hi {
        Verdict::Held
    } else if seen.hi < lo || hi < seen.lo {
        Verdict::DidNotHold
    } else {
        Verdict::CouldNotTell
    }
}

fn bottleneck(cause: Cause, valid: &[&Outcome]) -> Judged {
    let seen: Vec<Cause> = valid.iter().map(|outcome| outcome.verdict.bottleneck).collect();
    let held = seen.iter().filter(|bottleneck| **bottleneck == cause).count();
    let verdict = match seen.len() {
        0 => return Err("no valid block".to_owned()),
        all if held == all => Verdict::Held,
        _ if held == 0 && !seen.contains(&Cause::Unknown) => Verdict::DidNotHold,
        _ => Verdict::CouldNotTell,
    };
    Ok((verdict, Seen::Bottlenecks(seen)))
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
