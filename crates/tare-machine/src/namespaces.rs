//! Sockets in other network namespaces of this machine: containers have one each, and so has a server that another program has put
//! behind a pair of virtual devices.

use crate::procs;
use crate::root::Root;
use crate::sockets::{self, NotFound, Row, listens_for, tcp_of, who_holds};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Most network namespaces that are searched.
pub(crate) const NAMESPACES_MAX: usize = 64;

/// The processes of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// They and their descendants.
    pub pids: Vec<u32>,
    /// Whether their end of the connection is in our own network namespace.
    pub same_namespace: bool,
}

/// As [`sockets::find_server`], and where its end of the connection is not in our own network namespace, in those of all processes.
///
/// # Errors
/// [`NotFound`].
pub fn find_server(
    root: &Root,
    client_side: SocketAddr,
    server_side: SocketAddr,
    exclude: &[u32],
) -> Result<Server, NotFound> {
    match sockets::find_server(root, client_side, server_side, exclude) {
        Ok(pids) => Ok(Server { pids, same_namespace: true }),
        Err(error @ (NotFound::OtherNamespace | NotFound::OtherHost)) => {
            elsewhere(root, client_side, server_side, exclude).ok_or(error)
        }
        Err(error) => Err(error),
    }
}

/// Another namespace has loopback addresses of its own: connections to those are not looked for there.
fn elsewhere(root: &Root, client: SocketAddr, server: SocketAddr, exclude: &[u32]) -> Option<Server> {
    let (client, server) = (sockets::canonical(client), sockets::canonical(server));
    if client.ip().is_loopback() {
        return None;
    }
    let own = BTreeSet::from([namespace_of_self(root)]);
    let tables = other_namespaces(root, &own);
    let ends = |rows: &[Row], wanted: &dyn Fn(&Row) -> bool| -> BTreeSet<u64> {
        let end = rows.iter().find(|row| row.is_established() && row.remote == client && wanted(row));
        let Some(end) = end else { return BTreeSet::new() };
        let listeners = rows.iter().filter(|row| row.listens() && listens_for(row.local, end.local));
        listeners.chain([end]).map(|row| row.inode).filter(|inode| *inode != 0).collect()
    };
    let found = |wanted: &dyn Fn(&Row) -> bool| -> Vec<BTreeSet<u64>> {
        tables.iter().map(|rows| ends(rows, wanted)).filter(|inodes| !inodes.is_empty()).collect()
    };
    let same = found(&|row| row.local == server);
    // A published port is another one inside: our own end is the same there, unless that is translated too.
    let inodes = match (same.as_slice(), found(&|_| true).as_slice()) {
        ([one], _) => one.clone(),
        ([], [one]) => one.clone(),
        _ => return None,
    };
    let (holders, _) = who_holds(root, &inodes, exclude).ok()?;
    let family = procs::descendants(root, &holders).ok()?;
    let pids: Vec<u32> = family.into_iter().filter(|pid| *pid != 1 && !exclude.contains(pid)).collect();
    (!pids.is_empty()).then_some(Server { pids, same_namespace: false })
}

/// The sockets of every network namespace that a process is in and that is none of `known`.
pub(crate) fn other_namespaces(root: &Root, known: &BTreeSet<String>) -> Vec<Vec<Row>> {
    let mut seen: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for pid in root.numbers("/proc").unwrap_or_default() {
        let namespace = namespace(root, pid);
        if seen.len() >= NAMESPACES_MAX {
            break;
        }
        if !namespace.is_empty() && !known.contains(&namespace) && !seen.contains_key(&namespace) {
            seen.insert(namespace, tcp_of(root, pid).unwrap_or_default());
        }
    }
    seen.into_values().collect()
}

/// What tells a process's network namespace from others; empty where that is not to be seen.
pub fn namespace(root: &Root, pid: u32) -> String {
    link(root, &format!("/proc/{pid}/ns/net"))
}

fn namespace_of_self(root: &Root) -> String {
    link(root, "/proc/self/ns/net")
}

fn link(root: &Root, path: &str) -> String {
    let link = std::fs::read_link(root.path(path)).ok();
    link.map_or_else(String::new, |link| link.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    const HEAD: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    fn process(dir: &Path, pid: &str, namespace: u32, rows: &str, inode: u32) {
        let proc = dir.join(format!("proc/{pid}"));
        std::fs::create_dir_all(proc.join("fd")).unwrap();
        std::fs::create_dir_all(proc.join("ns")).unwrap();
        std::fs::create_dir_all(proc.join("net")).unwrap();
        let stat = format!("{pid} (p) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0");
        std::fs::write(proc.join("stat"), stat).unwrap();
        std::fs::write(proc.join("net/tcp"), format!("{HEAD}{rows}")).unwrap();
        symlink(format!("net:[{namespace}]"), proc.join("ns/net")).unwrap();
        symlink(format!("socket:[{inode}]"), proc.join("fd/3")).unwrap();
    }

    /// We are 50 at 10.0.0.1; 20 serves at 10.0.0.2:8080 in a namespace of its own, 30 at 172.16.0.2:80, published as 10.0.0.1:8081.
    fn machine(dir: &Path) -> Root {
        let own = "   0: 0100000A:9C40 0200000A:1F90 01 0:0 00:0 0 0 0 102 1 x\n";
        std::fs::create_dir_all(dir.join("proc/net")).unwrap();
        std::fs::write(dir.join("proc/net/tcp"), format!("{HEAD}{own}")).unwrap();
        process(dir, "50", 1, own, 102);
        process(dir, "self", 1, own, 102);
        let bridged = "   0: 00000000:1F90 00000000:0000 0A 0:0 00:0 0 0 0 100 1 x\n   \
                       1: 0200000A:1F90 0100000A:9C40 01 0:0 00:0 0 0 0 101 1 x\n";
        process(dir, "20", 2, bridged, 101);
        let published = "   0: 020010AC:0050 0100000A:9C41 01 0:0 00:0 0 0 0 201 1 x\n";
        process(dir, "30", 3, published, 201);
        Root::at(dir)
    }

    #[test]
    fn a_server_in_another_network_namespace_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let root = machine(dir.path());
        let find = |client: &str, server: &str| {
            find_server(&root, client.parse().unwrap(), server.parse().unwrap(), &[50])
        };
        let there = |pids: &[u32]| Ok(Server { pids: pids.to_vec(), same_namespace: false });
        assert_eq!(find("10.0.0.1:40000", "10.0.0.2:8080"), there(&[20]));
        assert_eq!(find("10.0.0.1:40001", "10.0.0.1:8081"), there(&[30]));
        assert_eq!(find("10.0.0.1:40002", "10.0.0.2:8080"), Err(NotFound::OtherHost));
        assert_eq!(find("127.0.0.1:40000", "127.0.0.1:8080"), Err(NotFound::OtherNamespace));
    }
}
