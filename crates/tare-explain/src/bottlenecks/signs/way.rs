//! Whether requests spend their time between server and generator: on their way, or standing still for packets that were lost.

use crate::accounting::{Closed, Connections, ratio};
use crate::bottlenecks::signs::concurrency::{More, few_in_flight, more_connections_bring_more};
use crate::capacity::generator;
use crate::capacity::level::Level as Sums;
use crate::capacity::levels::Accounting;
use tare_model::outcome::TareCause;
use tare_model::trial::ErrorKind;

/// Of the time of requests or connections, what is worth a finding, and what holds the rate.
pub(crate) const NOTICE_SHARE: f64 = 0.1;
pub(crate) const BOTTLENECK_SHARE: f64 = 0.5;
/// Who uses more than this of its time may be the bottleneck itself.
const NEARLY_FULL: f64 = 0.8;
/// Of the growth in connections, what comes through as growth in rate where these were too few.
const ELASTIC: f64 = 0.5;
/// A rate that more connections raise so far was held by their number, whatever holds it then.
const HELD_BY_NUMBER: f64 = 1.5;
/// How long a request stands still for each segment that is sent again.
const RESENT_AFTER_S: f64 = 0.2;
/// An answer that fits into three segments is on its way at once.
const SMALL_BYTES: f64 = 4096.0;
/// How long an acknowledgement is held back (Linux' TCP_DELACK_MIN).
const ACK_HELD_S: f64 = 0.04;
/// Fewer segments sent again than this are chance, whatever else takes the time.
const RESENT_SHARE_MIN: f64 = 0.001;

/// Overflows of accept queues for each segment that was sent again: above this they are why it was.
const OVERFLOWS_EXPLAIN_MIN: f64 = 0.5;

/// Whether both sides have time to spare, and most of the requests' time is lost on the way, or spent there however many connections there are.
pub(crate) fn is_ceiling(accounting: &Accounting) -> bool {
    has_time_to_spare(&accounting.asked.pool) && (loses(accounting) || is_full(accounting))
}

/// Whether answers are on their way most of the time, and more connections do not make that good.
pub(crate) fn is_full(accounting: &Accounting) -> bool {
    between_the_sides(accounting).is_some_and(|share| share >= BOTTLENECK_SHARE)
        && !more_would_help(accounting)
}

/// Whether it is what requests fail of: most that do have no answer in time, and the time went to what was lost on the way.
pub(crate) fn times_out(accounting: &Accounting) -> bool {
    let pool = &accounting.asked.pool;
    pool.answered.fails_mostly_by(&[ErrorKind::Timeout]) && has_time_to_spare(pool) && loses(accounting)
}

/// Whether what was lost on the way took most of the requests' time.
pub(crate) fn loses(accounting: &Accounting) -> bool {
    stalled(accounting).is_some_and(|share| share >= BOTTLENECK_SHARE)
}

/// Whether neither side is nearly full, were it also the one that had what is missing in the accounting: one that is leaves bytes
/// in its queues.
pub(crate) fn has_time_to_spare(pool: &Closed) -> bool {
    let server = pool.sut.as_ref().filter(|sut| sut.entitled_s > 0.0);
    let server = server.map(|sut| 1.0 - sut.tare_share(TareCause::NoWork));
    let missing = pool.missing_share();
    server.into_iter().chain(generator::fullness(pool)).all(|full| full + missing < NEARLY_FULL)
}

/// Whether more connections make good what each waits. They bring in proportion until a side is full; the little that they
/// bring while both wait is a queue that is kept fuller.
fn more_would_help(accounting: &Accounting) -> bool {
    let both_wait = |saturating: &Sums| has_time_to_spare(&saturating.pool);
    let brings_little = |more: More| more.rate < HELD_BY_NUMBER && more.elasticity() < ELASTIC;
    let is_ceiling = More::of(accounting).is_some_and(brings_little)
        && accounting.saturating.as_ref().is_some_and(both_wait);
    more_connections_bring_more(accounting).unwrap_or_else(|| few_in_flight(accounting)) && !is_ceiling
}

pub(crate) fn connections<'b>(accounting: &'b Accounting<'_>) -> Option<&'b Connections> {
    accounting.asked.pool.around.connections.as_ref()
}

/// Share of the connections' life in which answers were on their way.
pub(crate) fn on_the_way(accounting: &Accounting) -> Option<f64> {
    let server = connections(accounting)?.server.as_ref().filter(|server| server.open_s > 0.0)?;
    Some((server.on_the_way_s / server.open_s).min(1.0))
}

/// The same without the time in which others had the generator's CPU: an answer that it cannot read is acknowledged late; without that
/// of acknowledgements that were held back, for the answer that they wait to be sent with; and of small answers no more than the time
/// until they begin: the head of one may be there, and the server takes its time for the rest.
fn between_the_sides(accounting: &Accounting) -> Option<f64> {
    let pool = &accounting.asked.pool;
    let waits = generator::kept_off_share(pool).unwrap_or(0.0);
    let open_s = connections(accounting)?.server.as_ref().map_or(0.0, |server| server.open_s);
    let share = (on_the_way(accounting)? - waits).max(0.0);
    let Some(requests) = pool.answered.requests.filter(|requests| answers_are_small(accounting, *requests))
    else {
        return Some(share);
    };
    // One for each answer at most: others in this network hold theirs back as well.
    let acks = pool.around.delayed_acks.unwrap_or(0.0).min(requests);
    let begun = accounting.begun().mean_ns().zip(accounting.mean_latency_s());
    let until_begun = begun.map_or(1.0, |(begun_ns, mean_s)| ratio(begun_ns / 1e9, mean_s));
    Some((share - ratio(acks * ACK_HELD_S, open_s)).max(0.0).min(until_begun))
}

fn answers_are_small(accounting: &Accounting, requests: f64) -> bool {
    let server = connections(accounting).and_then(|seen| seen.server.as_ref());
    server.is_some_and(|server| server.bytes <= SMALL_BYTES * requests)
}

pub(crate) fn resent(accounting: &Accounting) -> Option<f64> {
    let seen = connections(accounting).filter(|seen| seen.segments > 0.0)?;
    Some((seen.retransmits / seen.segments).min(1.0))
}

/// Share of the requests' time in which they stood still for segments that had to be sent again, about.
pub(crate) fn stalled(accounting: &Accounting) -> Option<f64> {
    if resent(accounting)? < RESENT_SHARE_MIN {
        return Some(0.0);
    }
    let requests_s = accounting.mean_latency_s()? * accounting.asked.pool.answered.requests?;
    let seen = connections(accounting)?;
    // What found the accept queue full was dropped by the server's own kernel, and not lost on the way.
    let overflows = accounting.asked.pool.around.listen_overflows.unwrap_or(0.0);
    if overflows >= OVERFLOWS_EXPLAIN_MIN * seen.retransmits {
        return Some(0.0);
    }
    // What is lost again and again waits twice as long each time: the kernel counts that from the first timeout on.
    let stalled_s = (seen.retransmits * RESENT_AFTER_S).max(seen.timed_out_s.unwrap_or(0.0));
    (requests_s > 0.0).then(|| (stalled_s / requests_s).min(1.0))
}
