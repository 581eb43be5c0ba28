//! C_sat, the cost of a request at saturation: measured where a level saturated the server, carried there by
//! the cost of a wake-up where none did, and missing where that would be a guess.

use crate::iron::{Point, SaturatedCost};
use tare_record::Missing;

/// Two levels tell what a wake-up costs only if they differ by this many sleeps a request.
const SLEEPS_APART_MIN: f64 = 0.05;
/// Farther from saturation than this, the fit is a guess.
const SLEEPS_MAX: f64 = 0.35;
/// The fit never takes off more than this share of a measured cost.
const FIT_SHARE_MIN: f64 = 0.5;
/// Without a second level: how much cheaper saturation may be than the best cost seen (a light load costs
/// 30–40 % more than a full one).
const UNKNOWN_SHARE_MIN: f64 = 0.65;

/// How the cost at saturation was come by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Basis {
    /// The saturating level saturated the server.
    SaturatingLevel,
    /// The asked level did; then a request's cost has no tare.
    AskedLevel,
    /// No level did; the cost of wake-ups was taken off.
    Fitted,
    /// No level did, and nothing tells what wake-ups cost: net is at least this.
    UpperBound,
}

/// The cost at saturation with what is known of its error.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    pub cost: SaturatedCost,
    pub basis: Basis,
    /// The point it was taken from is the saturating level's.
    pub from_saturating: bool,
    /// How far ln C_sat may lie below and above, beyond the spread of trials (both ≥ 0).
    pub ln_slack: [f64; 2],
}

/// Chooses among the asked level and the saturating one.
pub(crate) fn choose(asked: &Point, saturating: Option<&Point>) -> Result<Choice, Missing> {
    if let Some(point) = saturating.filter(|point| point.is_saturated()) {
        return Ok(exact(point, Basis::SaturatingLevel, true));
    }
    if asked.is_saturated() {
        return Ok(exact(asked, Basis::AskedLevel, false));
    }
    let best = saturating.filter(|point| point.fullness() >= asked.fullness());
    let (best_point, from_saturating) = best.map_or((asked, false), |point| (point, true));
    let sleeps = best_point.sleeps.unwrap_or(1.0);
    if sleeps > SLEEPS_MAX && best_point.fullness() < 0.8 {
        return Err(too_far(best_point));
    }
    let other = if from_saturating { Some(asked) } else { saturating };
    let fitted_share = other.and_then(|other| fit_share(best_point, other));
    let (basis, share, ln_slack) = match fitted_share {
        Some(share) => (Basis::Fitted, share, [0.1, -share.ln()]),
        None => (Basis::UpperBound, 1.0, [-UNKNOWN_SHARE_MIN.ln(), 0.0]),
    };
    let mut choice = exact(best_point, basis, from_saturating);
    choice.cost.cost_s *= share;
    choice.ln_slack = ln_slack;
    Ok(choice)
}

fn exact(point: &Point, basis: Basis, from_saturating: bool) -> Choice {
    let cost = SaturatedCost { cost_s: point.cost_s, clock_hz: point.clock_hz, program_s: point.program_s };
    Choice { cost, basis, from_saturating, ln_slack: [0.0, 0.0] }
}

/// Which share of the best point's cost is left when its wake-ups are taken off, by the straight line
/// C = C_sat + a · own sleeps through both points.
fn fit_share(best: &Point, other: &Point) -> Option<f64> {
    let (sleeps, other_sleeps) = (best.sleeps?, other.sleeps?);
    let cycles = |point: &Point| match (best.clock_hz, other.clock_hz) {
        (Some(_), Some(_)) => point.cost_s * point.clock_hz.unwrap_or(1.0),
        _ => point.cost_s,
    };
    let apart = other_sleeps - sleeps;
    let slope = (cycles(other) - cycles(best)) / apart;
    let usable = apart >= SLEEPS_APART_MIN && slope > 0.0 && slope.is_finite();
    usable.then(|| (1.0 - slope * sleeps / cycles(best)).clamp(FIT_SHARE_MIN, 1.0))
}

fn too_far(point: &Point) -> Missing {
    Missing::with_remedy(
        format!(
            "no load level came near to filling the server (busy {:.0} % of what it could use, {:.2} sleeps a request), so the cost of a request at saturation was not seen",
            100.0 * point.fullness(),
            point.sleeps.unwrap_or(0.0),
        ),
        "let a saturating level be driven (without --no-levels), with more connections or generator threads",
    )
}
