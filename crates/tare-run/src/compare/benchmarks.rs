//! What the metrics differ by that commands print as the results of a benchmark. Pure, as [`super::judge`].
//!
//! Their intervals hold together as one family, apart from that of the two times: a benchmark that runs for a fixed time has times that
//! say nothing.

use super::change::change;
use std::collections::{BTreeSet, HashSet};
use tare_model::comparison::{Arm, BenchmarkEffect, BenchmarkValue, Change, Comparison, NOT_IN_ALL, Verdict};
use tare_model::outcome::Warning;
use tare_model::{Missing, Reading};
use tare_stats::{Interval, Sequence, contrasts, median, widened};

/// Fewer launches without any spread are no proof: tools round what they print.
const CONSTANT_MIN: usize = 3;
/// So many names are said of metrics that are not in every launch.
const NAMES_SHOWN: usize = 5;

/// A metric in all launches: of the first program, its A/A control and another.
struct Series<'a> {
    program: &'a str,
    of: &'a BenchmarkValue,
    first: Vec<f64>,
    aa_control: Vec<f64>,
    other: Vec<f64>,
}

/// What the values of a metric are.
enum Kind {
    /// One value throughout.
    Constant,
    /// The first program has 0, the other has more.
    FromZero,
    /// The first program has more, the other has 0.
    ToZero,
    /// A value is not above 0, so there is no ratio.
    NoRatio,
    /// Without any spread in each program, and of fewer launches than prove anything.
    TooFew,
    Varied,
}

impl Series<'_> {
    fn kind(&self) -> Kind {
        let own = || self.first.iter().chain(&self.aa_control).copied();
        let other = || self.other.iter().copied();
        let is_zero = |value: f64| value == 0.0;
        let is_more = |value: f64| value > 0.0;
        let is_proof = self.first.len() >= CONSTANT_MIN;
        if is_proof && is_one(own().chain(other())) {
            Kind::Constant
        } else if is_proof && own().all(is_zero) && other().all(is_more) {
            Kind::FromZero
        } else if is_proof && own().all(is_more) && other().all(is_zero) {
            Kind::ToZero
        } else if !own().chain(other()).all(is_more) {
            Kind::NoRatio
        } else if !is_proof && is_one(own()) && is_one(other()) {
            Kind::TooFew
        } else {
            Kind::Varied
        }
    }
}

/// Whether all are the same value.
fn is_one(mut values: impl Iterator<Item = f64>) -> bool {
    let first = values.next();
    values.all(|value| Some(value) == first)
}

/// What each metric of each program came to that all launches have. `sequence`: how so many are analysed together.
pub(super) fn effects(
    comparison: &Comparison,
    sequence: impl Fn(usize) -> Option<Sequence>,
) -> Vec<BenchmarkEffect> {
    let gathered = gather(comparison);
    let varied = gathered.iter().filter(|series| matches!(series.kind(), Kind::Varied)).count();
    let sequence = sequence(varied);
    gathered.iter().filter_map(|series| effect(series, comparison.margin, sequence.as_ref())).collect()
}

fn effect(series: &Series<'_>, margin: f64, sequence: Option<&Sequence>) -> Option<BenchmarkEffect> {
    let both: Vec<f64> = series.first.iter().chain(&series.aa_control).copied().collect();
    let of = series.of;
    let none = Change { value: 0.0, interval: [0.0; 2] };
    let no_ratio = |why: &str| Reading::Missing(Missing::new(why));
    let (change, aa_control, verdict) = match series.kind() {
        Kind::Constant => (Reading::Measured(none), Some(none), Verdict::NoDifference),
        Kind::FromZero => {
            (no_ratio("it was 0 and is more, so there is no ratio"), None, Verdict::from_zero(of.better))
        }
        Kind::ToZero => {
            (no_ratio("it was more than 0 and is 0, so there is no ratio"), None, Verdict::to_zero(of.better))
        }
        Kind::NoRatio => {
            (no_ratio("a value is not above 0, so there is no ratio"), None, Verdict::CannotTell)
        }
        Kind::TooFew => (Reading::Missing(too_few()), None, Verdict::CannotTell),
        Kind::Varied => match sequence.and_then(|sequence| analysed(series, sequence)) {
            Some((change, aa_control, interval)) => {
                (Reading::Measured(change), aa_control, Verdict::of_metric(of.better, interval, margin))
            }
            None => (Reading::Missing(too_few()), None, Verdict::CannotTell),
        },
    };
    Some(BenchmarkEffect {
        program: series.program.to_owned(),
        benchmark: of.benchmark.clone(),
        name: of.name.clone(),
        unit: of.unit.clone(),
        better: of.better,
        baseline: median(&both)?,
        value: median(&series.other)?,
        change,
        aa_control,
        verdict,
    })
}

fn too_few() -> Missing {
    Missing::with_remedy("so few launches have no interval", "give a longer --budget, or a shorter --window")
}

/// The change, that of the A/A control, and the interval of the logarithm.
fn analysed(series: &Series<'_>, sequence: &Sequence) -> Option<(Change, Option<Change>, Interval)> {
    let contrasts = contrasts(&series.first, &series.aa_control, &series.other)?;
    let [one, other] = &contrasts.effect;
    let analysis = sequence.analyse(&[one, other])?;
    let aa_control = sequence.analyse_aa_control(&contrasts)?;
    let interval = widened(analysis.interval, aa_control.interval);
    Some((change(&analysis, interval)?, change(&aa_control, aa_control.interval), interval))
}

/// Those that all arms have in every launch, in the order in which the first run printed them, program by program.
fn gather(comparison: &Comparison) -> Vec<Series<'_>> {
    let others = comparison.programs.iter().skip(1).enumerate();
    others
        .flat_map(|(at, program)| {
            printed(comparison).filter_map(move |(index, of)| {
                let values = |arm: usize| values(comparison, arm, (index, of));
                Some(Series {
                    program: &program.name,
                    of,
                    first: values(0)?,
                    aa_control: values(1)?,
                    other: values(at + 2)?,
                })
            })
        })
        .collect()
}

/// What the first program printed in the first launch.
fn printed(comparison: &Comparison) -> impl Iterator<Item = (usize, &BenchmarkValue)> {
    let arm = comparison.launches.first().and_then(|launch| launch.arms.first());
    arm.into_iter().flat_map(|arm| arm.benchmarks.iter().enumerate())
}

/// A metric of an arm in every launch; `None` where one lacks it.
fn values(comparison: &Comparison, arm: usize, metric: (usize, &BenchmarkValue)) -> Option<Vec<f64>> {
    comparison.launches.iter().map(|launch| value(launch.arms.get(arm)?, metric)).collect()
}

/// It mostly stands where it stood in the first launch.
fn value(arm: &Arm, (index, of): (usize, &BenchmarkValue)) -> Option<f64> {
    let there = arm.benchmarks.get(index).filter(|one| is_same(one, of));
    there.or_else(|| arm.benchmarks.iter().find(|one| is_same(one, of))).map(|one| one.value)
}

fn is_same(one: &BenchmarkValue, other: &BenchmarkValue) -> bool {
    key(one) == key(other)
}

/// Values of another unit are of another metric.
type Key<'a> = (&'a str, &'a str, &'a str);

fn key(value: &BenchmarkValue) -> Key<'_> {
    (&value.benchmark, &value.name, &value.unit)
}

/// Whether each interval is as narrow as was asked for, of metrics that have a better side.
pub(super) fn are_precise(effects: &[BenchmarkEffect], precision: f64) -> bool {
    let half_ln = |change: &Change| {
        let [low, high] = change.interval.map(f64::ln_1p);
        (high - low) / 2.0
    };
    let mut directed = effects.iter().filter(|effect| effect.better.is_some());
    directed.all(|effect| match &effect.change {
        Reading::Measured(change) => half_ln(change) <= precision,
        // Who has none for want of a ratio gets none by going on.
        Reading::Missing(missing) => missing.remedy.is_empty(),
        Reading::NotApplicable { .. } => true,
    })
}

/// Metrics that some program does not print in some launch.
pub(super) fn warning(comparison: &Comparison) -> Option<Warning> {
    let compared: HashSet<(&str, Key<'_>)> = comparison
        .benchmarks
        .iter()
        .map(|effect| (effect.program.as_str(), (&*effect.benchmark, &*effect.name, &*effect.unit)))
        .collect();
    let others = comparison.programs.get(1..).unwrap_or_default();
    let mut looked_at: HashSet<(usize, Key<'_>)> = HashSet::new();
    let mut lacking: BTreeSet<String> = BTreeSet::new();
    for (at, arm) in comparison.launches.iter().flat_map(|launch| launch.arms.iter().enumerate()) {
        for one in &arm.benchmarks {
            let key = key(one);
            if !looked_at.insert((at.max(1), key)) {
                continue;
            }
            // What the first program prints is compared with all others.
            let with = if at < 2 { others } else { others.get(at - 2..=at - 2).unwrap_or_default() };
            if !with.iter().all(|program| compared.contains(&(program.name.as_str(), key))) {
                lacking.insert(format!("{} {}", one.benchmark, one.name).trim().to_owned());
            }
        }
    }
    let shown: Vec<&str> = lacking.iter().map(String::as_str).take(NAMES_SHOWN).collect();
    let more = lacking.len() - shown.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!lacking.is_empty()).then(|| Warning {
        id: NOT_IN_ALL.into(),
        text: format!(
            "not every run of every command prints {}{more}: this is not compared",
            shown.join(", ")
        ),
        hint: "have all commands run the same benchmarks".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::judge;
    use super::super::steps::empty;
    use super::*;
    use std::collections::BTreeMap;
    use tare_model::comparison::{Ended, Figure, Interference, Launch, Program};
    use tare_model::outcome::Better;

    const LAUNCHES: usize = 20;

    fn value(name: &str, better: Option<Better>, value: f64) -> BenchmarkValue {
        let (benchmark, unit) = ("BenchmarkSort".into(), "s/op".into());
        BenchmarkValue { benchmark, name: name.into(), unit, better, value }
    }

    /// Launches of two commands, with what each of the three arms prints in each of them.
    fn comparison(printed: impl Fn(usize, usize) -> Vec<BenchmarkValue>) -> Comparison {
        let program = |name: &str| Program { name: name.into(), command: "x".into(), url: None };
        let arm = |launch: usize, at: usize| Arm {
            own_ns: 1_000_000,
            answers: 1,
            errors: 0,
            cpu_ns: Some(1_000_000),
            waited_ns: None,
            throttled_ns: None,
            quota_cpus: None,
            modes: None,
            figures: BTreeMap::from([(Figure::Time, 1.0)]),
            windows_s: Vec::new(),
            alone_s: None,
            benchmarks: printed(launch, at),
        };
        let launch = |at: usize| Launch {
            turn_ns: 0,
            begin_s: at as f64,
            took_s: 1.0,
            arms: (0..3).map(|arm_at| arm(at, arm_at)).collect(),
            interference: Interference::default(),
            disturbed: Vec::new(),
            warm_up: None,
        };
        let mut comparison = Comparison {
            budget_s: 100.0,
            precision: 0.001,
            margin: 0.02,
            planned: Some(LAUNCHES),
            launches: (0..LAUNCHES).map(launch).collect(),
            ..empty(vec![program("A"), program("B")], 1)
        };
        judge(&mut comparison);
        comparison
    }

    /// Up to 1.2 % up, another value for each launch and arm.
    fn noise(launch: usize, arm: usize) -> f64 {
        1.0 + ((launch * 31 + arm * 17) % 13) as f64 / 1000.0
    }

    #[test]
    fn a_slower_benchmark_is_found_and_others_are_not() {
        let found = comparison(|launch, arm| {
            let times = if arm == 2 { 1.2 } else { 1.0 };
            vec![
                value("sorted", Some(Better::Lower), 1e-6 * times * noise(launch, arm)),
                value("rate", Some(Better::Higher), 1e6 * noise(launch, arm + 1)),
                value("unknown", None, times * noise(launch, arm)),
            ]
        });
        let verdicts: Vec<Verdict> = found.benchmarks.iter().map(|effect| effect.verdict).collect();
        assert_eq!(verdicts, [Verdict::Slower, Verdict::NoDifference, Verdict::CannotTell]);
        let change = *found.benchmarks[0].change.value().unwrap();
        assert!((change.value - 0.2).abs() < 0.01 && change.interval[0] > 0.18, "{change:?}");
        assert_eq!(found.ended, Some(Ended::Budget), "0.1 % is not reached");
    }

    #[test]
    fn counts_that_never_vary_are_the_same_or_from_zero() {
        let found = comparison(|_, arm| {
            vec![
                value("same", Some(Better::Lower), 3.0),
                value("none", Some(Better::Lower), 0.0),
                value("more", Some(Better::Lower), if arm == 2 { 2.0 } else { 0.0 }),
                value("other", Some(Better::Lower), if arm == 2 { 5.0 } else { 4.0 }),
                value("gone", Some(Better::Higher), if arm == 2 { 0.0 } else { 4.0 }),
            ]
        });
        let verdicts: Vec<Verdict> = found.benchmarks.iter().map(|effect| effect.verdict).collect();
        use Verdict::{NoDifference, Slower};
        assert_eq!(verdicts, [NoDifference, NoDifference, Slower, Slower, Slower]);
        assert!(found.benchmarks[2].change.value().is_none());
        assert!(found.benchmarks[3].change.value().unwrap().value > 0.24);
        assert_eq!(found.ended, Some(Ended::Precise), "nothing varies");
    }

    #[test]
    fn what_is_not_printed_by_all_is_not_compared_and_is_said() {
        let found = comparison(|launch, arm| {
            let both = value("both", Some(Better::Lower), noise(launch, arm));
            let gone = value("gone", Some(Better::Lower), noise(launch, arm));
            if arm == 2 { vec![both] } else { vec![gone, both] }
        });
        let names: Vec<&str> = found.benchmarks.iter().map(|effect| effect.name.as_str()).collect();
        assert_eq!(names, ["both"]);
        let warned: Vec<&str> = found.warnings.iter().map(|warning| warning.id.as_str()).collect();
        assert!(warned.contains(&NOT_IN_ALL), "{warned:?}");
    }

    /// Thirty metrics that do not differ: none is called different in 95 of 100 comparisons.
    #[test]
    fn a_family_of_equal_metrics_raises_no_alarm() {
        let mut random = tare_stats::SplitMix64::new(11);
        let mut normal =
            || (0..12).map(|_| (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64).sum::<f64>() - 6.0;
        let mut alarms = 0;
        for _ in 0..60 {
            let values: Vec<f64> = (0..LAUNCHES * 3 * 30).map(|_| (0.02 * normal()).exp()).collect();
            let found = comparison(|launch, arm| {
                let at = |metric: usize| values[(launch * 3 + arm) * 30 + metric];
                (0..30).map(|metric| value(&metric.to_string(), Some(Better::Lower), at(metric))).collect()
            });
            let is_alarm =
                |effect: &BenchmarkEffect| matches!(effect.verdict, Verdict::Faster | Verdict::Slower);
            alarms += usize::from(found.benchmarks.iter().any(is_alarm));
        }
        // 3 of 60 by what the intervals say; four standard deviations more.
        assert!(alarms <= 10, "{alarms}");
    }
}
