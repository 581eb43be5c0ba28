//! The connections between generator and server at both edges of a window: what each end counted.
//!
//! Those that are opened or closed in between are in neither sum; where each request has its own there are none.

use crate::observed::{Observed, refused};
use crate::observer::{Edge, Observer};
use crate::scene::Scene;
use crate::tape::Tape;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use tare_model::Missing;
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics::connections as metrics;
use tare_model::observation::Sample;
use tare_sys::sockdiag::{Family, Listener, SockDiag, TcpSocket, listeners, sockets};

/// Room for a dump: some 2,600 sockets. Where there are more, reading them all would take longer than an edge may.
const DUMP_BYTES_MAX: usize = 1 << 20;
const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

/// Which end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Server,
    Client,
}

/// A metric, whose ends it sums up, and the count.
type Count = (&'static Descriptor, End, fn(&TcpSocket) -> Option<u64>);

static COUNTS: &[Count] = &[
    (&metrics::BUSY_NS, End::Server, |socket| Some(socket.busy_us.saturating_mul(1000))),
    (&metrics::RECEIVER_FULL_NS, End::Server, |socket| Some(socket.receiver_full_us.saturating_mul(1000))),
    (&metrics::BUFFER_FULL_NS, End::Server, |socket| Some(socket.buffer_full_us.saturating_mul(1000))),
    (&metrics::BYTES_ACKED, End::Server, |socket| Some(socket.bytes_acked)),
    (&metrics::SERVER_RETRANSMITS, End::Server, |socket| Some(u64::from(socket.retransmits))),
    (&metrics::SERVER_SEGMENTS, End::Server, |socket| Some(u64::from(socket.segments_out))),
    (&metrics::SERVER_SEGMENTS_IN, End::Server, |socket| Some(u64::from(socket.segments_in))),
    (&metrics::UNSENT, End::Server, |socket| Some(u64::from(socket.unsent_bytes > 0))),
    (&metrics::CLIENT_RETRANSMITS, End::Client, |socket| Some(u64::from(socket.retransmits))),
    (&metrics::CLIENT_SEGMENTS, End::Client, |socket| Some(u64::from(socket.segments_out))),
    (&metrics::CLIENT_SEGMENTS_IN, End::Client, |socket| Some(u64::from(socket.segments_in))),
    (&metrics::SERVER_TIMED_OUT_NS, End::Server, timed_out_ns),
    (&metrics::CLIENT_TIMED_OUT_NS, End::Client, timed_out_ns),
];

/// The same of connections that lasted at both ends: an end whose other one is gone sends to nobody.
static OF_PAIRS: &[Count] = &[
    (&metrics::TO_SERVER_SENT, End::Client, |socket| Some(u64::from(socket.all_segments_out))),
    (&metrics::TO_SERVER_ARRIVED, End::Server, |socket| Some(u64::from(socket.segments_in))),
    (&metrics::TO_GENERATOR_SENT, End::Server, |socket| Some(u64::from(socket.all_segments_out))),
    (&metrics::TO_GENERATOR_ARRIVED, End::Client, |socket| Some(u64::from(socket.segments_in))),
];

fn timed_out_ns(socket: &TcpSocket) -> Option<u64> {
    Some(u64::from(socket.timed_out_ms?) * 1_000_000)
}

struct Connections {
    /// The way to ask in the generator's namespace, and in the server's where that is another.
    ways: Vec<Result<SockDiag, Missing>>,
    tape: Tape,
}

pub(crate) fn open(_scene: &Scene) -> Box<dyn Observer> {
    Box::new(Connections { ways: Vec::new(), tape: Tape::default() })
}

impl Observer for Connections {
    fn prepare(&mut self, scene: &Scene) {
        self.tape.clear();
        self.ways.clear();
        if scene.watch.server_port.is_some() {
            self.ways
                .push(SockDiag::open().map_err(|error| refused("the kernel's view of connections", &error)));
            self.ways.extend(namespace_of_the_server(scene));
        }
    }

    fn edge(&mut self, _edge: &mut Edge) {
        for (way, place) in self.ways.iter_mut().zip(0u32..) {
            for (family, source) in FAMILIES.into_iter().zip(2 * place..) {
                let Ok(diag) = way else { break };
                let read = |buffer: &mut [u8]| diag.dump(family, buffer);
                if let Err(error) = self.tape.record_with(source, DUMP_BYTES_MAX, read) {
                    *way = Err(unread(&error));
                }
            }
        }
    }

    fn report(&mut self, scene: &Scene, observed: &mut Observed) {
        let Some(port) = scene.watch.server_port else {
            let reason = Missing::new("there is no server");
            return metrics::DESCRIPTORS
                .iter()
                .for_each(|metric| observed.absent(metric, None, reason.clone()));
        };
        let why = self.ways.iter().find_map(|way| way.as_ref().err().cloned());
        self.report_listeners(port, why.as_ref(), observed);
        self.report_pairs(port, why.as_ref(), observed);
        for end in [End::Server, End::Client] {
            let lasting = self.lasting(end, port);
            if lasting.is_empty() {
                let none = || Missing::new("no connection was open from the window's begin to its end");
                let reason = why.clone().unwrap_or_else(none);
                let of_end = COUNTS.iter().filter(|(_, of, _)| *of == end);
                of_end.for_each(|(metric, ..)| observed.absent(metric, None, reason.clone()));
                if end == End::Server {
                    observed.absent(&metrics::OPEN, None, reason);
                }
                continue;
            }
            for (metric, _, count) in COUNTS.iter().filter(|(_, of, _)| *of == end) {
                match sums(&lasting, *count) {
                    Some(samples) => observed.column(metric, Subject::Machine, samples),
                    None => observed.absent(metric, None, Missing::new("this kernel does not count it")),
                }
            }
            if end == End::Server {
                let at = |at_ns| Sample { at_ns, value: lasting.len() as f64 };
                let ends = lasting.first().map(|[first, last]| vec![at(first.0), at(last.0)]);
                observed.column(&metrics::OPEN, Subject::Machine, ends.unwrap_or_default());
            }
        }
    }
}

/// A socket as it was at the first edge and at the last, each with its stamp.
type Both = [(u64, TcpSocket); 2];

impl Connections {
    /// The least room of the server's accept queues, and who waits in all of them now.
    fn report_listeners(&self, port: u16, why: Option<&Missing>, observed: &mut Observed) {
        let listeners = self.listeners(port);
        let Some(least) = listeners.iter().map(|listener| listener.backlog).min() else {
            let none = || Missing::new("nobody listens on the server's port here");
            let reason = why.cloned().unwrap_or_else(none);
            observed.absent(&metrics::BACKLOG, None, reason.clone());
            return observed.absent(&metrics::WAITING, None, reason);
        };
        let waiting = listeners.iter().map(|listener| u64::from(listener.waiting)).sum::<u64>();
        let at_end = |value| vec![Sample { at_ns: observed.end_ns(), value }];
        let (backlog, waiting) = (at_end(f64::from(least)), at_end(waiting as f64));
        observed.column(&metrics::BACKLOG, Subject::Machine, backlog);
        observed.column(&metrics::WAITING, Subject::Machine, waiting);
    }

    /// What left one end and came in at the other. The generator's port stands for a connection: where it is translated on the way
    /// nothing is known.
    fn report_pairs(&self, port: u16, why: Option<&Missing>, observed: &mut Observed) {
        let by_port = |end: End, of: fn(&TcpSocket) -> u16| -> HashMap<u16, Both> {
            self.lasting(end, port).into_iter().map(|both| (of(&both[0].1), both)).collect()
        };
        let servers = by_port(End::Server, |socket| socket.remote_port);
        let clients = by_port(End::Client, |socket| socket.local_port);
        let paired = |one: &HashMap<u16, Both>, other: &HashMap<u16, Both>| -> Vec<Both> {
            one.iter().filter(|(port, _)| other.contains_key(port)).map(|(_, both)| *both).collect()
        };
        let (of_server, of_client) = (paired(&servers, &clients), paired(&clients, &servers));
        for (metric, end, count) in OF_PAIRS {
            let ends = if *end == End::Server { &of_server } else { &of_client };
            match sums(ends, *count) {
                Some(samples) => observed.column(metric, Subject::Machine, samples),
                None => {
                    let none = || Missing::new("no connection was seen at both ends all through the window");
                    observed.absent(metric, None, why.cloned().unwrap_or_else(none));
                }
            }
        }
    }

    /// The server's listening sockets. A namespace has few of those.
    fn listeners(&self, port: u16) -> Vec<Listener> {
        let mut buffer = vec![0; DUMP_BYTES_MAX];
        let mut found = Vec::new();
        for diag in self.ways.iter().flatten() {
            for family in FAMILIES {
                let Ok(filled) = diag.dump_listening(family, &mut buffer) else { continue };
                let dump = buffer.get(..filled).unwrap_or_default();
                found.extend(listeners(dump).filter(|listener| listener.port == port));
            }
        }
        found
    }

    /// Ends that were there at both edges.
    fn lasting(&self, end: End, port: u16) -> Vec<Both> {
        let is_of_end = |socket: &TcpSocket| match end {
            End::Server => socket.local_port == port,
            End::Client => socket.remote_port == port,
        };
        let mut first: HashMap<(u32, u64), (u64, TcpSocket)> = HashMap::new();
        let mut lasting: HashMap<(u32, u64), Both> = HashMap::new();
        for reading in self.tape.readings() {
            for socket in sockets(reading.bytes).filter(is_of_end) {
                let (key, now) = ((reading.source, socket.cookie), (reading.at_ns, socket));
                let begin = *first.entry(key).or_insert(now);
                if begin.0 < now.0 {
                    lasting.insert(key, [begin, now]);
                }
            }
        }
        lasting.into_values().collect()
    }
}

/// `None` where one of them is not counted.
fn sums(lasting: &[Both], count: fn(&TcpSocket) -> Option<u64>) -> Option<Vec<Sample>> {
    let at = |edge: usize| {
        let counts = lasting.iter().map(|both| count(&both[edge].1).map(|count| count as f64));
        Some(Sample { at_ns: lasting.first()?[edge].0, value: counts.sum::<Option<f64>>()? })
    };
    Some(vec![at(0)?, at(1)?])
}

/// Where the server's network namespace is found; `None` where it is the generator's own, or nobody knows the server.
pub(crate) fn servers_namespace(scene: &Scene) -> Option<String> {
    let pid = scene.watch.sut_pids.first()?;
    let name = |of: &str| std::fs::read_link(scene.root.path(format!("/proc/{of}/ns/net"))).ok();
    let own = name("self")?;
    (name(&pid.to_string())? != own).then(|| format!("/proc/{pid}/ns/net"))
}

fn namespace_of_the_server(scene: &Scene) -> Option<Result<SockDiag, Missing>> {
    let path = servers_namespace(scene)?;
    let opened = File::open(scene.root.path(&path)).and_then(|file| SockDiag::open_in(file.as_fd()));
    Some(opened.map_err(|error| refused(&path, &error)))
}

fn unread(error: &io::Error) -> Missing {
    match error.kind() {
        io::ErrorKind::FileTooLarge => {
            Missing::with_remedy("there are too many connections to look at each", "fewer connections (-c)")
        }
        _ => refused("the kernel's view of connections", error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Watch;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use tare_machine::Root;

    #[test]
    fn connections_that_stay_are_counted_and_others_are_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connect = || (TcpStream::connect(address).unwrap(), listener.accept().unwrap().0);
        let (mut client, mut server) = connect();
        let short_lived = connect();
        let watch = Watch { server_port: Some(address.port()), ..Watch::default() };
        let scene = Scene::new(watch, &Root::live());
        let mut observer = open(&scene);
        let mut edge = Edge { at_ns: 0 };
        observer.prepare(&scene);
        observer.edge(&mut edge);
        server.write_all(b"hello").unwrap();
        client.read_exact(&mut [0; 5]).unwrap();
        drop(short_lived);
        let _new = connect();
        let _waits_to_be_accepted = TcpStream::connect(address).unwrap();
        observer.edge(&mut edge);
        let mut observed = Observed::new(0, 1);
        observer.report(&scene, &mut observed);
        let seen = observed.close();
        let machine = Subject::Machine;
        assert_eq!(seen.last(&metrics::OPEN, &machine).ok(), Ok(1.0));
        assert!(seen.last(&metrics::BACKLOG, &machine).ok().unwrap() >= 1.0);
        assert_eq!(seen.last(&metrics::WAITING, &machine).ok(), Ok(1.0));
        assert_eq!(seen.last(&metrics::UNSENT, &machine).ok(), Ok(0.0));
        assert_eq!(seen.delta(&metrics::SERVER_SEGMENTS, &machine).ok(), Ok(1.0));
        assert_eq!(seen.delta(&metrics::CLIENT_SEGMENTS, &machine).ok(), Ok(0.0));
        // Nothing is lost here: what left one end came in at the other.
        let sent = seen.delta(&metrics::TO_GENERATOR_SENT, &machine).ok().unwrap();
        let arrived = seen.delta(&metrics::TO_GENERATOR_ARRIVED, &machine).ok().unwrap();
        assert!(sent >= 1.0 && sent == arrived, "{sent} {arrived}");
        assert!(seen.delta(&metrics::TO_SERVER_SENT, &machine).ok().is_ok());
        assert!(seen.delta(&metrics::CLIENT_SEGMENTS_IN, &machine).ok().unwrap() >= 1.0);
    }

    #[test]
    fn an_end_with_more_than_it_can_send_is_seen() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let _client = TcpStream::connect(address).unwrap();
        let mut server = listener.accept().unwrap().0;
        let watch = Watch { server_port: Some(address.port()), ..Watch::default() };
        let scene = Scene::new(watch, &Root::live());
        let mut observer = open(&scene);
        observer.prepare(&scene);
        observer.edge(&mut Edge { at_ns: 0 });
        server.set_nonblocking(true).unwrap();
        while server.write(&[0; 1 << 16]).is_ok() {}
        observer.edge(&mut Edge { at_ns: 0 });
        let mut observed = Observed::new(0, 1);
        observer.report(&scene, &mut observed);
        assert_eq!(observed.close().last(&metrics::UNSENT, &Subject::Machine).ok(), Ok(1.0));
    }

    #[test]
    fn without_a_server_or_a_connection_it_is_said() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        for server_port in [None, Some(listener.local_addr().unwrap().port())] {
            let scene = Scene::new(Watch { server_port, ..Watch::default() }, &Root::live());
            let mut observer = open(&scene);
            observer.prepare(&scene);
            observer.edge(&mut Edge { at_ns: 0 });
            observer.edge(&mut Edge { at_ns: 0 });
            let mut observed = Observed::new(0, 1);
            observer.report(&scene, &mut observed);
            let reason = observed.close().why_absent(&metrics::BUSY_NS, &Subject::Machine);
            assert!(
                reason.why.starts_with(if server_port.is_some() { "no connection" } else { "there is no" }),
                "{reason}"
            );
        }
    }
}
