//! What was counted of the way between generator and server: packets that left one end and came in at the other, and
//! quotas of network cards and queues.

use crate::accounting::raw::readings::Readings;
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics::{connections, link, network};

/// `None` is not counted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Way {
    /// Of the connections that are seen at both ends.
    pub to_server: Option<Packets>,
    pub to_generator: Option<Packets>,
    /// Packets that CPUs dropped where the server is, since their queues were full.
    pub backlog_drops: Option<f64>,
    /// Counters of interfaces that grew.
    pub links: Vec<LinkCount>,
    /// Rules of packet filters that drop what is above a rate.
    pub limits: Vec<RateLimit>,
}

/// Packets of one direction, those that were sent again too.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Packets {
    pub sent: f64,
    pub arrived: f64,
}

impl Packets {
    /// Those that did not arrive. What is on its way at an edge makes this less than exact.
    pub fn lost(self) -> f64 {
        (self.sent - self.arrived).max(0.0)
    }
}

/// A counter of an interface, and by how much it grew.
#[derive(Debug, Clone)]
pub(crate) struct LinkCount {
    pub metric: &'static Descriptor,
    /// `eth0`, or with its queueing discipline `eth0 tbf`.
    pub device: String,
    pub grown: f64,
}

/// A rule of the packet filter that drops what is above a rate.
#[derive(Debug, Clone)]
pub(crate) struct RateLimit {
    /// Where it is, and what it is about.
    pub device: String,
    /// Packets or bytes per second.
    pub per_s: f64,
    pub of_bytes: bool,
    /// Packets that it dropped; `None`: it does not count them.
    pub dropped: Option<f64>,
}

impl RateLimit {
    fn all(readings: &Readings) -> Vec<RateLimit> {
        let of = |metric: &'static Descriptor, of_bytes: bool| {
            let columns =
                readings.observation.columns.iter().filter(move |column| column.metric == metric.id);
            columns.filter_map(move |column| {
                let Subject::Device(device) = &column.subject else { return None };
                let per_s = readings.level(metric, &column.subject).filter(|per_s| *per_s > 0.0)?;
                let dropped = readings.growth(&link::LIMIT_DROPS, &column.subject);
                Some(RateLimit { device: device.clone(), per_s, of_bytes, dropped })
            })
        };
        of(&link::LIMIT_PACKETS_HZ, false).chain(of(&link::LIMIT_BYTES_HZ, true)).collect()
    }
}

impl Way {
    pub fn read(readings: &Readings) -> Way {
        let growth = |metric: &Descriptor| readings.growth(metric, &Subject::Machine);
        let packets = |sent: &Descriptor, arrived: &Descriptor| {
            Some(Packets { sent: growth(sent)?, arrived: growth(arrived)? })
        };
        Way {
            to_server: packets(&connections::TO_SERVER_SENT, &connections::TO_SERVER_ARRIVED),
            to_generator: packets(&connections::TO_GENERATOR_SENT, &connections::TO_GENERATOR_ARRIVED),
            backlog_drops: backlog_drops(readings),
            links: links(readings),
            limits: RateLimit::all(readings),
        }
    }

    pub fn absorb(&mut self, other: &Way) {
        let sum = |a: Option<Packets>, b: Option<Packets>| {
            let (a, b) = a.zip(b)?;
            Some(Packets { sent: a.sent + b.sent, arrived: a.arrived + b.arrived })
        };
        self.to_server = sum(self.to_server, other.to_server);
        self.to_generator = sum(self.to_generator, other.to_generator);
        self.backlog_drops = self.backlog_drops.zip(other.backlog_drops).map(|(a, b)| a + b);
        for count in &other.links {
            let same =
                |known: &&mut LinkCount| known.metric.id == count.metric.id && known.device == count.device;
            match self.links.iter_mut().find(same) {
                Some(known) => known.grown += count.grown,
                None => self.links.push(count.clone()),
            }
        }
        // One that was not there in every window may not be why.
        self.limits.retain_mut(|limit| {
            let same = other.limits.iter().find(|known| known.device == limit.device);
            limit.dropped = limit.dropped.zip(same.and_then(|same| same.dropped)).map(|(a, b)| a + b);
            same.is_some()
        });
    }
}

/// `None` where a CPU's were not read.
fn backlog_drops(readings: &Readings) -> Option<f64> {
    let columns = readings.observation.columns.iter();
    let drops = columns.filter(|column| column.metric == network::SOFTNET_DROPS.id);
    let of_cpus = drops.map(|column| readings.growth(&network::SOFTNET_DROPS, &column.subject));
    of_cpus.reduce(|a, b| Some(a? + b?)).flatten()
}

fn links(readings: &Readings) -> Vec<LinkCount> {
    let columns = readings.observation.columns.iter();
    let of_links = columns.filter_map(|column| {
        let metric = link::DESCRIPTORS.iter().copied().find(|metric| metric.id == column.metric)?;
        let Subject::Device(device) = &column.subject else { return None };
        let grown = readings.growth(metric, &column.subject).filter(|grown| *grown > 0.0)?;
        Some(LinkCount { metric, device: device.clone(), grown })
    });
    of_links.collect()
}
