//! Two files of results of another tool.
//!
//! They were not measured interleaved: what the machine did between them is in the difference, and no statistics can take it out.

use crate::outcome::tool::{has_launches, medians};
use std::collections::{BTreeMap, BTreeSet};
use tare_model::comparison::{Change, Verdict};
use tare_model::format::SCHEMA;
use tare_model::tool::{ToolMetric, ToolMetrics};
use tare_model::tool_comparison::{ToolComparison, ToolEffect, Unpaired};
use tare_model::warning::Warning;
use tare_model::{Missing, Reading};
use tare_stats::{Interval, Jackknife, mean, median, simultaneous_intervals, stdev};

/// Fewer values without any spread are no proof: tools round what they print.
const CONSTANT_MIN: usize = 3;

/// Results, and the file that they are from.
pub type Named<'a> = (&'a str, &'a ToolMetrics);

/// Holds results against others of the same tool; `margin`: differences up to this share do not matter.
pub fn compared(before: Named<'_>, after: Named<'_>, margin: f64) -> ToolComparison {
    let pairs = pairs(before.1, after.1);
    let spreads: Vec<Result<Spread, Missing>> = pairs.iter().map(|(one, other)| spread(one, other)).collect();
    let mut intervals = together(&spreads).into_iter();
    let effects = pairs
        .iter()
        .zip(&spreads)
        .map(|((one, other), spread)| {
            let interval = match spread {
                Ok(Spread::Measured(..)) => intervals.next().flatten().ok_or_else(too_few),
                Ok(Spread::Same) => Interval::new(0.0, 0.0).ok_or_else(too_few),
                Ok(Spread::FromZero) => Err(Missing::new("it was 0 and is more, so there is no ratio")),
                Err(missing) => Err(missing.clone()),
            };
            let found = effect(one, other, interval, margin);
            match spread {
                Ok(Spread::FromZero) => ToolEffect { verdict: Verdict::from_zero(found.better), ..found },
                _ => found,
            }
        })
        .collect();
    ToolComparison {
        schema: SCHEMA,
        format: after.1.format.clone(),
        before: before.0.to_owned(),
        after: after.0.to_owned(),
        margin,
        effects,
        unpaired: unpaired(before.1, after.1),
        method: "95 % intervals of the ratio of geometric means that hold together for all metrics (Šidák), from the medians of launches, or \
                 from samples where all of both files are of one launch (Welch)"
            .into(),
        warnings: warnings(&pairs, before, after),
    }
}

/// The metrics that both have, in the order of the later file.
fn pairs<'a>(before: &'a ToolMetrics, after: &'a ToolMetrics) -> Vec<(&'a ToolMetric, &'a ToolMetric)> {
    let known: BTreeMap<_, _> = before.metrics.iter().map(|metric| (key(metric), metric)).collect();
    after.metrics.iter().filter_map(|metric| Some((*known.get(&key(metric))?, metric))).collect()
}

/// Values of another unit are of another metric.
fn key(metric: &ToolMetric) -> (&str, &str, &str) {
    (&metric.benchmark, &metric.name, &metric.unit)
}

fn unpaired(before: &ToolMetrics, after: &ToolMetrics) -> Vec<Unpaired> {
    let keys = |of: &ToolMetrics| -> BTreeSet<(String, String, String)> {
        let owned =
            |(benchmark, name, unit): (&str, &str, &str)| (benchmark.into(), name.into(), unit.into());
        of.metrics.iter().map(|metric| owned(key(metric))).collect()
    };
    let (old, new) = (keys(before), keys(after));
    let of = |(benchmark, name, _): &(String, String, String), is_new| Unpaired {
        benchmark: benchmark.clone(),
        name: name.clone(),
        is_new,
    };
    let gone = old.difference(&new).map(|key| of(key, false));
    gone.chain(new.difference(&old).map(|key| of(key, true))).collect()
}

/// What both sides add to the error of a change.
enum Spread {
    Measured(Jackknife, Jackknife),
    /// All values of both are one and the same, 0 too.
    Same,
    /// From 0 to more: no ratio, and no chance.
    FromZero,
}

/// The values of both that count as one each: medians of launches where one of them has several, else samples.
fn sides(before: &ToolMetric, after: &ToolMetric) -> [Vec<f64>; 2] {
    let of_launches = has_launches(before) || has_launches(after);
    [before, after].map(|metric| if of_launches { medians(metric) } else { metric.samples.clone() })
}

fn spread(before: &ToolMetric, after: &ToolMetric) -> Result<Spread, Missing> {
    let sides = sides(before, after);
    if sides.iter().any(Vec::is_empty) {
        return Err(Missing::new("one file has no samples of it, only what the tool makes of them"));
    }
    if sides.iter().any(|values| values.len() < 2) {
        return Err(too_few());
    }
    let first = sides[0].first().copied();
    if sides.iter().flatten().all(|value| Some(*value) == first) {
        return Ok(Spread::Same);
    }
    let [old, new] = &sides;
    let enough = old.len().min(new.len()) >= CONSTANT_MIN;
    if enough && old.iter().all(|value| *value == 0.0) && new.iter().all(|value| *value > 0.0) {
        return Ok(Spread::FromZero);
    }
    if sides.iter().flatten().any(|value| *value <= 0.0) {
        return Err(Missing::new("a value is not above 0, so there is no ratio"));
    }
    let [old, new] = sides.map(|values| values.into_iter().map(f64::ln).collect::<Vec<f64>>());
    let value = mean(&new).zip(mean(&old)).map(|(new, old)| new - old).ok_or_else(too_few)?;
    // Of a mean the jackknife is this.
    let side = |logarithms: &[f64]| {
        let count = logarithms.len() as f64;
        let se = stdev(logarithms)? / count.sqrt();
        Some(Jackknife { value, se, df: count - 1.0 })
    };
    let [Some(one), Some(other)] = [side(&old), side(&new)] else { return Err(too_few()) };
    if one.se + other.se == 0.0 && old.len().min(new.len()) < CONSTANT_MIN {
        return Err(too_few());
    }
    Ok(Spread::Measured(one, other))
}

fn too_few() -> Missing {
    Missing::with_remedy(
        "so few values do not say how far values lie apart",
        "measure each five times or more (-count=10, --runs 10), and start it several times where the other file was",
    )
}

/// The intervals of all measured ones, which hold together.
fn together(spreads: &[Result<Spread, Missing>]) -> Vec<Option<Interval>> {
    let (first, second): (Vec<Jackknife>, Vec<Jackknife>) = spreads
        .iter()
        .filter_map(|spread| match spread {
            Ok(Spread::Measured(one, other)) => Some((*one, *other)),
            _ => None,
        })
        .unzip();
    let count = first.len();
    simultaneous_intervals(&first, &second)
        .map_or(vec![None; count], |found| found.into_iter().map(Some).collect())
}

fn effect(
    before: &ToolMetric,
    after: &ToolMetric,
    interval: Result<Interval, Missing>,
    margin: f64,
) -> ToolEffect {
    let [old, new] = sides(before, after);
    let geometric = |values: &[f64]| {
        let logarithms: Vec<f64> =
            values.iter().filter(|value| **value > 0.0).map(|value| value.ln()).collect();
        mean(&logarithms).filter(|_| logarithms.len() == values.len())
    };
    let centre = geometric(&new).zip(geometric(&old)).map_or(0.0, |(new, old)| new - old);
    let typical = |values: &[f64]| geometric(values).map(f64::exp).or_else(|| median(values));
    let better = after.better.or(before.better);
    let said = interval
        .as_ref()
        .map_or(Verdict::CannotTell, |interval| Verdict::of_metric(better, *interval, margin));
    let change = interval.map(|interval| Change {
        value: centre.exp_m1(),
        interval: [interval.lo.exp_m1(), interval.hi.exp_m1()],
    });
    ToolEffect {
        benchmark: after.benchmark.clone(),
        name: after.name.clone(),
        unit: after.unit.clone(),
        better,
        before: typical(&old),
        after: typical(&new),
        values: [old.len() as u32, new.len() as u32],
        change: change.map_or_else(Reading::Missing, Reading::Measured),
        verdict: said,
    }
}

fn warnings(pairs: &[(&ToolMetric, &ToolMetric)], before: Named<'_>, after: Named<'_>) -> Vec<Warning> {
    let mut warnings = vec![Warning {
        id: "not-interleaved".into(),
        text: "the two were not measured interleaved: what the machine did between them is in every difference, and in no interval".into(),
        hint: "measure both with 'tare compare --command OLD --command NEW'".into(),
    }];
    let mut add = |id: &str, text: String, hint: &str| {
        warnings.push(Warning { id: id.into(), text, hint: hint.into() });
    };
    let of_one = |metric: &ToolMetric| {
        metric.samples.len() > 1 && metric.launches.iter().all(|launch| *launch == metric.launches[0])
    };
    let alone = pairs.iter().filter(|(one, other)| of_one(one) || of_one(other)).count();
    if alone > 0 {
        let text = format!(
            "{alone} of {} metrics have all samples of a file from one process: their intervals do not hold what differs from one start to \
             the next",
            pairs.len()
        );
        add("one-launch", text, "start each benchmark several times (tare run --trials 5 -- BENCHMARK)");
    }
    if before.1.format != after.1.format {
        let text = format!("the files are of different tools: {} and {}", before.1.format, after.1.format);
        add("other-format", text, "metrics of the same name may not be the same");
    }
    let differing: Vec<String> = before
        .1
        .configuration
        .iter()
        .filter_map(|(key, old)| {
            let new = after.1.configuration.get(key).filter(|new| *new != old)?;
            Some(format!("{key}: {old} and {new}"))
        })
        .collect();
    if !differing.is_empty() {
        let text = format!("the files are of different set-ups: {}", differing.join("; "));
        add("other-configuration", text, "what differs may be the set-up");
    }
    for (file, read) in [before, after] {
        if read.skipped_count > 0 {
            let text = format!("{} places of {file} were not understood", read.skipped_count);
            add("skipped", text, "'tare show FILE' says which, and why");
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::outcome::Better;

    fn metric(name: &str, better: Option<Better>, samples: &[f64]) -> ToolMetric {
        ToolMetric {
            benchmark: "b".into(),
            name: name.into(),
            unit: "s".into(),
            better,
            samples: samples.to_vec(),
            launches: (0..samples.len() as u32).collect(),
            workers: Vec::new(),
            at_s: Vec::new(),
            lines: Vec::new(),
            is_target: false,
            windows: Vec::new(),
            configuration: BTreeMap::new(),
            summary: BTreeMap::new(),
            estimate: None,
        }
    }

    fn file(metrics: Vec<ToolMetric>) -> ToolMetrics {
        ToolMetrics {
            schema: SCHEMA,
            format: "f".into(),
            metrics,
            configuration: BTreeMap::from([("goos".to_owned(), "linux".to_owned())]),
            skipped: Vec::new(),
            skipped_count: 0,
            warnings: Vec::new(),
            gets_wrong: Vec::new(),
        }
    }

    const OLD: [f64; 6] = [1.00, 1.01, 0.99, 1.02, 0.98, 1.00];

    fn verdict_of(better: Option<Better>, new: &[f64]) -> (Verdict, Reading<Change>) {
        let (old, new) = (file(vec![metric("m", better, &OLD)]), file(vec![metric("m", better, new)]));
        let found = compared(("old", &old), ("new", &new), 0.02);
        (found.effects[0].verdict, found.effects[0].change.clone())
    }

    #[test]
    fn a_change_is_reported_on_its_better_side() {
        let slower: Vec<f64> = OLD.iter().map(|value| value * 1.10).collect();
        let (verdict, change) = verdict_of(Some(Better::Lower), &slower);
        let change = *change.value().unwrap();
        assert_eq!(verdict, Verdict::Slower);
        assert!(
            (change.value - 0.10).abs() < 1e-9 && change.interval[0] > 0.07 && change.interval[1] < 0.13,
            "{change:?}"
        );
        assert_eq!(verdict_of(Some(Better::Higher), &slower).0, Verdict::Faster);
        assert_eq!(verdict_of(None, &slower).0, Verdict::CannotTell);
        assert_eq!(verdict_of(Some(Better::Lower), &OLD).0, Verdict::NoDifference);
    }

    #[test]
    fn what_never_varies_and_is_the_same_does_not_differ() {
        let zeros = file(vec![metric("allocs", Some(Better::Lower), &[0.0, 0.0])]);
        let found = compared(("a", &zeros), ("b", &zeros), 0.02);
        assert_eq!(found.effects[0].verdict, Verdict::NoDifference);
        let some = file(vec![metric("allocs", Some(Better::Lower), &[1.0, 1.0, 1.0])]);
        let found = compared(("a", &zeros), ("b", &some), 0.02);
        assert!(found.effects[0].change.value().is_none() && found.effects[0].verdict == Verdict::CannotTell);
        let none = file(vec![metric("allocs", Some(Better::Lower), &[0.0, 0.0, 0.0])]);
        assert_eq!(compared(("a", &none), ("b", &some), 0.02).effects[0].verdict, Verdict::Slower);
        let more = file(vec![metric("allocs", Some(Better::Lower), &[2.0, 2.0, 2.0])]);
        assert_eq!(compared(("a", &some), ("b", &more), 0.02).effects[0].verdict, Verdict::Slower);
    }

    #[test]
    fn one_value_tells_no_interval_and_says_so() {
        let (verdict, change) = verdict_of(Some(Better::Lower), &[2.0]);
        assert_eq!(verdict, Verdict::CannotTell);
        assert!(change.value().is_none());
    }

    #[test]
    fn many_samples_of_one_launch_are_no_match_for_several_launches() {
        let many: Vec<f64> = (0..100).map(|at| 1.0 + f64::from(at % 10) / 10.0).collect();
        let one = ToolMetric { launches: vec![0; 100], ..metric("m", Some(Better::Lower), &many) };
        let ten = metric("m", Some(Better::Lower), &[2.0; 10]);
        let found = compared(("one", &file(vec![one])), ("ten", &file(vec![ten])), 0.0);
        assert_eq!(found.effects[0].verdict, Verdict::CannotTell);
        assert!(found.effects[0].change.value().is_none());
    }

    #[test]
    fn the_change_is_that_of_the_figures_beside_it() {
        let old = file(vec![metric("m", Some(Better::Lower), &[10.0, 10.0, 10.0, 30.0])]);
        let new = file(vec![metric("m", Some(Better::Lower), &[11.0, 11.0, 11.0, 11.5])]);
        let effect = &compared(("a", &old), ("b", &new), 0.02).effects[0];
        let ratio = effect.after.unwrap() / effect.before.unwrap();
        assert!((ratio - 1.0 - effect.change.value().unwrap().value).abs() < 1e-12, "{effect:?}");
    }

    #[test]
    fn two_equal_values_are_no_proof() {
        let one = |value: f64| file(vec![metric("m", Some(Better::Lower), &[value, value])]);
        let found = compared(("a", &one(1210.0)), ("b", &one(1211.0)), 0.0);
        assert_eq!(found.effects[0].verdict, Verdict::CannotTell);
        let single = file(vec![metric("m", Some(Better::Lower), &[1.0])]);
        assert!(compared(("a", &single), ("b", &single), 0.02).effects[0].change.value().is_none());
    }

    #[test]
    fn many_samples_take_no_long_time() {
        let samples: Vec<f64> = (0..200_000).map(|at| 1.0 + f64::from(at % 7) / 100.0).collect();
        let one =
            || file(vec![ToolMetric { launches: vec![0; samples.len()], ..metric("m", None, &samples) }]);
        let begun = std::time::Instant::now();
        compared(("a", &one()), ("b", &one()), 0.02);
        // In the square of their number it takes minutes.
        assert!(begun.elapsed().as_secs() < 10);
    }

    #[test]
    fn what_one_file_has_alone_is_listed() {
        let old = file(vec![metric("m", None, &OLD), metric("gone", None, &OLD)]);
        let new = file(vec![metric("new", None, &OLD), metric("m", None, &OLD)]);
        let found = compared(("old", &old), ("new", &new), 0.02);
        let names: Vec<(&str, bool)> =
            found.unpaired.iter().map(|one| (one.name.as_str(), one.is_new)).collect();
        assert_eq!((found.effects.len(), names), (1, vec![("gone", false), ("new", true)]));
    }

    #[test]
    fn what_cannot_be_taken_out_is_said() {
        let mut other = file(vec![metric("m", None, &OLD)]);
        other.configuration.insert("goos".into(), "darwin".into());
        other.skipped_count = 2;
        let found = compared(("old", &file(vec![metric("m", None, &OLD)])), ("new", &other), 0.02);
        let ids: Vec<&str> = found.warnings.iter().map(|warning| warning.id.as_str()).collect();
        assert_eq!(ids, ["not-interleaved", "other-configuration", "skipped"]);
    }

    /// Sixty metrics that do not differ: none is called different in 95 of 100 comparisons.
    #[test]
    fn a_large_family_raises_no_alarm() {
        let mut random = tare_stats::SplitMix64::new(3);
        let mut normal =
            || (0..12).map(|_| (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64).sum::<f64>() - 6.0;
        let mut alarms = 0;
        for _ in 0..200 {
            let mut side = || {
                let mut one = |at: usize| {
                    let samples: Vec<f64> = (0..8).map(|_| (0.03 * normal()).exp()).collect();
                    metric(&at.to_string(), Some(Better::Lower), &samples)
                };
                file((0..60).map(&mut one).collect())
            };
            let (old, new) = (side(), side());
            let found = compared(("a", &old), ("b", &new), 0.0);
            alarms += usize::from(found.effects.iter().any(|effect| effect.verdict != Verdict::CannotTell));
        }
        // 10 of 200 by what the intervals say; four standard deviations more.
        assert!(alarms <= 22, "{alarms}");
    }
}
