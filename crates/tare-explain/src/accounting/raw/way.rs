//! What was counted of the way between generator and server: packets that left one end and came in at the other, how steadily they came, and
//! quotas of network cards and queues.

use crate::accounting::raw::readings::Readings;
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics::{connections, link, network};
use tare_model::observation::Sample;

/// Rates are taken over this time at least: longer than the steps of a sampler that is late, shorter than a trial.
const STEP_S: f64 = 0.2;

/// `None` is not counted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Way {
    /// Of the connections that are seen at both ends.
    pub to_server: Option<Packets>,
    pub to_generator: Option<Packets>,
    /// All TCP segments that came in where the server is.
    pub steadiness: Option<Steadiness>,
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

/// How much a rate differs from one step of 0.2 s to the next.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Steadiness {
    /// Squares of deviations, as shares of each trial's mean, summed.
    squares: f64,
    /// Steps less one for each trial's mean.
    freedom: f64,
}

impl Steadiness {
    /// The squared coefficient of variation, and from how many steps it is.
    pub fn variation(self) -> Option<(f64, f64)> {
        (self.freedom >= 1.0).then(|| (self.squares / self.freedom, self.freedom))
    }

    fn read(readings: &Readings) -> Option<Steadiness> {
        let samples = readings.samples(&network::SEGMENTS_IN, &Subject::Machine);
        let rates = rates(&samples);
        let count = rates.len() as f64;
        let mean = rates.iter().sum::<f64>() / count;
        let squares = rates.iter().map(|rate| (rate / mean - 1.0).powi(2)).sum();
        (count >= 2.0 && mean > 0.0).then_some(Steadiness { squares, freedom: count - 1.0 })
    }
}

/// Rates over steps of a counter of which only changes are kept.
fn rates(samples: &[Sample]) -> Vec<f64> {
    let mut rates = Vec::new();
    let Some(mut from) = samples.first() else { return rates };
    for sample in samples {
        let seconds = sample.at_ns.saturating_sub(from.at_ns) as f64 / 1e9;
        if seconds >= STEP_S {
            rates.push((sample.value - from.value).max(0.0) / seconds);
            from = sample;
        }
    }
    rates
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
            steadiness: Steadiness::read(readings),
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
        self.steadiness = self
            .steadiness
            .zip(other.steadiness)
            .map(|(a, b)| Steadiness { squares: a.squares + b.squares, freedom: a.freedom + b.freedom });
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

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(steps: &[(u64, f64)]) -> Vec<Sample> {
        steps.iter().map(|&(at_ms, value)| Sample { at_ns: at_ms * 1_000_000, value }).collect()
    }

    #[test]
    fn rates_are_over_steps_and_a_pause_is_part_of_one() {
        assert_eq!(
            rates(&counter(&[(0, 0.0), (100, 10.0), (200, 20.0), (300, 30.0), (400, 60.0)])),
            [100.0, 200.0]
        );
        // Nothing came for half a second, so nothing was kept.
        assert_eq!(rates(&counter(&[(0, 5.0), (500, 55.0)])), [100.0]);
        assert!(rates(&[]).is_empty() && rates(&counter(&[(0, 1.0)])).is_empty());
    }
}
