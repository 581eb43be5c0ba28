//! `network-quota`: on the way between server and generator so many packets or bytes a second come through and no more. Named from its
//! counter where there is one, else from a rate of packets that more load does not raise.

use crate::accounting::{Closed, ratio};
use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, number_if, percent};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::rank::{Claim, Rank};
use crate::bottlenecks::signs::quota::{self, By, Quota};
use crate::bottlenecks::signs::requests::fails;
use crate::bottlenecks::signs::way::{connections, on_the_way, stalled, times_out};
use crate::capacity::levels::Accounting;
use tare_model::outcome::{Cause, Evidence, GrossIs, TareCause};

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::NetworkQuota,
    title: "A quota of the network is the bottleneck",
    scope: Scope::Http,
    needs: &[Input::Connections, Input::Requests],
    gross_is: GrossIs::Capacity,
    holds,
    applies: |accounting| quota::seen(accounting).is_some() || quota::exceeded(accounting).is_some(),
    describe,
    confirm: Confirm::Cannot {
        why: "what is on the way is not tare's to change",
        instead: "run again with the quota doubled, or with answers of half the size",
    },
    injections: &["bandwidth", "packet-rate"],
    page: &PAGE,
};

/// Where `network-ceiling` would be the bottleneck, and what drops or holds back is known to be a quota.
fn holds(accounting: &Accounting) -> Option<Claim> {
    quota::seen(accounting)?;
    let rank = match fails(accounting) && times_out(accounting) {
        true => Rank::FailureExplained,
        false => Rank::OnTheWay,
    };
    Some(Claim::at(rank).beside_time())
}

fn describe(accounting: &Accounting) -> Draft {
    let pool = &accounting.asked.pool;
    let seen = quota::seen(accounting);
    let exceeded = quota::exceeded(accounting);
    let stalled = stalled(accounting);
    let mut evidence = Vec::new();
    if let Some(quota) = &seen {
        let direction = quota.direction;
        let packets_hz = quota::packets_hz(accounting, quota);
        let way = direction.map_or("in a direction that is not seen", |direction| direction.words());
        let what = match quota.by {
            By::Limit(_) => "packets that a rule lets through",
            _ => "packets that came through",
        };
        evidence.extend(packets_hz.map(|hz| number(format!("{what}, {way}"), hz, "packets/s")));
        let lost = direction.and_then(|direction| quota::lost_share(pool, direction));
        evidence.extend(number_if("of the packets sent that way, lost", lost, "share"));
        let back = direction.and_then(|direction| quota::lost_share_back(pool, direction));
        evidence.extend(number_if("of those sent the other way, lost", back, "share"));
        evidence.extend(proof(pool, quota));
    }
    if let Some(count) = exceeded {
        let hz = ratio(count.grown, pool.span.wall_s);
        evidence.push(number(format!("{} of {}", count.metric.id, count.device), hz, "1/s"));
    }
    evidence.extend(number_if(
        "requests standing still for lost packets, share of their time, about",
        stalled,
        "share",
    ));
    let bytes = connections(accounting).and_then(|seen| seen.server.as_ref()).map(|ends| ends.bytes);
    let bytes_hz = bytes.map(|bytes| ratio(bytes, pool.span.wall_s));
    evidence.extend(number_if("bytes of answers", bytes_hz, "B/s"));
    let held = stalled.unwrap_or(0.0).max(on_the_way(accounting).unwrap_or(0.0));
    Draft {
        summary: summary(accounting, seen.as_ref()),
        effect_ln: match pool.answered.scheduled {
            None if seen.is_some() => accounting.effect(TareCause::NoWork).max(0.0) * held,
            _ => 0.0,
        },
        confidence: match seen.as_ref().map(|quota| &quota.by) {
            Some(By::Counter(_) | By::Limit(_)) => 1.0,
            Some(By::Flat { .. }) => 0.9,
            None => 0.3,
        },
        evidence,
        remedy: "look for the quota: the packets and bytes a second of the cloud instance's type, nft list ruleset (limit), \
                 tc -s qdisc, ethtool -S; raise it, send fewer packets for a request (keep connections alive, smaller answers), \
                 or measure on one host"
            .to_owned(),
        confirm: "with the quota doubled the rate nearly doubles; with answers of half the size it does where bytes are counted, \
                  and stays where packets are"
            .to_owned(),
    }
}

fn proof(pool: &Closed, quota: &Quota) -> Vec<Evidence> {
    match &quota.by {
        By::Counter(_) => Vec::new(),
        By::Limit(limit) => {
            let hz = |dropped: f64| ratio(dropped, pool.span.wall_s);
            let through = quota.direction.and_then(|direction| quota::arrived_hz(pool, direction));
            let bytes_hz =
                limit.of_bytes.then(|| number("bytes that a rule lets through", limit.per_s, "B/s"));
            let mut evidence: Vec<Evidence> = bytes_hz.into_iter().collect();
            evidence.extend(number_if("packets that it dropped", limit.dropped.map(hz), "1/s"));
            evidence.extend(number_if(
                "packets that came through, of connections that lasted",
                through,
                "1/s",
            ));
            evidence
        }
        By::Flat { in_flight, packets } => vec![
            number("requests in flight at the level with more, times", *in_flight, "ratio"),
            number("packets that came through there, times", *packets, "ratio"),
        ],
    }
}

fn summary(accounting: &Accounting, seen: Option<&Quota>) -> String {
    let pool = &accounting.asked.pool;
    let exceeded = quota::exceeded(accounting);
    let Some(quota) = seen else {
        return exceeded.map_or_else(
            || "No quota of the network was met.".to_owned(),
            |count| {
                format!(
                    "The network card {} counted {:.0} packets or bytes a second that were held back or dropped, a quota being used up ({}). That it held the rate is not seen.",
                    count.device,
                    ratio(count.grown, pool.span.wall_s),
                    count.metric.source
                )
            },
        );
    };
    let way = quota.direction.map_or("in a direction that is not seen", |direction| direction.words());
    let figure = match quota::packets_hz(accounting, quota) {
        Some(hz) => format!("{hz:.0} packets a second come through {way}"),
        None => format!("Packets are held back or lost {way}"),
    };
    let lost = quota.direction.and_then(|direction| quota::lost_share(pool, direction));
    let lost = lost.map_or(String::new(), |share| {
        format!(", {} of those that are sent that way are lost", percent(share))
    });
    match &quota.by {
        By::Limit(limit) => {
            let unit = if limit.of_bytes { "bytes" } else { "packets" };
            let dropped = limit.dropped.map_or(String::new(), |dropped| {
                format!(": {:.0} a second", ratio(dropped, pool.span.wall_s))
            });
            format!(
                "{:.0} {unit} a second pass {way}, and a rule of the packet filter drops what is above{dropped} ({}). Both sides have time \
                 to spare.",
                limit.per_s, limit.device
            )
        }
        By::Counter(count) => format!(
            "{figure}{lost}: {} counted {:.0} a second that were held back or dropped, its quota being used up ({}). Both sides have time to spare.",
            count.device,
            ratio(count.grown, pool.span.wall_s),
            count.metric.source
        ),
        By::Flat { in_flight, packets } => format!(
            "{figure}{lost}. With {in_flight:.0} times the requests in flight {packets:.2} times as many come through, and both sides have \
             time to spare: something on the way counts packets or bytes, and lets no more through."
        ),
    }
}

static PAGE: Page = Page {
    brief: "So many packets or bytes a second pass between the sides, and no more.",
    means: &[
        "Cloud instances, containers and firewalls have quotas of packets or bytes a second. What is above is \
         dropped or waits. Both sides have time to spare meanwhile.",
        "The figure is what came through. Whether packets or bytes are counted is known only from a counter; \
         a link that is full looks the same.",
    ],
    evidence: &[
        "A rule of nftables on this host that drops what is above a rate: it counts as many packets as are \
         missing, or every packet on that way meets it.",
        "Counters of the network card (ENA `pps_allowance_exceeded`, `bw_in_allowance_exceeded`, …; virtio \
         `rx0_hw_ratelimit_packets`), or of a queue that keeps to a rate (tbf, htb, hfsc, cake).",
        "Else three things together: nearly all lost packets are lost in one direction; requests spend most \
         of their time on them; and with twice the requests in flight or more, as many packets come through.",
    ],
    looks_the_same: &[
        "A server with a limit of its own, a database, or a timer: the rate is flat too, and nothing is lost. \
         It is not named here.",
        "`network-ceiling`: packets are lost or held back, and nothing shows that they are counted: losses by \
         chance meet both directions. A server on another host shows one end only.",
        "`softirq-saturated`: this host's own queues drop packets.",
        "`too-little-concurrency`: more connections bring more packets through.",
    ],
    to_do: &[
        "Look for the quota: the cloud instance's type, `nft list ruleset` (limit), `tc -s qdisc`, `ethtool -S \
         eth0 | grep allowance`.",
        "Send fewer packets for a request: keep connections alive, answers that fit into one packet.",
        "Raise the quota, or measure on one host if the server is what is to be measured.",
    ],
    to_confirm: &[
        "There is no intervention: the way is not tare's to change. With twice the quota the rate nearly \
         doubles.",
        "By hand: `ss -ti` at both ends (segs_out of one, segs_in of the other).",
    ],
    source: &[
        "tcp_info of both ends (segs_out, segs_in), `ethtool -S` (SIOCETHTOOL), rtnetlink RTM_GETQDISC, \
         nfnetlink NFT_MSG_GETRULE, /proc/net/snmp. AWS: Monitor network performance for ENA.",
    ],
};
