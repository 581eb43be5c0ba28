//! The network's limits. They are those of the network namespace that tare runs in.

use super::setting::{Change, Setting};
use super::wanted::Wanted;
use crate::root::Root;
use crate::value::{self, Step};
use tare_model::Missing;

const SOMAXCONN: &str = "/proc/sys/net/core/somaxconn";
const PORT_RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";

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
