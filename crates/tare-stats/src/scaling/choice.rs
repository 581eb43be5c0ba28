//! Which law fits best, and what its intervals are taken from.

use super::curve::Law;
use super::data::{Data, Level, Noise};
use super::fit::{self, LawFit};

/// The place of a break is searched for: that costs two parameters more than a parameter does (Ninomiya, Statistics & Probability Letters
/// 72, 2005).
const BREAK_COSTS: f64 = 4.0;
/// A level that is left out is searched for as well, and one sweep in twenty has one: 2 ln 20.
const OUTLIER_COSTS: f64 = 6.0;
/// What the criterion must gain before noise is taken to be of one size: odds of 20,000 to 1.
const EQUAL_COSTS: f64 = 20.0;
/// Smaller misses than this share of X are no misses: a double has no more of them.
const MISS_MIN: f64 = 1e-9;

/// What is wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted {
    /// This law; `None`: the one that fits best.
    pub law: Option<Law>,
    /// Noise of this kind; `None`: equal where every level has one sample, relative otherwise.
    pub noise: Option<Noise>,
    /// So many points of the curve with its band.
    pub points: usize,
    /// Where a break is expected before the figures are seen: the CPUs that the program may use.
    pub expected_break: Option<f64>,
}

/// A law that was tried.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tried {
    /// Which.
    pub law: Law,
    /// Its criterion less that of the best; `None`: it could not be fitted.
    pub aicc_delta: Option<f64>,
    /// Root mean square of what it misses, as a share of X.
    pub rms_share: Option<f64>,
}

/// What was chosen.
pub(super) struct Choice {
    /// The law and its values.
    pub best: LawFit,
    /// Where the intervals of parameters are from: of a smooth law that was chosen by itself, the universal law, of which it is a case.
    pub for_intervals: LawFit,
    /// The same without a level that may be wrong: intervals hold what both allow.
    pub without_suspect: Option<LawFit>,
    /// Where the band is from.
    pub for_band: LawFit,
    pub tried: Vec<Tried>,
}

impl Choice {
    pub fn of(levels: &[Level], wanted: Wanted) -> Option<Choice> {
        let is_single = levels.iter().all(|level| level.samples.len() == 1);
        let judged = match wanted.noise {
            Some(noise) => all(levels, noise),
            None if is_single => likelier(levels),
            None => all(levels, Noise::Relative),
        };
        let mut tried = compared(&judged, wanted.expected_break);
        // With two levels or three there is no criterion: the simplest law is taken.
        let simplest = judged.iter().flatten().map(|fit| fit.law).next();
        let best = tried.first().filter(|first| first.aicc_delta.is_some()).map(|first| first.law);
        let law = wanted.law.or(best).or(simplest)?;
        // A law that was asked for is the first, and not the best.
        if let Some(at) = tried.iter().position(|one| one.law == law) {
            tried[..=at].rotate_right(1);
        }
        let of = |law: Law| judged.iter().flatten().find(|fit| fit.law == law).cloned();
        let judged_best = of(law)?;
        let best = match wanted.noise.is_none() && is_single {
            true => plain(levels, &judged_best)?,
            false => judged_best.clone(),
        };
        let is_whole = wanted.law.is_some() || law == Law::Piecewise;
        let for_intervals = if is_whole { None } else { of(Law::Usl) };
        let for_intervals = for_intervals.unwrap_or_else(|| judged_best.clone());
        Some(Choice {
            best,
            without_suspect: fit::suspect(&for_intervals),
            for_intervals,
            for_band: judged_best,
            tried,
        })
    }
}

/// The same law by plain least squares, without the same level.
fn plain(levels: &[Level], judged: &LawFit) -> Option<LawFit> {
    let mut data = Data::new(levels, Noise::Equal);
    data.without = judged.data.without;
    fit::of(&data, judged.law)
}

/// The fits under the kind of noise that makes samples more likely: by Akaike's criterion, in which a density of a logarithm is that of the
/// value times the value. What is measured scatters by a share of itself as a rule: that is left where something else is much more likely.
fn likelier(levels: &[Level]) -> Vec<Option<LawFit>> {
    let (equal, relative) = (all(levels, Noise::Equal), all(levels, Noise::Relative));
    let best = |fits: &[Option<LawFit>]| fits.iter().flatten().filter_map(aicc).fold(f64::INFINITY, f64::min);
    let logarithms: f64 = levels.iter().flat_map(|level| &level.samples).map(|value| value.ln()).sum();
    match best(&equal) + EQUAL_COSTS < best(&relative) + 2.0 * logarithms {
        true => equal,
        false => relative,
    }
}

fn all(levels: &[Level], noise: Noise) -> Vec<Option<LawFit>> {
    let data = Data::new(levels, noise);
    Law::ALL.iter().map(|law| fit::fit(&data, *law)).collect()
}

/// Akaike's information criterion of least squares, corrected for few samples (Hurvich and Tsai, Biometrika 76, 1989). The variance of the
/// noise, which every law has, is not counted among its parameters.
fn aicc(fit: &LawFit) -> Option<f64> {
    let breaks = if fit.law == Law::Piecewise { BREAK_COSTS } else { 0.0 };
    Some(criterion(&fit.data, fit.fitted.rss, fit.parameters())? + breaks)
}

/// The same of a sum of squares; `parameters` with one for a level that is left out.
fn criterion(data: &Data, rss: f64, parameters: usize) -> Option<f64> {
    let (samples, count) = (data.samples(), parameters as f64);
    let spare = samples - count - 1.0;
    let mean_square = rss / samples + MISS_MIN * MISS_MIN;
    let outlier = if data.without.is_some() { OUTLIER_COSTS } else { 0.0 };
    (spare > 0.0)
        .then(|| samples * mean_square.ln() + 2.0 * count + 2.0 * count * (count + 1.0) / spare + outlier)
}

/// The criterion of a line that breaks where it was expected to and is level from there on: nothing was searched for, and only its height
/// was fitted. With the level that the free fit leaves out, and without it.
fn expected(free: &LawFit, at: f64) -> Option<f64> {
    let whole = Data { without: None, ..free.data.clone() };
    let of = |data: &Data| {
        let parameters = 1 + usize::from(data.without.is_some());
        criterion(data, fit::level_behind(data, at)?.rss, parameters)
    };
    [&whole, &free.data].into_iter().filter_map(of).min_by(f64::total_cmp)
}

/// Every law, the best first.
fn compared(fits: &[Option<LawFit>], expected_break: Option<f64>) -> Vec<Tried> {
    let judged = |fit: &LawFit| {
        let at = expected_break.filter(|_| fit.law == Law::Piecewise);
        [aicc(fit), at.and_then(|at| expected(fit, at))].into_iter().flatten().min_by(f64::total_cmp)
    };
    let criteria: Vec<Option<f64>> = fits.iter().map(|fit| fit.as_ref().and_then(judged)).collect();
    let best = criteria.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    let one = |(index, law): (usize, &Law)| Tried {
        law: *law,
        aicc_delta: criteria[index].map(|criterion| criterion - best),
        rms_share: fits[index].as_ref().map(rms_share),
    };
    let mut tried: Vec<Tried> = Law::ALL.iter().enumerate().map(one).collect();
    let rank = |one: &Tried| one.aicc_delta.unwrap_or(f64::INFINITY);
    tried.sort_by(|one, other| rank(one).total_cmp(&rank(other)));
    tried
}

fn rms_share(fit: &LawFit) -> f64 {
    let share = |n: f64, y: f64| {
        let value = fit.fitted.curve.at(n);
        if fit.data.noise == Noise::Relative { (y - value.ln()).abs() } else { (y / value - 1.0).abs() }
    };
    let squares: Vec<f64> = fit.data.used().map(|(_, point)| share(point.n, point.y).powi(2)).collect();
    (squares.iter().sum::<f64>() / squares.len() as f64).sqrt()
}
