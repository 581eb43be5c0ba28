//! What was counted around server and generator in one window, or in several: nobody's time, but where it may have gone.

use crate::accounting::raw::readings::Readings;
use crate::accounting::raw::way::Way;
use std::collections::BTreeMap;
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics::{client, connections, jvm, memory, network, open_files, pressure};
use tare_model::observation::Column;

/// `None` is not counted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Around {
    pub listen_overflows: Option<f64>,
    /// Connections for which the server's accept queue has room.
    pub backlog: Option<f64>,
    /// Connections that waited there when a window closed, most of all windows.
    pub waiting: Option<f64>,
    /// Of the server's process that was nearest to its limit.
    pub open_files: Option<OpenFiles>,
    /// Times that a thread of a Java virtual machine found a monitor taken.
    pub contended_monitors: Option<f64>,
    /// Acknowledgements that were held back until their time was up: at the end of the connections that had more.
    pub delayed_acks: Option<f64>,
    /// Most connections at once that were over and kept their ports, and ports that there are.
    pub time_wait: Option<f64>,
    pub ports: Option<f64>,
    pub connections: Option<Connections>,
    pub memory: Memory,
    /// Packets that each CPU handled, whosever they were.
    pub packets: BTreeMap<u32, f64>,
    /// Of all CPUs, those between generator and server: what came in at the ends of the connections that lasted.
    pub own_packets: Option<f64>,
    /// At how many of the two ends that was counted.
    pub own_ends: f64,
    /// All TCP segments of the server's network: its own are among them, also those to the servers that it calls.
    pub segments: Option<f64>,
    /// What is known of the way between generator and server.
    pub way: Way,
}

/// Open files of a process, most at once, and how many it may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenFiles {
    pub open: f64,
    pub limit: f64,
}

/// Signs that there was too little memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    /// Time in which somebody waited for memory: of the SUT's group, or of the machine where that is not kept.
    pub stalled_s: Option<f64>,
    /// Whether it is the group's.
    pub is_groups: bool,
    /// Times that a group of the SUT was at its limit; `None` where it is in none that has one, or that was not read.
    pub limit_hits: Option<f64>,
    /// Bytes that were read in again: of the SUT's groups, else of the machine.
    pub refaulted_bytes: Option<f64>,
    /// Bytes that the machine read from disks.
    pub read_bytes: Option<f64>,
    /// The group that was at its limit most often, and what it may use.
    pub tightest: Option<(String, f64)>,
}

/// Connections that were open all through the window, or several windows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connections {
    /// Lives of the server's ends, summed; `None` where only the generator's are seen.
    pub server: Option<ServerEnds>,
    /// Segments with data that were sent, and those that were sent again, by all ends that are seen.
    pub segments: f64,
    pub retransmits: f64,
    /// Time that ends waited after an acknowledgement was overdue, summed; `None` where the kernel does not count it.
    pub timed_out_s: Option<f64>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct ServerEnds {
    /// Their lives, summed.
    pub open_s: f64,
    /// Of it, time in which bytes were on their way to a generator that had room for them.
    pub on_the_way_s: f64,
    pub bytes: f64,
    /// At each edge of a window, how many ends had bytes that they had not sent; summed, with the edges.
    pub unsent: Option<(f64, f64)>,
}

impl Around {
    pub fn read(readings: &Readings) -> Around {
        let growth = |metric: &Descriptor| readings.growth(metric, &Subject::Machine);
        let most = |metric: &Descriptor| {
            let samples = readings.samples(metric, &Subject::Machine);
            samples.into_iter().map(|sample| sample.value).max_by(f64::total_cmp)
        };
        Around {
            listen_overflows: growth(&network::LISTEN_OVERFLOWS),
            backlog: readings.level(&connections::BACKLOG, &Subject::Machine),
            waiting: readings.level(&connections::WAITING, &Subject::Machine),
            open_files: OpenFiles::read(readings),
            contended_monitors: growth(&jvm::CONTENDED),
            delayed_acks: larger(growth(&network::DELAYED_ACKS), growth(&client::DELAYED_ACKS)),
            time_wait: most(&client::TIME_WAIT),
            ports: most(&client::PORTS),
            connections: Connections::read(readings),
            memory: Memory::read(readings),
            packets: packets(readings),
            own_packets: own_packets(readings).into_iter().reduce(|a, b| a + b),
            own_ends: own_packets(readings).len() as f64,
            // What went out is somebody's to take in, maybe here.
            segments: growth(&network::SEGMENTS_IN).zip(growth(&network::SEGMENTS_OUT)).map(|(a, b)| a + b),
            way: Way::read(readings),
        }
    }

    pub fn absorb(&mut self, other: &Around) {
        let sum = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
        self.listen_overflows = sum(self.listen_overflows, other.listen_overflows);
        self.backlog = self.backlog.or(other.backlog);
        self.delayed_acks = sum(self.delayed_acks, other.delayed_acks);
        self.contended_monitors = sum(self.contended_monitors, other.contended_monitors);
        self.waiting = larger(self.waiting, other.waiting);
        self.open_files = OpenFiles::nearer(self.open_files, other.open_files);
        self.time_wait = larger(self.time_wait, other.time_wait);
        self.ports = larger(self.ports, other.ports);
        self.memory.absorb(&other.memory);
        for (cpu, count) in &other.packets {
            *self.packets.entry(*cpu).or_default() += count;
        }
        self.own_packets = sum(self.own_packets, other.own_packets);
        self.own_ends = self.own_ends.max(other.own_ends);
        self.segments = sum(self.segments, other.segments);
        self.way.absorb(&other.way);
        self.connections = self.connections.take().zip(other.connections.as_ref()).map(|(a, b)| a.and(b));
    }
}

impl OpenFiles {
    fn read(readings: &Readings) -> Option<OpenFiles> {
        let samples = |metric: &Descriptor| readings.samples(metric, &Subject::Machine);
        let limits = samples(&open_files::LIMIT);
        // Only changes are kept: what holds is the last one.
        let limit_at =
            |at_ns: u64| limits.iter().rev().find(|limit| limit.at_ns <= at_ns).map(|limit| limit.value);
        let each = samples(&open_files::OPEN).into_iter();
        let each = each.filter_map(|open| Some(OpenFiles { open: open.value, limit: limit_at(open.at_ns)? }));
        each.fold(None, |nearest, one| OpenFiles::nearer(nearest, Some(one)))
    }

    /// The one with less room, as a share of its limit.
    fn nearer(a: Option<OpenFiles>, b: Option<OpenFiles>) -> Option<OpenFiles> {
        a.into_iter().chain(b).max_by(|a, b| (a.open / a.limit).total_cmp(&(b.open / b.limit)))
    }
}

impl Memory {
    fn read(readings: &Readings) -> Memory {
        // Groups hold those below them: what the outermost counts has all of it.
        let of = |metric: &'static Descriptor, wanted: fn(&Subject) -> bool| {
            let columns =
                readings.observation.columns.iter().filter(move |column| column.metric == metric.id);
            let subjects = columns.map(|column| &column.subject).filter(move |subject| wanted(subject));
            subjects.filter_map(move |subject| Some((subject, readings.growth(metric, subject)?)))
        };
        let most = |metric, wanted| of(metric, wanted).max_by(|a, b| a.1.total_cmp(&b.1));
        let is_group: fn(&Subject) -> bool = |subject| matches!(subject, Subject::Group(_));
        let hit = most(&memory::LIMIT_HITS, is_group);
        let tightest = hit.filter(|(_, hits)| *hits > 0.0).and_then(|(subject, _)| {
            let limits =
                [&memory::LIMIT_BYTES, &memory::HIGH_BYTES].map(|limit| readings.level(limit, subject));
            let limit_bytes = limits.into_iter().flatten().min_by(f64::total_cmp)?;
            let Subject::Group(path) = subject else { return None };
            Some((path.clone(), limit_bytes))
        });
        let stalled_there = most(&pressure::MEMORY_SOME_NS, is_group);
        let refaulted =
            most(&memory::REFAULTED_BYTES, is_group).or_else(|| most(&memory::REFAULTED_BYTES, |_| true));
        Memory {
            is_groups: stalled_there.is_some(),
            stalled_s: stalled_there
                .or_else(|| most(&pressure::MEMORY_SOME_NS, |_| true))
                .map(|(_, stalled_ns)| stalled_ns / 1e9),
            limit_hits: hit.map(|(_, hits)| hits),
            refaulted_bytes: refaulted.map(|(_, bytes)| bytes),
            read_bytes: readings.growth(&memory::READ_BYTES, &Subject::Machine),
            tightest,
        }
    }

    fn absorb(&mut self, other: &Memory) {
        let sum = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
        self.stalled_s = sum(self.stalled_s, other.stalled_s);
        self.is_groups &= other.is_groups;
        self.limit_hits = sum(self.limit_hits, other.limit_hits);
        self.refaulted_bytes = sum(self.refaulted_bytes, other.refaulted_bytes);
        self.read_bytes = sum(self.read_bytes, other.read_bytes);
        self.tightest = self.tightest.take().or_else(|| other.tightest.clone());
    }
}

impl Connections {
    fn read(readings: &Readings) -> Option<Connections> {
        let growth = |metric: &Descriptor| readings.growth(metric, &Subject::Machine);
        let server = || {
            let open = readings.level(&connections::OPEN, &Subject::Machine)?;
            let (busy_ns, full_ns) =
                (growth(&connections::BUSY_NS)?, growth(&connections::RECEIVER_FULL_NS)?);
            Some(ServerEnds {
                open_s: open * readings.wall_s(),
                on_the_way_s: (busy_ns - full_ns).max(0.0) / 1e9,
                bytes: growth(&connections::BYTES_ACKED)?,
                unsent: unsent(readings),
            })
        };
        let ends = [
            [&connections::SERVER_SEGMENTS, &connections::SERVER_RETRANSMITS],
            [&connections::CLIENT_SEGMENTS, &connections::CLIENT_RETRANSMITS],
        ];
        let seen = ends.iter().filter_map(|[sent, again]| Some((growth(sent)?, growth(again)?)));
        let seen = seen.reduce(|a, b| (a.0 + b.0, a.1 + b.1));
        let timed_out = [&connections::SERVER_TIMED_OUT_NS, &connections::CLIENT_TIMED_OUT_NS];
        let timed_out_s = timed_out
            .into_iter()
            .filter_map(growth)
            .reduce(|a, b| a + b)
            .map(|timed_out_ns| timed_out_ns / 1e9);
        seen.map(|(segments, retransmits)| Connections {
            server: server(),
            segments,
            retransmits,
            timed_out_s,
        })
    }

    fn and(self, other: &Connections) -> Connections {
        let server = self.server.zip(other.server.as_ref()).map(|(a, b)| ServerEnds {
            open_s: a.open_s + b.open_s,
            on_the_way_s: a.on_the_way_s + b.on_the_way_s,
            bytes: a.bytes + b.bytes,
            unsent: a.unsent.zip(b.unsent).map(|(a, b)| (a.0 + b.0, a.1 + b.1)),
        });
        let (segments, retransmits) = (self.segments + other.segments, self.retransmits + other.retransmits);
        let timed_out_s = self.timed_out_s.zip(other.timed_out_s).map(|(a, b)| a + b);
        Connections { server, segments, retransmits, timed_out_s }
    }
}

fn unsent(readings: &Readings) -> Option<(f64, f64)> {
    let samples = readings.samples(&connections::UNSENT, &Subject::Machine);
    (!samples.is_empty()).then(|| (samples.iter().map(|sample| sample.value).sum(), samples.len() as f64))
}

fn packets(readings: &Readings) -> BTreeMap<u32, f64> {
    let columns = readings.observation.columns.iter();
    let handled = columns.filter(|column| column.metric == network::SOFTNET_PACKETS.id);
    let of_cpu = |column: &Column| match column.subject {
        Subject::Cpu(cpu) => Some((cpu, readings.growth(&network::SOFTNET_PACKETS, &column.subject)?)),
        _ => None,
    };
    handled.filter_map(of_cpu).collect()
}

/// At each of the two ends that was counted.
fn own_packets(readings: &Readings) -> Vec<f64> {
    let growth = |metric: &Descriptor| readings.growth(metric, &Subject::Machine);
    let at_ends = [&connections::SERVER_SEGMENTS_IN, &connections::CLIENT_SEGMENTS_IN];
    at_ends.into_iter().filter_map(growth).collect()
}

fn larger(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.into_iter().chain(b).max_by(f64::total_cmp)
}
