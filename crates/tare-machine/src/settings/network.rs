//! The network's limits. They are those of the network namespace that tare runs in.

use super::setting::{Change, Setting};
use super::wanted::Wanted;
use crate::root::Root;
use crate::value::{self, Step};
use tare_model::Missing;

const SOMAXCONN: &str = "/proc/sys/net/core/somaxconn";
const PORT_RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
/// For how long a read, and a wait for several sockets (poll, select, epoll), asks the device before it sleeps; microseconds.
const BUSY_READ: &str = "/proc/sys/net/core/busy_read";
const BUSY_POLL: &str = "/proc/sys/net/core/busy_poll";
/// Longer makes no sense: all of that time a CPU is busy with nothing else.
const BUSY_NS_MAX: u64 = 1_000_000_000;

/// How many connections may wait to be accepted.
#[derive(Debug)]
pub(super) struct Somaxconn;

impl Setting for Somaxconn {
    fn name(&self) -> &'static str {
        "somaxconn"
    }

    fn about(&self) -> &'static str {
        "longest queue of connections that wait to be accepted; a listener has it from when it begins to listen"
    }

    fn now(&self, root: &Root) -> Result<String, Missing> {
        value::number(root, SOMAXCONN).map(|limit| limit.to_string())
    }

    fn change(&self, root: &Root, wanted: &Wanted) -> Option<Result<Change, Missing>> {
        let limit = wanted.network.somaxconn?;
        Some(self.now(root).map(|before| Change {
            notes: vec!["servers that listen already keep their queue: start them again".to_string()],
            ..Change::of([Step::change(SOMAXCONN, before, limit.to_string())])
        }))
    }
}

/// The ports that connections are made from.
#[derive(Debug)]
pub(super) struct PortRange;

impl Setting for PortRange {
    fn name(&self) -> &'static str {
        "port-range"
    }

    fn about(&self) -> &'static str {
        "ports that connections are made from: a new connection for each request uses them up"
    }

    fn now(&self, root: &Root) -> Result<String, Missing> {
        let text = value::read(root, PORT_RANGE)?;
        let mut ports = text.split_ascii_whitespace().map(|port| port.parse::<u16>().ok());
        match (ports.next().flatten(), ports.next().flatten(), ports.next()) {
            (Some(first), Some(last), None) if first <= last => Ok(format!("{first}-{last}")),
            _ => Err(Missing::new(format!("{PORT_RANGE} holds {text:?}"))),
        }
    }

    fn change(&self, root: &Root, wanted: &Wanted) -> Option<Result<Change, Missing>> {
        let (first, last) = wanted.network.port_range?;
        Some(self.now(root).and_then(|_| {
            let before = value::read(root, PORT_RANGE)?;
            Ok(Change::of([Step::change(PORT_RANGE, before, format!("{first} {last}"))]))
        }))
    }
}

/// Asking the network device again and again before one sleeps.
#[derive(Debug)]
pub(super) struct BusyPoll;

fn busy_us(root: &Root) -> Result<[u64; 2], Missing> {
    if !root.exists(BUSY_READ) {
        return Err(Missing::with_remedy(
            format!("{BUSY_READ} is not there"),
            "in a container: on its host (the kernel needs CONFIG_NET_RX_BUSY_POLL)",
        ));
    }
    Ok([value::number(root, BUSY_READ)?, value::number(root, BUSY_POLL)?])
}

impl Setting for BusyPoll {
    fn name(&self) -> &'static str {
        "busy-poll"
    }

    fn about(&self) -> &'static str {
        "how long a reader asks the network device before it sleeps: shorter waits, more CPU time; loopback has no device to ask"
    }

    fn now(&self, root: &Root) -> Result<String, Missing> {
        Ok(match busy_us(root)? {
            [0, 0] => "off".to_owned(),
            [read, poll] => format!("{read} us (busy_read), {poll} us (busy_poll)"),
        })
    }

    fn change(&self, root: &Root, wanted: &Wanted) -> Option<Result<Change, Missing>> {
        let wanted_ns = wanted.network.busy_poll_ns?;
        Some(busy_us(root).and_then(|before| {
            if wanted_ns > BUSY_NS_MAX || !wanted_ns.is_multiple_of(1000) {
                return Err(Missing::with_remedy(
                    "busy polling is in whole microseconds, up to 1 s",
                    "the kernel's documentation recommends 50us to 100us",
                ));
            }
            let wanted = (wanted_ns / 1000).to_string();
            let steps = [BUSY_READ, BUSY_POLL].into_iter().zip(before);
            let steps = steps.map(|(path, before)| Step::change(path, before.to_string(), &wanted));
            let note = "sockets that are open already keep what they had (busy_read): start servers again";
            Ok(Change { notes: vec![note.to_owned()], ..Change::of(steps) })
        }))
    }
}
