//! Whether there are requests enough in flight.

use crate::accounting::{Closed, ratio};
use crate::bottlenecks::signs::locks::parked;
use crate::capacity::levels::Accounting;

/// More connections must bring this factor before they are said to bring more.
const MORE_RATE: f64 = 1.1;
/// A busy server that does so many times as much with more connections was busy with waiting for them. Less comes of answers in batches.
const SPINS_RATE: f64 = 1.5;

/// A request that takes longer than this, and than so many times its CPU time, waits for something.
const LONG_S: f64 = 1e-3;
const LONG_TIMES: f64 = 10.0;
/// Of the CPU entitlement, lost to threads that were parked.
const PARKED_MIN: f64 = 0.3;
/// With more requests at once one may wait for another, in a lock of the server that is no lock of its threads.
const ALONE_MAX: f64 = 1.0;

/// Whether a saturating level with more connections reached clearly more; `None` where there is no such level.
pub(crate) fn more_connections_bring_more(accounting: &Accounting) -> Option<bool> {
    rate_with_more(accounting).map(|times| times >= MORE_RATE)
}

/// Whether what the server runs is not for requests: far more of them cost it far less each, and so few are in flight that it could
/// have slept.
pub(crate) fn spins(accounting: &Accounting) -> bool {
    let cost_s = |pool: &Closed| pool.per_request(pool.sut.as_ref()?.run_s);
    let costs = cost_s(&accounting.asked.pool)
        .zip(accounting.saturating.as_ref().and_then(|level| cost_s(&level.pool)));
    let costs_less = costs.is_some_and(|(asked_s, saturating_s)| asked_s >= SPINS_RATE * saturating_s);
    let is_faster = rate_with_more(accounting).is_some_and(|times| times >= SPINS_RATE);
    few_in_flight(accounting) && is_faster && costs_less
}

/// The rate of a saturating level with more connections, over the asked one; `None` where there is no such level.
fn rate_with_more(accounting: &Accounting) -> Option<f64> {
    let connections =
        |level: &tare_model::plan::Level| level.connections.saturating_mul(level.pipeline.max(1));
    let (asked, saturating) = (accounting.asked_level()?, accounting.saturating_level?);
    let more = connections(saturating) > connections(asked);
    let rates =
        accounting.asked.pool.rate_hz().zip(accounting.saturating.as_ref()?.pool.rate_interleaved_hz());
    let rates = rates.filter(|(asked, _)| more && *asked > 0.0);
    rates.map(|(asked, saturating)| saturating / asked)
}

/// As a level with more shows; where there is none, as is likely.
pub(crate) fn more_in_flight_would_help(accounting: &Accounting) -> bool {
    more_connections_bring_more(accounting)
        .unwrap_or_else(|| few_in_flight(accounting) && held(accounting).is_none())
}

/// The time of a request and its CPU time, where the server may hold requests back: each takes far longer than CPU time and wake-ups
/// explain, and it is not alone, or the threads that serve are parked, for want of work or for something that cannot be seen.
pub(crate) fn held(accounting: &Accounting) -> Option<(f64, f64)> {
    let pool = &accounting.asked.pool;
    let cpu_s: f64 = [accounting.sut(), accounting.load()]
        .into_iter()
        .flatten()
        .filter_map(|side| pool.per_request(side.run_s))
        .sum();
    // What a request spends on the way, more of them make good.
    let server = pool.around.connections.as_ref().and_then(|connections| connections.server.as_ref());
    let away = server.map_or(0.0, |ends| ratio(ends.on_the_way_s, ends.open_s).min(1.0));
    let is_long = |latency_s: &f64| (1.0 - away) * latency_s >= LONG_S.max(LONG_TIMES * cpu_s);
    // Of a generator that prints no latencies: by Little's law, as many requests in flight as it has connections.
    let in_flight = accounting.kept_in_flight();
    let by_little = || in_flight.zip(pool.rate_hz()).map(|(in_flight, rate_hz)| in_flight / rate_hz);
    let is_together = in_flight.is_some_and(|in_flight| in_flight > ALONE_MAX);
    let latency_s = accounting.mean_latency_s().or_else(by_little).filter(is_long)?;
    (is_together || parked(accounting) >= PARKED_MIN).then_some((latency_s, cpu_s))
}

/// Without a level to compare with: at most four requests in flight for each serving thread on either side
/// cannot keep both at work.
pub(crate) fn few_in_flight(accounting: &Accounting) -> bool {
    let threads = accounting.sut().map_or(1.0, |sut| sut.serving())
        + accounting.load().map_or(1.0, |load| load.serving());
    accounting.kept_in_flight().is_some_and(|in_flight| in_flight <= 4.0 * threads.max(2.0))
}
