//! From the kernel's tables of sockets to the asking ends of connections, and where they lead.

use super::called::{Found, Where};
use super::sightings::{State, tcp_state};
use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use tare_machine::peers::Endpoint;
use tare_sys::sockdiag::{TcpEnd, UnixEnd};

/// The sockets of one network namespace at an instant.
#[derive(Debug, Default)]
pub(super) struct Ends {
    pub(super) namespace: String,
    pub(super) tcp: Vec<TcpEnd>,
    pub(super) unix: Vec<UnixEnd>,
}

/// The asking end of a connection.
#[derive(Debug, Clone)]
pub(super) struct Asking {
    pub(super) inode: u64,
    pub(super) sent: u32,
    pub(super) state: State,
    pub(super) place: Where,
    /// The other end and the listener, as far as they are in this namespace.
    pub(super) others: BTreeSet<u64>,
}

impl Asking {
    pub(super) fn found(&self, caller: Option<usize>) -> Found {
        Found { caller, inodes: self.others.clone() }
    }
}

impl Ends {
    /// Every asking end that leads to somebody else than who holds the sockets in `served`: those are the SUT's own listeners.
    pub(super) fn asking(&self, serves: &dyn Fn(u64) -> bool) -> Vec<Asking> {
        let mut all = self.tcp_asking(serves);
        all.extend(self.unix_asking(serves));
        all
    }

    fn place(&self, at: Endpoint) -> Where {
        Where { namespace: self.namespace.clone(), at }
    }

    fn tcp_asking(&self, serves: &dyn Fn(u64) -> bool) -> Vec<Asking> {
        let listeners: Vec<&TcpEnd> = self.tcp.iter().filter(|end| end.listens).collect();
        let mut by_port: HashMap<u16, Vec<&TcpEnd>> = HashMap::new();
        listeners
            .iter()
            .for_each(|listener| by_port.entry(listener.local.port()).or_default().push(listener));
        let at = |address: SocketAddr| {
            let takes = move |listener: &&&TcpEnd| {
                listener.local.ip() == address.ip() || listener.local.ip().is_unspecified()
            };
            by_port.get(&address.port()).into_iter().flatten().filter(takes).map(|listener| listener.inode)
        };
        let accepted: HashMap<(SocketAddr, SocketAddr), u64> = self
            .tcp
            .iter()
            .filter(|end| !end.listens)
            .map(|end| ((end.local, end.remote), end.inode))
            .collect();
        let asks = |end: &&TcpEnd| !end.listens && end.inode != 0 && at(end.local).next().is_none();
        let asking = |end: &TcpEnd| {
            let mut others: BTreeSet<u64> = at(end.remote).collect();
            if others.iter().any(|inode| serves(*inode)) {
                return None;
            }
            let other = accepted.get(&(end.remote, end.local));
            others.extend(other.filter(|inode| **inode != 0));
            Some(Asking {
                inode: end.inode,
                sent: end.data_out,
                state: tcp_state(end, other != Some(&0)),
                place: self.place(Endpoint::Tcp(end.remote)),
                others,
            })
        };
        self.tcp.iter().filter(asks).filter_map(asking).collect()
    }

    fn unix_asking(&self, serves: &dyn Fn(u64) -> bool) -> Vec<Asking> {
        let by_inode: HashMap<u64, &UnixEnd> = self.unix.iter().map(|end| (end.inode, end)).collect();
        let mut listeners: HashMap<&str, Vec<u64>> = HashMap::new();
        let mut queued: HashMap<u64, &UnixEnd> = HashMap::new();
        for end in self.unix.iter().filter(|end| end.listens) {
            listeners.entry(end.name.as_str()).or_default().push(end.inode);
            queued.extend(end.waiting.iter().map(|inode| (*inode, end)));
        }
        // The end that was accepted bears the listener's name, the end that asked has mostly none.
        let asks = |end: &&UnixEnd| !end.listens && end.name.is_empty();
        let asking = |end: &UnixEnd| {
            let (other, state) = match (by_inode.get(&end.peer), queued.get(&end.inode)) {
                (_, Some(listener)) => (*listener, State::Queued),
                (Some(other), None) if end.is_datagram => (*other, State::OneWay),
                (Some(other), None) => (*other, State::Unsure),
                (None, None) => return None,
            };
            let mut others: BTreeSet<u64> =
                listeners.get(other.name.as_str()).into_iter().flatten().copied().collect();
            if other.name.is_empty() || others.iter().any(|inode| serves(*inode)) {
                return None;
            }
            others.insert(other.inode);
            let place = self.place(Endpoint::Unix(other.name.clone()));
            Some(Asking { inode: end.inode, sent: 0, state, place, others })
        };
        self.unix.iter().filter(asks).filter_map(asking).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(local: &str, remote: &str, inode: u64, listens: bool) -> TcpEnd {
        TcpEnd {
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
            inode,
            listens,
            waiting: 0,
            data_out: 1,
            data_in: 0,
            bytes_in: 0,
            sent_ago_ms: 0,
            received_ago_ms: 0,
        }
    }

    fn unix(inode: u64, peer: u64, name: &str, waiting: &[u64]) -> UnixEnd {
        let (name, listens) = (name.to_owned(), peer == 0 && !name.is_empty());
        UnixEnd { inode, peer, listens, is_datagram: false, name, waiting: waiting.to_vec() }
    }

    /// 80: the SUT's port, which the generator at 5000 asks; 6000 is the SUT's end of a connection to 90.
    #[test]
    fn the_sut_asks_its_backend_and_the_generator_only_the_sut() {
        let ends = Ends {
            tcp: vec![
                tcp("0.0.0.0:80", "0.0.0.0:0", 1, true),
                tcp("127.0.0.1:80", "127.0.0.1:5000", 2, false),
                tcp("127.0.0.1:5000", "127.0.0.1:80", 3, false),
                tcp("127.0.0.1:90", "0.0.0.0:0", 4, true),
                tcp("127.0.0.1:90", "127.0.0.1:6000", 0, false),
                tcp("127.0.0.1:6000", "127.0.0.1:90", 6, false),
            ],
            unix: vec![
                unix(20, 0, "/run/fpm", &[23]),
                unix(21, 22, "/run/fpm", &[]),
                unix(22, 21, "", &[]),
                unix(23, 0, "", &[]),
                unix(30, 31, "", &[]),
                unix(31, 30, "", &[]),
            ],
            ..Ends::default()
        };
        let asking = ends.asking(&|inode| inode == 1);
        let seen: Vec<(u64, State)> = asking.iter().map(|asking| (asking.inode, asking.state)).collect();
        assert_eq!(seen, [(6, State::Queued), (22, State::Unsure), (23, State::Queued)]);
        assert_eq!(asking[0].others, BTreeSet::from([4]));
        assert_eq!(asking[1].others, BTreeSet::from([20, 21]));
        assert_eq!(asking[1].place.at, Endpoint::Unix("/run/fpm".into()));
    }
}
