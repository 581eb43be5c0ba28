//! Whose server it is: from both ends of an established connection to the processes that hold it.

use crate::procs;
use crate::root::Root;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tare_model::{Missing, hexadecimal};

const ESTABLISHED: u8 = 1;
const LISTEN: u8 = 10;
/// Most processes and open files that are looked at for a socket's holder.
const FILES_MAX: usize = 4 << 20;
/// Most tables of open files of one process that are looked at for its own sockets.
const TABLES_MAX: usize = 16;

/// Why the server's processes are not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    /// The address is one of this machine's, but the server's end of the connection is not in our tables.
    #[error(
        "the server's end of the connection is in another network namespace (a container?); \
         hint: give its process with --sut-pid"
    )]
    OtherNamespace,
    /// The address is none of this machine's.
    #[error("the server is on another host; its side cannot be seen from here")]
    OtherHost,
    /// The sockets are there, but not who holds them.
    #[error("{} processes hide their open files; hint: run tare as root, or give --sut-pid", .hidden)]
    NoRights {
        /// Processes whose open files may not be read.
        hidden: usize,
    },
    /// The sockets are there and every process was looked at, but only excluded ones hold them.
    #[error("nobody but tare itself (or PID 1) holds the server's end; hint: give --sut-pid")]
    Nobody,
    /// The tables cannot be read.
    #[error("{0}")]
    Unreadable(Missing),
}

/// One row of `/proc/net/tcp` or `tcp6`; v4-mapped addresses are turned into IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// This end.
    pub local: SocketAddr,
    /// The other end; port 0 of a listener.
    pub remote: SocketAddr,
    state: u8,
    /// The socket; 0 while nobody has accepted the connection.
    pub inode: u64,
}

impl Row {
    /// Whether both ends are there.
    pub fn is_established(&self) -> bool {
        self.state == ESTABLISHED
    }

    /// Whether connections to it can be accepted.
    pub fn listens(&self) -> bool {
        self.state == LISTEN
    }
}

/// Every TCP socket in the network namespace of a process.
///
/// # Errors
/// The process has ended, or its files may not be read.
pub fn tcp_of(root: &Root, pid: u32) -> Result<Vec<Row>, Missing> {
    rows_in(root, &format!("/proc/{pid}/net"))
}

/// The processes of the server that a connection of ours leads to: who holds its end of the connection or the
/// listener on that port, and their descendants. Never PID 1, never one in `exclude` (tare itself).
///
/// `client_side` and `server_side` are the local and peer address of a socket of ours that is connected while
/// this runs.
///
/// # Errors
/// [`NotFound`].
pub fn find_server(
    root: &Root,
    client_side: SocketAddr,
    server_side: SocketAddr,
    exclude: &[u32],
) -> Result<Vec<u32>, NotFound> {
    let (client, server) = (canonical(client_side), canonical(server_side));
    let rows = rows(root).map_err(NotFound::Unreadable)?;
    // Whatever its state: a server that closes after its answer may have done so already, and its end then belongs to no file.
    let is_connection = |row: &&Row| row.local == server && row.remote == client;
    let connection: BTreeSet<u64> = rows.iter().filter(is_connection).map(|row| row.inode).collect();
    if connection.is_empty() {
        return Err(if is_local(root, server.ip()) { NotFound::OtherNamespace } else { NotFound::OtherHost });
    }
    let listens = |row: &&Row| row.state == LISTEN && listens_for(row.local, server);
    let mut inodes: BTreeSet<u64> = rows.iter().filter(listens).map(|row| row.inode).collect();
    inodes.extend(connection);
    // A connection that the server has not accepted yet belongs to no file: its inode reads 0.
    inodes.remove(&0);
    let (holders, hidden) = who_holds(root, &inodes, exclude)?;
    match (holders.is_empty(), hidden) {
        (true, 0) => return Err(NotFound::Nobody),
        (true, hidden) => return Err(NotFound::NoRights { hidden }),
        _ => {}
    }
    let found = procs::descendants(root, &holders).map_err(NotFound::Unreadable)?;
    Ok(found.into_iter().filter(|pid| *pid != 1 && !exclude.contains(pid)).collect())
}

/// A listener on `local` takes connections to `server`.
pub(crate) fn listens_for(local: SocketAddr, server: SocketAddr) -> bool {
    local.port() == server.port() && (local.ip().is_unspecified() || local.ip() == server.ip())
}

/// The processes that hold one of the sockets, by whichever thread; and how many hide their open files. Never PID 1, never
/// one in `exclude`.
///
/// # Errors
/// [`NotFound::Unreadable`].
pub(crate) fn who_holds(
    root: &Root,
    inodes: &BTreeSet<u64>,
    exclude: &[u32],
) -> Result<(Vec<u32>, usize), NotFound> {
    let allowed = |pid: &u32| *pid != 1 && !exclude.contains(pid);
    let look = |tables: Tables| -> Result<(Vec<u32>, usize), NotFound> {
        let (found, hidden) = holders(root, inodes, tables)?;
        Ok((found.into_iter().filter(allowed).collect(), hidden))
    };
    let (found, hidden) = look(of_process)?;
    if !found.is_empty() {
        return Ok((found, hidden));
    }
    let (of_any_thread, more_hidden) = look(of_threads)?;
    Ok((of_any_thread, hidden.max(more_hidden)))
}

/// The sockets that a process has open, by whichever thread.
pub fn sockets_of(root: &Root, pid: u32) -> BTreeSet<u64> {
    let mut dirs = of_process(root, pid);
    // A thread with a table of its own is rare: of many threads the first few tell.
    let threads = root.first_numbers(format!("/proc/{pid}/task"), TABLES_MAX + 1).unwrap_or_default();
    dirs.extend(threads.iter().filter(|tid| **tid != pid).map(|tid| of_thread(pid, *tid)));
    let mut inodes = BTreeSet::new();
    for dir in dirs {
        for name in root.names(&dir).unwrap_or_default().iter().take(FILES_MAX) {
            let link = std::fs::read_link(root.path(format!("{dir}/{name}"))).ok();
            inodes.extend(link.and_then(|link| socket_inode(link.to_str()?)));
        }
    }
    inodes
}

/// Which tables of open files of a process are looked at.
type Tables = fn(&Root, u32) -> Vec<String>;

/// The open files of a process: of the table that its threads share, and of its first thread.
fn of_process(_: &Root, pid: u32) -> Vec<String> {
    vec![format!("/proc/{pid}/fd")]
}

/// The same of its other threads, which are mostly the same files once more: but a thread may have a table of its own.
fn of_threads(root: &Root, pid: u32) -> Vec<String> {
    let threads = root.numbers(format!("/proc/{pid}/task")).unwrap_or_default();
    threads.iter().filter(|tid| **tid != pid).map(|tid| of_thread(pid, *tid)).collect()
}

fn of_thread(pid: u32, tid: u32) -> String {
    format!("/proc/{pid}/task/{tid}/fd")
}

/// Processes that hold one of the sockets in the tables that are looked at, and how many could not be looked into.
fn holders(root: &Root, inodes: &BTreeSet<u64>, tables: Tables) -> Result<(Vec<u32>, usize), NotFound> {
    let (mut found, mut hidden, mut files) = (Vec::new(), 0, 0);
    for pid in root.numbers("/proc").map_err(NotFound::Unreadable)? {
        let mut is_hidden = false;
        for dir in tables(root, pid) {
            match root.names(&dir) {
                Ok(names) => {
                    files += names.len();
                    if names.iter().any(|name| holds(root, &format!("{dir}/{name}"), inodes)) {
                        found.push(pid);
                        break;
                    }
                }
                // Gone since, or not ours to look into: only the second has a remedy.
                Err(missing) => is_hidden |= !missing.remedy.is_empty(),
            }
        }
        hidden += usize::from(is_hidden);
        if files > FILES_MAX {
            break;
        }
    }
    Ok((found, hidden))
}

/// Whether an open file is one of the sockets.
fn holds(root: &Root, file: &str, inodes: &BTreeSet<u64>) -> bool {
    let link = std::fs::read_link(root.path(file)).ok();
    link.and_then(|link| socket_inode(link.to_str()?)).is_some_and(|inode| inodes.contains(&inode))
}

/// The socket that a link in `/proc/PID/fd` leads to (`socket:[4711]`).
pub fn socket_inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

fn rows(root: &Root) -> Result<Vec<Row>, Missing> {
    rows_in(root, "/proc/net")
}

fn rows_in(root: &Root, dir: &str) -> Result<Vec<Row>, Missing> {
    let v4 = root.text(format!("{dir}/tcp"));
    let v6 = root.text(format!("{dir}/tcp6"));
    if let (Err(missing), Err(_)) = (&v4, &v6) {
        return Err(missing.clone());
    }
    let texts = [v4.unwrap_or_default(), v6.unwrap_or_default()];
    Ok(texts.iter().flat_map(|text| text.lines().skip(1)).filter_map(parse_row).collect())
}

/// `  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1234 …`
fn parse_row(line: &str) -> Option<Row> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let local = parse_address(fields.next()?)?;
    let remote = parse_address(fields.next()?)?;
    let state = u8::from_str_radix(fields.next()?, 16).ok()?;
    Some(Row { local, remote, state, inode: fields.nth(5)?.parse().ok()? })
}

/// Addresses stand there as 32-bit words in host byte order.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let word = |at: usize| {
        let digits = address.get(at * 8..at * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    let ip = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0u8; 16];
            for (at, chunk) in bytes.chunks_exact_mut(4).enumerate() {
                chunk.copy_from_slice(&word(at)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(canonical(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?)))
}

/// The same address written in one way: IPv4 rather than v4-mapped IPv6, no scope or flow.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Whether an address is one of this network namespace's own.
fn is_local(root: &Root, ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.is_loopback() || local_v4(root).contains(&v4),
        IpAddr::V6(v6) => {
            let table = root.text("/proc/net/if_inet6").unwrap_or_default();
            let digits = hexadecimal(&v6.octets());
            v6.is_loopback() || table.lines().any(|line| line.starts_with(&digits))
        }
    }
}

/// Local addresses of the routing trie: each stands on a line before its `/32 host LOCAL`.
fn local_v4(root: &Root) -> BTreeSet<Ipv4Addr> {
    let trie = root.text("/proc/net/fib_trie").unwrap_or_default();
    let lines: Vec<&str> = trie.lines().map(str::trim).collect();
    let is_own = |pair: &&[&str]| pair[1].starts_with("/32 host LOCAL");
    let address = |pair: &[&str]| pair[0].strip_prefix("|-- ").and_then(|text| text.parse().ok());
    lines.windows(2).filter(is_own).filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::fs::symlink;
    use std::path::Path;

    const HEAD: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    fn write(dir: &Path, file: &str, text: &str) {
        let path = dir.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// nginx: master 10 listens, worker 11 holds the connection, 12 is a helper of the worker; 1 passed the
    /// listener in, and 50 is tare, which holds the other end.
    fn tree(dir: &Path) {
        let rows = "   0: 0100007F:1F90 00000000:0000 0A 0:0 00:0 0 0 0 100 1 x\n   \
                    1: 0100007F:1F90 0100007F:9C40 01 0:0 00:0 0 0 0 101 1 x\n   \
                    2: 0100007F:9C40 0100007F:1F90 01 0:0 00:0 0 0 0 102 1 x\n";
        write(dir, "proc/net/tcp", &format!("{HEAD}{rows}"));
        for (pid, parent, inode) in [(1, 0, 100), (10, 1, 100), (11, 10, 101), (12, 11, 7), (50, 1, 102)] {
            let stat = format!("{pid} (p) S {parent} 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0");
            write(dir, &format!("proc/{pid}/stat"), &stat);
            std::fs::create_dir_all(dir.join(format!("proc/{pid}/fd"))).unwrap();
            symlink(format!("socket:[{inode}]"), dir.join(format!("proc/{pid}/fd/3"))).unwrap();
        }
    }

    #[test]
    fn holders_of_connection_and_listener_and_their_descendants() {
        let dir = tempfile::tempdir().unwrap();
        tree(dir.path());
        let root = Root::at(dir.path());
        let (client, server) = ("127.0.0.1:40000".parse().unwrap(), "127.0.0.1:8080".parse().unwrap());
        assert_eq!(find_server(&root, client, server, &[50]), Ok(vec![10, 11, 12]));
        assert_eq!(find_server(&root, client, server, &[10, 11, 12]), Err(NotFound::Nobody));
        let mapped = "[::ffff:127.0.0.1]:8080".parse().unwrap();
        assert_eq!(find_server(&root, client, mapped, &[50]), Ok(vec![10, 11, 12]));
    }

    #[test]
    fn a_server_that_has_closed_its_end_is_found_by_its_listener() {
        let dir = tempfile::tempdir().unwrap();
        tree(dir.path());
        let rows = "   0: 0100007F:1F90 00000000:0000 0A 0:0 00:0 0 0 0 100 1 x\n   \
                    1: 0100007F:1F90 0100007F:9C40 05 0:0 00:0 0 0 0 0 1 x\n   \
                    2: 0100007F:9C40 0100007F:1F90 08 0:0 00:0 0 0 0 102 1 x\n";
        write(dir.path(), "proc/net/tcp", &format!("{HEAD}{rows}"));
        let (client, server) = ("127.0.0.1:40000".parse().unwrap(), "127.0.0.1:8080".parse().unwrap());
        assert_eq!(find_server(&Root::at(dir.path()), client, server, &[50]), Ok(vec![10, 11, 12]));
    }

    /// A server whose second thread has taken the listener and the connection to a table of its own.
    #[test]
    fn a_thread_with_a_table_of_its_own_is_found() {
        let dir = tempfile::tempdir().unwrap();
        tree(dir.path());
        let fd = |of: &str| dir.path().join(format!("proc/{of}"));
        for pid in [10, 11] {
            std::fs::remove_file(fd(&format!("{pid}/fd/3"))).unwrap();
        }
        for (tid, inode) in [(12, 7), (13, 101)] {
            std::fs::create_dir_all(fd(&format!("12/task/{tid}/fd"))).unwrap();
            symlink(format!("socket:[{inode}]"), fd(&format!("12/task/{tid}/fd/3"))).unwrap();
        }
        let (client, server) = ("127.0.0.1:40000".parse().unwrap(), "127.0.0.1:8080".parse().unwrap());
        assert_eq!(find_server(&Root::at(dir.path()), client, server, &[50]), Ok(vec![12]));
    }

    #[test]
    fn another_namespace_and_another_host_are_distinguished() {
        let dir = tempfile::tempdir().unwrap();
        tree(dir.path());
        write(dir.path(), "proc/net/fib_trie", "Main:\n  |-- 10.1.2.3\n     /32 host LOCAL\n");
        let root = Root::at(dir.path());
        let client = "10.1.2.3:40000".parse().unwrap();
        let ask = |server: &str| find_server(&root, client, server.parse().unwrap(), &[]);
        assert_eq!(ask("10.1.2.3:80"), Err(NotFound::OtherNamespace));
        assert_eq!(ask("10.9.9.9:80"), Err(NotFound::OtherHost));
        assert!(matches!(
            find_server(&Root::at(dir.path().join("none")), client, client, &[]),
            Err(NotFound::Unreadable(_))
        ));
    }

    #[test]
    fn a_live_server_is_found() {
        for (address, host) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "[::1]"), ("[::]:0", "127.0.0.1")] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let to = format!("{host}:{}", listener.local_addr().unwrap().port());
            let Ok(client) = TcpStream::connect(&to) else { continue };
            let _accepted = listener.accept().unwrap();
            let found =
                find_server(&Root::live(), client.local_addr().unwrap(), client.peer_addr().unwrap(), &[]);
            assert!(found.unwrap().contains(&std::process::id()), "{to}");
        }
    }

    proptest! {
        #[test]
        fn garbage_is_never_a_row_with_invented_numbers(line in "\\PC{0,120}") {
            parse_row(&line);
            parse_address(&line);
            socket_inode(&line);
        }
    }
}
