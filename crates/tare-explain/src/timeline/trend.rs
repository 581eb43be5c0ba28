//! How the figure behaves from trial to trial.

use crate::accounting::Closed;
use crate::capacity::levels::Accounting;
use tare_model::outcome::Target;
use tare_stats::Interval;

/// A drift smaller than this is no matter, however clear.
const DRIFT_LN_MIN: f64 = 0.05;

/// The second half of the trials against the first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drift {
    /// Difference of the mean logarithms.
    pub ln: f64,
    pub interval: Interval,
    pub trials: usize,
}

impl Drift {
    /// Large, and not to be had by chance.
    pub fn is_clear(&self) -> bool {
        self.ln.abs() > DRIFT_LN_MIN && (self.interval.lo > 0.0 || self.interval.hi < 0.0)
    }

    /// Share of the interval on the side of a drift that matters.
    pub fn confidence(&self) -> f64 {
        if self.ln >= 0.0 {
            self.interval.share_above(DRIFT_LN_MIN)
        } else {
            1.0 - self.interval.share_above(-DRIFT_LN_MIN)
        }
    }
}

/// The figure of one window: answers per second, or seconds per run.
pub(crate) fn figure(window: &Closed) -> Option<f64> {
    window
        .rate_hz()
        .or_else(|| crate::capacity::runs::mean_s(window).filter(|_| window.answered.requests.is_none()))
}

fn ln_figure(window: &Closed) -> Option<f64> {
    figure(window).map(f64::ln).filter(|ln| ln.is_finite())
}

/// The drift over the asked level's trials; `None` for fewer than four.
pub(crate) fn drift(accounting: &Accounting) -> Option<Drift> {
    let values: Vec<f64> = accounting.gross_level().trials.iter().map(ln_figure).collect::<Option<_>>()?;
    let moved = tare_stats::drift(&values)?;
    Some(Drift { ln: moved.value, interval: moved.ci95?, trials: values.len() })
}

/// Half of the gross figure's interval, on the log; `None` where there is none.
pub(crate) fn half_width_ln(accounting: &Accounting) -> Option<f64> {
    if let Some(stopping) = accounting.stopping.as_ref().filter(|stopping| stopping.target == Target::Gross) {
        return stopping.reached.map(f64::asinh);
    }
    let interval = accounting.gross_level().interval(ln_figure)?;
    Some(0.5 * (interval.hi - interval.lo))
}
