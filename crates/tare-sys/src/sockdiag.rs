//! What the kernel counts of each TCP connection, of both ends where both are here (`NETLINK_SOCK_DIAG`). A dump is kept as it
//! comes and read later: [`sockets`].

use crate::netlink::{self, HEADER_BYTES, attribute, messages, read};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{BorrowedFd, OwnedFd};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// Of the answers' attributes, the one that holds a `tcp_info`, and its bit in a request.
const INET_DIAG_INFO: u16 = 2;
const WITH_INFO: u8 = 1 << (INET_DIAG_INFO - 1);
const ESTABLISHED: u32 = 1 << 1;
const LISTEN: u8 = 10;
const MESSAGE_BYTES: usize = 72;
const REQUEST_BYTES: usize = HEADER_BYTES + 56;
/// The same of Unix sockets, where the attribute is the inode of the other end.
const UNIX_DIAG_PEER: u16 = 2;
const WITH_PEER: u32 = 1 << 2;
/// Its name, and of a listener those that it has not accepted yet, by the inodes of their other ends.
const UNIX_DIAG_NAME: u16 = 0;
const WITH_NAME: u32 = 1 << 0;
const UNIX_DIAG_ICONS: u16 = 3;
const WITH_ICONS: u32 = 1 << 3;
const UNIX_MESSAGE_BYTES: usize = 16;
const UNIX_REQUEST_BYTES: usize = HEADER_BYTES + 24;

/// Which sockets a dump is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6, and IPv4 that goes over such a socket.
    V6,
}

/// A way to ask, in one network namespace.
#[derive(Debug)]
pub struct SockDiag(OwnedFd);

impl SockDiag {
    /// In the namespace of the thread that calls.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn open() -> io::Result<SockDiag> {
        netlink::open(libc::NETLINK_SOCK_DIAG).map(SockDiag)
    }

    /// In the namespace that `/proc/PID/ns/net` is open as: a thread of its own goes there, opens it, and ends.
    ///
    /// # Errors
    /// Mostly: only root may.
    pub fn open_in(namespace: BorrowedFd<'_>) -> io::Result<SockDiag> {
        netlink::within(namespace, SockDiag::open)
    }

    /// All established connections, into `buffer`; how much of that they fill. After an error there may be more to come,
    /// so that this way to ask should not be used again.
    ///
    /// # Errors
    /// `FileTooLarge` where the buffer has no room for them; else as the kernel says.
    pub fn dump(&self, family: Family, buffer: &mut [u8]) -> io::Result<usize> {
        self.ask(&request(family, ESTABLISHED), buffer)
    }

    /// All listening sockets, as [`dump`](SockDiag::dump) does it for connections; see [`listeners`].
    ///
    /// # Errors
    /// As [`dump`](SockDiag::dump).
    pub fn dump_listening(&self, family: Family, buffer: &mut [u8]) -> io::Result<usize> {
        self.ask(&request(family, 1 << LISTEN), buffer)
    }

    /// The same, and the sockets that listen; see [`tcp_ends`].
    ///
    /// # Errors
    /// As [`dump`](SockDiag::dump).
    pub fn dump_ends(&self, family: Family, buffer: &mut [u8]) -> io::Result<usize> {
        self.ask(&request(family, ESTABLISHED | 1 << LISTEN), buffer)
    }

    /// All Unix sockets that have another end, as [`dump`](SockDiag::dump) does it for TCP; see [`unix_pairs`].
    ///
    /// # Errors
    /// As [`dump`](SockDiag::dump).
    pub fn dump_unix(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.ask(&unix_request(WITH_PEER), buffer)
    }

    /// All Unix sockets with their names and what waits at them; see [`unix_ends`].
    ///
    /// # Errors
    /// As [`dump`](SockDiag::dump).
    pub fn dump_unix_ends(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.ask(&unix_request(WITH_PEER | WITH_NAME | WITH_ICONS), buffer)
    }

    fn ask(&self, request: &[u8], buffer: &mut [u8]) -> io::Result<usize> {
        netlink::ask(&self.0, request, buffer)
    }
}

fn request(family: Family, states: u32) -> [u8; REQUEST_BYTES] {
    let family = match family {
        Family::V4 => libc::AF_INET,
        Family::V6 => libc::AF_INET6,
    };
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    let mut bytes = [0; REQUEST_BYTES];
    bytes[..4].copy_from_slice(&(REQUEST_BYTES as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
    bytes[HEADER_BYTES..HEADER_BYTES + 3].copy_from_slice(&[
        family as u8,
        libc::IPPROTO_TCP as u8,
        WITH_INFO,
    ]);
    bytes[HEADER_BYTES + 4..HEADER_BYTES + 8].copy_from_slice(&states.to_ne_bytes());
    bytes
}

fn unix_request(show: u32) -> [u8; UNIX_REQUEST_BYTES] {
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    let mut bytes = [0; UNIX_REQUEST_BYTES];
    bytes[..4].copy_from_slice(&(UNIX_REQUEST_BYTES as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
    // `struct unix_diag_req`: family, protocol, padding, states, inode, what to show, cookie.
    bytes[HEADER_BYTES] = libc::AF_UNIX as u8;
    bytes[HEADER_BYTES + 4..HEADER_BYTES + 8].copy_from_slice(&u32::MAX.to_ne_bytes());
    bytes[HEADER_BYTES + 12..HEADER_BYTES + 16].copy_from_slice(&show.to_ne_bytes());
    bytes
}

/// The Unix sockets of a dump that have another end: the inodes of both.
pub fn unix_pairs(dump: &[u8]) -> impl Iterator<Item = (u64, u64)> + '_ {
    messages(dump).filter(|(kind, _)| *kind == SOCK_DIAG_BY_FAMILY).filter_map(|(_, message)| {
        let inode = u32::from_ne_bytes(read(message, 4)?);
        let peer = attribute(message.get(UNIX_MESSAGE_BYTES..)?, UNIX_DIAG_PEER)?;
        Some((u64::from(inode), u64::from(u32::from_ne_bytes(read(peer, 0)?))))
    })
}

/// A Unix socket of a dump of all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnixEnd {
    /// The socket.
    pub inode: u64,
    /// Its other end; 0: nobody has accepted it yet, or there is none.
    pub peer: u64,
    /// Whether it takes connections.
    pub listens: bool,
    /// Whether it passes single messages, which nobody answers.
    pub is_datagram: bool,
    /// The path that it is bound to, or whose listener accepted it; `@…` without a file, empty: none.
    pub name: String,
    /// Of a listener, the other ends of connections that it has not accepted yet.
    pub waiting: Vec<u64>,
}

/// The Unix sockets of a dump of all of them.
pub fn unix_ends(dump: &[u8]) -> impl Iterator<Item = UnixEnd> + '_ {
    messages(dump).filter(|(kind, _)| *kind == SOCK_DIAG_BY_FAMILY).filter_map(|(_, message)| {
        let [kind, state] = read(message, 1)?;
        let rest = message.get(UNIX_MESSAGE_BYTES..)?;
        let inode = |bytes: &[u8]| Some(u64::from(u32::from_ne_bytes(read(bytes, 0)?)));
        let name = attribute(rest, UNIX_DIAG_NAME).unwrap_or_default();
        let name = match name.split_first() {
            Some((0, rest)) => format!("@{}", String::from_utf8_lossy(rest)),
            _ => String::from_utf8_lossy(name).trim_end_matches('\0').to_owned(),
        };
        let waiting = attribute(rest, UNIX_DIAG_ICONS).unwrap_or_default();
        Some(UnixEnd {
            inode: u64::from(u32::from_ne_bytes(read(message, 4)?)),
            peer: attribute(rest, UNIX_DIAG_PEER).and_then(inode).unwrap_or(0),
            listens: state == LISTEN,
            is_datagram: i32::from(kind) == libc::SOCK_DGRAM,
            name,
            waiting: waiting.chunks_exact(4).filter_map(inode).filter(|inode| *inode != 0).collect(),
        })
    })
}

/// A TCP socket with its addresses, and which way the last data went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpEnd {
    /// This end; IPv4 rather than v4-mapped IPv6.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// The socket; 0 while nobody has accepted it.
    pub inode: u64,
    /// Whether it takes connections.
    pub listens: bool,
    /// Of a listener, connections that it has not accepted yet.
    pub waiting: u32,
    /// Segments with data, sent and received.
    pub data_out: u32,
    /// See `data_out`.
    pub data_in: u32,
    /// Bytes that were received.
    pub bytes_in: u64,
    /// How long ago data was sent and received last, in steps of the kernel's tick.
    pub sent_ago_ms: u32,
    /// See `sent_ago_ms`.
    pub received_ago_ms: u32,
}

/// The sockets of a dump of connections and listeners.
pub fn tcp_ends(dump: &[u8]) -> impl Iterator<Item = TcpEnd> + '_ {
    messages(dump)
        .filter(|(kind, _)| *kind == SOCK_DIAG_BY_FAMILY)
        .filter_map(|(_, message)| tcp_end(message))
}

fn tcp_end(message: &[u8]) -> Option<TcpEnd> {
    let [family, state] = read(message, 0)?;
    let address = |port_at: usize, at: usize| {
        let ip = match i32::from(family) {
            libc::AF_INET => IpAddr::V4(Ipv4Addr::from(read::<4>(message, at)?)),
            _ => IpAddr::V6(Ipv6Addr::from(read::<16>(message, at)?)),
        };
        Some(SocketAddr::new(ip.to_canonical(), u16::from_be_bytes(read(message, port_at)?)))
    };
    let word = |at| read(message, at).map(u32::from_ne_bytes);
    let info = attribute(message.get(MESSAGE_BYTES..)?, INET_DIAG_INFO).unwrap_or_default();
    let counted = |at| read(info, at).map_or(0, u32::from_ne_bytes);
    let listens = state == LISTEN;
    Some(TcpEnd {
        local: address(4, 8)?,
        remote: address(6, 24)?,
        inode: u64::from(word(68)?),
        listens,
        waiting: if listens { word(56)? } else { 0 },
        sent_ago_ms: counted(44),
        received_ago_ms: counted(52),
        data_in: counted(152),
        bytes_in: read(info, 128).map_or(0, u64::from_ne_bytes),
        data_out: counted(156),
    })
}

/// One end of a connection, and what was counted since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpSocket {
    /// Its own port.
    pub local_port: u16,
    /// The other end's.
    pub remote_port: u16,
    /// Identifies it among all sockets of its namespace, past ones included.
    pub cookie: u64,
    /// Time in which something was sent that the other end had not acknowledged.
    pub busy_us: u64,
    /// Of it, time in which the other end had no room for more.
    pub receiver_full_us: u64,
    /// Of it, time in which its own buffer had no room for more.
    pub buffer_full_us: u64,
    /// Segments that were sent again.
    pub retransmits: u32,
    /// Time in which it only waited for an overdue acknowledgement, the current wait included; `None`: not counted (before
    /// Linux 6.7).
    pub timed_out_ms: Option<u32>,
    /// Segments with data that were sent.
    pub segments_out: u32,
    /// Segments that came in, empty ones too.
    pub segments_in: u32,
    /// Segments that were sent, empty ones and those sent again too.
    pub all_segments_out: u32,
    /// Bytes that it was given and has not sent once.
    pub unsent_bytes: u32,
    /// Bytes that the other end acknowledged.
    pub bytes_acked: u64,
}

/// The connections of a dump. One without counts (before Linux 4.10) is left out.
pub fn sockets(dump: &[u8]) -> impl Iterator<Item = TcpSocket> + '_ {
    messages(dump).filter(|(kind, _)| *kind == SOCK_DIAG_BY_FAMILY).filter_map(|(_, message)| socket(message))
}

/// A socket that listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listener {
    /// The port that it listens on.
    pub port: u16,
    /// Connections for which there is room until they are accepted.
    pub backlog: u32,
    /// Connections that wait to be accepted.
    pub waiting: u32,
}

/// The listening sockets of a dump.
pub fn listeners(dump: &[u8]) -> impl Iterator<Item = Listener> + '_ {
    // `struct inet_diag_msg`: of a listener `idiag_rqueue` is who waits, `idiag_wqueue` what it gave to listen(2), within the kernel's bound.
    messages(dump).filter(|(kind, _)| *kind == SOCK_DIAG_BY_FAMILY).filter_map(|(_, message)| {
        Some(Listener {
            port: u16::from_be_bytes(read(message, 4)?),
            backlog: u32::from_ne_bytes(read(message, 60)?),
            waiting: u32::from_ne_bytes(read(message, 56)?),
        })
    })
}

/// `struct inet_diag_msg` and its attributes.
fn socket(message: &[u8]) -> Option<TcpSocket> {
    let info = attribute(message.get(MESSAGE_BYTES..)?, INET_DIAG_INFO)?;
    let short = |at| read(info, at).map(u32::from_ne_bytes);
    let long = |at| read(info, at).map(u64::from_ne_bytes);
    // Offsets in `struct tcp_info`, which only grows at its end.
    Some(TcpSocket {
        local_port: u16::from_be_bytes(read(message, 4)?),
        remote_port: u16::from_be_bytes(read(message, 6)?),
        cookie: u64::from_ne_bytes(read(message, 44)?),
        retransmits: short(100)?,
        bytes_acked: long(120)?,
        all_segments_out: short(136)?,
        segments_in: short(140)?,
        unsent_bytes: short(144)?,
        segments_out: short(156)?,
        busy_us: long(168)?,
        receiver_full_us: long(176)?,
        buffer_full_us: long(184)?,
        timed_out_ms: short(244),
    })
}

#[cfg(test)]
#[path = "sockdiag_tests.rs"]
mod tests;
