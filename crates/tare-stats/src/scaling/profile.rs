//! Intervals by profile likelihood.
//!
//! A value is in the interval where the best fit that has it is not much worse: by as much as [`super::heights`] says (Bates and Watts,
//! Nonlinear Regression Analysis and Its Applications, 1988, section 6.1.2). Unlike value ± t·error, the interval follows the bend of the
//! law, and ends at a bound.

use super::curve::{Curve, Law};
use super::data::{Data, Fitted};
use super::fit::{LN_GAMMA, LawFit, Sizes, broken_curve, stretches};
use super::heights;

/// Doublings and halvings that look for an end.
const STEPS: usize = 60;
/// How well an end is known, as a share of the distance from the value.
const CLOSE: f64 = 1e-4;

/// Ends of an interval; infinite where the data allow any value on that side.
pub type Ends = (f64, f64);

/// Both ends, from the value outwards, within `domain`; `step` is where looking begins.
fn ends(value: f64, domain: (f64, f64), step: f64, most: f64, rss: &mut dyn FnMut(f64) -> f64) -> Ends {
    let mut one = |sign: f64, limit: f64| {
        let (mut inside, mut size) = (value, step);
        let mut outside = None;
        for _ in 0..STEPS {
            let next = if sign < 0.0 { (value - size).max(limit) } else { (value + size).min(limit) };
            if rss(next) > most {
                outside = Some(next);
                break;
            }
            inside = next;
            if next == limit {
                return limit;
            }
            size *= 2.0;
        }
        let Some(mut outside) = outside else { return limit };
        for _ in 0..STEPS {
            if (outside - inside).abs() <= CLOSE * (inside - value).abs().max(1e-9) {
                break;
            }
            let middle = 0.5 * (inside + outside);
            if rss(middle) > most {
                outside = middle;
            } else {
                inside = middle;
            }
        }
        0.5 * (inside + outside)
    };
    let low = one(-1.0, domain.0);
    (low, one(1.0, domain.1))
}

/// The profile of something that parameters are made from once it is known.
struct Profile<'a> {
    data: &'a Data,
    /// The curve from the value and the others.
    curve: &'a dyn Fn(f64, &[f64]) -> Curve,
    bounds: Vec<(f64, f64)>,
    start: Vec<f64>,
}

impl Profile<'_> {
    /// The best sum of squares with this value, from where the last search ended.
    fn rss(&mut self, value: f64) -> f64 {
        if self.bounds.is_empty() {
            return self.data.rss(&(self.curve)(value, &[]));
        }
        let found = self.data.fit(&|at| (self.curve)(value, at), &self.start, &self.bounds);
        match found {
            Some((fitted, minimum)) => {
                self.start = minimum.at;
                fitted.rss
            }
            None => f64::INFINITY,
        }
    }
}

/// What intervals a smooth law has.
pub(super) struct Smooth<'a> {
    fit: &'a LawFit,
    sizes: Sizes,
    most: f64,
    gamma: f64,
    alpha: f64,
    beta: f64,
}

impl<'a> Smooth<'a> {
    pub fn of(fit: &'a LawFit) -> Option<Smooth<'a>> {
        let Curve::Smooth { gamma, alpha, beta } = fit.fitted.curve else { return None };
        Some(Smooth { fit, sizes: Sizes::of(&fit.data), most: heights::most(fit)?, gamma, alpha, beta })
    }

    /// One of the parameters: 0 is ln γ, 1 is α and 2 is β, both as the sizes have them.
    fn parameter(&self, index: usize) -> Ends {
        let at = self.sizes.parameters(self.gamma, self.alpha, self.beta);
        let mut bounds = self.sizes.bounds(self.fit.law);
        let domain = bounds.remove(index);
        if domain.0 >= domain.1 {
            return (at[index], at[index]);
        }
        let mut start = at.clone();
        start.remove(index);
        let curve = |value: f64, others: &[f64]| {
            let mut all = others.to_vec();
            all.insert(index, value);
            self.sizes.curve(&all)
        };
        let mut profile = Profile { data: &self.fit.data, curve: &curve, bounds, start };
        let step = 0.02 * at[index].abs().max(0.05);
        ends(at[index], domain, if index == 0 { 0.01 } else { step }, self.most, &mut |value| {
            profile.rss(value)
        })
    }

    pub fn gamma(&self) -> Ends {
        let (low, high) = self.parameter(0);
        (low.exp(), high.exp())
    }

    pub fn alpha(&self) -> Ends {
        let (low, high) = self.parameter(1);
        let unit = self.sizes.parameters(1.0, 1.0, 1.0)[1];
        (low / unit, high / unit)
    }

    pub fn beta(&self) -> Ends {
        let (low, high) = self.parameter(2);
        let unit = self.sizes.parameters(1.0, 1.0, 1.0)[2];
        (low / unit, high / unit)
    }

    /// The peak: β follows from it and α.
    pub fn peak(&self) -> Option<Ends> {
        let peak = self.fit.fitted.curve.peak()?;
        let curve = |value: f64, others: &[f64]| {
            let (gamma, alpha) = (others[0].exp(), others[1]);
            Curve::Smooth { gamma, alpha, beta: (1.0 - alpha) / (2.0 * value).exp() }
        };
        let start = vec![self.gamma.ln(), self.alpha];
        Some(self.logarithmic(peak, start, &curve, vec![LN_GAMMA, (0.0, 1.0)]))
    }

    /// The knee K: of α = 1 − (√β + √(1 − 1/K))² the part of √β in what K leaves for it is free.
    pub fn knee(&self) -> Option<Ends> {
        let knee = self.fit.fitted.curve.knee()?;
        let is_usl = self.fit.law == Law::Usl;
        let room = |knee: f64| 1.0 - (1.0 - 1.0 / knee).max(0.0).sqrt();
        let curve = |value: f64, others: &[f64]| {
            let knee = value.exp();
            let root = others[1] * room(knee);
            let alpha = 1.0 - (root + (1.0 - 1.0 / knee).max(0.0).sqrt()).powi(2);
            Curve::Smooth { gamma: others[0].exp(), alpha: alpha.max(0.0), beta: root * root }
        };
        let part = if is_usl { (self.beta.sqrt() / room(knee)).clamp(0.0, 1.0) } else { 0.0 };
        let bounds = vec![LN_GAMMA, (0.0, if is_usl { 1.0 } else { 0.0 })];
        Some(self.logarithmic(knee, vec![self.gamma.ln(), part], &curve, bounds))
    }

    /// Of a value of n from 1 on, by its logarithm; infinite above a million times the largest n.
    fn logarithmic(
        &self,
        value: f64,
        start: Vec<f64>,
        curve: &dyn Fn(f64, &[f64]) -> Curve,
        bounds: Vec<(f64, f64)>,
    ) -> Ends {
        let largest = self.fit.data.points.iter().map(|point| point.n).fold(1.0, f64::max);
        let domain = (value.ln().min(0.0), (1e6 * largest).ln());
        let mut profile = Profile { data: &self.fit.data, curve, bounds, start };
        let (low, high) = ends(value.ln(), domain, 0.02, self.most, &mut |value| profile.rss(value));
        (low.exp(), if high >= domain.1 { f64::INFINITY } else { high.exp() })
    }

    /// X at an n: γ follows from it.
    pub fn value_at(&self, n: f64) -> Ends {
        let curve = |value: f64, others: &[f64]| {
            let shape = self.sizes.curve(&[0.0, others[0], others[1]]);
            shape.times(value.exp() / shape.at(n))
        };
        let start = self.sizes.parameters(1.0, self.alpha, self.beta)[1..].to_vec();
        let bounds = self.sizes.bounds(self.fit.law)[1..].to_vec();
        let mut profile = Profile { data: &self.fit.data, curve: &curve, bounds, start };
        let value = self.fit.fitted.curve.at(n).ln();
        let (low, high) = ends(value, LN_GAMMA, 0.01, self.most, &mut |value| profile.rss(value));
        (low.exp(), high.exp())
    }
}

/// Intervals of two straight lines: slope before, break, slope behind it.
pub(super) struct Broken {
    pub gamma: Ends,
    pub at: Ends,
    pub after: Ends,
    /// Curves on the edge of what the data allow.
    pub edge: Vec<Curve>,
}

/// Breaks that are tried from the first level to the last.
const BREAKS: usize = 48;

/// `None`: too few samples, or it is not such a law. The sum of squares has a kink at every level, so breaks are tried one by one.
pub(super) fn broken(fit: &LawFit) -> Option<Broken> {
    let Curve::Broken { gamma, at, after } = fit.fitted.curve else { return None };
    let most = heights::most(fit)?;
    let data = &fit.data;
    let all = stretches(data);
    let (first, last) = (all.first()?.0, all.last()?.1);
    let steepest = 20.0 * gamma.max(after.abs());
    let lines = |value: f64| -> Option<Fitted> {
        let bounds = [LN_GAMMA, (value, value), (-steepest, steepest)];
        data.fit(&broken_curve, &[gamma.ln(), value, after], &bounds).map(|(fitted, _)| fitted)
    };
    let step = (last - first) / BREAKS as f64;
    let tried: Vec<(f64, Fitted)> = (0..=BREAKS)
        .map(|index| first + step * index as f64)
        .filter_map(|value| Some((value, lines(value)?)))
        .filter(|(_, fitted)| fitted.rss <= most)
        .collect();
    let mut rss = |value: f64| lines(value).map_or(f64::INFINITY, |fitted| fitted.rss);
    let near = ends(at, (first, last), step.min(0.01 * at), most, &mut rss);
    let low = tried.first().map_or(near.0, |(value, _)| value.min(near.0));
    let high = tried.last().map_or(near.1, |(value, _)| value.max(near.1));
    let breaks = [low, at, high].into_iter().chain(tried.iter().map(|(value, _)| *value));
    let mut found =
        Broken { gamma: (gamma, gamma), at: (low, high), after: (after, after), edge: Vec::new() };
    for value in breaks {
        let Some(best) = lines(value).filter(|best| best.rss <= most * (1.0 + 1e-6)) else { continue };
        let Curve::Broken { gamma, after, .. } = best.curve else { continue };
        let scale = gamma.max(after.abs());
        let slope =
            |before: f64, others: &[f64]| Curve::Broken { gamma: before.exp(), at: value, after: others[0] };
        let mut before =
            Profile { data, curve: &slope, bounds: vec![(-steepest, steepest)], start: vec![after] };
        let ends_before = ends(gamma.ln(), LN_GAMMA, 0.01, most, &mut |value| before.rss(value));
        let rest = |after: f64, others: &[f64]| Curve::Broken { gamma: others[0].exp(), at: value, after };
        let mut behind = Profile { data, curve: &rest, bounds: vec![LN_GAMMA], start: vec![gamma.ln()] };
        let domain = (-steepest, steepest);
        let ends_behind = ends(after, domain, 0.01 * scale, most, &mut |value| behind.rss(value));
        found.gamma = (found.gamma.0.min(ends_before.0.exp()), found.gamma.1.max(ends_before.1.exp()));
        found.after = (found.after.0.min(ends_behind.0), found.after.1.max(ends_behind.1));
        for end in [ends_before.0, ends_before.1] {
            found
                .edge
                .extend(data.fit(&|at| slope(end, at), &[after], &[domain]).map(|(fitted, _)| fitted.curve));
        }
        for end in [ends_behind.0, ends_behind.1] {
            found.edge.extend(
                data.fit(&|at| rest(end, at), &[gamma.ln()], &[LN_GAMMA]).map(|(fitted, _)| fitted.curve),
            );
        }
    }
    Some(found)
}
