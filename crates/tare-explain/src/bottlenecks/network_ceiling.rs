//! `network-ceiling`: what lies between server and generator lets no more packets or bytes through, or loses some.
//!
//! It is known by two things, where both sides have time to spare. The kernel's account of each connection: of its life, the share in
//! which the server's bytes were on their way. That alone is a round trip, which more connections make good; where they do
//! not, it is a ceiling. And segments that were sent again: what is lost at the end of an answer, or alone in a request, is
//! missed only after 200 ms (Linux' least retransmission timeout; a tail loss probe may be earlier).

use crate::accounting::Closed;
use crate::accounting::Connections;
use crate::accounting::ratio;
use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, number_if, percent};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::rank::{Claim, Rank};
use crate::bottlenecks::signs::concurrency::{More, few_in_flight, more_connections_bring_more};
use crate::bottlenecks::signs::requests::fails;
use crate::capacity::generator;
use crate::capacity::level::Level as Sums;
use crate::capacity::levels::Accounting;
use tare_model::outcome::{Cause, GrossIs, TareCause};
use tare_model::trial::ErrorKind;

/// Of the time of requests or connections, what is worth a finding, and what holds the rate.
const NOTICE_SHARE: f64 = 0.1;
const BOTTLENECK_SHARE: f64 = 0.5;
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

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::NetworkCeiling,
    title: "The network is the bottleneck",
    scope: Scope::Http,
    needs: &[Input::Connections, Input::Requests],
    gross_is: GrossIs::Capacity,
    holds,
    // That bytes are on their way for a while is no loss: only what was lost is worth saying beside another bottleneck.
    applies: |accounting| stalled(accounting).is_some_and(|share| share >= NOTICE_SHARE),
    describe,
    confirm: Confirm::Cannot {
        why: "what is on the way is not tare's to change",
        instead: "run again with answers of half the size",
    },
    injections: &["bandwidth", "packet-rate", "loss"],
    page: &PAGE,
};

/// Where neither side is full; and where it is what requests fail of. It shows in the connections, beside two sides that have more
/// time to spare than the time accounting misses.
fn holds(accounting: &Accounting) -> Option<Claim> {
    if fails(accounting) && times_out(accounting) {
        return Some(Claim::at(Rank::FailureExplained).beside_time());
    }
    let full = || {
        between_the_sides(accounting).is_some_and(|share| share >= BOTTLENECK_SHARE)
            && !more_would_help(accounting)
    };
    let ceiling = has_time_to_spare(&accounting.asked.pool) && (loses(accounting) || full());
    ceiling.then(|| Claim::at(Rank::OnTheWay).beside_time())
}

/// Whether it is what requests fail of: most that do have no answer in time, and the time went to what was lost on the way.
fn times_out(accounting: &Accounting) -> bool {
    let pool = &accounting.asked.pool;
    pool.answered.fails_mostly_by(&[ErrorKind::Timeout]) && has_time_to_spare(pool) && loses(accounting)
}

/// Whether what was lost on the way took most of the requests' time.
fn loses(accounting: &Accounting) -> bool {
    stalled(accounting).is_some_and(|share| share >= BOTTLENECK_SHARE)
}

/// Whether neither side is nearly full, were it also the one that had what is missing in the accounting: one that is leaves bytes
/// in its queues.
fn has_time_to_spare(pool: &Closed) -> bool {
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

fn connections<'b>(accounting: &'b Accounting<'_>) -> Option<&'b Connections> {
    accounting.asked.pool.around.connections.as_ref()
}

/// Share of the connections' life in which answers were on their way.
fn on_the_way(accounting: &Accounting) -> Option<f64> {
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

fn resent(accounting: &Accounting) -> Option<f64> {
    let seen = connections(accounting).filter(|seen| seen.segments > 0.0)?;
    Some((seen.retransmits / seen.segments).min(1.0))
}

/// Share of the requests' time in which they stood still for segments that had to be sent again, about.
fn stalled(accounting: &Accounting) -> Option<f64> {
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

fn describe(accounting: &Accounting) -> Draft {
    let pool = &accounting.asked.pool;
    let seen = connections(accounting).cloned().unwrap_or_default();
    let per_s = |count: f64| ratio(count, pool.span.wall_s);
    let (resent, stalled) = (resent(accounting), stalled(accounting).unwrap_or(0.0));
    let on_the_way = on_the_way(accounting);
    let bytes = seen.server.as_ref().map(|server| per_s(server.bytes));
    let mut evidence = Vec::new();
    evidence.extend(number_if("answers on their way, share of the connections' life", on_the_way, "share"));
    evidence.extend(number_if("segments sent again, share of all", resent, "share"));
    evidence.push(number("requests standing still for them, share of their time, about", stalled, "share"));
    evidence.push(number("segments with data, both ways", per_s(seen.segments), "1/s"));
    evidence.extend(number_if("bytes of answers", bytes, "B/s"));
    let more_hz = More::of(accounting).map(|more| more.rate_hz);
    evidence.extend(number_if("req/s with more connections, at least", more_hz, "req/s"));
    let through = match bytes {
        Some(bytes) => format!("{:.0} segments and {:.1} MB a second", per_s(seen.segments), bytes / 1e6),
        None => format!("{:.0} segments a second", per_s(seen.segments)),
    };
    let summary = if stalled >= NOTICE_SHARE {
        format!(
            "Packets are lost between server and generator: {:.2} % of the segments were sent again, for which requests stood \
             still about {} of their time ({through} came through).",
            100.0 * resent.unwrap_or(0.0),
            percent(stalled)
        )
    } else {
        format!(
            "Answers were on their way {} of the connections' time, while both sides had time to spare, and {through} came \
             through, however many connections there are.",
            percent(on_the_way.unwrap_or(0.0))
        )
    };
    Draft {
        summary,
        effect_ln: match pool.answered.scheduled {
            None => accounting.effect(TareCause::NoWork).max(0.0) * stalled.max(on_the_way.unwrap_or(0.0)),
            Some(_) => 0.0,
        },
        confidence: if more_hz.is_some() || stalled >= BOTTLENECK_SHARE { 1.0 } else { 0.5 },
        evidence,
        remedy: "look for what drops or holds packets back on the way: tc -s qdisc, nft list ruleset (limit), ethtool -S, the \
                 link's speed; make answers smaller (compression), or measure on one host"
            .to_owned(),
        confirm: "with answers of half the size, or the limit on the way doubled, the rate nearly doubles".to_owned(),
    }
}

static PAGE: Page = Page {
    brief: "The network between server and generator is full, or loses packets.",
    means: &[
        "Both sides have time to spare, and requests spend theirs on the way: bytes that are sent and not \
         acknowledged, or segments that are lost and sent again. A lost last segment is missed only after \
         about 200 ms.",
        "Bytes on their way alone are a round trip. It is a ceiling if more connections bring no more.",
    ],
    evidence: &[
        "Share of the connections' life in which the server's bytes were on their way.",
        "Segments sent again, as a share of all, and the share of the requests' time that they took, about.",
        "Segments and bytes per second that came through, and the rate with more connections.",
    ],
    looks_the_same: &[
        "`too-little-concurrency`: a long round trip, and more connections make good what each waits.",
        "`delayed-ack`: answers end 40 ms late, nothing is lost.",
        "`server-cpu-bound`: a server that is nearly full leaves bytes in its queues. Nothing is said of \
         the network then.",
        "`cpu-contended` and `load-generator-bound`: other programs have the generator's CPU, so answers are \
         acknowledged late. That time does not count as on the way.",
        "`softirq-saturated`: packets wait for a CPU on this host.",
    ],
    to_do: &[
        "Look for what drops or holds packets back: `tc -s qdisc`, `nft list ruleset` (limit), `ethtool -S \
         eth0`, the speed of the link, a cloud instance's packet limit.",
        "Send less: compression, smaller headers, keep connections alive.",
        "Measure on one host, or over a faster link, if the server is what is to be measured.",
    ],
    to_confirm: &[
        "There is no intervention: the way is not tare's to change. With answers of half the size, or twice \
         the limit, the rate nearly doubles.",
        "By hand: `ss -ti` (retrans, busy, unacked), `nstat -az TcpRetransSegs TcpExtTCPLostRetransmit`.",
    ],
    source: &[
        "tcp_info of both ends of each connection (tcp(7)), the generator's latencies. RFC 6298 (timeout), \
         RFC 8985 (loss detection).",
    ],
};
