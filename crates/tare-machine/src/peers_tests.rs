//! Generators and servers in tables that are made up, and live ones.

use super::*;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::Path;

const HEAD: &str =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
const UNIX_HEAD: &str = "Num       RefCount Protocol Flags    Type St Inode Path\n";

fn write(dir: &Path, file: &str, text: &str) {
    let path = dir.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A process of a network namespace, its parent, and the sockets that it holds.
fn process(dir: &Path, pid: u32, parent: u32, namespace: u32, sockets: &[u64]) {
    let stat = format!("{pid} (p) S {parent} 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0");
    write(dir, &format!("proc/{pid}/stat"), &stat);
    for sub in ["fd", "ns"] {
        std::fs::create_dir_all(dir.join(format!("proc/{pid}/{sub}"))).unwrap();
    }
    symlink(format!("net:[{namespace}]"), dir.join(format!("proc/{pid}/ns/net"))).unwrap();
    for (fd, inode) in (3..).zip(sockets) {
        symlink(format!("socket:[{inode}]"), dir.join(format!("proc/{pid}/fd/{fd}"))).unwrap();
    }
}

fn tcp(dir: &Path, pids: &[u32], rows: &[(&str, &str, &str, u64)]) {
    let line = |(local, remote, state, inode): &(&str, &str, &str, u64)| {
        format!("   0: {local} {remote} {state} 0:0 00:0 0 0 0 {inode} 1 x\n")
    };
    let text: String = rows.iter().map(line).collect();
    for pid in pids {
        write(dir, &format!("proc/{pid}/net/tcp"), &format!("{HEAD}{text}"));
    }
}

const SERVER: &str = "0100007F:1E61";
const METRICS: &str = "0100007F:0050";
const FIRST: &str = "0100007F:9C40";
const SECOND: &str = "0100007F:9C41";
const THIRD: &str = "0100007F:9C42";
const NOBODY: &str = "00000000:0000";

/// A shell 20 with a generator 21: two connections to a server 10 with a worker 11, one to a collector of metrics 12, one between
/// shell and generator, and one to another machine.
fn tree(dir: &Path) {
    process(dir, 10, 1, 1, &[100]);
    process(dir, 11, 10, 1, &[101, 102]);
    process(dir, 12, 1, 1, &[110, 111]);
    process(dir, 20, 1, 1, &[203]);
    process(dir, 21, 20, 1, &[200, 201, 202, 204, 205]);
    let rows = [
        (SERVER, NOBODY, "0A", 100),
        (SERVER, FIRST, "01", 101),
        (SERVER, SECOND, "01", 102),
        (FIRST, SERVER, "01", 200),
        (SECOND, SERVER, "01", 201),
        (METRICS, NOBODY, "0A", 110),
        (METRICS, THIRD, "01", 111),
        (THIRD, METRICS, "01", 202),
        ("0100007F:9C50", "0100007F:9C51", "01", 203),
        ("0100007F:9C51", "0100007F:9C50", "01", 204),
        ("0100007F:9C60", "08080808:0050", "01", 205),
    ];
    tcp(dir, &[10, 11, 12, 20, 21], &rows);
}

#[test]
fn the_servers_at_the_other_ends_are_found_most_connections_first() {
    let dir = tempfile::tempdir().unwrap();
    tree(dir.path());
    let found = other_ends(&Root::at(dir.path()), &[20, 21], &[], &[]).unwrap();
    let listed: Vec<(String, usize, Vec<u32>)> =
        found.into_iter().map(|peer| (peer.at.to_string(), peer.connections, peer.pids)).collect();
    assert_eq!(
        listed,
        [("127.0.0.1:7777".to_owned(), 2, vec![10, 11]), ("127.0.0.1:80".to_owned(), 1, vec![12])]
    );
}

#[test]
fn connections_are_counted_and_a_few_are_watched() {
    let dir = tempfile::tempdir().unwrap();
    tree(dir.path());
    let root = Root::at(dir.path());
    // Two to the server, one to the collector, one to another machine; the one to the shell leads nowhere.
    assert_eq!(connections(&root, &[20, 21], &[]), 4);
    assert_eq!(connections(&root, &[10, 11], &[]), 0);
    let files = some_files(&root, &[20, 21], &[]);
    assert_eq!(files.len(), 4);
    assert!(any_open(&files));
    std::fs::remove_dir_all(dir.path().join("proc/21/fd")).unwrap();
    assert!(!any_open(&files));
}

#[test]
fn a_generator_without_connections_says_what_was_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    tree(dir.path());
    let root = Root::at(dir.path());
    // The server's own ends lead to the generator, but it was asked, it did not ask.
    assert_eq!(
        other_ends(&root, &[11], &[], &[]).unwrap_err(),
        NoPeer::NotConnected { processes: 1, sockets: 2 }
    );
    assert_eq!(
        other_ends(&root, &[4711], &[], &[]).unwrap_err(),
        NoPeer::NotConnected { processes: 1, sockets: 0 }
    );
}

#[test]
fn a_server_on_another_machine_is_said_to_be_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    process(dir.path(), 21, 1, 1, &[205]);
    tcp(dir.path(), &[21], &[("0100007F:9C60", "08080808:0050", "01", 205)]);
    let found = other_ends(&Root::at(dir.path()), &[21], &[], &[]);
    assert_eq!(found, Err(NoPeer::Elsewhere { at: "8.8.8.8:80".to_owned() }));
}

#[test]
fn a_server_in_another_network_namespace_is_found() {
    let dir = tempfile::tempdir().unwrap();
    process(dir.path(), 21, 1, 1, &[200]);
    process(dir.path(), 30, 1, 2, &[300, 301]);
    let (client, server) = ("0100000A:9C40", "0200000A:1E61");
    tcp(dir.path(), &[21], &[(client, server, "01", 200)]);
    tcp(dir.path(), &[30], &[("00000000:1E61", NOBODY, "0A", 300), (server, client, "01", 301)]);
    let found = other_ends(&Root::at(dir.path()), &[21], &[], &[]).unwrap();
    assert_eq!((found[0].pids.as_slice(), found[0].same_namespace), ([30].as_slice(), false));
    assert_eq!(found[0].at.port(), Some(7777));
}

#[test]
fn the_server_of_a_unix_socket_is_found() {
    let dir = tempfile::tempdir().unwrap();
    process(dir.path(), 21, 1, 1, &[200, 201, 202]);
    process(dir.path(), 30, 1, 1, &[300, 301, 302]);
    let row = |flags: &str, inode: u64, path: &str| {
        format!("0000000000000000: 00000003 00000000 {flags} 0001 03 {inode:5}{path}\n")
    };
    let text = [
        row("00010000", 300, " /run/my server.sock"),
        row("00000000", 301, " /run/my server.sock"),
        row("00000000", 302, " /run/my server.sock"),
        row("00000000", 200, ""),
        row("00000000", 201, ""),
        row("00000000", 202, ""),
    ];
    write(dir.path(), "proc/net/unix", &format!("{UNIX_HEAD}{}", text.concat()));
    let root = Root::at(dir.path());
    let pairs = [(200, 301), (301, 200), (201, 302), (302, 201), (202, 999), (999, 202)];
    let found = other_ends(&root, &[21], &pairs, &[]).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].at.to_string().as_str(), found[0].connections), ("/run/my server.sock", 2));
    assert_eq!(found[0].pids, [30]);
    assert!(other_ends(&root, &[30], &pairs, &[]).is_err(), "who was asked did not ask");
    assert!(listens(&root, &[30]) && !listens(&root, &[21]));
}

#[test]
fn a_live_connection_leads_to_its_server() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let program = format!("exec 3<>/dev/tcp/127.0.0.1/{}; sleep 20", at.port());
    let Ok(mut client) = std::process::Command::new("bash").args(["-c", &program]).spawn() else { return };
    let (_accepted, _): (TcpStream, _) = listener.accept().unwrap();
    let tree = procs::descendants(&Root::live(), &[client.id()]).unwrap();
    let found = other_ends(&Root::live(), &tree, &[], &[]);
    client.kill().unwrap();
    client.wait().unwrap();
    let found = found.unwrap();
    assert_eq!((&found[0].at, found[0].connections), (&Endpoint::Tcp(at), 1));
    assert!(found[0].pids.contains(&std::process::id()) && found[0].same_namespace);
    assert!(listens(&Root::live(), &[std::process::id()]));
}
