//! Files below a folder, and sending them without a copy through the process.

use crate::net::retry;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd};

/// Longest path, in bytes, its end included (the kernel's `PATH_MAX`).
const PATH_BYTES_MAX: usize = 4096;

/// Opens `path` below `folder` for reading, without blocking (a pipe has no writer to wait for).
///
/// No part of the path leads out of the folder: not `..`, not an absolute path, not a symbolic link
/// (`openat2` with `RESOLVE_BENEATH`, Linux 5.6). The last is refused as `EXDEV`.
pub fn open_beneath(folder: impl AsFd, path: &[u8]) -> io::Result<File> {
    let mut text = [0u8; PATH_BYTES_MAX];
    if path.len() >= PATH_BYTES_MAX || path.contains(&0) {
        return Err(io::ErrorKind::InvalidFilename.into());
    }
    text[..path.len()].copy_from_slice(path);
    // SAFETY: open_how is plain old data, for which all zeroes is a valid value.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY) as u64;
    how.resolve = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_MAGICLINKS;
    // SAFETY: `text` ends with a NUL within its bounds, `how` is an open_how of the size given; both live
    // through the call.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_openat2,
            folder.as_fd().as_raw_fd(),
            text.as_ptr(),
            &raw const how,
            size_of::<libc::open_how>(),
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: openat2 just returned this descriptor and nobody else holds it.
    Ok(unsafe { File::from_raw_fd(fd as i32) })
}

/// Sends up to `bytes` bytes of `file` from `offset` to a socket (`sendfile`). 0 is the end of the file.
pub fn send_file(socket: impl AsFd, file: &File, offset: u64, bytes: usize) -> io::Result<usize> {
    let mut at = libc::off64_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
    retry(|| {
        // SAFETY: both descriptors are open, and `at` is a valid offset that lives through the call.
        unsafe { libc::sendfile64(socket.as_fd().as_raw_fd(), file.as_raw_fd(), &mut at, bytes) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn nothing_outside_the_folder_is_opened() {
        let folder = File::open("/proc/self").unwrap();
        let mut text = String::new();
        open_beneath(&folder, b"status").unwrap().read_to_string(&mut text).unwrap();
        assert!(text.starts_with("Name:"));
        for out in
            [&b"../1/status"[..], b"/etc/passwd", b"task/../../1/status", b"cwd/Cargo.toml", b"root/etc"]
        {
            assert!(open_beneath(&folder, out).is_err(), "{:?}", String::from_utf8_lossy(out));
        }
        assert!(open_beneath(&folder, b"no\0pe").is_err());
        assert!(open_beneath(&folder, &[b'a'; 5000]).is_err());
    }
}
