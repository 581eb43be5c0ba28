//! Connecting to a Unix stream socket without blocking; the descriptor then works with [`crate::net`]'s `recv` and `send`.
//! Who listens at its other end, for those that look for the server.

use crate::net::Connecting;
use std::io;
use std::mem::{offset_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Begins a non-blocking connection to the socket at `path`. On Unix sockets it is there at once, or the accept
/// queue is full: then the error is of the kind `WouldBlock`, and it may be tried again.
pub fn connect(path: &Path) -> io::Result<(OwnedFd, Connecting)> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers are passed.
    let fd = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: socket just returned this descriptor and nobody else holds it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: a sockaddr_un of zeroes is valid.
    let mut address: libc::sockaddr_un = unsafe { zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let bytes = path.as_os_str().as_bytes();
    // The last byte stays zero and ends the path.
    if bytes.is_empty() || bytes.len() >= address.sun_path.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a socket's path has 1 to 107 bytes"));
    }
    for (to, byte) in address.sun_path.iter_mut().zip(bytes) {
        *to = *byte as libc::c_char;
    }
    let len = (offset_of!(libc::sockaddr_un, sun_path) + bytes.len() + 1) as libc::socklen_t;
    // SAFETY: `address` is an initialised sockaddr_un of at least `len` bytes that lives through the call.
    let result = unsafe { libc::connect(fd.as_raw_fd(), (&raw const address).cast(), len) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok((fd, Connecting::Done)) }
}

/// The process that made the other end of a connected socket listen (`SO_PEERCRED`); `None` where it is in another PID
/// namespace.
pub fn peer_pid(socket: &impl AsFd) -> io::Result<Option<u32>> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: `peer` and `len` live through the call, and `len` is the size of what `peer` points to.
    let result = unsafe {
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut peer).cast(), &raw mut len)
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(u32::try_from(peer.pid).ok().filter(|pid| *pid > 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_path_is_connected_to_or_refused() {
        let path = std::env::temp_dir().join(format!("tare-unix-{}.sock", std::process::id()));
        assert_eq!(connect(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        let listener = UnixListener::bind(&path).unwrap();
        let (socket, _) = connect(&path).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        io::Write::write_all(&mut peer, b"hi").unwrap();
        assert_eq!(crate::net::recv(&socket, &mut [0; 8]).unwrap(), 2);
        assert_eq!(peer_pid(&socket).unwrap(), Some(std::process::id()));
        drop(listener);
        std::fs::remove_file(&path).unwrap();
        let long = connect(Path::new(&"x".repeat(108))).unwrap_err();
        assert_eq!(long.kind(), io::ErrorKind::InvalidInput);
    }
}
