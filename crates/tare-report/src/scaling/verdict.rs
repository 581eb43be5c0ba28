//! What the law says, in words.

use crate::format::{NONE, between, count, percent, with_unit};
use tare_model::Reading;
use tare_model::outcome::Estimate;
use tare_model::scaling::{ScaleOutcome, Scaling, ScalingModel};

/// A slope below this share of the one before a break is none.
const FLAT: f64 = 0.05;

/// What a reader takes away.
pub(super) fn headline(outcome: &ScaleOutcome) -> String {
    let scaling = &outcome.scaling;
    let (factor, figure) = (factor(outcome), figure(outcome));
    let (low, high) = ends(outcome);
    let value = |reading: &Reading<Estimate>| reading.value().map(|estimate| estimate.value);
    if scaling.curve.is_empty() {
        return format!("No law: {}.", why(&scaling.gamma));
    }
    if let (Some(at), ScalingModel::Piecewise) = (value(&scaling.break_n), scaling.model) {
        let before = value(&scaling.gamma).unwrap_or(0.0);
        let behind = match value(&scaling.slope_after) {
            Some(after) if after < -FLAT * before && value(&scaling.peak_n).is_some() => {
                "falls from there on"
            }
            Some(after) if after > FLAT * before => "rises more slowly from there on",
            _ => "does not rise from there on",
        };
        let behind = if value(&scaling.slope_after).is_some_and(|after| after > before) {
            "rises faster from there on"
        } else {
            behind
        };
        return format!("{figure} rises in a straight line up to {} {factor} and {behind}.", count(at));
    }
    if let Some(peak) = value(&scaling.peak_n) {
        return format!("{figure} is highest at {} {factor} and falls with more.", count(peak));
    }
    if value(&scaling.alpha).is_some_and(|alpha| alpha > 0.98) {
        return format!("{figure} does not rise with {factor}, from {} to {}.", count(low), count(high));
    }
    if scaling.model == ScalingModel::Linear {
        return format!("{figure} rises in a straight line from {} to {} {factor}.", count(low), count(high));
    }
    if is_below(scaling, low) {
        return format!("{figure} falls from {} {factor} on.", count(low));
    }
    let top = scaling.curve.iter().max_by(|one, other| one.value.total_cmp(&other.value));
    if let Some(top) = top.filter(|top| top.n < high) {
        return format!("{figure} stops rising near {} {factor}; where exactly is not known.", count(top.n));
    }
    match value(&scaling.knee_n) {
        Some(knee) => format!(
            "{figure} flattens from about {} {factor} on, and has no peak up to {}.",
            count(knee),
            count(high)
        ),
        None => {
            format!("{figure} rises up to {} {factor}, each adding less than the one before.", count(high))
        }
    }
}

/// Whether the curve falls from its first point on.
fn is_below(scaling: &Scaling, low: f64) -> bool {
    let first = scaling.curve.first().map_or(0.0, |point| point.value);
    scaling.curve.iter().filter(|point| point.n > low).all(|point| point.value < first)
}

/// What the parameters mean.
pub(super) fn sentences(outcome: &ScaleOutcome) -> Vec<String> {
    let scaling = &outcome.scaling;
    let mut said = Vec::new();
    let many = factor(outcome);
    if let (Some(alpha), ScalingModel::Usl | ScalingModel::Amdahl) = (scaling.alpha.value(), scaling.model) {
        said.push(format!(
            "{}{} of the work is done by one at a time (contention).",
            percent(alpha.value),
            in_brackets(alpha, percent)
        ));
    }
    if let (Some(beta), ScalingModel::Usl) = (scaling.beta.value(), scaling.model)
        && beta.value > 0.0
    {
        said.push(format!(
            "Each pair of {many} costs {}{} of the work of one (coherency).",
            small(beta.value),
            in_brackets(beta, small)
        ));
    }
    if let (Some(before), Some(after)) = (scaling.gamma.value(), scaling.slope_after.value()) {
        said.push(format!(
            "Up to the break each adds {}{}, behind it {}{}.",
            with_unit(before.value, &before.unit),
            in_brackets(before, count),
            with_unit(after.value, &after.unit),
            in_brackets(after, count)
        ));
    }
    if let Some(worth) = outcome.smt_worth.value() {
        said.push(format!(
            "An SMT thread is worth {:.2}{} of a core: what the second thread of a core adds to the first.",
            worth.value,
            in_brackets(worth, hundredth)
        ));
    }
    said
}

/// A share of a core.
fn hundredth(value: f64) -> String {
    format!("{value:.2}")
}

/// What an SMT thread is worth, or why that is not known; nothing where the question makes no sense.
pub(super) fn smt_worth(worth: &Reading<Estimate>) -> Option<(String, String)> {
    let words = match worth {
        Reading::Measured(estimate) => {
            format!("{:.2} cores{}", estimate.value, in_brackets(estimate, hundredth))
        }
        Reading::Missing(missing) => format!("{NONE} ({})", missing.why),
        Reading::NotApplicable { .. } => return None,
    };
    Some(("an SMT thread is worth".to_owned(), words))
}

/// Every parameter, or why it is missing.
pub(super) fn parameters(scaling: &Scaling, factor: &str) -> Vec<(String, String)> {
    let pair = |label: &str, reading: &Reading<Estimate>, each: fn(f64) -> String| {
        let words = match reading {
            Reading::Measured(estimate) if estimate.unit.is_empty() || estimate.unit == "share" => {
                format!("{}{}", each(estimate.value), in_brackets(estimate, each))
            }
            Reading::Measured(estimate) => {
                format!("{}{}", with_unit(estimate.value, &estimate.unit), in_brackets(estimate, each))
            }
            other => format!("{NONE} ({})", why(other)),
        };
        (label.to_owned(), words)
    };
    let mut pairs = vec![("law".to_owned(), law(scaling.model).to_owned())];
    if scaling.model == ScalingModel::Piecewise {
        pairs.push(pair(&format!("break, {factor}"), &scaling.break_n, count));
        pairs.push(pair("slope before", &scaling.gamma, count));
        pairs.push(pair("slope behind", &scaling.slope_after, count));
    } else {
        pairs.push(pair("contention (alpha)", &scaling.alpha, percent));
        pairs.push(pair("coherency (beta)", &scaling.beta, small));
        pairs.push(pair("at one (gamma)", &scaling.gamma, count));
    }
    pairs.push(pair(&format!("peak, {factor}"), &scaling.peak_n, count));
    pairs.push(pair(&format!("knee, {factor}"), &scaling.knee_n, count));
    pairs
}

/// A law with its formula.
pub(super) fn law(model: ScalingModel) -> &'static str {
    match model {
        ScalingModel::Linear => "linear: X = γn",
        ScalingModel::Amdahl => "Amdahl: X = γn / (1 + α(n − 1))",
        ScalingModel::Usl => "USL: X = γn / (1 + α(n − 1) + βn(n − 1))",
        ScalingModel::Piecewise => "piecewise: a straight line up to a break, and another from there on",
    }
}

fn in_brackets(estimate: &Estimate, each: impl Fn(f64) -> String) -> String {
    estimate.ci95.map_or(String::new(), |ends| format!(" ({})", between(ends, each)))
}

/// A coefficient that may be far below one.
fn small(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        value if value.abs() < 0.01 => format!("{value:.2e}"),
        value => count(value),
    }
}

fn why(reading: &Reading<Estimate>) -> String {
    reading.clone().ok().err().map(|missing| missing.why).unwrap_or_default()
}

fn ends(outcome: &ScaleOutcome) -> (f64, f64) {
    let of = |level: Option<&tare_model::scaling::ScaleLevel>| level.map_or(0.0, |level| level.n);
    (of(outcome.levels.first()), of(outcome.levels.last()))
}

/// What is varied, as the object of a sentence.
fn factor(outcome: &ScaleOutcome) -> &str {
    if outcome.factor == "n" || outcome.factor.is_empty() { "of n" } else { &outcome.factor }
}

/// What grows, as the subject of a sentence.
fn figure(outcome: &ScaleOutcome) -> String {
    let unit = outcome
        .levels
        .iter()
        .find_map(|level| level.estimate.value())
        .map_or("", |estimate| estimate.unit.as_str());
    match unit {
        "" => "The figure".to_owned(),
        unit if unit.ends_with("/s") || unit == "Hz" => "Throughput".to_owned(),
        unit => format!("The figure ({unit})"),
    }
}
