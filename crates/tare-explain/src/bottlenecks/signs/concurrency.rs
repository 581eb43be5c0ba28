//! Whether there are requests enough in flight.

use crate::capacity::levels::Accounting;

/// More connections must bring this factor before they are said to bring more.
const MORE_RATE: f64 = 1.1;

/// Whether a saturating level with more connections reached clearly more; `None` where there is no such level.
pub(crate) fn more_connections_bring_more(accounting: &Accounting) -> Option<bool> {
    let connections =
        |level: &tare_model::plan::Level| level.connections.saturating_mul(level.pipeline.max(1));
    let (asked, saturating) = (accounting.asked_level?, accounting.saturating_level?);
    let more = connections(saturating) > connections(asked);
    let rates =
        accounting.asked.pool.rate_hz().zip(accounting.saturating.as_ref()?.pool.rate_interleaved_hz());
    rates.filter(|_| more).map(|(asked, saturating)| saturating >= MORE_RATE * asked)
}

/// As a level with more shows; where there is none, as is likely.
pub(crate) fn more_in_flight_would_help(accounting: &Accounting) -> bool {
    more_connections_bring_more(accounting).unwrap_or_else(|| few_in_flight(accounting))
}

/// Without a level to compare with: at most four requests in flight for each serving thread on either side
/// cannot keep both at work.
fn few_in_flight(accounting: &Accounting) -> bool {
    let threads = accounting.sut().map_or(1.0, |sut| sut.serving())
        + accounting.load().map_or(1.0, |load| load.serving());
    let in_flight =
        accounting.asked_level.map(|level| f64::from(level.connections) * f64::from(level.pipeline.max(1)));
    in_flight.is_some_and(|in_flight| in_flight <= 4.0 * threads.max(2.0))
}
