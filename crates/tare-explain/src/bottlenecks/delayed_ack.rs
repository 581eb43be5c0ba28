//! `delayed-ack`: answers waited for an acknowledgement that the other end held back for 40 ms. A server that writes an answer
//! in two small pieces sends the second only when the first is acknowledged (Nagle's algorithm), and the client waits with
//! that for something of its own to send (RFC 1122, 4.2.3.2; Linux: 40 ms). So the answer begins at once and ends 40 ms
//! later.

use crate::accounting::ratio;
use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, number_if, percent};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::rank::{Claim, Rank};
use crate::capacity::levels::Accounting;
use tare_model::latency::Latencies;
use tare_model::outcome::{Cause, GrossIs, TareCause};

/// What 40 ms come out as: Linux' timer, a tick of 4 ms, and the answer itself; and on a busy machine as much more as nine of ten answers
/// take to begin, but never twice the time.
const HELD_NS: std::ops::Range<u64> = 38_000_000..46_000_000;
const HELD_NS_MAX: u64 = 78_000_000;
/// Of the requests' time, what is worth a finding, and what holds the rate.
const NOTICE_SHARE: f64 = 0.1;
const BOTTLENECK_SHARE: f64 = 0.5;
/// Most of the answers that end so late have begun before; else something else took the time.
const BEGUN_LATE_MAX: f64 = 0.5;
/// While an answer is held up its last part is given to the kernel and not sent: at the edges of the windows so many connections must
/// have had some, of those that requests spend held up; asked only where those are enough to be met.
const UNSENT_MIN: f64 = 0.2;
const UNSENT_ASKED_MIN: f64 = 4.0;
/// Acknowledgements that are seen to be held back, for each answer that ends so late, at least.
const SEEN_MIN: f64 = 0.5;

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::DelayedAck,
    title: "Delayed acknowledgements are the bottleneck",
    scope: Scope::Http,
    needs: &[Input::Answers],
    gross_is: GrossIs::Capacity,
    holds,
    applies: |accounting| held(accounting).is_some_and(|held| held.time_share >= NOTICE_SHARE),
    describe,
    confirm: Confirm::Cannot {
        why: "socket options are the program's",
        instead: "set TCP_NODELAY there, and run again",
    },
    injections: &["delayed-ack"],
    page: &PAGE,
};

/// Where it is most of the time of all requests.
fn holds(accounting: &Accounting) -> Option<Claim> {
    let most = held(accounting).is_some_and(|held| held.time_share >= BOTTLENECK_SHARE);
    most.then(|| Claim::at(Rank::AcksHeldBack))
}

/// Answers that ended 40 ms after they began.
struct Held {
    /// Of all answers.
    share: f64,
    /// Their time, of the time of all requests.
    time_share: f64,
    acks: Option<f64>,
}

fn held(accounting: &Accounting) -> Option<Held> {
    let latencies = accounting.latencies()?;
    let begun = accounting.begun();
    let waits_ns = begun.quantile_ns(0.9).unwrap_or(0);
    let held_ns = HELD_NS.start..HELD_NS.end.saturating_add(waits_ns).min(HELD_NS_MAX);
    let (count, share, time_share) = late(&latencies, &held_ns)?;
    let (begun_late, ..) = late(&begun, &held_ns)?;
    let acks = accounting.asked.pool.around.delayed_acks;
    let seen = acks.is_none_or(|acks| acks >= SEEN_MIN * count);
    let found = begun_late <= BEGUN_LATE_MAX * count && seen && !was_all_sent(accounting, time_share);
    found.then_some(Held { share, time_share, acks })
}

/// Whether connections had sent all that they were given, though requests were held up for `time_share` of their time: then the server
/// gave them the rest of the answer late.
fn was_all_sent(accounting: &Accounting, time_share: f64) -> bool {
    let pool = &accounting.asked.pool;
    let ends = pool.around.connections.as_ref().and_then(|connections| connections.server.as_ref());
    let Some((ends, (unsent, edges))) = ends.and_then(|ends| Some((ends, ends.unsent?))) else {
        return false;
    };
    let in_flight = pool.rate_hz().zip(accounting.mean_latency_s()).map(|(rate_hz, mean_s)| rate_hz * mean_s);
    let open = ratio(ends.open_s, pool.span.wall_s);
    let expected = in_flight.map_or(0.0, |in_flight| in_flight.min(open) * time_share * edges);
    expected >= UNSENT_ASKED_MIN && unsent < UNSENT_MIN * expected
}

/// How many took about 40 ms: their count, their share, and their share of the time. `None` where nothing was counted.
fn late(latencies: &Latencies, held_ns: &std::ops::Range<u64>) -> Option<(f64, f64, f64)> {
    let (mut count, mut late_ns, mut all_ns) = (0.0, 0.0, 0.0);
    for step in latencies.histogram().iter_recorded() {
        let ns = step.value_iterated_to();
        let together_ns = ns as f64 * step.count_at_value() as f64;
        all_ns += together_ns;
        if held_ns.contains(&ns) {
            count += step.count_at_value() as f64;
            late_ns += together_ns;
        }
    }
    (all_ns > 0.0).then(|| (count, count / latencies.count() as f64, late_ns / all_ns))
}

fn describe(accounting: &Accounting) -> Draft {
    let Held { share, time_share, acks } =
        held(accounting).unwrap_or(Held { share: 0.0, time_share: 0.0, acks: None });
    let mut evidence = vec![
        number("answers that ended some 40 ms after their request and began before", share, "share"),
        number("their time, of the time of all requests", time_share, "share"),
    ];
    evidence.extend(number_if("acknowledgements held back until their time was up", acks, "count"));
    Draft {
        summary: format!(
            "{} of the answers began at once and ended 40 ms later: their last part waited for an acknowledgement that was \
             held back (delayed ACK), {} of the time of all requests.",
            percent(share),
            percent(time_share)
        ),
        // At a rate that is fixed it costs latency alone.
        effect_ln: match accounting.asked.pool.answered.scheduled {
            None => accounting.effect(TareCause::NoWork).max(0.0) * time_share,
            Some(_) => 0.0,
        },
        // Delays of a program's own can be 40 ms long; with the kernel's count they are not.
        confidence: if acks.is_some() { 1.0 } else { 0.5 },
        evidence,
        remedy: "set TCP_NODELAY on the server's connections, or write head and body of an answer in one call (writev, a \
                 buffer)"
            .to_owned(),
        confirm: "with TCP_NODELAY the answers of 40 ms are gone".to_owned(),
    }
}

static PAGE: Page = Page {
    brief: "Answers ended 40 ms late: an acknowledgement was held back.",
    means: &[
        "A server that writes an answer in two small pieces sends the second only when the first is \
         acknowledged (Nagle's algorithm). The client holds that acknowledgement back for up to 40 ms, in \
         the hope of sending it with data.",
        "Each such answer takes 40 ms more, and no side is busy meanwhile.",
    ],
    evidence: &[
        "Share of the answers that ended 38 to 46 ms after their request and began before, and their share \
         of all requests' time. Where the machine is busy, the time in which nine of ten answers begin is \
         allowed on top.",
        "Acknowledgements that the kernel held back until their time was up. With this count confidence is \
         1, without it a half.",
    ],
    looks_the_same: &[
        "`network-ceiling`: segments are lost and sent again. That takes 200 ms or more.",
        "A program that sleeps for 40 ms before the end of an answer. The kernel's count stands still then.",
        "`cpu-quota-throttled`: steps of latency up to the length of a period, at the beginning of answers \
         as well.",
    ],
    to_do: &[
        "Set TCP_NODELAY on the server's connections.",
        "Or write head and body of an answer at once: writev, a buffer that is flushed once, MSG_MORE or \
         TCP_CORK.",
    ],
    to_confirm: &[
        "There is no intervention: socket options are the program's. Set TCP_NODELAY, and run again. \
         Answers of 40 ms are gone.",
        "By hand: `strace -f -e trace=write,writev,sendto,setsockopt -p PID` shows two writes for each \
         answer; `nstat -az TcpExtDelayedACKs` grows.",
    ],
    source: &[
        "First-byte and last-byte times of the generator, TcpExtDelayedACKs. RFC 896 (Nagle), RFC 1122 \
         section 4.2.3.2 (delayed acknowledgement).",
    ],
};
