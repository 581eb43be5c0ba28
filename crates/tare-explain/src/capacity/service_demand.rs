//! C_sat, the service demand at saturation: measured where a level saturated the server, carried there by
//! the cost of wake-ups where none did, and missing where that would be a guess.

use crate::capacity::fit::{Fit, FitSample};
use crate::capacity::iron::{Point, SaturatedCost};
use tare_model::Missing;

/// Two levels show what a wake-up costs only if they differ by this many wake-ups a request.
const WAKEUPS_APART_MIN: f64 = 0.05;
/// With more own sleeps a request than these, farther from saturation, the fit is a guess.
const SLEEPS_MAX: f64 = 0.35;
/// A fit that leaves less than this share of a measured cost is of noise: trials that were all held back alike say little of
/// wake-ups.
const FIT_SHARE_MIN: f64 = 0.5;
/// How far below the fit saturation may lie beside that: a light load takes more than its wake-ups explain.
const FIT_LN_BELOW: f64 = 0.1;
/// Without a second level: how much less CPU a request may take at saturation than the least that was seen (a light load takes
/// 30–40 % more than a full one).
const UNKNOWN_SHARE_MIN: f64 = 0.65;

/// A level that is faster than this, over all the time, is not held by the same sleeps.
const FASTER_MAX: f64 = 1.1;

/// How the demand at saturation was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Basis {
    /// A level saturated the server.
    Measured,
    /// No level did; the cost of wake-ups was taken off.
    Fitted,
    /// No level did, and what wake-ups cost is not known: net is at least this.
    UpperBound,
}

/// Where the cost at saturation is taken from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Choice {
    pub basis: Basis,
    /// From the saturating level, not from the asked one (where a request's cost has no tare then).
    pub from_saturating: bool,
    /// How far ln C_sat may lie below and above, beyond the spread of trials (both ≥ 0).
    pub ln_slack: [f64; 2],
    /// Whether the sleeps of its threads are what holds the rate of the level that is loaded alone.
    pub by_sleeps: bool,
}

/// The levels as points of the iron law, and each of their trials as the fit sees it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub asked: Point,
    pub saturating: Option<Point>,
    pub samples: Vec<FitSample>,
}

impl Seen {
    /// Chooses among the asked level and the saturating one.
    pub fn choose(&self) -> Result<Choice, Missing> {
        let choice = self.by_basis()?;
        let by_sleeps = self.of(choice.from_saturating).is_some_and(|point| self.is_by_sleeps(point));
        Ok(Choice { by_sleeps, ..choice })
    }

    /// Whether the threads' sleeps hold the rate. Not where the other level is faster: who polls sleeps for as long as nobody asks.
    fn is_by_sleeps(&self, point: &Point) -> bool {
        let alone = self.alone(point);
        alone.serial.kept.holds(alone.rate_hz, alone.cost_s) && point.rate_hz <= FASTER_MAX * alone.rate_hz
    }

    fn by_basis(&self) -> Result<Choice, Missing> {
        let measured = |point: &Point, from_saturating| {
            // What wake-ups can take may be none of the cost at saturation.
            let ln_slack = [-(1.0 - point.wakeups_share()).ln(), 0.0];
            Choice { basis: Basis::Measured, from_saturating, ln_slack, by_sleeps: false }
        };
        if let Some(saturating) = self.saturating.as_ref().filter(|point| point.is_saturated()) {
            return Ok(measured(saturating, true));
        }
        if self.asked.is_saturated() {
            return Ok(measured(&self.asked, false));
        }
        let fuller = |point: &&Point| point.fullness() >= self.asked.fullness();
        let from_saturating = self.saturating.as_ref().filter(fuller).is_some();
        let best = self.of(from_saturating).unwrap_or(&self.asked);
        let sleeps = best.sleeps.unwrap_or(1.0);
        if sleeps > SLEEPS_MAX && best.fullness() < 0.8 {
            return Err(too_far(best, self.saturating.is_some()));
        }
        let fitted = |share: f64| [FIT_LN_BELOW.min(UNKNOWN_SHARE_MIN.ln().abs()), -share.ln()];
        Ok(match self.fit_share(best, false) {
            Some(share) => {
                let ln_slack = fitted(share);
                Choice { basis: Basis::Fitted, from_saturating, ln_slack, by_sleeps: false }
            }
            None => {
                let least = (1.0 - best.wakeups_share()).max(UNKNOWN_SHARE_MIN);
                let ln_slack = [-least.ln(), 0.0];
                Choice { basis: Basis::UpperBound, from_saturating, ln_slack, by_sleeps: false }
            }
        })
    }

    /// The cost at saturation by a choice that was made; `corrected`: with the interference taken out.
    pub fn cost(&self, choice: &Choice, corrected: bool) -> Option<SaturatedCost> {
        let point = self.of(choice.from_saturating)?;
        let share = match choice.basis {
            Basis::Fitted => self.fit_share(point, corrected)?,
            Basis::Measured | Basis::UpperBound => 1.0,
        };
        Some(SaturatedCost {
            cost_s: point.cost(corrected)? * share,
            clock_hz: point.clock_hz,
            serial: match choice.by_sleeps {
                true => point.serial.kept_by_sleeps(self.alone(point).serial.kept),
                false => point.serial,
            },
            seen_cost_s: point.cost_s,
        })
    }

    /// Where sleeps show whole: one that is longer than a turn of interleaved load goes on in the others' turns, and the asked level is loaded
    /// alone.
    fn alone<'p>(&'p self, point: &'p Point) -> &'p Point {
        if point.arms > 1 && self.asked.arms < 2 { &self.asked } else { point }
    }

    fn of(&self, from_saturating: bool) -> Option<&Point> {
        if from_saturating { self.saturating.as_ref() } else { Some(&self.asked) }
    }

    /// Which share of a point's cost is left when its wake-ups are taken off.
    fn fit_share(&self, point: &Point, corrected: bool) -> Option<f64> {
        let wakeups = || self.samples.iter().map(FitSample::wakeups);
        let apart = wakeups().fold(0.0, f64::max) - wakeups().fold(f64::INFINITY, f64::min);
        let sample = point.fit_sample(corrected)?;
        let fit = Fit::of(&self.samples).filter(|_| apart >= WAKEUPS_APART_MIN)?;
        let share = 1.0 - fit.of_wakeups(&sample) / sample.cost;
        // Nothing to take off is no fit, nor is more than wake-ups can be: then what they cost was not seen.
        (FIT_SHARE_MIN..1.0).contains(&share).then_some(share)
    }
}

fn too_far(point: &Point, with_more: bool) -> Missing {
    Missing::with_remedy(
        format!(
            "no load level came near to filling the server (busy {:.0} % of what it could use, {:.2} sleeps a request), so the CPU time per request at saturation was not seen",
            100.0 * point.fullness(),
            point.sleeps.unwrap_or(0.0),
        ),
        match with_more {
            true => {
                "see what the server waits for: --trace, or --stacks-off-cpu and then 'tare flame --off-cpu'"
            }
            false => {
                "let a saturating level be driven (without --no-levels), with more connections or generator threads"
            }
        },
    )
}
