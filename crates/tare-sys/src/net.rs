//! Non-blocking TCP sockets: one system call a function, into buffers of the caller, nothing allocated.
//!
//! `WouldBlock` is returned as that error kind; a call interrupted by a signal is made again.

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// Whether several listeners share an address (`SO_REUSEPORT`); the kernel then distributes connections by hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// One has it alone.
    None,
    /// The first of several: refused where anybody listens already, even one that would share.
    First,
    /// Any further one.
    Next,
}

/// How a listener is made.
#[derive(Debug, Clone, Copy)]
pub struct ListenOptions {
    /// Whether others may listen on the address as well.
    pub sharing: Sharing,
    /// Length of the accept queue, in connections; the kernel caps it at `net.core.somaxconn`.
    pub backlog: u32,
}

impl Default for ListenOptions {
    fn default() -> Self {
        ListenOptions { sharing: Sharing::None, backlog: 4096 }
    }
}

/// A non-blocking listening socket on `address` (port 0: any free one, see [`local_addr`]), with `SO_REUSEADDR`.
pub fn listen(address: SocketAddr, options: ListenOptions) -> io::Result<OwnedFd> {
    let fd = socket(address)?;
    set_flag(&fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, true)?;
    let share = || set_flag(&fd, libc::SOL_SOCKET, libc::SO_REUSEPORT, true);
    if options.sharing == Sharing::Next {
        share()?;
    }
    bind(&fd, address)?;
    // Only now: with sharing set before, it could join the listeners of another program.
    if options.sharing == Sharing::First {
        share()?;
    }
    let backlog = options.backlog.min(i32::MAX as u32) as i32;
    // SAFETY: no pointers are passed; the descriptor is open.
    check(unsafe { libc::listen(fd.as_raw_fd(), backlog) })?;
    Ok(fd)
}

/// Takes one connection from the accept queue, non-blocking; `WouldBlock` when the queue is empty.
#[inline]
pub fn accept(listener: impl AsFd) -> io::Result<OwnedFd> {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    let raw = listener.as_fd().as_raw_fd();
    let fd = retry(|| {
        // SAFETY: null address pointers are allowed and mean that the peer's address is not wanted.
        unsafe { libc::accept4(raw, std::ptr::null_mut(), std::ptr::null_mut(), flags) as isize }
    })?;
    // SAFETY: accept4 just returned this descriptor and nobody else holds it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Whether a connection that was begun is already there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connecting {
    /// Ready to use (happens on loopback).
    Done,
    /// Wait until the socket is writable, then ask [`take_error`].
    InProgress,
}

/// Begins a non-blocking connection to `remote`, from `local` if given (port 0: any free one, chosen at
/// connect time so that one local port can serve many remote ends). On loopback there is no congestion: what this
/// end sends is controlled by the algorithm that takes the least CPU time.
pub fn connect(remote: SocketAddr, local: Option<SocketAddr>) -> io::Result<(OwnedFd, Connecting)> {
    let fd = socket(remote)?;
    if remote.ip().is_loopback() {
        // A kernel that refuses it goes on with its default.
        set_option(&fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, b"reno").ok();
    }
    if let Some(local) = local {
        if local.port() == 0 {
            set_flag(&fd, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, true)?;
        }
        bind(&fd, local)?;
    }
    let (address, len) = RawAddress::from(remote).parts();
    // SAFETY: `address` is an initialised sockaddr of `len` bytes that lives through the call.
    match check(unsafe { libc::connect(fd.as_raw_fd(), (&raw const address).cast(), len) }) {
        Ok(_) => Ok((fd, Connecting::Done)),
        // An interrupted connect goes on by itself, like one in progress.
        Err(e) if matches!(e.raw_os_error(), Some(libc::EINPROGRESS | libc::EINTR)) => {
            Ok((fd, Connecting::InProgress))
        }
        Err(e) => Err(e),
    }
}

/// Receives into `buffer`; 0 is the end of the stream (or an empty buffer).
#[inline]
pub fn recv(fd: impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    let raw = fd.as_fd().as_raw_fd();
    // SAFETY: `buffer` is writable for its whole length and lives through the call.
    retry(|| unsafe { libc::recv(raw, buffer.as_mut_ptr().cast(), buffer.len(), 0) })
}

/// Sends from `bytes`; the count may be short. A broken connection is an error, never a signal.
#[inline]
pub fn send(fd: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    let raw = fd.as_fd().as_raw_fd();
    // SAFETY: `bytes` is readable for its whole length and lives through the call.
    retry(|| unsafe { libc::send(raw, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) })
}

/// Like [`send`]; the kernel learns that more follows at once, so that it holds small segments back.
#[inline]
pub fn send_more(fd: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    let raw = fd.as_fd().as_raw_fd();
    let flags = libc::MSG_NOSIGNAL | libc::MSG_MORE;
    // SAFETY: `bytes` is readable for its whole length and lives through the call.
    retry(|| unsafe { libc::send(raw, bytes.as_ptr().cast(), bytes.len(), flags) })
}

/// Closes the sending side: the peer reads what was sent and then the end.
pub fn shutdown_write(fd: impl AsFd) -> io::Result<()> {
    // SAFETY: no pointers are passed; the descriptor is open.
    check(unsafe { libc::shutdown(fd.as_fd().as_raw_fd(), libc::SHUT_WR) }).map(|_| ())
}

/// Sends small segments at once instead of waiting for acknowledgements (`TCP_NODELAY`).
pub fn set_nodelay(fd: impl AsFd, on: bool) -> io::Result<()> {
    set_flag(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, on)
}

/// Acknowledges at once instead of delaying (`TCP_QUICKACK`); the kernel may fall back by itself.
pub fn set_quickack(fd: impl AsFd, on: bool) -> io::Result<()> {
    set_flag(fd, libc::IPPROTO_TCP, libc::TCP_QUICKACK, on)
}

/// Makes closing reset the connection at once, with nothing left in `TIME_WAIT` (`SO_LINGER` of zero).
pub fn set_reset_on_close(fd: impl AsFd) -> io::Result<()> {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    set_option(fd, libc::SOL_SOCKET, libc::SO_LINGER, &linger)
}

/// Asks for a send buffer of `bytes` (the kernel doubles it, and caps it at `net.core.wmem_max`).
pub fn set_send_buffer(fd: impl AsFd, bytes: u32) -> io::Result<()> {
    set_option(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, &bytes.min(i32::MAX as u32))
}

/// Asks for a receive buffer of `bytes` (the kernel doubles it, and caps it at `net.core.rmem_max`).
pub fn set_receive_buffer(fd: impl AsFd, bytes: u32) -> io::Result<()> {
    set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, &bytes.min(i32::MAX as u32))
}

/// The pending error of a socket, taken and cleared (`SO_ERROR`); `None` when there is none.
pub fn take_error(fd: impl AsFd) -> io::Result<Option<io::Error>> {
    let code: i32 = get_option(fd, libc::SOL_SOCKET, libc::SO_ERROR)?;
    Ok((code != 0).then(|| io::Error::from_raw_os_error(code)))
}

/// TCP segments that this socket has sent so far, acknowledgements and those sent again included (`tcpi_segs_out` of `TCP_INFO`, Linux 4.2).
///
/// # Errors
/// As `getsockopt`; `Unsupported` where the kernel's answer is too short to hold it.
pub fn segments_sent(fd: impl AsFd) -> io::Result<u32> {
    /// Where the kernel's `struct tcp_info` has it: its layout only grows at the end.
    const AT: usize = 136;
    let mut info = [0u8; AT + 4];
    let mut len = info.len() as libc::socklen_t;
    let raw = fd.as_fd().as_raw_fd();
    // SAFETY: `info` is writable for `len` bytes, and both live through the call.
    check(unsafe {
        libc::getsockopt(raw, libc::IPPROTO_TCP, libc::TCP_INFO, info.as_mut_ptr().cast(), &mut len)
    })?;
    match info.last_chunk::<4>() {
        Some(bytes) if len as usize >= info.len() => Ok(u32::from_ne_bytes(*bytes)),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// The address of this end.
pub fn local_addr(fd: impl AsFd) -> io::Result<SocketAddr> {
    address_of(|address, len| {
        // SAFETY: `address` and `len` are valid for writing, and `len` holds the size of `address`.
        unsafe { libc::getsockname(fd.as_fd().as_raw_fd(), address, len) }
    })
}

/// The address of the other end.
pub fn peer_addr(fd: impl AsFd) -> io::Result<SocketAddr> {
    address_of(|address, len| {
        // SAFETY: `address` and `len` are valid for writing, and `len` holds the size of `address`.
        unsafe { libc::getpeername(fd.as_fd().as_raw_fd(), address, len) }
    })
}

fn socket(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers are passed.
    let fd = check(unsafe { libc::socket(family, kind, 0) })?;
    // SAFETY: socket just returned this descriptor and nobody else holds it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn bind(fd: &OwnedFd, address: SocketAddr) -> io::Result<()> {
    let (address, len) = RawAddress::from(address).parts();
    // SAFETY: `address` is an initialised sockaddr of `len` bytes that lives through the call.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len) }).map(|_| ())
}

pub(crate) fn set_flag(fd: impl AsFd, level: i32, name: i32, on: bool) -> io::Result<()> {
    set_option(fd, level, name, &libc::c_int::from(on))
}

/// `T` must be the plain C type that the option takes.
pub(crate) fn set_option<T: Copy>(fd: impl AsFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    let raw = fd.as_fd().as_raw_fd();
    // SAFETY: `value` is readable for `len` bytes and lives through the call.
    check(unsafe { libc::setsockopt(raw, level, name, (value as *const T).cast(), len) }).map(|_| ())
}

fn get_option(fd: impl AsFd, level: i32, name: i32) -> io::Result<i32> {
    let mut value = 0i32;
    let mut len = size_of::<i32>() as libc::socklen_t;
    let raw = fd.as_fd().as_raw_fd();
    // SAFETY: `value` is writable for `len` bytes, and both live through the call.
    check(unsafe { libc::getsockopt(raw, level, name, (&raw mut value).cast(), &mut len) })?;
    Ok(value)
}

/// A socket address as the kernel takes it.
enum RawAddress {
    V4(libc::sockaddr_in),
    V6(libc::sockaddr_in6),
}

impl From<SocketAddr> for RawAddress {
    fn from(address: SocketAddr) -> RawAddress {
        match address {
            SocketAddr::V4(v4) => RawAddress::V4(libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            }),
            SocketAddr::V6(v6) => RawAddress::V6(libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            }),
        }
    }
}

impl RawAddress {
    fn parts(&self) -> (libc::sockaddr_storage, libc::socklen_t) {
        // SAFETY: sockaddr_storage is plain old data, for which all zeroes is a valid value.
        let mut storage: libc::sockaddr_storage = unsafe { zeroed() };
        let to = (&raw mut storage).cast::<u8>();
        let (from, len) = match self {
            RawAddress::V4(a) => {
                ((a as *const libc::sockaddr_in).cast::<u8>(), size_of::<libc::sockaddr_in>())
            }
            RawAddress::V6(a) => {
                ((a as *const libc::sockaddr_in6).cast::<u8>(), size_of::<libc::sockaddr_in6>())
            }
        };
        // SAFETY: both sockaddr types are shorter than sockaddr_storage, and the two do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(from, to, len) };
        (storage, len as libc::socklen_t)
    }
}

fn address_of(
    get: impl FnOnce(*mut libc::sockaddr, *mut libc::socklen_t) -> libc::c_int,
) -> io::Result<SocketAddr> {
    // SAFETY: sockaddr_storage is plain old data, for which all zeroes is a valid value.
    let mut storage: libc::sockaddr_storage = unsafe { zeroed() };
    let mut len = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    check(get((&raw mut storage).cast(), &mut len))?;
    match i32::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that the kernel wrote a sockaddr_in, for which the storage is aligned.
            let a = unsafe { &*(&raw const storage).cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(a.sin_addr.s_addr.to_ne_bytes());
            Ok(SocketAddr::new(IpAddr::V4(ip), u16::from_be(a.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: the family says that the kernel wrote a sockaddr_in6, for which the storage is aligned.
            let a = unsafe { &*(&raw const storage).cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(a.sin6_addr.s6_addr);
            let port = u16::from_be(a.sin6_port);
            Ok(SocketAddr::V6(SocketAddrV6::new(ip, port, a.sin6_flowinfo, a.sin6_scope_id)))
        }
        family => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("socket address of family {family}, neither IPv4 nor IPv6"),
        )),
    }
}

#[inline]
fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Repeats a call that a signal interrupted.
#[inline]
pub(crate) fn retry(mut call: impl FnMut() -> isize) -> io::Result<usize> {
    loop {
        let n = call();
        if n >= 0 {
            return Ok(n as usize);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epoll::{Epoll, Events, Interest};
    use std::time::Duration;

    fn wait_for(fd: &OwnedFd, interest: Interest) {
        let epoll = Epoll::new().unwrap();
        epoll.add(fd, interest, 0).unwrap();
        let mut events = Events::with_capacity(1);
        assert_eq!(epoll.wait(&mut events, Some(Duration::from_secs(10))).unwrap(), 1, "not ready in 10 s");
    }

    fn pair(address: &str, local: Option<&str>) -> (OwnedFd, OwnedFd) {
        let listener = listen(address.parse().unwrap(), ListenOptions::default()).unwrap();
        let to = local_addr(&listener).unwrap();
        let (client, _) = connect(to, local.map(|l| l.parse().unwrap())).unwrap();
        wait_for(&listener, Interest::READ);
        let server = accept(&listener).unwrap();
        assert_eq!(accept(&listener).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        wait_for(&client, Interest::WRITE);
        assert!(take_error(&client).unwrap().is_none());
        assert_eq!(peer_addr(&client).unwrap(), to);
        assert_eq!(peer_addr(&server).unwrap(), local_addr(&client).unwrap());
        (client, server)
    }

    #[test]
    fn bytes_go_both_ways_over_either_family() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let (client, server) = pair(address, None);
            let mut buffer = [0u8; 16];
            assert_eq!(recv(&server, &mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
            set_nodelay(&client, true).unwrap();
            set_quickack(&client, true).unwrap();
            assert_eq!(send_more(&client, b"pi").unwrap(), 2);
            assert_eq!(send(&client, b"ng").unwrap(), 2);
            wait_for(&server, Interest::READ);
            assert_eq!(recv(&server, &mut buffer).unwrap(), 4);
            assert_eq!(&buffer[..4], b"ping");
            shutdown_write(&server).unwrap();
            wait_for(&client, Interest::READ);
            assert_eq!(recv(&client, &mut buffer).unwrap(), 0);
        }
    }

    #[test]
    fn a_local_address_is_kept() {
        let (client, _server) = pair("127.0.0.1:0", Some("127.0.0.9:0"));
        assert_eq!(local_addr(&client).unwrap().ip().to_string(), "127.0.0.9");
    }

    #[test]
    fn listeners_share_a_port_only_when_asked() {
        let options = |sharing| ListenOptions { sharing, ..ListenOptions::default() };
        let first = listen("127.0.0.1:0".parse().unwrap(), options(Sharing::First)).unwrap();
        let address = local_addr(&first).unwrap();
        listen(address, options(Sharing::Next)).unwrap();
        for other in [Sharing::None, Sharing::First] {
            let refused = listen(address, options(other)).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
        }
    }

    #[test]
    fn a_reset_is_an_error_and_a_refusal_is_reported() {
        let (client, server) = pair("127.0.0.1:0", None);
        set_reset_on_close(&server).unwrap();
        drop(server);
        wait_for(&client, Interest::READ);
        assert_eq!(recv(&client, &mut [0; 4]).unwrap_err().kind(), io::ErrorKind::ConnectionReset);

        let closed =
            local_addr(listen("127.0.0.1:0".parse().unwrap(), ListenOptions::default()).unwrap()).unwrap();
        let refused = match connect(closed, None) {
            Err(e) => e,
            Ok((fd, _)) => {
                wait_for(&fd, Interest::WRITE);
                take_error(&fd).unwrap().expect("nobody listens there")
            }
        };
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
}
