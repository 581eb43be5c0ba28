//! Fits each law, and finds a level that no law explains.

use super::curve::{Curve, Law};
use super::data::{Data, Fitted};
use crate::student::t_upper;

/// A level is left out where chance alone would show one as far away in so few sweeps.
const OUTLIER_CHANCE: f64 = 0.05;
/// A level may be wrong where chance alone would show one as far away in half of all sweeps at most.
const SUSPECT_CHANCE: f64 = 0.5;
/// Levels that are tried as the one that is wrong: those that the fit misses most.
const SUSPECTS_MAX: usize = 12;
/// Stretches between levels in which a break is looked for.
const STRETCHES_MAX: usize = 48;
/// γ, as its logarithm, and β, in shares of what is there without them, stay within these.
pub(super) const LN_GAMMA: (f64, f64) = (-700.0, 700.0);
const SHARE_MAX: f64 = 1e6;

/// A law as it was fitted.
#[derive(Debug, Clone)]
pub(super) struct LawFit {
    pub law: Law,
    /// The data, without the level that is left out.
    pub data: Data,
    pub fitted: Fitted,
}

impl LawFit {
    /// Samples less parameters, a level that is left out being one.
    pub fn df(&self) -> f64 {
        self.data.samples() - self.parameters() as f64
    }

    /// Parameters of the law, and one for a level that is left out.
    pub fn parameters(&self) -> usize {
        self.law.parameters() + usize::from(self.data.without.is_some())
    }
}

/// Factors that make α and β of size one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    alpha: f64,
    beta: f64,
}

impl Sizes {
    pub fn of(data: &Data) -> Sizes {
        let most = |each: &dyn Fn(f64) -> f64| {
            let most = data.points.iter().map(|point| each(point.n).abs()).fold(0.0, f64::max);
            if most > 0.0 { most } else { 1.0 }
        };
        Sizes { alpha: most(&|n| n - 1.0), beta: most(&|n| n * (n - 1.0)) }
    }

    pub fn curve(&self, at: &[f64]) -> Curve {
        Curve::Smooth { gamma: at[0].exp(), alpha: at[1] / self.alpha, beta: at[2] / self.beta }
    }

    pub fn parameters(&self, gamma: f64, alpha: f64, beta: f64) -> Vec<f64> {
        vec![gamma.ln(), alpha * self.alpha, beta * self.beta]
    }

    pub fn bounds(&self, law: Law) -> Vec<(f64, f64)> {
        let alpha = if law == Law::Linear { 0.0 } else { self.alpha };
        let beta = if law == Law::Usl { SHARE_MAX } else { 0.0 };
        vec![LN_GAMMA, (0.0, alpha), (0.0, beta)]
    }
}

/// The law, with the level left out that is wrong beyond doubt, if there is one. `None`: as many parameters as samples, or nothing fits.
pub(super) fn fit(data: &Data, law: Law) -> Option<LawFit> {
    let all = of(data, law)?;
    Some(outlier(&all).unwrap_or(all))
}

/// The law through all levels that count.
pub(super) fn of(data: &Data, law: Law) -> Option<LawFit> {
    let levels = data.used().count();
    // Without a level more than there are parameters every law fits all.
    if levels <= law.parameters() {
        return None;
    }
    let fitted = match law {
        Law::Piecewise => broken(data),
        _ => smooth(data, law),
    }?;
    Some(LawFit { law, data: data.clone(), fitted })
}

fn smooth(data: &Data, law: Law) -> Option<Fitted> {
    let sizes = Sizes::of(data);
    let bounds = sizes.bounds(law);
    const STARTS: [f64; 5] = [0.0, 0.03, 0.3, 3.0, 30.0];
    let mut starts: Vec<(f64, Vec<f64>)> = Vec::new();
    for alpha in STARTS.map(|start| start.min(bounds[1].1)) {
        for beta in STARTS.map(|start| start.min(bounds[2].1)) {
            let curve = data.scaled(&sizes.curve(&[0.0, alpha, beta]));
            let Curve::Smooth { gamma, .. } = curve else { continue };
            let rss = data.rss(&curve);
            if gamma > 0.0 && rss.is_finite() {
                starts.push((rss, vec![gamma.ln(), alpha, beta]));
            }
        }
    }
    starts.sort_by(|one, other| one.0.total_cmp(&other.0));
    let tried =
        starts.iter().take(2).filter_map(|(_, start)| data.fit(&|at| sizes.curve(at), start, &bounds));
    tried.map(|(fitted, _)| fitted).min_by(|one, other| one.rss.total_cmp(&other.rss))
}

/// The stretches between levels in which a break can be: behind each are two levels at least, which have a slope.
pub(super) fn stretches(data: &Data) -> Vec<(f64, f64)> {
    let n: Vec<f64> = data.used().map(|(_, point)| point.n).collect();
    let all: Vec<(f64, f64)> =
        n.windows(2).take(n.len().saturating_sub(2)).map(|pair| (pair[0], pair[1])).collect();
    let step = all.len().div_ceil(STRETCHES_MAX).max(1);
    all.chunks(step).filter_map(|chunk| Some((chunk.first()?.0, chunk.last()?.1))).collect()
}

pub(super) fn broken_curve(at: &[f64]) -> Curve {
    Curve::Broken { gamma: at[0].exp(), at: at[1], after: at[2] }
}

/// γ·n up to `at`, and level from there on: γ alone is free. `None`: `at` is not between the first level and the last but one.
pub(super) fn level_behind(data: &Data, at: f64) -> Option<Fitted> {
    let stretches = stretches(data);
    let (first, last) = (stretches.first()?.0, stretches.last()?.1);
    let curve = data.scaled(&Curve::Broken { gamma: 1.0, at, after: 0.0 });
    let fitted = Fitted { curve, rss: data.rss(&curve) };
    (first < at && at <= last && fitted.rss.is_finite()).then_some(fitted)
}

fn broken(data: &Data) -> Option<Fitted> {
    let within = stretches(data).into_iter().filter_map(|stretch| broken_within(data, stretch));
    within.min_by(|one, other| one.rss.total_cmp(&other.rss))
}

/// The best break between two levels: within them the sum of squares is smooth.
fn broken_within(data: &Data, (low, high): (f64, f64)) -> Option<Fitted> {
    let middle = 0.5 * (low + high);
    let (before, last) = (level_near(data, middle), data.used().last()?.1);
    let gamma = before.1 / before.0;
    let top = value(data, last.y);
    let after = (top - gamma * middle) / (last.n - middle);
    let steepest = 10.0 * gamma.max(top / last.n);
    let bounds = [LN_GAMMA, (low, high), (-steepest, steepest)];
    data.fit(&broken_curve, &[gamma.ln(), middle, after], &bounds).map(|(fitted, _)| fitted)
}

/// n and the figure of the last level at or before this one.
fn level_near(data: &Data, n: f64) -> (f64, f64) {
    let mut all = data.used().map(|(_, point)| (point.n, value(data, point.y)));
    let first = all.next().unwrap_or((1.0, 1.0));
    all.take_while(|level| level.0 <= n).last().unwrap_or(first)
}

fn value(data: &Data, y: f64) -> f64 {
    if data.noise == super::data::Noise::Relative { y.exp() } else { y }
}

/// The fit without the level that is an outlier.
fn outlier(all: &LawFit) -> Option<LawFit> {
    without_one(all, OUTLIER_CHANCE)
}

/// The fit without a level that may be an outlier, where none was left out: values with and without it are possible.
pub(super) fn suspect(all: &LawFit) -> Option<LawFit> {
    without_one(all, SUSPECT_CHANCE)
}

/// The largest of the deletion residuals, held to Student's t with Bonferroni's correction for having looked at every level (Cook and
/// Weisberg, Residuals and Influence in Regression, 1982, section 2.2): the fit without it, where chance alone shows one so far away no more
/// often than `chance`.
fn without_one(all: &LawFit, chance: f64) -> Option<LawFit> {
    let levels = all.data.points.len();
    let df = all.df() - 1.0;
    // A law through all levels but one must still have some to spare: two lines with a break anywhere and a level left out anywhere pass
    // through nearly everything.
    let spare = if all.law == Law::Piecewise { 5 } else { 2 };
    if levels < all.law.parameters() + spare || df < 1.0 {
        return None;
    }
    let mut suspects: Vec<(f64, usize)> = all
        .data
        .used()
        .map(|(index, point)| (point.count * all.data.miss(&all.fitted.curve, point).powi(2), index))
        .collect();
    suspects.sort_by(|one, other| other.0.total_cmp(&one.0));
    let without =
        suspects.iter().take(SUSPECTS_MAX).filter_map(|(_, index)| of(&all.data.leaving(*index), all.law));
    let best = without.min_by(|one, other| one.fitted.rss.total_cmp(&other.fitted.rss))?;
    let t = t_upper(chance / (2.0 * levels as f64), df)?;
    let gained = all.fitted.rss - best.fitted.rss;
    (gained > t * t * best.fitted.rss / df).then_some(best)
}
