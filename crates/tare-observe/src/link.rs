//! Quotas of the network: what the cards' drivers count (`ethtool -S`), the queueing disciplines of the interfaces (`tc -s qdisc`), and rules of
//! the packet filter that drop what is above a rate (`nft list ruleset`), in the generator's network namespace and in the server's, at both
//! edges of a window.

use crate::connections::servers_namespace;
use crate::observed::{Observed, refused};
use crate::observer::{Edge, Observer};
use crate::scene::Scene;
use crate::tape::Tape;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsFd;
use tare_model::Missing;
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics::link;
use tare_model::observation::Sample;
use tare_sys::links::{Links, qdiscs};
use tare_sys::nftables::Hook;

/// Room for a dump of queueing disciplines: some 1,000.
const DUMP_BYTES_MAX: usize = 256 << 10;
const CARD_BYTES_MAX: usize = 16 << 10;
/// Room for the rules of the packet filter: some 1,000.
const RULES_BYTES_MAX: usize = 512 << 10;
/// Sources of a place: the dump, then its cards, and the rules last.
const PER_PLACE: u32 = 128;
const RULES: u32 = PER_PLACE - 1;

/// Limits of one namespace.
const LIMITS_MAX: usize = 64;

/// The server's end, in a namespace of its own, is called so.
const SERVERS: &str = "the server's ";

#[derive(Default)]
struct Link {
    /// What its interfaces are called before their names, and the way to ask; the generator's namespace first.
    places: Vec<(&'static str, Result<Links, Missing>)>,
    /// Why queueing disciplines, and rules, are not seen, where they could not be read.
    queues: Option<Missing>,
    rules: Option<Missing>,
    tape: Tape,
}

pub(crate) fn open(_scene: &Scene) -> Box<dyn Observer> {
    Box::new(Link::default())
}

impl Observer for Link {
    fn prepare(&mut self, scene: &Scene) {
        self.tape.clear();
        self.places.clear();
        (self.queues, self.rules) = (None, None);
        if scene.watch.server_port.is_none() {
            return;
        }
        let wanted = |name: &str| metric_of(name).is_some();
        let what = "the counters of network interfaces";
        self.places.push(("", Links::open(wanted).map_err(|error| refused(what, &error))));
        if let Some(path) = servers_namespace(scene) {
            let opened = File::open(scene.root.path(&path))
                .and_then(|namespace| Links::open_in(namespace.as_fd(), wanted));
            self.places.push((SERVERS, opened.map_err(|error| refused(&path, &error))));
        }
        let open = self.places.iter().filter_map(|(_, place)| place.as_ref().ok());
        let closed = open.filter_map(|links| links.nftables.as_ref().err()).next();
        self.rules = closed.map(|error| refused("the rules of the packet filter", error));
    }

    fn edge(&mut self, _edge: &mut Edge) {
        for ((_, place), first) in self.places.iter_mut().zip((0u32..).step_by(PER_PLACE as usize)) {
            let Ok(links) = place else { continue };
            if self.queues.is_none() {
                let dumped = self.tape.record_with(first, DUMP_BYTES_MAX, |buffer| links.dump_qdiscs(buffer));
                self.queues = dumped.err().map(|error| refused("the queueing disciplines", &error));
            }
            for (card, source) in links.cards.iter().zip(first + 1..) {
                // A card whose counters changed has no second reading, and is then as one without.
                let _ = self.tape.record_with(source, CARD_BYTES_MAX, |buffer| card.read(buffer));
            }
            if let Ok(nftables) = &links.nftables {
                let read = |buffer: &mut [u8]| nftables.dump(buffer);
                if let Err(error) = self.tape.record_with(first + RULES, RULES_BYTES_MAX, read) {
                    self.rules = Some(refused("the rules of the packet filter", &error));
                    links.nftables = Err(error);
                }
            }
        }
    }

    fn report(&mut self, _scene: &Scene, observed: &mut Observed) {
        let mut seen: BTreeMap<(&'static str, String), Vec<Sample>> = BTreeMap::new();
        for ((prefix, place), first) in self.places.iter().zip((0u32..).step_by(PER_PLACE as usize)) {
            let Ok(links) = place else { continue };
            for reading in self.tape.readings() {
                let counts = match reading.source.checked_sub(first) {
                    Some(0) => of_queues(links, reading.bytes),
                    Some(RULES) => of_rules(links, reading.bytes),
                    Some(at @ 1..PER_PLACE) => of_card(links, at as usize - 1, reading.bytes),
                    _ => continue,
                };
                for ((id, device), value) in counts {
                    let samples = seen.entry((id, format!("{prefix}{device}"))).or_default();
                    samples.push(Sample { at_ns: reading.at_ns, value });
                }
            }
        }
        for metric in link::DESCRIPTORS {
            let of_metric = seen.iter().filter(|((id, _), samples)| *id == metric.id && samples.len() > 1);
            let mut none = true;
            for ((_, device), samples) in of_metric {
                observed.column(metric, Subject::Device(device.clone()), samples.clone());
                none = false;
            }
            if none {
                observed.absent(metric, None, self.why(metric));
            }
        }
    }
}

impl Link {
    fn why(&self, metric: &Descriptor) -> Missing {
        if self.places.is_empty() {
            return Missing::new("there is no server");
        }
        if let Some(refused) = self.places.iter().find_map(|(_, place)| place.as_ref().err().cloned()) {
            return refused;
        }
        let is = |known: &[&Descriptor]| known.iter().any(|known| known.id == metric.id);
        let (unread, none) = if is(&[&link::QDISC_DROPS, &link::QDISC_OVERLIMITS]) {
            (&self.queues, "no queueing discipline here")
        } else if is(&[&link::LIMIT_PACKETS_HZ, &link::LIMIT_BYTES_HZ, &link::LIMIT_DROPS]) {
            (&self.rules, "no rule of the packet filter counts it")
        } else {
            (&None, "no network interface here counts it")
        };
        unread.clone().unwrap_or_else(|| Missing::new(none))
    }
}

/// Of each counter, by metric and device.
type Counts = BTreeMap<(&'static str, String), f64>;

fn of_queues(links: &Links, dump: &[u8]) -> Counts {
    let mut counts = Counts::new();
    for qdisc in qdiscs(dump) {
        let Some(interface) = links.name(qdisc.interface) else { continue };
        let device = format!("{interface} {}", qdisc.kind);
        for (metric, count) in
            [(&link::QDISC_DROPS, qdisc.drops), (&link::QDISC_OVERLIMITS, qdisc.overlimits)]
        {
            *counts.entry((metric.id, device.clone())).or_default() += f64::from(count);
        }
    }
    counts
}

/// `nftables t in, incoming, over 2000 packets/s`; one that only some packets meet ends with `of some`.
fn of_rules(links: &Links, dump: &[u8]) -> Counts {
    let mut counts = Counts::new();
    let Ok(nftables) = &links.nftables else { return counts };
    for limit in nftables.limits(dump).take(LIMITS_MAX) {
        let hook = match limit.hook {
            Some(Hook::Incoming) => "incoming",
            Some(Hook::Outgoing) => "outgoing",
            Some(Hook::Forwarded) => "forwarded",
            None => "called",
        };
        let (metric, unit) = match limit.of_bytes {
            true => (&link::LIMIT_BYTES_HZ, "B/s"),
            false => (&link::LIMIT_PACKETS_HZ, "packets/s"),
        };
        let some = if limit.of_all { "" } else { ", of some" };
        let (table, chain) = &limit.name;
        let device = format!("nftables {table} {chain}, {hook}, over {:.0} {unit}{some}", limit.per_s);
        counts.insert((metric.id, device.clone()), limit.per_s);
        if let Some(dropped) = limit.dropped {
            *counts.entry((link::LIMIT_DROPS.id, device)).or_default() += dropped as f64;
        }
    }
    counts
}

fn of_card(links: &Links, at: usize, bytes: &[u8]) -> Counts {
    let mut counts = Counts::new();
    let Some(card) = links.cards.get(at) else { return counts };
    let values = bytes.chunks_exact(8).map(|value| value.try_into().map_or(0, u64::from_ne_bytes));
    for (name, value) in card.counters.iter().zip(values) {
        let Some(metric) = metric_of(name) else { continue };
        // A card has one for each of its queues.
        *counts.entry((metric.id, card.name.clone())).or_default() += value as f64;
    }
    counts
}

/// What a driver's counter is. The names are those of Linux' drivers: `ena_ethtool.c`, `virtio_net.c` (Linux 6.10), `gve_ethtool.c`.
fn metric_of(name: &str) -> Option<&'static Descriptor> {
    match name {
        "bw_in_allowance_exceeded" => return Some(&link::BYTES_IN_EXCEEDED),
        "bw_out_allowance_exceeded" => return Some(&link::BYTES_OUT_EXCEEDED),
        "pps_allowance_exceeded" => return Some(&link::PACKETS_EXCEEDED),
        "conntrack_allowance_exceeded" => return Some(&link::CONNECTIONS_EXCEEDED),
        "linklocal_allowance_exceeded" => return Some(&link::LINK_LOCAL_EXCEEDED),
        _ => {}
    }
    if name.starts_with("rx_queue_drop_cnt[") {
        return Some(&link::CARD_QUEUE_DROPS);
    }
    let (queue, what) = name.split_once("_hw_")?;
    let (way, number) = queue.split_at_checked(2)?;
    number.parse::<u32>().ok()?;
    match (way, what) {
        ("rx", "ratelimit_packets") => Some(&link::PACKETS_IN_EXCEEDED),
        ("tx", "ratelimit_packets") => Some(&link::PACKETS_OUT_EXCEEDED),
        ("rx", "ratelimit_bytes") => Some(&link::BYTES_IN_EXCEEDED),
        ("tx", "ratelimit_bytes") => Some(&link::BYTES_OUT_EXCEEDED),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Watch;
    use tare_machine::Root;

    #[test]
    fn counters_of_drivers_are_known_by_their_names() {
        let id = |name| metric_of(name).map(|metric| metric.id);
        assert_eq!(id("pps_allowance_exceeded"), Some("link.packets_exceeded"));
        assert_eq!(id("bw_out_allowance_exceeded"), Some("link.bytes_out_exceeded"));
        assert_eq!(id("rx11_hw_ratelimit_packets"), Some("link.packets_in_exceeded"));
        assert_eq!(id("tx0_hw_ratelimit_bytes"), Some("link.bytes_out_exceeded"));
        assert_eq!(id("rx_queue_drop_cnt[3]"), Some("link.card_queue_drops"));
        // Connections that may still be tracked are no quota that was used up.
        for other in ["conntrack_allowance_available", "rx_hw_ratelimit_packets", "r", "rx0_hw_packets", ""] {
            assert_eq!(id(other), None, "{other}");
        }
    }

    #[test]
    fn a_window_has_what_there_is_and_says_what_there_is_not() {
        let watch = |server_port| Scene::new(Watch { server_port, ..Watch::default() }, &Root::live());
        for server_port in [None, Some(1)] {
            let scene = watch(server_port);
            let mut observer = open(&scene);
            observer.prepare(&scene);
            observer.edge(&mut Edge { at_ns: 0 });
            observer.edge(&mut Edge { at_ns: 0 });
            let mut observed = Observed::new(0, 1);
            observer.report(&scene, &mut observed);
            let observation = observed.close();
            // On a cloud's card there is one.
            if observation.columns.iter().any(|column| column.metric == link::PACKETS_EXCEEDED.id) {
                continue;
            }
            let reason = observation.why_absent(&link::PACKETS_EXCEEDED, &Subject::Device("lo".to_owned()));
            let why = if server_port.is_some() { "no network interface" } else { "there is no server" };
            assert!(reason.why.starts_with(why), "{reason}");
        }
    }
}
