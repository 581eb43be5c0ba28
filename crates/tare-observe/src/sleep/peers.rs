//! Whether a socket leads to another server: one that the SUT connected, not one that it accepted.

use super::why::Why;
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use tare_machine::{Root, sockets};
use tare_model::schedule::Sleep;
use tare_sys::time::monotonic_ns;

/// The table of sockets is not read more often than this for a socket that is not in it, nor for more of the
/// time than one part in [`READ_APART_TIMES`]: the kernel goes through all that it has room for, which takes milliseconds.
const READ_APART_NS: u64 = 500_000_000;
const READ_APART_TIMES: u64 = 200;
/// Readings of the table that a socket was not in, after which it is none of TCP: one reading may miss a few.
const MISSED_ENOUGH: u8 = 3;
/// Descriptors that are remembered, at most.
const BEFORE_MAX: usize = 65_536;
/// Servers that are kept by name, at most.
const PEERS_MAX: usize = 64;

/// What is known of the sockets of one network namespace.
#[derive(Default)]
pub(crate) struct Peers {
    ends: HashMap<u64, (SocketAddr, SocketAddr)>,
    listening: HashSet<u16>,
    /// How often a socket was not in the table. Numbers of sockets hardly ever come again.
    missed: HashMap<u64, u8>,
    /// When the table may be read again.
    due_ns: u64,
    names: Vec<SocketAddr>,
    /// What a thread's descriptor was found to be since [`Peers::forget`].
    known: HashMap<(u32, u64), Why>,
    /// And before: a connection that is closed already was mostly one like the last with its number.
    before: HashMap<(u32, u64), Why>,
}

impl Peers {
    /// Descriptors may be others' from now on.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }

    /// Why a thread sleeps that waits for the socket `fd` of its own.
    pub(crate) fn why(&mut self, root: &Root, pid: u32, tid: u32, fd: u64, now_ns: u64) -> Why {
        if let Some(why) = self.known.get(&(tid, fd)) {
            return *why;
        }
        let why = match self.peer(root, pid, tid, fd, now_ns) {
            Some(Some(peer)) => Why { sleep: Sleep::Downstream, peer: self.number(peer) },
            Some(None) => Sleep::Event.into(),
            None => self.before.get(&(tid, fd)).copied().unwrap_or(Sleep::Event.into()),
        };
        if self.before.len() < BEFORE_MAX || self.before.contains_key(&(tid, fd)) {
            self.before.insert((tid, fd), why);
        }
        self.known.insert((tid, fd), why);
        why
    }

    /// `address:port` of a peer by its number.
    pub(crate) fn name(&self, number: u16) -> Option<String> {
        self.names.get(usize::from(number)).map(SocketAddr::to_string)
    }

    fn number(&mut self, peer: SocketAddr) -> Option<u16> {
        let known = self.names.iter().position(|name| *name == peer);
        if known.is_none() && self.names.len() < PEERS_MAX {
            self.names.push(peer);
        }
        let at = known.or_else(|| self.names.iter().position(|name| *name == peer))?;
        u16::try_from(at).ok()
    }

    /// The other end of a socket that this side connected, `None` within for one that it accepted; `None` where
    /// neither is known (any more).
    fn peer(&mut self, root: &Root, pid: u32, tid: u32, fd: u64, now_ns: u64) -> Option<Option<SocketAddr>> {
        let link = std::fs::read_link(root.path(format!("/proc/{pid}/task/{tid}/fd/{fd}"))).ok()?;
        let inode = sockets::socket_inode(link.to_str()?)?;
        let is_other =
            |missed: &HashMap<u64, u8>| missed.get(&inode).is_some_and(|times| *times >= MISSED_ENOUGH);
        if !self.ends.contains_key(&inode) && now_ns >= self.due_ns && !is_other(&self.missed) {
            self.read(root, pid, inode, now_ns);
        }
        let (local, remote) = self.ends.get(&inode)?;
        Some((!self.listening.contains(&local.port())).then_some(*remote))
    }

    fn read(&mut self, root: &Root, pid: u32, wanted: u64, now_ns: u64) {
        let begin_ns = monotonic_ns();
        let rows = sockets::tcp_of(root, pid);
        let taken_ns = monotonic_ns().saturating_sub(begin_ns);
        let apart_ns = READ_APART_NS.max(taken_ns.saturating_mul(READ_APART_TIMES));
        self.due_ns = now_ns.saturating_add(apart_ns);
        let Ok(rows) = rows else { return };
        let (listening, connected): (Vec<_>, Vec<_>) = rows.into_iter().partition(sockets::Row::listens);
        self.listening = listening.into_iter().map(|row| row.local.port()).collect();
        self.ends = connected.into_iter().map(|row| (row.inode, (row.local, row.remote))).collect();
        if !self.ends.contains_key(&wanted)
            && (self.missed.len() < BEFORE_MAX || self.missed.contains_key(&wanted))
        {
            let missed = self.missed.entry(wanted).or_default();
            *missed = missed.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    #[test]
    fn who_connected_waits_downstream_and_who_accepted_waits_for_events() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let mut ours = TcpStream::connect(server).unwrap();
        let (theirs, _) = listener.accept().unwrap();
        ours.write_all(b"x").unwrap();
        let (mut peers, pid) = (Peers::default(), std::process::id());
        let mut why = |fd| peers.why(&Root::live(), pid, pid, fd as u64, 1);
        let downstream = why(ours.as_raw_fd());
        assert_eq!(downstream, Why { sleep: Sleep::Downstream, peer: Some(0) });
        assert_eq!(why(theirs.as_raw_fd()), Sleep::Event.into());
        assert_eq!(why(-1), Sleep::Event.into());
        assert_eq!(peers.name(0), Some(server.to_string()));
        assert_eq!(peers.name(1), None);
    }
}
