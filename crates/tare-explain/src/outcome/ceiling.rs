//! What a run used of what the machine can do at most (`tare ceiling`), and whether its figure is physically possible.
//!
//! A ceiling is held against a run only where its conditions match: requests over loopback, so many at a time, so deep. The
//! tightest is the one of which the run used most.

use super::gross::gross;
use crate::capacity::levels::Accounting;
use tare_model::ceiling::{BoundShare, CeilingShare, KnownCeilings, Link};
use tare_model::outcome::{Estimate, Gross};
use tare_model::plan::{HttpWorkload, Transport};
use tare_model::trial::HttpSample;
use tare_model::{Missing, Reading};

/// A share above this is no chance: the ceiling was measured under worse conditions, or the run did less work for a request.
const ABOVE: f64 = 1.25;
/// A figure may be so far above what a network card says: its clock is its own, and so is ours.
const LINK_TOLERANCE: f64 = 1.05;
/// Bytes on the wire of the smallest packet beside its data: gap, preamble, Ethernet with its checksum, IP and TCP.
const PACKET_BYTES: f64 = 12.0 + 8.0 + 14.0 + 4.0 + 20.0 + 20.0;
/// Connections that were measured, depths, and sizes of packets.
const FLOWS: [f64; 3] = [1.0, 64.0, 1024.0];
const DEPTHS: [f64; 2] = [1.0, 16.0];
const SIZES: [f64; 3] = [64.0, 1024.0, 8192.0];

/// The share of the tightest ceiling.
pub(crate) fn share(accounting: &Accounting) -> Reading<CeilingShare> {
    found(accounting).into()
}

fn found(accounting: &Accounting) -> Result<CeilingShare, Missing> {
    let known = accounting.record.plan.bounds.ceilings.clone().ok()?;
    let http = accounting.http.ok_or_else(|| {
        Missing::new("nothing that was observed says which ceiling bounds a program that runs and ends")
    })?;
    if http.transport != Transport::Loopback {
        return Err(Missing::new(
            "the ceilings of the network are those of loopback, and the server is elsewhere",
        ));
    }
    let Gross::Measured(gross) = gross(accounting) else {
        return Err(Missing::new("there is no gross figure to hold against a ceiling"));
    };
    let mut bounds = bounds(accounting, http, &known, &gross);
    bounds.sort_by(|one, other| other.share().total_cmp(&one.share()));
    let all =
        bounds.iter().map(|bound| BoundShare { name: bound.name.clone(), share: bound.share() }).collect();
    let tightest = bounds.into_iter().next().filter(|bound| bound.share().is_finite());
    let tightest = tightest.ok_or_else(|| none_matches(accounting))?;
    Ok(CeilingShare {
        share: tightest.share(),
        ci95: tightest.ci95(),
        figure: tightest.figure.value,
        tightest: tightest.name,
        ceiling: tightest.ceiling,
        of: tightest.of,
        bounds: all,
    })
}

/// Why no ceiling that was measured bounds the run.
fn none_matches(accounting: &Accounting) -> Missing {
    let depth = accounting.asked_level().map_or(1.0, |level| f64::from(level.pipeline));
    match depth > DEPTHS[1] {
        // Measuring again would not help.
        true => Missing::with_remedy(
            format!(
                "{depth:.0} requests were in flight on each connection, and ceilings are measured up to {:.0}",
                DEPTHS[1]
            ),
            format!("use --pipeline {:.0} or less", DEPTHS[1]),
        ),
        false => Missing::with_remedy(
            "no ceiling was measured under the conditions of this run",
            "run tare ceiling",
        ),
    }
}

/// A ceiling that bounds the run, and the run's figure in its unit.
struct Bound {
    name: String,
    of: String,
    figure: Estimate,
    ceiling: Estimate,
}

impl Bound {
    fn share(&self) -> f64 {
        self.figure.value / self.ceiling.value
    }

    /// Both may be off to the side that the other is not.
    fn ci95(&self) -> Option<[f64; 2]> {
        let ([low, high], [least, most]) = (self.figure.ci95?, self.ceiling.ci95?);
        Some([low / most, high / least]).filter(|_| least > 0.0)
    }
}

fn bounds(
    accounting: &Accounting,
    http: &HttpWorkload,
    known: &KnownCeilings,
    gross: &Estimate,
) -> Vec<Bound> {
    let requests = gross.unit == "req/s";
    let level = accounting.asked_level().filter(|_| requests);
    let depth = level.map_or(1.0, |level| f64::from(level.pipeline));
    let connections = level.and_then(|level| http.connections_of(level)).map(f64::from);
    let bound = |(name, ceiling, of): (String, Estimate, String), per_request: f64| Bound {
        figure: scaled(gross, per_request, &ceiling.unit),
        name,
        of,
        ceiling,
    };
    let mut bounds = Vec::new();
    let reference = between(known, "reference-depth-", &DEPTHS, depth, "in flight on each connection")
        .filter(|_| requests && connections.is_some() && depth <= DEPTHS[1]);
    if connects_each_time(accounting) {
        bounds.extend(named(known, "loopback-connect").map(|one| bound(one, 1.0)));
    } else {
        let flows = connections.filter(|_| depth == 1.0);
        let flows = flows.and_then(|count| between(known, "loopback-flows-", &FLOWS, count, "connections"));
        // The same way was seen to carry more, if the reference server did more: then this is no ceiling.
        let is_exceeded = |one: &Estimate| {
            let shown = reference.as_ref().map(|(_, reference, _)| reference.value);
            connections.is_some_and(|count| count >= FLOWS[1]) && shown.is_some_and(|shown| shown > one.value)
        };
        bounds.extend(flows.filter(|(_, one, _)| !is_exceeded(one)).map(|one| bound(one, 1.0)));
        bounds.extend(reference.map(|one| bound(one, 1.0)));
    }
    let moved = moved(accounting).filter(|_| requests);
    if let Some(per_request) = moved.as_ref().map(Moved::bytes_per_request) {
        bounds.extend(named(known, "loopback-bytes").map(|one| bound(one, per_request)));
    }
    // What came in at both ends of the connections that lasted: every packet once.
    let packets = accounting.asked.pool.around.own_packets.zip(accounting.asked.pool.answered.requests);
    if let Some((packets, answers)) =
        packets.filter(|(packets, answers)| requests && *packets > 0.0 && *answers > 0.0)
    {
        let per_request = packets / answers;
        let bytes = moved.map_or(SIZES[0], |moved| moved.bytes_per_request() / per_request);
        let bytes = bytes.clamp(SIZES[0], SIZES[2]);
        let ceiling = between(known, "tcp-packets-", &SIZES, bytes, "bytes of data in a packet");
        bounds.extend(ceiling.map(|one| bound(one, per_request)));
    }
    bounds
}

fn scaled(estimate: &Estimate, factor: f64, unit: &str) -> Estimate {
    Estimate {
        value: estimate.value * factor,
        unit: unit.to_owned(),
        ci95: estimate.ci95.map(|ends| ends.map(|end| end * factor)),
    }
}

fn named(known: &KnownCeilings, name: &str) -> Option<(String, Estimate, String)> {
    let ceiling = known.find(name).filter(|ceiling| ceiling.value > 0.0)?;
    Some((name.to_owned(), ceiling.clone(), "as it was measured".to_owned()))
}

/// The ceiling at `at`, from those that were measured at points: on straight lines through their logarithms over that of the point, beyond the
/// last the last. The name is of the nearest point.
fn between(
    known: &KnownCeilings,
    begin: &str,
    points: &[f64],
    at: f64,
    what: &str,
) -> Option<(String, Estimate, String)> {
    let measured = |point: &f64| named(known, &format!("{begin}{point}")).map(|one| (*point, one));
    let all: Vec<(f64, (String, Estimate, String))> = points.iter().filter_map(measured).collect();
    let below = all.iter().rfind(|(point, _)| *point <= at);
    let above = all.iter().find(|(point, _)| *point >= at);
    match (below, above) {
        (Some((low, below)), Some((high, above))) if low < high => {
            let share = (at / low).ln() / (high / low).ln();
            let mix = |one: f64, other: f64| (one.ln() * (1.0 - share) + other.ln() * share).exp();
            let ci95 = below
                .1
                .ci95
                .zip(above.1.ci95)
                .map(|(one, other)| [mix(one[0], other[0]), mix(one[1], other[1])]);
            let value = mix(below.1.value, above.1.value);
            let name = if share < 0.5 { &below.0 } else { &above.0 };
            let of = format!("between those of {low} and {high} {what}, for {at:.0}");
            let ci95 = ci95.filter(|ends| ends.iter().all(|end| end.is_finite()));
            Some((name.clone(), Estimate { value, unit: below.1.unit.clone(), ci95 }, of))
        }
        (Some((point, one)), Some(_)) => Some((one.0.clone(), one.1.clone(), format!("{point} {what}"))),
        (Some((point, one)), None) if Some(point) == points.last() => Some((
            one.0.clone(),
            one.1.clone(),
            format!("that of {point} {what}, the most that were measured"),
        )),
        _ => None,
    }
}

/// Whether most requests opened a connection.
fn connects_each_time(accounting: &Accounting) -> bool {
    let details = accounting.samples().filter_map(|sample| {
        let opened = sample.detail.as_ref()?.connect.count();
        Some((opened as f64, *sample.requests.value()? as f64))
    });
    let (opened, requests) = details.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    requests > 0.0 && opened > 0.5 * requests
}

/// What went over the network in the asked level's trials.
#[derive(Debug, Clone, Copy)]
struct Moved {
    requests: f64,
    seconds: f64,
    bytes_in: f64,
    bytes_out: f64,
}

impl Moved {
    fn bytes_per_request(&self) -> f64 {
        (self.bytes_in + self.bytes_out) / self.requests
    }
}

/// `None` where there were no requests, or nobody counted the bytes.
fn moved(accounting: &Accounting) -> Option<Moved> {
    let one = |sample: &HttpSample| {
        Some(Moved {
            requests: *sample.requests.value()? as f64,
            seconds: sample.elapsed_ns as f64 / 1e9,
            bytes_in: *sample.bytes_in.value()? as f64,
            bytes_out: sample.detail.as_ref().map_or(0.0, |detail| detail.bytes_out as f64),
        })
    };
    let all: Vec<Moved> = accounting.samples().map(one).collect::<Option<_>>()?;
    let sum = all.into_iter().reduce(|sum, one| Moved {
        requests: sum.requests + one.requests,
        seconds: sum.seconds + one.seconds,
        bytes_in: sum.bytes_in + one.bytes_in,
        bytes_out: sum.bytes_out + one.bytes_out,
    })?;
    Some(sum).filter(|sum| sum.requests > 0.0 && sum.seconds > 0.0)
}

/// A share that no chance explains.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Above {
    pub name: String,
    pub share: f64,
}

/// The ceiling that the run passed, if it did beyond what both are known to.
pub(crate) fn above(accounting: &Accounting) -> Option<Above> {
    let share = found(accounting).ok().filter(|share| share.share > ABOVE)?;
    let is_chance = share.ci95.is_some_and(|[low, _]| low <= 1.0);
    (!is_chance).then_some(Above { name: share.tightest, share: share.share })
}

/// More than a network card can carry.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AboveLink {
    pub link: Link,
    pub bits_per_s: f64,
}

/// Whether more bits are said to have come or gone than the card to that host carries: in each direction the data, and where one request is in
/// flight on a connection at least one packet for each.
pub(crate) fn above_link(accounting: &Accounting) -> Option<AboveLink> {
    let link = accounting.record.plan.bounds.link.value()?;
    let http = accounting.http.filter(|http| http.transport == Transport::Remote)?;
    // What somebody else's generator counts may have been unpacked, be several to a packet, or come by another host.
    accounting.asked_level().and_then(|level| http.connections_of(level))?;
    let moved = moved(accounting)?;
    let is_single = accounting.asked_level().is_some_and(|level| level.pipeline == 1);
    let packets = if is_single { moved.requests * PACKET_BYTES } else { 0.0 };
    let bytes = moved.bytes_in.max(moved.bytes_out) + packets;
    let bits_per_s = 8.0 * bytes / moved.seconds;
    (bits_per_s > LINK_TOLERANCE * link.bits_per_s as f64)
        .then(|| AboveLink { link: link.clone(), bits_per_s })
}
