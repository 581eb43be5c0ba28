//! Netlink: a socket in one network namespace, a dump asked for, and the messages and attributes of the answer.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The kernel gives no larger piece of a dump at once.
const PIECE_BYTES_MAX: usize = 32 << 10;
/// Pieces of one dump, at most.
const PIECES_MAX: usize = 1 << 12;
/// Bytes of `struct nlmsghdr`.
pub(crate) const HEADER_BYTES: usize = 16;
/// Of an attribute's type, the bits that are no flags.
const TYPE_BITS: u16 = 0x3fff;

/// A socket of this protocol in the namespace of the thread that calls.
pub(crate) fn open(protocol: i32) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers are passed.
    let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, protocol) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: socket just returned this descriptor and nobody else holds it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // A bound on a dump that never ends.
    let patience = libc::timeval { tv_sec: 1, tv_usec: 0 };
    let length = size_of::<libc::timeval>() as libc::socklen_t;
    // SAFETY: `patience` lives through the call, and `length` is its size.
    let set = unsafe {
        let value = (&raw const patience).cast();
        libc::setsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVTIMEO, value, length)
    };
    if set < 0 { Err(io::Error::last_os_error()) } else { Ok(fd) }
}

/// Does it in the namespace that `/proc/PID/ns/net` is open as: a thread of its own goes there, does it, and ends.
pub(crate) fn within<T: Send>(
    namespace: BorrowedFd<'_>,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    let there = || {
        // SAFETY: plain numbers; the descriptor is open. Only this thread, which ends at once, changes its namespace.
        let entered = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
        if entered < 0 { Err(io::Error::last_os_error()) } else { work() }
    };
    let gone = || Err(io::Error::other("the thread that went there did not come back"));
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, there)?;
        thread.join().unwrap_or_else(|_| gone())
    })
}

/// Sends a request and takes the whole answer into `buffer`; how much of that it fills.
pub(crate) fn ask(fd: &OwnedFd, request: &[u8], buffer: &mut [u8]) -> io::Result<usize> {
    let fd = fd.as_raw_fd();
    // SAFETY: the pointer and the length are those of `request`, which lives through the call.
    let sent = unsafe { libc::send(fd, request.as_ptr().cast(), request.len(), 0) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut filled = 0;
    for _ in 0..PIECES_MAX {
        let room = buffer.get_mut(filled..).filter(|room| room.len() >= PIECE_BYTES_MAX);
        let Some(room) = room else { break };
        // SAFETY: the pointer and the length are those of `room`, which nobody else has.
        let got = unsafe { libc::recv(fd, room.as_mut_ptr().cast(), room.len(), 0) };
        let got = match usize::try_from(got) {
            Ok(got) => got.min(room.len()),
            Err(_) => return Err(io::Error::last_os_error()),
        };
        let last = messages(&room[..got]).last();
        filled += got;
        match last {
            Some((kind, _)) if kind == libc::NLMSG_DONE as u16 => return Ok(filled),
            Some((kind, text)) if kind == libc::NLMSG_ERROR as u16 => {
                let code = read(text, 0).map_or(libc::EIO, |code: [u8; 4]| -i32::from_ne_bytes(code));
                return Err(io::Error::from_raw_os_error(code));
            }
            Some(_) => {}
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
    Err(io::ErrorKind::FileTooLarge.into())
}

/// Type and content of each message.
pub(crate) fn messages(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(read(rest, 0)?) as usize;
        let kind = u16::from_ne_bytes(read(rest, 4)?);
        let content = rest.get(HEADER_BYTES..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, content))
    })
}

/// Type, without its flags, and content of each attribute.
fn each(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(read(rest, 0)?));
        let kind = u16::from_ne_bytes(read(rest, 2)?) & TYPE_BITS;
        let content = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, content))
    })
}

/// The content of the attribute of that type.
pub(crate) fn attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    each(bytes).find(|(kind, _)| *kind == wanted).map(|(_, content)| content)
}

/// The contents of all attributes.
pub(crate) fn attributes(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    each(bytes).map(|(_, content)| content)
}

/// So many bytes at a place.
pub(crate) fn read<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}
