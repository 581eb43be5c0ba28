//! What the connections of somebody else's generator received since they were opened, read again and again: he closes them before the
//! window does, and what he reports can then be held against the last reading.

use crate::observed::{Observed, refused};
use crate::observer::{Edge, Observer};
use crate::scene::Scene;
use crate::tape::Tape;
use crate::watch::LoadWatch;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use tare_machine::sockets::sockets_of;
use tare_model::Missing;
use tare_model::metric::Subject;
use tare_model::metrics::load_connections as metrics;
use tare_model::observation::Sample;
use tare_sys::sockdiag::{Family, SockDiag, TcpEnd, tcp_ends};

/// Samples per second between the edges: the kernel walks through its whole table of sockets for one.
const SAMPLE_HZ: f64 = 2.0;
/// Room for a dump: some 2,600 sockets.
const DUMP_BYTES_MAX: usize = 1 << 20;
/// Processes of a generator whose sockets are looked for.
const PROCESSES_MAX: usize = 64;

#[derive(Default)]
struct LoadConnections {
    /// The way to ask; `None`: nobody's generator is watched.
    way: Option<Result<SockDiag, Missing>>,
    /// Its sockets as the window was about to open, of all kinds.
    own: BTreeSet<u64>,
    server_port: Option<u16>,
    tape: Tape,
}

pub(crate) fn open(_scene: &Scene) -> Box<dyn Observer> {
    Box::new(LoadConnections::default())
}

impl LoadConnections {
    fn read(&mut self) {
        for (family, source) in [(Family::V4, 0), (Family::V6, 1)] {
            let Some(Ok(diag)) = &self.way else { return };
            let read = |buffer: &mut [u8]| diag.dump(family, buffer);
            if let Err(error) = self.tape.record_with(source, DUMP_BYTES_MAX, read) {
                self.way = Some(Err(unread(&error)));
            }
        }
    }

    /// The readings in which all of its connections were there, of both families together.
    fn seen(&self) -> Result<Vec<Seen>, Missing> {
        match &self.way {
            None => return Err(Missing::new("no generator of somebody else was watched")),
            Some(Err(reason)) => return Err(reason.clone()),
            Some(Ok(_)) => {}
        }
        let Some(port) = self.server_port else { return Err(Missing::new("the server has no port")) };
        let of_family = |source: u32| {
            let readings = self.tape.readings().filter(|reading| reading.source == source);
            whole(readings.map(|reading| (reading.at_ns, ends_of(reading.bytes))), &self.own, port)
        };
        let families = [of_family(0)?, of_family(1)?];
        let mut families = families.into_iter().flatten();
        let Some(first) = families.next() else {
            return Err(Missing::new(
                "no TCP connection of the generator was seen as the window opened: it has Unix sockets or UDP, or opens one for each request",
            ));
        };
        Ok(families.fold(first, |all, more| all.into_iter().zip(more).map(|(a, b)| a.with(b)).collect()))
    }
}

impl Observer for LoadConnections {
    fn prepare(&mut self, scene: &Scene) {
        self.tape.clear();
        self.own.clear();
        self.way = None;
        self.server_port = scene.watch.server_port;
        if let LoadWatch::Process(pids) = &scene.watch.load {
            let family = scene.family(pids);
            if family.len() > PROCESSES_MAX {
                let why = format!("the generator has more than {PROCESSES_MAX} processes");
                self.way = Some(Err(Missing::new(why)));
                return;
            }
            self.way = Some(SockDiag::open().map_err(|error| unread(&error)));
            for pid in family {
                self.own.extend(sockets_of(&scene.root, pid));
            }
        }
    }

    fn edge(&mut self, _edge: &mut Edge) {
        self.read();
    }

    fn sample(&mut self, scene: &Scene, tick: u64) {
        if tick.is_multiple_of(scene.every(SAMPLE_HZ)) {
            self.read();
        }
    }

    fn next(&self, scene: &Scene, tick: u64) -> u64 {
        match &self.way {
            Some(Ok(_)) if !self.own.is_empty() => scene.next(SAMPLE_HZ, tick),
            _ => u64::MAX,
        }
    }

    fn report(&mut self, _scene: &Scene, observed: &mut Observed) {
        match self.seen() {
            Ok(seen) => {
                let column = |of: fn(&Seen) -> u64| {
                    seen.iter().map(|seen| Sample { at_ns: seen.at_ns, value: of(seen) as f64 }).collect()
                };
                observed.column(&metrics::SEGMENTS_IN, Subject::Machine, column(|seen| seen.segments));
                observed.column(&metrics::BYTES_IN, Subject::Machine, column(|seen| seen.bytes));
            }
            Err(reason) => {
                let absent = |metric| observed.absent(metric, None, reason.clone());
                metrics::DESCRIPTORS.iter().copied().for_each(absent);
            }
        }
    }
}

/// What all of its connections together had received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    at_ns: u64,
    segments: u64,
    bytes: u64,
}

impl Seen {
    fn with(self, other: Seen) -> Seen {
        let (segments, bytes) = (self.segments + other.segments, self.bytes.saturating_add(other.bytes));
        Seen { at_ns: self.at_ns.min(other.at_ns), segments, bytes }
    }
}

type Ends = BTreeMap<u64, TcpEnd>;

fn ends_of(dump: &[u8]) -> Ends {
    tcp_ends(dump).filter(|end| end.inode != 0).map(|end| (end.inode, end)).collect()
}

/// The readings until all of its connections are gone; `None`: it had none in the first one. Where a connection was opened or closed before
/// that, whosever it may be, or where it is connected to others than the server, what it received is not known as a whole.
fn whole(
    readings: impl Iterator<Item = (u64, Ends)>,
    own: &BTreeSet<u64>,
    server_port: u16,
) -> Result<Option<Vec<Seen>>, Missing> {
    let (mut first, mut seen) = (None::<Ends>, Vec::new());
    for (at_ns, ends) in readings {
        let first = first.get_or_insert_with(|| ends.clone());
        let known = first.iter().filter(|(inode, _)| own.contains(inode));
        if known.clone().any(|(_, end)| end.remote.port() != server_port) {
            return Err(Missing::new("the generator is connected to others than the server"));
        }
        let there: Vec<&TcpEnd> = known.clone().filter_map(|(inode, _)| ends.get(inode)).collect();
        let all = known.count();
        if all == 0 {
            return Ok(None);
        }
        if ends.keys().any(|inode| !first.contains_key(inode)) || !there.is_empty() && there.len() < all {
            return Err(Missing::new(
                "connections were opened or closed meanwhile, and may have been the generator's",
            ));
        }
        if there.is_empty() {
            break;
        }
        let segments = there.iter().map(|end| u64::from(end.data_in)).sum();
        let bytes = there.iter().fold(0, |sum: u64, end| sum.saturating_add(end.bytes_in));
        seen.push(Seen { at_ns, segments, bytes });
    }
    Ok(Some(seen))
}

fn unread(error: &io::Error) -> Missing {
    match error.kind() {
        io::ErrorKind::FileTooLarge => {
            Missing::with_remedy("there are too many connections to look at each", "fewer connections")
        }
        _ => refused("the kernel's view of connections", error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Watch;
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use tare_machine::Root;

    fn ends(of: &[(u64, u32, u64)]) -> Ends {
        let at: SocketAddr = "127.0.0.1:80".parse().unwrap();
        let end = |&(inode, data_in, bytes_in): &(u64, u32, u64)| {
            let end = TcpEnd {
                local: at,
                remote: at,
                inode,
                listens: false,
                waiting: 0,
                data_out: 0,
                data_in,
                bytes_in,
                sent_ago_ms: 0,
                received_ago_ms: 0,
            };
            (inode, end)
        };
        of.iter().map(end).collect()
    }

    #[test]
    fn only_connections_that_are_there_from_first_to_last_are_a_whole_count() {
        let of = |readings: &[&[(u64, u32, u64)]], own: &[u64]| {
            let readings = (1..).zip(readings).map(|(at_ns, reading)| (at_ns, ends(reading)));
            let seen = whole(readings, &own.iter().copied().collect(), 80)?;
            Ok::<_, Missing>(seen.map(|seen| seen.iter().map(|s| (s.segments, s.bytes)).collect::<Vec<_>>()))
        };
        // 9 is another client's.
        let begin: &[(u64, u32, u64)] = &[(1, 2, 20), (2, 1, 10), (9, 5, 50)];
        let later: &[(u64, u32, u64)] = &[(1, 4, 40), (2, 4, 40)];
        assert_eq!(of(&[begin, later, &[(9, 6, 60)]], &[1, 2, 3]), Ok(Some(vec![(3, 30), (8, 80)])));
        assert_eq!(of(&[begin, later], &[7]), Ok(None), "none of its own");
        assert!(of(&[begin, &[(1, 4, 40)]], &[1, 2]).is_err(), "one was closed");
        assert!(
            of(&[begin, &[(1, 4, 40), (2, 4, 40), (3, 0, 0)]], &[1, 2]).is_err(),
            "one was opened, by whom is not known"
        );
        assert!(of(&[begin, &[(3, 0, 0)]], &[1, 2]).is_err(), "all were opened anew");
        assert_eq!(of(&[], &[1]), Ok(Some(Vec::new())));
        let elsewhere = whole([(1, ends(begin))].into_iter(), &BTreeSet::from([1]), 81);
        assert!(elsewhere.is_err(), "it loads another port than the server's");
    }

    #[test]
    fn what_a_process_receives_is_counted_from_the_first_byte_on() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let server_port = Some(client.peer_addr().unwrap().port());
        let mut send = || {
            server.write_all(b"hello").unwrap();
            client.read_exact(&mut [0; 5]).unwrap();
        };
        send();
        let watch = |load| Scene::new(Watch { load, server_port, ..Watch::default() }, &Root::live());
        let scene = watch(LoadWatch::Process(vec![std::process::id()]));
        let mut observer = open(&scene);
        observer.prepare(&scene);
        observer.edge(&mut Edge { at_ns: 0 });
        send();
        observer.edge(&mut Edge { at_ns: 0 });
        let mut observed = Observed::new(0, 1);
        observer.report(&scene, &mut observed);
        let seen = observed.close();
        // The server's end is this process's too, and other tests open connections: then it says so.
        let bytes = seen.last(&metrics::BYTES_IN, &Subject::Machine);
        assert!(!matches!(bytes, tare_model::Reading::Measured(bytes) if bytes < 10.0), "{bytes:?}");
        let scene = watch(LoadWatch::None);
        observer.prepare(&scene);
        observer.edge(&mut Edge { at_ns: 0 });
        let mut observed = Observed::new(0, 1);
        observer.report(&scene, &mut observed);
        let reason = observed.close().why_absent(&metrics::BYTES_IN, &Subject::Machine);
        assert!(reason.why.starts_with("no generator of somebody else"), "{reason}");
    }
}
