//! Whether there are requests enough in flight.

use crate::accounting::{Closed, ratio};
use crate::bottlenecks::signs::locks::parked;
use crate::capacity::iron::Point;
use crate::capacity::levels::Accounting;
use std::time::Duration;
use tare_model::plan::{Level, turn_for};

/// More connections bring more where the rate follows them with this elasticity: what works on a few requests at once brings a little more
/// when its queue is never empty. 1.5 times the rate is enough, however many more they are.
const MORE_ELASTICITY: f64 = 0.3;
const MORE_RATE_MAX: f64 = 1.5;
/// Where they fill a side, this factor is enough.
const MORE_RATE: f64 = 1.1;
/// A server this busy, or a generator that would be with the CPU time of its requests, has no time to spare for more.
const SERVER_FULL: f64 = 0.8;
const GENERATOR_FULL: f64 = 0.6;
/// A busy server that does so many times as much with more connections was busy with waiting for them. Less comes of answers in batches.
const SPINS_RATE: f64 = 1.5;

/// A request that takes longer than this, and than so many times its CPU time, waits for something.
const LONG_S: f64 = 1e-3;
const LONG_TIMES: f64 = 10.0;
/// Of the CPU entitlement, lost to threads that were parked.
const PARKED_MIN: f64 = 0.3;
/// Times the rate that more connections may bring where it is as good as the same.
const LITTLE_MORE: f64 = 1.25;
/// With more requests at once one may wait for another, in a lock of the server that is no lock of its threads.
const ALONE_MAX: f64 = 1.0;

/// Whether a saturating level with more connections reached clearly more; `None` where there is no such level.
pub(crate) fn more_connections_bring_more(accounting: &Accounting) -> Option<bool> {
    let more = More::of(accounting)?;
    let in_proportion = more.in_flight.powf(MORE_ELASTICITY).clamp(MORE_RATE, MORE_RATE_MAX);
    Some(more.rate >= if more.fills_a_side { MORE_RATE } else { in_proportion })
}

/// By which share more connections raise the rate at most, where that is little and the generator has time to spare.
pub(crate) fn little_more(accounting: &Accounting) -> Option<f64> {
    let more = More::of(accounting)?;
    (more.rate_max <= LITTLE_MORE && !more.fills_generator).then_some(more.rate_max.max(1.0) - 1.0)
}

/// Whether what the server runs is not for requests: far more of them cost it far less each, and so few are in flight that it could
/// have slept.
pub(crate) fn spins(accounting: &Accounting) -> bool {
    let cost_s = |pool: &Closed| pool.per_request(pool.sut.as_ref()?.run_s);
    let costs = cost_s(&accounting.asked.pool)
        .zip(accounting.saturating.as_ref().and_then(|level| cost_s(&level.pool)));
    let costs_less = costs.is_some_and(|(asked_s, saturating_s)| asked_s >= SPINS_RATE * saturating_s);
    let is_faster = More::of(accounting).is_some_and(|more| more.rate >= SPINS_RATE);
    few_in_flight(accounting) && is_faster && costs_less
}

/// A saturating level with more connections, over the asked one.
pub(crate) struct More {
    /// How many times the requests in flight.
    pub in_flight: f64,
    /// How many times the rate.
    pub rate: f64,
    /// Its answers per second, at least.
    pub rate_hz: f64,
    /// How many times the rate, at most.
    rate_max: f64,
    /// Whether the server or the generator has nothing to spare there; the generator alone.
    fills_a_side: bool,
    fills_generator: bool,
}

impl More {
    /// `None` where there is no such level.
    pub fn of(accounting: &Accounting) -> Option<More> {
        let kept = |level: &Level| f64::from(level.connections) * f64::from(level.pipeline.max(1));
        let (asked, more) = (kept(accounting.asked_level()?), kept(accounting.saturating_level?));
        let level = &accounting.saturating.as_ref()?.pool;
        let asked_hz = accounting.asked.pool.rate_hz().filter(|rate_hz| more > asked && *rate_hz > 0.0)?;
        let rate_hz = own_rate_hz(level, more)?;
        let server = Point::of(level).is_ok_and(|point| point.fullness() >= SERVER_FULL);
        let generator = accounting.load().is_some_and(|load| {
            let request_s = accounting.asked.pool.per_request(load.run_s).unwrap_or(0.0);
            request_s * rate_hz >= GENERATOR_FULL * load.serving().min(load.cpus())
        });
        Some(More {
            in_flight: more / asked,
            rate: rate_hz / asked_hz,
            rate_hz,
            rate_max: level.rate_interleaved_hz()? / asked_hz,
            fills_a_side: server || generator,
            fills_generator: generator,
        })
    }

    /// ∂ln rate / ∂ln requests in flight.
    pub fn elasticity(&self) -> f64 {
        self.rate.ln() / self.in_flight.ln()
    }
}

/// Answers per second of a server's own part of the time, at least. What is in flight at the end of a turn is answered in another server's turn,
/// and is counted too: it is taken off here. A record does not say how long its turns were. They follow from how long a request takes, and that
/// from Little's law.
fn own_rate_hz(level: &Closed, in_flight: f64) -> Option<f64> {
    let rate_hz = level.rate_interleaved_hz().filter(|rate_hz| *rate_hz > 0.0)?;
    if level.arms() < 2 {
        return Some(rate_hz);
    }
    let latency_s = in_flight / rate_hz;
    let turn = turn_for(Duration::try_from_secs_f64(latency_s).unwrap_or(Duration::MAX));
    Some(rate_hz / (1.0 + latency_s / turn.as_secs_f64()))
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
