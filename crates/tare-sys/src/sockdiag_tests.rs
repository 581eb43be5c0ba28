//! Messages as kernels send them, and real sockets.

use super::*;
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;

#[test]
fn both_ends_of_a_connection_are_found_with_their_counts() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    server.write_all(b"hello").unwrap();
    client.read_exact(&mut [0; 5]).unwrap();
    let mut buffer = vec![0; 4 << 20];
    let diag = SockDiag::open().unwrap();
    let filled = diag.dump(Family::V4, &mut buffer).unwrap();
    let found: Vec<TcpSocket> = sockets(&buffer[..filled]).collect();
    let end = |local: &TcpStream, remote: &TcpStream| {
        let ports = [local, remote].map(|end| end.local_addr().unwrap().port());
        let is_it = |socket: &&TcpSocket| [socket.local_port, socket.remote_port] == ports;
        *found.iter().find(is_it).unwrap()
    };
    let (at_server, at_client) = (end(&server, &client), end(&client, &server));
    assert_eq!((at_server.segments_out, at_client.segments_out), (1, 0));
    assert!(at_client.segments_in >= 1 && at_server.cookie != at_client.cookie);
    assert_eq!(at_server.retransmits, 0);
    // The socket can be used again, and a buffer that is too small is an error.
    assert!(diag.dump(Family::V6, &mut buffer).is_ok());
    let error = diag.dump(Family::V4, &mut buffer[..100]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
}

#[test]
fn listeners_are_distinguished_from_connections_and_what_waits_at_them_is_counted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(b"x").unwrap();
    let (mut server, _) = listener.accept().unwrap();
    server.read_exact(&mut [0; 1]).unwrap();
    let mut waits = TcpStream::connect(address).unwrap();
    waits.write_all(b"x").unwrap();
    let mut buffer = vec![0; 4 << 20];
    let diag = SockDiag::open().unwrap();
    let filled = diag.dump_ends(Family::V4, &mut buffer).unwrap();
    let ends: Vec<TcpEnd> = tcp_ends(&buffer[..filled]).collect();
    let of = |local| *ends.iter().find(|end| end.local == local).unwrap();
    let asked = of(client.local_addr().unwrap());
    assert_eq!((asked.remote, asked.data_out, asked.data_in, asked.listens), (address, 1, 0, false));
    let accepted = ends.iter().find(|end| end.remote == client.local_addr().unwrap()).unwrap();
    assert_eq!((accepted.data_in, accepted.bytes_in), (1, 1));
    let listens = ends.iter().find(|end| end.listens && end.local == address).unwrap();
    assert_eq!(listens.waiting, 1);
    assert!(asked.inode != 0 && listens.inode != 0);
}

#[test]
fn a_unix_connection_that_nobody_accepted_is_found_at_its_listener() {
    use std::os::linux::net::SocketAddrExt;
    let name = format!("tare-test-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let listener = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
    let ends = || {
        let mut buffer = vec![0; 4 << 20];
        let filled = SockDiag::open().unwrap().dump_unix_ends(&mut buffer).unwrap();
        let of = |end: &UnixEnd| end.name == format!("@{name}");
        unix_ends(&buffer[..filled]).filter(of).collect::<Vec<UnixEnd>>()
    };
    let _client = std::os::unix::net::UnixStream::connect_addr(&address).unwrap();
    let listens = |ends: &[UnixEnd]| ends.iter().find(|end| end.listens).unwrap().clone();
    let waiting = listens(&ends()).waiting;
    assert_eq!(waiting.len(), 1);
    let _accepted = listener.accept().unwrap();
    let ends = ends();
    assert!(listens(&ends).waiting.is_empty());
    assert!(ends.iter().any(|end| !end.listens && end.peer == waiting[0] && !end.is_datagram));
}

#[test]
fn both_ends_of_a_unix_connection_are_paired() {
    use std::os::linux::fs::MetadataExt;
    let inode = |socket: &std::os::unix::net::UnixStream| {
        let link = format!("/proc/self/fd/{}", socket.as_raw_fd());
        std::fs::metadata(link).unwrap().st_ino()
    };
    let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut buffer = vec![0; 4 << 20];
    let filled = SockDiag::open().unwrap().dump_unix(&mut buffer).unwrap();
    let pairs: Vec<(u64, u64)> = unix_pairs(&buffer[..filled]).collect();
    assert!(pairs.contains(&(inode(&one), inode(&other))));
    assert!(pairs.contains(&(inode(&other), inode(&one))));
}

#[test]
fn a_namespace_that_is_our_own_may_be_entered_by_root() {
    let namespace = std::fs::File::open("/proc/self/ns/net").unwrap();
    match SockDiag::open_in(std::os::fd::AsFd::as_fd(&namespace)) {
        Ok(diag) => assert!(diag.dump(Family::V4, &mut vec![0; 4 << 20]).is_ok()),
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
    }
}

proptest! {
    #[test]
    fn garbage_ends_and_is_no_socket(bytes in prop::collection::vec(any::<u8>(), 0..600), length in 0..40u32) {
        let mut framed = vec![0; 16];
        framed[..4].copy_from_slice(&(16 + bytes.len() as u32 - length.min(bytes.len() as u32)).to_ne_bytes());
        framed[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        framed.extend(&bytes);
        sockets(&bytes).for_each(drop);
        sockets(&framed).for_each(drop);
        unix_pairs(&bytes).for_each(drop);
        unix_pairs(&framed).for_each(drop);
        unix_ends(&framed).for_each(drop);
        tcp_ends(&framed).for_each(drop);
    }
}
