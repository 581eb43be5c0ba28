//! How far the sum of squares may rise before a value is outside its 95 % interval: by s²·t² (Bates and Watts 1988, section 6.1.2).

use super::fit::LawFit;
use crate::student::{incomplete_beta, t_quantile};

/// Levels differ by more than their samples explain where chance alone does that so rarely.
const LACK_CHANCE: f64 = 0.05;
/// Degrees of freedom that the choice of a level costs: by simulation (`bench/scale`).
const CHOSEN: f64 = 0.5;
/// A sum of squares of figures of size one that is nothing.
const NOTHING: f64 = 1e-18;

/// The largest sum of squares within the intervals of a fit. `None`: as many parameters as samples.
pub(super) fn most(fit: &LawFit) -> Option<f64> {
    let (rss, df) = scatter(fit)?;
    let t = t_quantile(0.975, df)?;
    Some(fit.fitted.rss + t * t * rss / df + NOTHING)
}

/// Squares that the noise is judged by, and their degrees of freedom. Samples of a level that was measured once are all alike: where levels
/// differ by more than their samples explain, the levels alone are taken.
fn scatter(fit: &LawFit) -> Option<(f64, f64)> {
    let (all, within) = (fit.fitted.rss, fit.data.within());
    // The level that is left out was chosen for being far away, which makes the others look closer than they are.
    let chosen = if fit.data.without.is_some() && fit.df() >= 2.0 { CHOSEN } else { 0.0 };
    let df = fit.df() - chosen;
    let levels = fit.data.points.len() as f64 - fit.parameters() as f64 - chosen;
    let repeats = df - levels;
    if df < 1.0 {
        return None;
    }
    if repeats < 1.0 || levels < 1.0 {
        return Some((all, df));
    }
    let ratio = ((all - within) / levels) / (within / repeats);
    let chance = incomplete_beta(repeats / (repeats + levels * ratio), 0.5 * repeats, 0.5 * levels);
    Some(if chance < LACK_CHANCE { (all - within, levels) } else { (all, df) })
}
