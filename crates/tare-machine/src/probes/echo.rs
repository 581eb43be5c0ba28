//! Requests and answers over loopback with no protocol on top: an event loop that sends back what it gets, and one that sends on each
//! connection the next request once the answer is there. What any server here can answer at most, with so many connections.

use super::place::{on_first, pin};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;
use tare_model::Missing;
use tare_sys::epoll::{Epoll, Events, Interest};
use tare_sys::net::{ListenOptions, listen, set_reset_on_close};
use tare_sys::time::monotonic_ns;

/// Bytes of a request and of an answer: some hundred, as the smallest of HTTP have.
const MESSAGE_BYTES: usize = 128;
/// Events of one pass of an event loop.
const EVENTS: usize = 256;
/// Longest that an event loop sleeps before it looks whether it is still wanted.
const PATIENCE: Duration = Duration::from_millis(20);
/// This part of the time passes before anything is counted.
const WARM_UP: u64 = 5;
/// Of the connections of a round the opening alone may take so long.
const OPENED_NS: u64 = 2_000_000_000;
/// Connections that may wait to be accepted, at least.
const BACKLOG_MIN: u32 = 128;
/// The token of the listener.
const LISTENER: u64 = u64::MAX;

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Server and client CPU of each pair of event loops.
    pub pairs: Vec<[u32; 2]>,
    /// Connections over all pairs.
    pub flows: u32,
    /// Whether clients look for answers without sleeping.
    pub polls: bool,
}

/// Answers per second, all pairs together.
///
/// # Errors
/// Why a CPU could not be used, or what the sockets say.
pub fn run(setting: &Setting, duration_ns: u64) -> Result<f64, Missing> {
    let count = setting.pairs.len().max(1) as u32;
    let of_pair = |at: u32| setting.flows / count + u32::from(at < setting.flows % count);
    let started: Vec<_> = (0..)
        .zip(&setting.pairs)
        .map(|(at, &[server, client])| {
            let (flows, polls) = (of_pair(at), setting.polls);
            let pair = move || {
                on_first([client, server], duration_ns + OPENED_NS, move || {
                    pair(server, flows, polls, duration_ns)
                })
            };
            (flows > 0).then(|| std::thread::spawn(pair))
        })
        .collect();
    let ended = |thread: std::thread::JoinHandle<Result<f64, Missing>>| {
        thread.join().unwrap_or_else(|_| Err(Missing::new("the probe's thread ended early")))
    };
    started.into_iter().flatten().map(ended).sum()
}

fn pair(server_cpu: u32, flows: u32, polls: bool, duration_ns: u64) -> Result<f64, Missing> {
    let failed = move |error: io::Error| {
        let remedy = match error.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => "measure again when the machine is less busy",
            _ => "raise the limit on open files (ulimit -n), or see what takes the ports (ss -s)",
        };
        Missing::with_remedy(format!("{flows} connections over loopback: {error}"), remedy)
    };
    // Room for all that may wait to be accepted at once: the standard library's 128 would lose some, and each of those takes a second.
    let options = ListenOptions { backlog: flows.max(BACKLOG_MIN), ..ListenOptions::default() };
    let listener: TcpListener = listen((Ipv4Addr::LOCALHOST, 0).into(), options).map_err(failed)?.into();
    let address = listener.local_addr().map_err(failed)?;
    let deadline_ns = monotonic_ns().saturating_add(duration_ns).saturating_add(OPENED_NS);
    let serve = move || pin(server_cpu).and_then(|()| serve(&listener, deadline_ns).map_err(failed));
    std::thread::Builder::new().name("tare-probe".into()).spawn(serve).map_err(failed)?;
    let mut connections = Vec::with_capacity(flows as usize);
    for _ in 0..flows {
        let connection = TcpStream::connect_timeout(&address, Duration::from_secs(1)).map_err(failed)?;
        ready(&connection).map_err(failed)?;
        // Thousands of them would keep their ports for a minute.
        set_reset_on_close(&connection).map_err(failed)?;
        connections.push(connection);
        if monotonic_ns() > deadline_ns {
            return Err(failed(ErrorKind::TimedOut.into()));
        }
    }
    ask(&mut connections, polls, duration_ns).map_err(failed)
}

fn ready(connection: &TcpStream) -> io::Result<()> {
    connection.set_nodelay(true)?;
    connection.set_nonblocking(true)
}

/// Answers until every connection is closed.
fn serve(listener: &TcpListener, deadline_ns: u64) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let (epoll, mut events) = (Epoll::new()?, Events::with_capacity(EVENTS));
    epoll.add(listener, Interest::READ, LISTENER)?;
    let mut connections: Vec<Option<TcpStream>> = Vec::new();
    let mut open = 0usize;
    let mut message = [0u8; MESSAGE_BYTES];
    while monotonic_ns() < deadline_ns && (open > 0 || connections.is_empty()) {
        epoll.wait(&mut events, Some(PATIENCE))?;
        for event in events.iter() {
            if event.token == LISTENER {
                while let Ok((connection, _)) = listener.accept() {
                    ready(&connection)?;
                    epoll.add(&connection, Interest::READ, connections.len() as u64)?;
                    connections.push(Some(connection));
                    open += 1;
                }
                continue;
            }
            let Some(place) = connections.get_mut(event.token as usize) else { continue };
            let Some(connection) = place else { continue };
            // What comes in parts goes back in parts: the other end counts bytes.
            let answered = connection.read(&mut message).and_then(|got| match got {
                0 => Err(ErrorKind::UnexpectedEof.into()),
                got => connection.write_all(&message[..got]),
            });
            if answered.is_err_and(|error| error.kind() != ErrorKind::WouldBlock) {
                *place = None;
                open -= 1;
            }
        }
    }
    Ok(())
}

/// Answers per second.
fn ask(connections: &mut [TcpStream], polls: bool, duration_ns: u64) -> io::Result<f64> {
    let (epoll, mut events) = (Epoll::new()?, Events::with_capacity(EVENTS));
    let mut message = [7u8; MESSAGE_BYTES];
    let mut missing = vec![MESSAGE_BYTES; connections.len()];
    for (token, connection) in connections.iter_mut().enumerate() {
        epoll.add(&*connection, Interest::READ, token as u64)?;
        connection.write_all(&message)?;
    }
    let timeout = if polls { Duration::ZERO } else { PATIENCE };
    let begun_ns = monotonic_ns();
    let count_from_ns = begun_ns + duration_ns / WARM_UP;
    let (mut answers, mut counted_from_ns, mut now_ns) = (0u64, None, begun_ns);
    while now_ns < begun_ns + duration_ns {
        epoll.wait(&mut events, Some(timeout))?;
        for event in events.iter() {
            let at = event.token as usize;
            let (Some(connection), Some(missing)) = (connections.get_mut(at), missing.get_mut(at)) else {
                continue;
            };
            match connection.read(&mut message[..*missing]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(got) => *missing -= got,
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error),
            }
            if *missing == 0 {
                *missing = MESSAGE_BYTES;
                answers += 1;
                connection.write_all(&message)?;
            }
        }
        now_ns = monotonic_ns();
        if counted_from_ns.is_none() && now_ns >= count_from_ns {
            (answers, counted_from_ns) = (0, Some(now_ns));
        }
    }
    match counted_from_ns.filter(|from_ns| now_ns > *from_ns && answers > 0) {
        Some(from_ns) => Ok(answers as f64 * 1e9 / (now_ns - from_ns) as f64),
        None => Err(ErrorKind::TimedOut.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_flows_is_answered() {
        let allowed = tare_sys::affinity::get(0).unwrap();
        let (first, last) = (allowed[0], *allowed.last().unwrap());
        for (pairs, flows, polls) in [
            (vec![[first, last]], 1, false),
            (vec![[first, last]], 1, true),
            (vec![[first, first]], 64, false),
            (vec![[first, last], [last, first]], 3, false),
            // More than the standard library has room for, opened faster than a server on the same CPU accepts.
            (vec![[first, first]], 200, false),
        ] {
            let setting = Setting { pairs, flows, polls };
            // Longer than others may keep one of both CPUs.
            let per_s = run(&setting, 100_000_000).unwrap();
            assert!(per_s > 10.0 && per_s < 1e8, "{setting:?}: {per_s}");
        }
    }
}
