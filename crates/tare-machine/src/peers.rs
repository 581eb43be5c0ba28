//! Who is at the other ends of a load generator's connections: whatever they speak, both ends of a TCP connection stand in the
//! kernel's tables, and those of a Unix socket are known from its diagnosis.

use crate::namespaces::{NAMESPACES_MAX, namespace, other_namespaces};
use crate::procs;
use crate::root::Root;
use crate::sockets::{NotFound, Row, listens_for, socket_inode, sockets_of, tcp_of, who_holds};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Most connections whose files are watched.
const WATCHED_MAX: usize = 4;
/// Most addresses that a message names.
const NAMED_MAX: usize = 3;

/// Where connections lead.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Endpoint {
    /// An address.
    Tcp(SocketAddr),
    /// The path of a Unix socket; empty for one without a name.
    Unix(String),
}

impl Endpoint {
    /// The port of an address.
    pub fn port(&self) -> Option<u16> {
        match self {
            Endpoint::Tcp(address) => Some(address.port()),
            Endpoint::Unix(_) => None,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp(address) => address.fmt(f),
            Endpoint::Unix(path) if path.is_empty() => f.write_str("an unnamed Unix socket"),
            Endpoint::Unix(path) => f.write_str(path),
        }
    }
}

/// What a generator is connected to at one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The address.
    pub at: Endpoint,
    /// Connections of the generator that lead there.
    pub connections: usize,
    /// The processes that hold the other ends or the listener, ascending; their descendants are not in it.
    pub pids: Vec<u32>,
    /// Whether it is in the generator's own network namespace.
    pub same_namespace: bool,
}

/// Why nobody was found at the other ends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPeer {
    /// The generator has no established connection to anybody but itself.
    #[error(
        "no established TCP or Unix connection, of {sockets} sockets that its {processes} processes have open"
    )]
    NotConnected {
        /// Its processes.
        processes: usize,
        /// Their sockets of all kinds.
        sockets: usize,
    },
    /// Its connections lead off this machine, or through an address translation.
    #[error("connections to {at} alone, and no process of this machine holds the other ends")]
    Elsewhere {
        /// Where they lead, a few of the addresses.
        at: String,
    },
    /// The other ends are here, but not who holds them.
    #[error("connections to {at}, whose holder is not to be seen: {hidden} processes hide their open files")]
    Hidden {
        /// Where they lead.
        at: String,
        /// Processes whose open files may not be read.
        hidden: usize,
    },
    /// The tables cannot be read.
    #[error(transparent)]
    Unreadable(NotFound),
}

/// Who is at the other ends of the connections of `tree`, the generator's processes: most connections first.
///
/// `unix_pairs` are the Unix sockets of this machine that have another end, with that end (`tare_sys::sockdiag`). Nobody of the tree,
/// of `exclude` (tare itself), nor PID 1 is found.
///
/// # Errors
/// [`NoPeer`].
pub fn other_ends(
    root: &Root,
    tree: &[u32],
    unix_pairs: &[(u64, u64)],
    exclude: &[u32],
) -> Result<Vec<Peer>, NoPeer> {
    let own: BTreeSet<u64> = tree.iter().flat_map(|pid| sockets_of(root, *pid)).collect();
    let mut ends = Ends::default();
    ends.tcp(root, tree, &own);
    ends.unix(root, unix_pairs, &own);
    let not_ours: Vec<u32> = tree.iter().chain(exclude).copied().collect();
    let mut peers = Vec::new();
    let mut hidden_at = None;
    for (at, end) in &ends.found {
        let (pids, hidden) = who_holds(root, &end.inodes, &not_ours).map_err(NoPeer::Unreadable)?;
        match pids.is_empty() {
            false => peers.push(Peer {
                at: at.clone(),
                connections: end.connections,
                pids,
                same_namespace: end.same_namespace,
            }),
            true if hidden > 0 => hidden_at = Some((at.to_string(), hidden)),
            true => {}
        }
    }
    peers.sort_by(|a, b| b.connections.cmp(&a.connections).then_with(|| a.at.cmp(&b.at)));
    match (peers.is_empty(), hidden_at, ends.lost.is_empty()) {
        (false, ..) => Ok(peers),
        (true, Some((at, hidden)), _) => Err(NoPeer::Hidden { at, hidden }),
        (true, None, false) => {
            let some: Vec<String> = ends.lost.iter().take(NAMED_MAX).map(ToString::to_string).collect();
            Err(NoPeer::Elsewhere { at: some.join(", ") })
        }
        (true, None, true) => Err(NoPeer::NotConnected { processes: tree.len(), sockets: own.len() }),
    }
}

/// How many connections the processes of `tree` have to anybody but themselves, wherever they lead. Who is there is not asked: this
/// is cheap enough to be asked again and again.
pub fn connections(root: &Root, tree: &[u32], unix_pairs: &[(u64, u64)]) -> usize {
    let own: BTreeSet<u64> = tree.iter().flat_map(|pid| sockets_of(root, *pid)).collect();
    connected(root, tree, unix_pairs, &own).len()
}

/// Files of a few of these connections, each with its socket: while one of them leads to its socket, not all have been closed.
pub fn some_files(root: &Root, tree: &[u32], unix_pairs: &[(u64, u64)]) -> Vec<(PathBuf, u64)> {
    let own: BTreeSet<u64> = tree.iter().flat_map(|pid| sockets_of(root, *pid)).collect();
    let connected = connected(root, tree, unix_pairs, &own);
    let mut files = Vec::new();
    for pid in tree {
        let dir = format!("/proc/{pid}/fd");
        for name in root.names(&dir).unwrap_or_default() {
            let path = root.path(format!("{dir}/{name}"));
            let inode = std::fs::read_link(&path).ok().and_then(|link| socket_inode(link.to_str()?));
            if let Some(inode) = inode.filter(|inode| connected.contains(inode)) {
                files.push((path, inode));
            }
            if files.len() >= WATCHED_MAX {
                return files;
            }
        }
    }
    files
}

/// Whether one of these files still leads to its socket.
pub fn any_open(files: &[(PathBuf, u64)]) -> bool {
    files.iter().any(|(path, inode)| {
        let link = std::fs::read_link(path).ok();
        link.and_then(|link| socket_inode(link.to_str()?)) == Some(*inode)
    })
}

/// Those of the sockets that are the asking end of a connection.
fn connected(root: &Root, tree: &[u32], pairs: &[(u64, u64)], own: &BTreeSet<u64>) -> BTreeSet<u64> {
    let mut connected = BTreeSet::new();
    for rows in tables(root, tree).values() {
        let asks = |row: &&Row| asks(row, rows, own);
        // Between parts of the generator itself.
        let leads_out =
            |row: &&Row| !rows.iter().any(|other| is_other_end(row, other) && own.contains(&other.inode));
        connected.extend(rows.iter().filter(asks).filter(leads_out).map(|row| row.inode));
    }
    connected.extend(pairs.iter().filter(|pair| leads_out(pair, own)).map(|pair| pair.0));
    connected
}

/// Whether any process of `pids` can be connected to: it, or what descends from it, has a socket that listens.
pub fn listens(root: &Root, pids: &[u32]) -> bool {
    let pids = procs::descendants(root, pids).unwrap_or_else(|_| pids.to_vec());
    let own: BTreeSet<u64> = pids.iter().flat_map(|pid| sockets_of(root, *pid)).collect();
    let of_tcp = |pid: &u32| tcp_of(root, *pid).unwrap_or_default();
    let holds = |row: &Row| row.listens() && own.contains(&row.inode);
    own.iter().any(|inode| *inode != 0)
        && (pids.first().is_some_and(|pid| of_tcp(pid).iter().any(holds))
            || unix_rows(root).iter().any(|row| row.listens && own.contains(&row.inode)))
}

/// The other ends at one address.
#[derive(Debug, Default)]
struct End {
    connections: usize,
    /// Sockets of the other ends, and of the listener.
    inodes: BTreeSet<u64>,
    same_namespace: bool,
}

#[derive(Debug, Default)]
struct Ends {
    found: BTreeMap<Endpoint, End>,
    /// Addresses that lead to no socket of this machine.
    lost: BTreeSet<SocketAddr>,
}

impl Ends {
    fn tcp(&mut self, root: &Root, tree: &[u32], own: &BTreeSet<u64>) {
        let tables = tables(root, tree);
        let mut lost: Vec<Row> = Vec::new();
        for rows in tables.values() {
            for row in rows.iter().filter(|row| asks(row, rows, own)) {
                if !self.meet(row, rows, true) {
                    lost.push(*row);
                }
            }
        }
        if !lost.is_empty() {
            let known = tables.keys().cloned().collect();
            let others = other_namespaces(root, &known);
            for row in lost {
                if !others.iter().any(|rows| self.meet(&row, rows, false)) {
                    self.lost.insert(row.remote);
                }
            }
        }
    }

    /// Whether the other end of a connection is among these sockets.
    fn meet(&mut self, row: &Row, rows: &[Row], same_namespace: bool) -> bool {
        let is_other_end =
            |other: &&Row| other.is_established() && other.local == row.remote && other.remote == row.local;
        let Some(other) = rows.iter().find(is_other_end) else { return false };
        let end = self.found.entry(Endpoint::Tcp(row.remote)).or_default();
        end.connections += 1;
        end.same_namespace = same_namespace;
        let listeners = rows.iter().filter(|other| other.listens() && listens_for(other.local, row.remote));
        end.inodes.extend(listeners.map(|listener| listener.inode));
        end.inodes.insert(other.inode);
        // Nobody has accepted it yet.
        end.inodes.remove(&0);
        true
    }

    fn unix(&mut self, root: &Root, pairs: &[(u64, u64)], own: &BTreeSet<u64>) {
        let pairs: Vec<(u64, u64)> = pairs.iter().filter(|pair| leads_out(pair, own)).copied().collect();
        if pairs.is_empty() {
            return;
        }
        let rows = unix_rows(root);
        for (own, other) in pairs {
            let path_of = |inode| rows.iter().find(|row| row.inode == inode).map(|row| row.path.clone());
            let path = path_of(other).unwrap_or_default();
            // The end that was accepted bears the listener's name, the end that asked has none: who has one here was asked.
            if path.is_empty() || path_of(own).is_some_and(|path| !path.is_empty()) {
                continue;
            }
            let end = self.found.entry(Endpoint::Unix(path.clone())).or_default();
            end.connections += 1;
            end.same_namespace = true;
            end.inodes.insert(other);
            end.inodes.extend(rows.iter().filter(|row| row.listens && row.path == path).map(|row| row.inode));
        }
    }
}

/// The sockets of each network namespace that a process of the tree is in.
fn tables(root: &Root, tree: &[u32]) -> BTreeMap<String, Vec<Row>> {
    let mut tables: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for pid in tree {
        let namespace = namespace(root, *pid);
        if tables.len() < NAMESPACES_MAX && !tables.contains_key(&namespace) {
            // A process that ended meanwhile has none.
            tables.insert(namespace, tcp_of(root, *pid).unwrap_or_default());
        }
    }
    tables
}

/// Whether it is the asking end of a connection. What was accepted is a server's end: of the generator's own parts, or of who asks it
/// for its state.
fn asks(row: &Row, rows: &[Row], own: &BTreeSet<u64>) -> bool {
    let was_accepted = || rows.iter().any(|other| other.listens() && listens_for(other.local, row.local));
    row.is_established() && own.contains(&row.inode) && !was_accepted()
}

fn is_other_end(row: &Row, other: &Row) -> bool {
    other.is_established() && other.local == row.remote && other.remote == row.local
}

fn leads_out((one, other): &(u64, u64), own: &BTreeSet<u64>) -> bool {
    own.contains(one) && !own.contains(other) && *other != 0
}

/// One row of `/proc/net/unix`.
struct UnixRow {
    inode: u64,
    listens: bool,
    path: String,
}

/// `ffff8880: 00000002 00000000 00010000 0001 01 4711 /run/x.sock`; the path is missing where there is none.
fn unix_rows(root: &Root) -> Vec<UnixRow> {
    let text = root.text("/proc/net/unix").unwrap_or_default();
    let parse = |line: &str| {
        let fields: Vec<&str> = line.splitn(8, ' ').collect();
        // The inode's column is padded.
        let (inode, path) = match fields.as_slice() {
            [_, _, _, _, _, _, rest @ ..] => {
                let rest = rest.join(" ");
                let rest = rest.trim_start();
                let (inode, path) = rest.split_once(' ').unwrap_or((rest, ""));
                (inode.parse().ok()?, path.to_owned())
            }
            _ => return None,
        };
        Some(UnixRow { inode, listens: fields.get(3) == Some(&"00010000"), path })
    };
    text.lines().skip(1).filter_map(parse).collect()
}

#[cfg(test)]
#[path = "peers_tests.rs"]
mod tests;
