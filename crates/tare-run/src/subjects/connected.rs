//! A server of any protocol, which a load generator shows: it is who holds the other ends of the generator's connections.

use super::decided;
use super::subject::Subject;
use super::sut::Sut;
use crate::error::LabError;
use crate::plan::Resolved;
use crate::process::descendants;
use crate::request::SutRequest;
use crate::running::Running;
use tare_machine::peers::Peer;
use tare_model::plan::{self, Transport};

/// Addresses with at least this share of the connections of the one with the most belong to one service: the nodes of a cluster have
/// as many each. Fewer lead to something else, as a collector of metrics.
const ALIKE_SHARE: f64 = 0.5;

/// Whoever the generator is connected to.
pub(super) struct Connected;

impl Subject for Connected {
    fn is_asked(&self, resolved: &Resolved) -> bool {
        resolved.request.sut == SutRequest::Find && resolved.by_connections
    }

    fn why(&self) -> &'static str {
        "it has the other ends of the connections of the load generator"
    }

    /// Nobody, until the generator has connections: see [`met`].
    fn open(&self, _resolved: &Resolved, _running: &mut Running<'_>) -> Result<Sut, LabError> {
        let why = "the generator has no connection yet".to_owned();
        Ok(Sut::connected(Vec::new(), plan::Sut::Unseen { why }))
    }
}

/// Whom a generator turned out to be connected to, `peers`, most connections first: the SUT, where nobody was named or what was named
/// is among them.
///
/// # Errors
/// It is connected to somebody else than who was named.
pub(crate) fn met(sut: &mut Sut, peers: &[Peer], running: &mut Running<'_>) -> Result<(), LabError> {
    let mine = |peer: &&Peer| peer.pids.iter().any(|pid| sut.pids.contains(pid));
    let is_named = !sut.pids.is_empty();
    let most = peers.first().map_or(0, |peer| peer.connections) as f64;
    let of_sut: Vec<&Peer> = match is_named {
        true => peers.iter().filter(mine).collect(),
        false => peers.iter().filter(|peer| peer.connections as f64 >= ALIKE_SHARE * most).collect(),
    };
    let Some(first) = of_sut.first() else {
        return Err(LabError::usage(
            format!("the load generator is connected to {}, not to {}", reported(peers), sut.name()),
            "check the address in --load, and what --sut or --sut-pid names; without these, whom it is connected to is measured",
        ));
    };
    sut.port = first.at.port();
    if !first.same_namespace {
        sut.transport = Transport::Namespace;
    }
    if !is_named {
        let mut pids: Vec<u32> =
            of_sut.iter().flat_map(|peer| &peer.pids).flat_map(|pid| descendants(*pid)).collect();
        pids.sort_unstable();
        pids.dedup();
        sut.pids = pids.clone();
        sut.kind = plan::Sut::Attached { pids };
        decided::report(sut, Connected.why());
    }
    let others: Vec<Peer> =
        peers.iter().filter(|peer| !of_sut.iter().any(|own| own.at == peer.at)).cloned().collect();
    if !others.is_empty() {
        let text = format!(
            "the load generator is connected to {} as well, which is not counted as the SUT's",
            reported(&others)
        );
        running.notice("other-peers", &text, "--sut-pid names the server where this is wrong")?;
    }
    Ok(())
}

/// `127.0.0.1:7777 (redis-server, pid 4711; 50 connections)`.
fn reported(peers: &[Peer]) -> String {
    let one = |peer: &Peer| {
        let pid = peer.pids.first().copied().unwrap_or_default();
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        format!("{} ({}, pid {pid}; {} connections)", peer.at, name.trim_end(), peer.connections)
    };
    peers.iter().take(3).map(one).collect::<Vec<_>>().join(", ")
}
