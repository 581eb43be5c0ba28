//! How far the sum of squares may rise before a value is outside its 95 % interval: by s²·t² (Bates and Watts 1988, section 6.1.2).

use super::fit::LawFit;
use crate::student::{incomplete_beta, t_quantile};

/// Levels differ by more than their samples explain where chance alone does that so rarely.
const LACK_CHANCE: f64 = 0.05;
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
    let df = fit.df();
    let levels = fit.data.points.len() as f64 - fit.parameters() as f64;
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
