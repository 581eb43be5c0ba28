//! How a figure grows with one factor: from the samples of levels to the law that fits, with what is not known and why.
//!
//! The statistics are `tare_stats::scaling`; here is what may be said of them.

use tare_model::outcome::Estimate;
use tare_model::scaling::{Alternative, CurvePoint, ScaleLevel, Scaling, ScalingModel, Weights};
use tare_model::warning::Warning;
use tare_model::{Missing, Reading};
use tare_stats::scaling as laws;
use tare_stats::scaling::{Known, Law, Noise};

/// Points of the curve from the lowest level to the highest.
const CURVE_POINTS: usize = 33;

/// CPU entitlements that differ by no more than this share are the same: they are measured, and threads that help run beside the working ones.
const ENTITLED_SAME: f64 = 0.1;

/// What is wanted of a fit.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted {
    /// This law; `None`: the one that fits best.
    pub law: Option<ScalingModel>,
    /// Samples weighted like this; `None`: `equal` where every level has one sample, `relative` otherwise.
    pub weights: Option<Weights>,
}

/// A level from its samples, in `unit`; nothing else is known of it.
pub fn level(n: f64, samples: Vec<f64>, unit: &str) -> ScaleLevel {
    ScaleLevel {
        n,
        estimate: estimate(&samples, unit),
        samples,
        is_outlier: false,
        bottlenecks: Vec::new(),
        accounting: Reading::missing("nothing was observed: the figures are from a file"),
        lost: Vec::new(),
    }
}

/// The mean of a level's samples with its 95 % interval.
pub fn estimate(samples: &[f64], unit: &str) -> Reading<Estimate> {
    match tare_stats::mean_interval(samples) {
        Some(mean) => Reading::Measured(Estimate {
            value: mean.value,
            unit: unit.to_owned(),
            ci95: mean.ci95.map(|interval| [interval.lo, interval.hi]),
        }),
        None => Reading::missing("there is no sample"),
    }
}

/// The law that fits the levels, which ascend in n, and which of them is an outlier. Samples that are not above 0 are left out.
///
/// # Errors
/// Fewer than two levels have a sample above 0, or n is not above 0: there is nothing to fit.
pub fn scaling(levels: &mut [ScaleLevel], unit: &str, wanted: Wanted) -> Result<Scaling, Missing> {
    let is_size = |value: &f64| value.is_finite() && *value > 0.0;
    let whole = |level: &ScaleLevel| laws::Level {
        n: level.n,
        samples: level.samples.iter().copied().filter(is_size).collect(),
    };
    let usable: Vec<laws::Level> =
        levels.iter().map(whole).filter(|level| is_size(&level.n) && !level.samples.is_empty()).collect();
    if usable.len() < 2 {
        let remedy = "a law needs two levels at least, and Amdahl's three, the universal law four";
        return Err(Missing::with_remedy(format!("{} with a figure above 0", counted(usable.len())), remedy));
    }
    let noise = wanted.weights.map(|weights| match weights {
        Weights::Equal => Noise::Equal,
        Weights::Relative => Noise::Relative,
    });
    let asked = laws::Wanted {
        law: wanted.law.map(law),
        noise,
        points: CURVE_POINTS,
        expected_break: usable_cpus(levels),
    };
    let Some(found) = laws::scaling(&usable, asked) else { return not_fitted(&usable, wanted) };
    let outlier = found.outlier.and_then(|index| usable.get(index)).map(|level| level.n);
    levels.iter_mut().for_each(|level| level.is_outlier = Some(level.n) == outlier);
    Ok(described(&found, &usable, unit))
}

/// The CPUs that the program may use with many threads, less what a quota held back at the level where it held back most: a curve over threads
/// is expected to break there. `None`: nothing was observed, or n is not what the program may use until there are no more CPUs (connections, a
/// rate, threads of which some do not work).
fn usable_cpus(levels: &[ScaleLevel]) -> Option<f64> {
    let known: Vec<_> =
        levels.iter().filter_map(|level| Some((level.n, level.accounting.value()?))).collect();
    let most = known.iter().filter_map(|(_, level)| level.cpus_entitled).reduce(f64::max)?;
    let held_back = known.iter().filter_map(|(_, level)| level.cpus_throttled).fold(0.0, f64::max);
    let is_threads = |n: f64, cpus: f64| (cpus / n.min(most) - 1.0).abs() <= ENTITLED_SAME;
    known
        .iter()
        .all(|(n, level)| level.cpus_entitled.is_some_and(|cpus| is_threads(*n, cpus)))
        .then_some(most - held_back)
}

fn counted(levels: usize) -> String {
    match levels {
        0 => "there is no level".to_owned(),
        1 => "there is only one level".to_owned(),
        count => format!("there are only {count} levels"),
    }
}

fn law(model: ScalingModel) -> Law {
    match model {
        ScalingModel::Linear => Law::Linear,
        ScalingModel::Amdahl => Law::Amdahl,
        ScalingModel::Usl => Law::Usl,
        ScalingModel::Piecewise => Law::Piecewise,
    }
}

fn model(law: Law) -> ScalingModel {
    match law {
        Law::Linear => ScalingModel::Linear,
        Law::Amdahl => ScalingModel::Amdahl,
        Law::Usl => ScalingModel::Usl,
        Law::Piecewise => ScalingModel::Piecewise,
    }
}

/// A law was asked for that needs more levels than there are.
fn not_fitted(levels: &[laws::Level], wanted: Wanted) -> Result<Scaling, Missing> {
    let Some(asked) = wanted.law else {
        return Err(Missing::with_remedy(
            format!("no law fits {} levels", levels.len()),
            "figures and levels are above 0, ascend, and are 1000 levels at most",
        ));
    };
    let needs = law(asked).parameters() + 1;
    let why = match levels.len() < needs {
        true => Missing::with_remedy(
            format!("{}, and {} needs {needs}", counted(levels.len()), words(asked)),
            "give more levels, or a simpler law",
        ),
        false => Missing::new(format!("{} could not be fitted", words(asked))),
    };
    let missing = || Reading::Missing(why.clone());
    Ok(Scaling {
        model: asked,
        alpha: missing(),
        beta: missing(),
        gamma: missing(),
        peak_n: missing(),
        knee_n: missing(),
        break_n: missing(),
        slope_after: missing(),
        weights: wanted.weights.unwrap_or_default(),
        alternatives: Vec::new(),
        curve: Vec::new(),
    })
}

/// A law's name in a sentence.
pub fn words(model: ScalingModel) -> &'static str {
    match model {
        ScalingModel::Linear => "a straight line",
        ScalingModel::Amdahl => "Amdahl's law",
        ScalingModel::Usl => "the universal scalability law",
        ScalingModel::Piecewise => "a line with a break",
    }
}

fn described(found: &laws::Scaling, levels: &[laws::Level], unit: &str) -> Scaling {
    let range = Range::of(levels);
    let name = words(model(found.law));
    let has_none = |what: &str| Reading::missing(format!("{name} has no {what}"));
    let known = |known: Option<Known>, unit: &str, what: &str| match known {
        Some(known) => Reading::Measured(estimated(known, unit)),
        None => has_none(what),
    };
    let is_broken = found.law == Law::Piecewise;
    Scaling {
        model: model(found.law),
        alpha: known(found.alpha, "share", "contention (--law usl fits it)"),
        beta: known(found.beta, "", "coherency (--law usl fits it)"),
        gamma: Reading::Measured(estimated(found.gamma, unit)),
        peak_n: range.place(found.peak, "peak", no_peak(found)),
        knee_n: range.place(found.knee, "knee", no_knee(found)),
        break_n: if is_broken {
            range.place(found.break_n, "break", String::new())
        } else {
            has_none("break")
        },
        slope_after: known(found.after, unit, "break"),
        weights: match found.noise {
            Noise::Equal => Weights::Equal,
            Noise::Relative => Weights::Relative,
        },
        alternatives: found.tried.iter().map(alternative).collect(),
        curve: found.points.iter().filter_map(point).collect(),
    }
}

fn no_peak(found: &laws::Scaling) -> String {
    match found.law {
        Law::Linear => {
            "a straight line rises without end: no peak within the range that was measured".to_owned()
        }
        Law::Amdahl => {
            "Amdahl's law rises without end: no peak within the range that was measured".to_owned()
        }
        Law::Usl => "no peak: coherency is 0, so the law rises without end".to_owned(),
        Law::Piecewise => {
            "behind the break it does not fall beyond doubt: no peak within the range that was measured"
                .to_owned()
        }
    }
}

fn no_knee(found: &laws::Scaling) -> String {
    match found.law {
        Law::Piecewise => {
            "it rises behind the break as well: no knee within the range that was measured".to_owned()
        }
        _ => "no knee: neither contention nor coherency, so the law rises in a straight line".to_owned(),
    }
}

/// From the lowest level to the highest.
struct Range {
    low: f64,
    high: f64,
}

impl Range {
    fn of(levels: &[laws::Level]) -> Range {
        let all = || levels.iter().map(|level| level.n);
        Range { low: all().fold(f64::INFINITY, f64::min), high: all().fold(0.0, f64::max) }
    }

    /// An n that is said where it was measured; elsewhere a law would be stretched to where nobody looked.
    fn place(&self, known: Option<Known>, what: &str, none: String) -> Reading<Estimate> {
        let Some(known) = known else { return Reading::missing(none) };
        let (low, high) = (self.low, self.high);
        let remedy = "measure more levels there";
        if known.value > high {
            let least = known.ci95.map_or(high, |ends| ends.0.max(high));
            let beyond = match known.ci95.is_some_and(|ends| ends.0 > high) {
                true => format!("above {}", short(least)),
                false => format!("above {}, if there is one", short(high)),
            };
            let why = format!(
                "not within the range measured, {} to {}: the {what} is {beyond}",
                short(low),
                short(high)
            );
            return Reading::Missing(Missing::with_remedy(why, remedy));
        }
        if known.value < low {
            let why = format!(
                "not within the range measured, {} to {}: the {what} is below {}",
                short(low),
                short(high),
                short(low)
            );
            return Reading::Missing(Missing::with_remedy(why, remedy));
        }
        match known.ci95 {
            Some((from, to)) if !to.is_finite() => {
                let why = format!(
                    "not known: the law puts the {what} at {}, and by the scatter of the samples it is anywhere from {} on",
                    short(known.value),
                    short(from)
                );
                Reading::Missing(Missing::with_remedy(why, "measure more samples, or higher levels"))
            }
            _ => Reading::Measured(estimated(known, "")),
        }
    }
}

/// An n as people write it.
fn short(n: f64) -> String {
    let digits = if n >= 100.0 || n.fract() == 0.0 { 0 } else { 1 };
    format!("{n:.digits$}")
}

fn estimated(known: Known, unit: &str) -> Estimate {
    let finite = |(low, high): &(f64, f64)| low.is_finite() && high.is_finite();
    Estimate {
        value: known.value,
        unit: unit.to_owned(),
        ci95: known.ci95.filter(finite).map(|(low, high)| [low, high]),
    }
}

fn alternative(tried: &laws::Tried) -> Alternative {
    Alternative { model: model(tried.law), aicc_delta: tried.aicc_delta, rms_share: tried.rms_share }
}

fn point(&(n, value, ends): &(f64, f64, Option<(f64, f64)>)) -> Option<CurvePoint> {
    let finite = |(low, high): &(f64, f64)| low.is_finite() && high.is_finite();
    let ci95 = ends.filter(finite).map(|(low, high)| [low, high]);
    value.is_finite().then_some(CurvePoint { n, value, ci95 })
}

/// Laws that differ by less in Akaike's criterion are as good (Burnham and Anderson 2002, section 2.6).
const AS_GOOD: f64 = 2.0;
/// A law that misses the levels by more than this share, as a root mean square, describes them badly.
const FITS_BADLY: f64 = 0.1;
/// More than this times the figure of the lowest level for each n is faster than a law of scaling rises.
const FASTER: f64 = 1.1;

/// What a reader must know before quoting a figure of it.
pub fn warnings(scaling: &Scaling, levels: &[ScaleLevel]) -> Vec<Warning> {
    let mut found = Vec::new();
    let mut warn = |id: &str, text: String, hint: &str| {
        found.push(Warning { id: id.to_owned(), text, hint: hint.to_owned() });
    };
    if let Some(level) = levels.iter().find(|level| level.is_outlier) {
        warn(
            "outlier",
            format!("the level at {} is far from what all others say, and is left out", short(level.n)),
            "measure it again",
        );
    }
    let first = scaling.alternatives.first();
    if let Some(better) = scaling.alternatives.iter().find(|one| {
        one.aicc_delta == Some(0.0)
            && one.model != scaling.model
            && first.is_some_and(|first| first.aicc_delta > Some(AS_GOOD))
    }) {
        warn(
            "another-fits-better",
            format!("{} fits better", words(better.model)),
            "see the laws that were tried, or leave out --law",
        );
    }
    let own =
        scaling.alternatives.iter().find(|one| one.model == scaling.model).and_then(|one| one.aicc_delta);
    let as_good = |one: &&Alternative| {
        let by = own.zip(one.aicc_delta).map(|(own, delta)| (delta - own).abs());
        one.model != scaling.model && by.is_some_and(|by| by < AS_GOOD)
    };
    if let Some(other) = scaling.alternatives.iter().find(as_good) {
        warn(
            "laws-alike",
            format!("{} fits about as well", words(other.model)),
            "more levels, or higher ones, tell them apart",
        );
    }
    if first.is_some_and(|first| first.rms_share.is_some_and(|share| share > FITS_BADLY)) {
        warn(
            "fits-badly",
            format!(
                "the law misses the levels by {:.0} % (root mean square)",
                first.and_then(|first| first.rms_share).unwrap_or(0.0) * 100.0
            ),
            "no law of scaling may hold here: look at the levels",
        );
    }
    let each = |level: &ScaleLevel| level.estimate.value().map(|estimate| estimate.value / level.n);
    let lowest = levels.iter().find_map(each);
    let is_faster =
        |level: &&ScaleLevel| lowest.zip(each(level)).is_some_and(|(lowest, each)| each > FASTER * lowest);
    if let Some(level) = levels.iter().filter(|level| !level.is_outlier).find(is_faster) {
        warn(
            "faster-than-linear",
            format!("the figure for each n is higher at {} than at the lowest level", short(level.n)),
            "no law here rises like this: the lowest level may have been held back, or caches help",
        );
    }
    if !levels.is_empty() && levels.iter().all(|level| level.samples.len() <= 1) {
        warn(
            "one-sample",
            "every level has one sample: the intervals take what the law misses for noise".to_owned(),
            "several samples for each level",
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::scaling::LevelAccounting;

    fn levels(entitled: fn(f64) -> f64, throttled: fn(f64) -> f64) -> Vec<ScaleLevel> {
        let one = |&n: &f64| {
            let mut level = level(n, vec![1.0], "units/s");
            level.accounting = Reading::Measured(LevelAccounting {
                cpus_entitled: Some(entitled(n)),
                cpus_throttled: Some(throttled(n)),
                ..LevelAccounting::default()
            });
            level
        };
        [1.0, 2.0, 3.0, 4.0, 8.0].iter().map(one).collect()
    }

    #[test]
    fn a_break_is_expected_of_threads_alone() {
        let threads = |n: f64| n.min(2.0);
        assert_eq!(usable_cpus(&levels(threads, |_| 0.0)), Some(2.0));
        // A quota of 1.5 holds back what is beyond it.
        assert_eq!(usable_cpus(&levels(threads, |n| (n.min(2.0) - 1.5).max(0.0))), Some(1.5));
        // Connections of a server with two threads; CPUs themselves, of which the last level has most; figures from a file.
        assert_eq!(usable_cpus(&levels(|_| 2.0, |_| 0.0)), None);
        assert_eq!(
            usable_cpus(&levels(|n| n, |_| 0.0)),
            Some(8.0),
            "behind the last but one level, it is not tried"
        );
        assert_eq!(usable_cpus(&[level(1.0, vec![1.0], "units/s")]), None);
    }
}
