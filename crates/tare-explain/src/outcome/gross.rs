//! The measured figure, or why there is none.

use crate::accounting::Closed;
use crate::capacity::levels::Accounting;
use crate::capacity::{estimate, runs};
use tare_model::Missing;
use tare_model::outcome::Gross;

/// Requests per second, or seconds of a run.
pub(crate) fn gross(accounting: &Accounting) -> Gross {
    let figure: fn(&Closed) -> Option<f64> = match accounting.http {
        Some(_) => Closed::rate_hz,
        None => runs::mean_s,
    };
    let unit = accounting.record.plan.workload.unit();
    let why = match accounting.http {
        _ if accounting.asked.trials.is_empty() => "no trial was finished",
        Some(server) if server.url.is_none() => "nobody counted the operations",
        _ => "the requests could not be counted",
    };
    estimate::estimate(&accounting.gross_level(), unit, figure)
        .map(|estimate| estimate::stopped(estimate, accounting.stopping.as_ref()))
        .map_or_else(|| Gross::Missing { reason: Missing::new(why), unit: unit.to_owned() }, Gross::Measured)
}
