//! Who is called: from the sockets at the other ends of a program's connections to the processes that hold them.

use crate::namespaces::{namespace, other_namespaces};
use crate::procs;
use crate::root::Root;
use crate::sockets::{Row, listens_for, socket_inode};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Open files of all processes that are looked at for holders, and of one process for its own sockets, at most.
const FILES_MAX: usize = 1 << 18;
const OWN_FILES_MAX: usize = 4096;

/// The network namespace of a process, as `/proc` names it; empty where that is not to be seen.
pub fn namespace_of(root: &Root, pid: u32) -> String {
    namespace(root, pid)
}

/// The sockets that a process has open, of the table that its threads share. The first few thousand descriptors are looked at.
pub fn own_sockets(root: &Root, pid: u32) -> Vec<u64> {
    let dir = format!("/proc/{pid}/fd");
    let names = root.names(&dir).unwrap_or_default();
    let socket = |name: &String| {
        let link = std::fs::read_link(root.path(format!("{dir}/{name}"))).ok()?;
        socket_inode(link.to_str()?)
    };
    names.iter().take(OWN_FILES_MAX).filter_map(socket).collect()
}

/// The processes that hold each of these sockets, in one pass over all processes.
pub fn holders(root: &Root, sockets: &BTreeSet<u64>) -> BTreeMap<u64, Vec<u32>> {
    let mut found: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    let mut files = 0;
    for pid in root.numbers("/proc").unwrap_or_default() {
        let own = own_sockets(root, pid);
        files += own.len();
        let theirs: BTreeSet<u64> = own.into_iter().filter(|inode| sockets.contains(inode)).collect();
        theirs.into_iter().for_each(|inode| found.entry(inode).or_default().push(pid));
        if files > FILES_MAX {
            break;
        }
    }
    found
}

/// Listeners and other ends of connections to these addresses, in network namespaces other than those in `known`.
pub fn elsewhere(
    root: &Root,
    known: &BTreeSet<String>,
    addresses: &BTreeSet<SocketAddr>,
) -> BTreeMap<SocketAddr, BTreeSet<u64>> {
    let mut found: BTreeMap<SocketAddr, BTreeSet<u64>> = BTreeMap::new();
    for rows in other_namespaces(root, known) {
        for address in addresses {
            // One that listens on all addresses is meant only where somebody of that address is connected.
            let is_end = |row: &&Row| row.is_established() && row.local == *address;
            let ends: Vec<&Row> = rows.iter().filter(is_end).collect();
            let listens = |row: &&Row| {
                let same = row.local == *address || !ends.is_empty() && listens_for(row.local, *address);
                row.listens() && same
            };
            let listeners = rows.iter().filter(listens);
            let inodes =
                ends.iter().copied().chain(listeners).map(|row| row.inode).filter(|inode| *inode != 0);
            found.entry(*address).or_default().extend(inodes);
        }
    }
    found.retain(|_, inodes| !inodes.is_empty());
    found
}

/// These processes and all that descend from them, but for those that are not to be taken. One of them that is an ancestor of any of those
/// comes alone: what started the program under test has other children that have nothing to do with it.
pub fn families(root: &Root, pids: &BTreeSet<u32>, not: &BTreeSet<u32>) -> BTreeSet<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for process in procs::all(root).unwrap_or_default() {
        children.entry(process.ppid).or_default().push(process.id);
    }
    let mut all = BTreeSet::new();
    for pid in pids {
        let (mut family, mut open) = (BTreeSet::new(), vec![*pid]);
        while let Some(pid) = open.pop() {
            if family.insert(pid) {
                open.extend(children.get(&pid).into_iter().flatten());
            }
        }
        match family.is_disjoint(not) {
            true => all.extend(family),
            false => _ = all.insert(*pid),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    #[test]
    fn who_holds_a_socket_is_found_and_its_parents_family_is_not_taken() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (root, own) = (Root::live(), std::process::id());
        let link = std::fs::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd())).unwrap();
        let inode = socket_inode(link.to_str().unwrap()).unwrap();
        assert!(own_sockets(&root, own).contains(&inode));
        let found = holders(&root, &BTreeSet::from([inode, 1]));
        assert_eq!(found, BTreeMap::from([(inode, vec![own])]));
        let parent = procs::stat(&root, own).unwrap().ppid;
        let parents = BTreeSet::from([parent]);
        assert_eq!(families(&root, &parents, &BTreeSet::from([own])), parents);
        assert!(families(&root, &parents, &BTreeSet::new()).contains(&own));
    }

    #[test]
    fn an_address_of_no_other_namespace_is_nowhere() {
        let root = Root::live();
        let nowhere = BTreeSet::from(["203.0.113.9:9".parse().unwrap()]);
        assert!(elsewhere(&root, &BTreeSet::new(), &nowhere).is_empty());
    }
}
