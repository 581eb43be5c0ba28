//! `network-ceiling`: what lies between server and generator lets no more packets or bytes through, or loses some.
//!
//! It is known by two things, where both sides have time to spare. The kernel's account of each connection: of its life, the share in
//! which the server's bytes were on their way. That alone is a round trip, which more connections make good; where they do
//! not, it is a ceiling. And segments that were sent again: what is lost at the end of an answer, or alone in a request, is
//! missed only after 200 ms (Linux' least retransmission timeout; a tail loss probe may be earlier).

use crate::accounting::ratio;
use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, number_if, percent};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::rank::{Claim, Rank};
use crate::bottlenecks::signs::concurrency::More;
use crate::bottlenecks::signs::quota;
use crate::bottlenecks::signs::requests::fails;
use crate::bottlenecks::signs::way::{
    BOTTLENECK_SHARE, NOTICE_SHARE, connections, is_ceiling, on_the_way, resent, stalled, times_out,
};
use crate::capacity::levels::Accounting;
use tare_model::outcome::{Cause, GrossIs, TareCause};

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::NetworkCeiling,
    title: "The network is the bottleneck",
    scope: Scope::Http,
    needs: &[Input::Connections, Input::Requests],
    gross_is: GrossIs::Capacity,
    holds,
    applies,
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
    is_ceiling(accounting).then(|| Claim::at(Rank::OnTheWay).beside_time())
}

/// That bytes are on their way for a while is no loss: only what was lost is worth saying beside another bottleneck, and what a known quota
/// drops is said there.
fn applies(accounting: &Accounting) -> bool {
    stalled(accounting).is_some_and(|share| share >= NOTICE_SHARE) && quota::seen(accounting).is_none()
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
        "`network-quota`: what drops or holds back is known to count packets or bytes.",
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
