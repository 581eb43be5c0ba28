//! Whether what drops packets or holds them back on the way is a quota: from a counter that says so, else from a rate that more load does not
//! raise while both sides have time to spare.
//!
//! A rate that stays where it is proves nothing alone: a server with a limit of its own, a database, a timer or few connections do the same.
//! Packets must be lost, in one direction, and take most of the requests' time. Losses by chance (radio) meet both directions alike, and let
//! more connections do more.

use crate::accounting::{Closed, LinkCount, Packets, RateLimit, ratio};
use crate::bottlenecks::signs::concurrency::More;
use crate::bottlenecks::signs::way::{connections, has_time_to_spare, is_ceiling, loses};
use crate::capacity::levels::Accounting;
use tare_model::metric::Descriptor;
use tare_model::metrics::link;
use tare_model::plan::Transport;

/// Of all lost packets, those of the one direction that a quota is in; and of all that are sent that way, those that are lost.
const ONE_WAY_SHARE: f64 = 0.8;
const LOST_SHARE_MIN: f64 = 0.005;
/// Packets dropped by the queue of a CPU, for each that was lost: above this they are why.
const BACKLOG_EXPLAINS: f64 = 0.5;
/// With so many times the requests in flight, packets come through within these factors.
const MORE_IN_FLIGHT: f64 = 2.0;
const FLAT: std::ops::RangeInclusive<f64> = 0.75..=1.15;
/// A counter that grows slower is chance: short bursts meet every quota.
const CARD_HZ_MIN: f64 = 1.0;
const QUEUE_HZ_MIN: f64 = 10.0;
/// Queueing disciplines that keep to a rate.
const SHAPERS: [&str; 4] = ["tbf", "htb", "hfsc", "cake"];
/// Of the packets that were lost, what a rule must have dropped to be why.
const DROPS_EXPLAIN: f64 = 0.5;
/// How a rule ends that has other conditions, too.
const OF_SOME: &str = "of some";
/// How interfaces of the server's namespace are called.
const SERVERS: &str = "the server's ";

/// Which way the packets go that a quota counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    ToServer,
    ToGenerator,
}

impl Direction {
    pub fn words(self) -> &'static str {
        match self {
            Direction::ToServer => "from the generator to the server",
            Direction::ToGenerator => "from the server to the generator",
        }
    }

    fn other(self) -> Direction {
        match self {
            Direction::ToServer => Direction::ToGenerator,
            Direction::ToGenerator => Direction::ToServer,
        }
    }

    fn packets(self, pool: &Closed) -> Option<Packets> {
        match self {
            Direction::ToServer => pool.around.way.to_server,
            Direction::ToGenerator => pool.around.way.to_generator,
        }
    }
}

/// A quota on the way.
#[derive(Debug, Clone)]
pub(crate) struct Quota {
    /// `None`: it counts both directions together, or the direction is not seen.
    pub direction: Option<Direction>,
    pub by: By,
}

/// How it is known.
#[derive(Debug, Clone)]
pub(crate) enum By {
    /// A rule of the packet filter.
    Limit(RateLimit),
    /// A counter of a network card, or of a queue that keeps to a rate.
    Counter(LinkCount),
    /// So many times the requests in flight brought so many times the packets.
    Flat { in_flight: f64, packets: f64 },
}

/// The quota that holds the rate.
pub(crate) fn seen(accounting: &Accounting) -> Option<Quota> {
    if !is_ceiling(accounting) {
        return None;
    }
    by_limit(accounting).or_else(|| by_counter(accounting)).or_else(|| by_rate(accounting))
}

/// A rule that is seen to drop the packets that are missing: it counts as many, or every packet on the way on which they are lost meets it.
/// One that only some meet, such as pings or new connections, and that counts nothing, may be about others.
fn by_limit(accounting: &Accounting) -> Option<Quota> {
    let pool = &accounting.asked.pool;
    let one_way = one_way(pool);
    let known = pool.around.way.limits.iter().filter_map(|limit| {
        let direction = limit_direction(accounting, limit);
        let lost = direction.and_then(|direction| direction.packets(pool)).map(Packets::lost);
        let is_of_some = limit.device.ends_with(OF_SOME);
        let drops = match limit.dropped {
            Some(dropped) => {
                // Where losses are not seen, drops of pings or of new connections say nothing of these packets.
                let lost = lost.or_else(|| resent(accounting).filter(|_| !is_of_some));
                let is_enough = lost.is_some_and(|lost| dropped >= DROPS_EXPLAIN * lost);
                is_enough && ratio(dropped, pool.span.wall_s) >= CARD_HZ_MIN
            }
            None => direction.is_some() && one_way == direction && !is_of_some,
        };
        drops.then_some((direction, limit))
    });
    let dropped = |limit: &RateLimit| limit.dropped.unwrap_or(0.0);
    let (direction, limit) = known.max_by(|a, b| dropped(a.1).total_cmp(&dropped(b.1)))?;
    Some(Quota { direction, by: By::Limit(limit.clone()) })
}

/// Segments that were sent again; `None` is not seen.
fn resent(accounting: &Accounting) -> Option<f64> {
    Some(connections(accounting)?.retransmits)
}

/// Which way the packets go that meet a rule; `None`: both, or that is not known.
fn limit_direction(accounting: &Accounting, limit: &RateLimit) -> Option<Direction> {
    let is_servers = limit.device.starts_with(SERVERS);
    if accounting.http?.transport == Transport::Loopback {
        return one_way(&accounting.asked.pool);
    }
    match (limit.device.contains(", incoming,"), limit.device.contains(", outgoing,")) {
        (true, _) if is_servers => Some(Direction::ToServer),
        (true, _) => Some(Direction::ToGenerator),
        (_, true) if is_servers => Some(Direction::ToGenerator),
        (_, true) => Some(Direction::ToServer),
        _ => one_way(&accounting.asked.pool),
    }
}

/// A card's counter of a quota that grew, whatever holds the rate.
pub(crate) fn exceeded<'b>(accounting: &'b Accounting<'_>) -> Option<&'b LinkCount> {
    // What passes between two namespaces of one machine goes through no card.
    accounting.http.filter(|http| http.transport == Transport::Remote)?;
    let pool = &accounting.asked.pool;
    let is_quota = |count: &&LinkCount| card_direction(count.metric).is_some();
    let grows = |count: &&LinkCount| ratio(count.grown, pool.span.wall_s) >= CARD_HZ_MIN;
    let cards = pool.around.way.links.iter().filter(is_quota).filter(grows);
    cards.max_by(|a, b| a.grown.total_cmp(&b.grown))
}

/// Which way a card's quota counts: `None` for what is no quota of packets or bytes, `Some(None)` for both ways together.
fn card_direction(metric: &Descriptor) -> Option<Option<Direction>> {
    // The generator's card: what comes in comes from the server.
    let directions = [
        (&link::BYTES_IN_EXCEEDED, Some(Direction::ToGenerator)),
        (&link::PACKETS_IN_EXCEEDED, Some(Direction::ToGenerator)),
        (&link::BYTES_OUT_EXCEEDED, Some(Direction::ToServer)),
        (&link::PACKETS_OUT_EXCEEDED, Some(Direction::ToServer)),
        (&link::PACKETS_EXCEEDED, None),
    ];
    directions.into_iter().find(|(known, _)| known.id == metric.id).map(|(_, direction)| direction)
}

fn by_counter(accounting: &Accounting) -> Option<Quota> {
    if let Some(count) = exceeded(accounting) {
        // Short bursts, and other programs on this host, meet quotas as well: it must be as much as was sent again.
        if count.grown < DROPS_EXPLAIN * resent(accounting)? {
            return None;
        }
        let direction = card_direction(count.metric)?.or_else(|| one_way(&accounting.asked.pool));
        return Some(Quota { direction, by: By::Counter(count.clone()) });
    }
    let pool = &accounting.asked.pool;
    let shaped = pool.around.way.links.iter().filter(|count| {
        let kind = count.device.rsplit(' ').next().unwrap_or_default();
        let is_queue = count.metric.id == link::QDISC_OVERLIMITS.id && SHAPERS.contains(&kind);
        is_queue && ratio(count.grown, pool.span.wall_s) >= QUEUE_HZ_MIN
    });
    let known = shaped.filter_map(|count| Some((queue_direction(accounting, count)?, count)));
    let (direction, count) = known.max_by(|a, b| a.1.grown.total_cmp(&b.1.grown))?;
    Some(Quota { direction, by: By::Counter(count.clone()) })
}

/// Which way a queue sends; `None` where that is not the way on which requests spend their time, `Some(None)` for both.
fn queue_direction(accounting: &Accounting, count: &LinkCount) -> Option<Option<Direction>> {
    let is_loopback = count.device.starts_with("lo ");
    if accounting.http?.transport == Transport::Loopback {
        return is_loopback.then_some(None);
    }
    let direction = match count.device.starts_with(SERVERS) {
        true => Direction::ToGenerator,
        false => Direction::ToServer,
    };
    // Where little is lost, it is answers that are on their way.
    let spent = match loses(accounting) {
        true => one_way(&accounting.asked.pool),
        false => Some(Direction::ToGenerator),
    };
    (!is_loopback && spent == Some(direction)).then_some(Some(direction))
}

/// The direction in which nearly all packets are lost; `None` also where not both ends are seen.
fn one_way(pool: &Closed) -> Option<Direction> {
    let lost = |direction: Direction| direction.packets(pool).map(Packets::lost);
    let (to_server, to_generator) = (lost(Direction::ToServer)?, lost(Direction::ToGenerator)?);
    let direction = if to_server > to_generator { Direction::ToServer } else { Direction::ToGenerator };
    let (most, sent) = (to_server.max(to_generator), direction.packets(pool)?.sent);
    (most >= ONE_WAY_SHARE * (to_server + to_generator) && most >= LOST_SHARE_MIN * sent && most > 0.0)
        .then_some(direction)
}

/// From the rate of packets alone: both sides must be seen to have time to spare.
fn by_rate(accounting: &Accounting) -> Option<Quota> {
    let pool = &accounting.asked.pool;
    pool.sut.as_ref().filter(|sut| sut.entitled_s > 0.0)?;
    accounting.load()?;
    let direction = one_way(pool).filter(|_| loses(accounting))?;
    let lost = direction.packets(pool)?.lost();
    if pool.around.way.backlog_drops.is_none_or(|drops| drops >= BACKLOG_EXPLAINS * lost) {
        return None;
    }
    Some(Quota { direction: Some(direction), by: flat(accounting, direction)? })
}

fn flat(accounting: &Accounting, direction: Direction) -> Option<By> {
    let more = More::of(accounting).filter(|more| more.in_flight >= MORE_IN_FLIGHT)?;
    let pool = &accounting.saturating.as_ref()?.pool;
    // Both of the same time: pauses of connections go on while another server has its turn.
    let packets = ratio(arrived_hz(pool, direction)?, arrived_hz(&accounting.asked.pool, direction)?);
    let is_same = one_way(pool) == Some(direction) && has_time_to_spare(pool);
    (is_same && FLAT.contains(&packets)).then_some(By::Flat { in_flight: more.in_flight, packets })
}

/// Packets per second that came in, that way.
pub(crate) fn arrived_hz(pool: &Closed, direction: Direction) -> Option<f64> {
    let arrived = direction.packets(pool)?.arrived;
    (pool.span.wall_s > 0.0 && arrived > 0.0).then(|| arrived / pool.span.wall_s)
}

/// Packets per second that come through at most: what a rule says, else as far as was seen, of the levels that the quota holds, the larger.
pub(crate) fn packets_hz(accounting: &Accounting, quota: &Quota) -> Option<f64> {
    if let By::Limit(limit) = &quota.by {
        return Some(limit.per_s).filter(|_| !limit.of_bytes);
    }
    let direction = quota.direction?;
    let asked_hz = arrived_hz(&accounting.asked.pool, direction)?;
    Some(match quota.by {
        By::Flat { packets, .. } => asked_hz * packets.max(1.0),
        _ => asked_hz,
    })
}

/// Of the packets that were sent that way, those that were lost.
pub(crate) fn lost_share(pool: &Closed, direction: Direction) -> Option<f64> {
    let packets = direction.packets(pool).filter(|packets| packets.sent > 0.0)?;
    Some((packets.lost() / packets.sent).min(1.0))
}

/// The same of the other way.
pub(crate) fn lost_share_back(pool: &Closed, direction: Direction) -> Option<f64> {
    lost_share(pool, direction.other())
}
