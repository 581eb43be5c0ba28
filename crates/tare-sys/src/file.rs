//! Files below a folder, and sending them without a copy through the process.

use crate::net::retry;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens `path` below `folder` for reading, without blocking (a pipe has no writer to wait for).
///
/// No part of the path leads out of the folder: not `..`, not an absolute path, not a symbolic link
/// (`openat2` with `RESOLVE_BENEATH`, Linux 5.6). The last is refused as `EXDEV`.
pub fn open_beneath(folder: impl AsFd, path: &CStr) -> io::Result<File> {
    open_how(folder, path, Purpose::Read.flags(), libc::RESOLVE_BENEATH)
}

/// A file in memory that no folder has, with this content.
///
/// # Errors
/// As `memfd_create` and `write`.
pub fn in_memory(name: &CStr, content: &[u8]) -> io::Result<File> {
    // SAFETY: `name` is NUL-terminated and lives through the call.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fd` was just opened and nobody else has it.
    let mut file = unsafe { File::from_raw_fd(fd) };
    io::Write::write_all(&mut file, content)?;
    Ok(file)
}

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To read it.
    Read,
    /// To write it; it has to be there, and stays as long as it is.
    Write,
    /// To know that it is there, and what it is: it is not opened itself, so that this has no effects.
    Look,
}

impl Purpose {
    /// No call waits, not for the other end of a pipe and not for a free line.
    fn flags(self) -> i32 {
        const NO_WAIT: i32 = libc::O_NONBLOCK | libc::O_NOCTTY;
        match self {
            Purpose::Read => libc::O_RDONLY | NO_WAIT,
            Purpose::Write => libc::O_WRONLY | NO_WAIT,
            Purpose::Look => libc::O_PATH,
        }
    }
}

/// Opens `path` as a process would whose root is `folder`: absolute paths and links, and `..`, stay inside it
/// (`openat2` with `RESOLVE_IN_ROOT`).
///
/// # Errors
/// What the system says; [`io::ErrorKind::Unsupported`] without an error number before Linux 5.6, which has no way
/// to open a file so.
pub fn open_in_root(folder: impl AsFd, path: &CStr, purpose: Purpose) -> io::Result<File> {
    // A rename anywhere makes the kernel give up on a path with `..` in it.
    const TRIES: usize = 100;
    let mut tries = 0;
    loop {
        tries += 1;
        match open_how(folder.as_fd(), path, purpose.flags(), libc::RESOLVE_IN_ROOT) {
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) && tries < TRIES => {}
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                return Err(io::Error::new(io::ErrorKind::Unsupported, "this kernel has no openat2"));
            }
            other => return other,
        }
    }
}

fn open_how(folder: impl AsFd, path: &CStr, flags: i32, resolve: u64) -> io::Result<File> {
    // SAFETY: open_how is plain old data, for which all zeroes is a valid value.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (flags | libc::O_CLOEXEC) as u64;
    how.resolve = resolve | libc::RESOLVE_NO_MAGICLINKS;
    // SAFETY: `path` ends with a NUL, `how` is an open_how of the size given; both live
    // through the call.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_openat2,
            folder.as_fd().as_raw_fd(),
            path.as_ptr(),
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

/// What lies at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An ordinary file.
    File,
    /// A folder.
    Folder,
    /// A pipe, a socket or a device: opening one may have effects.
    Special,
}

/// What a server needs to know of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// What it is.
    pub kind: Kind,
    /// Its length.
    pub bytes: u64,
    /// When its content was changed last, seconds since 1970.
    pub modified_unix_s: i64,
    /// And how far within that second; 0..1,000,000,000.
    pub modified_ns: u32,
}

/// What lies at `path`, seen from `folder`; links and `..` are followed, wherever that is. Nothing is opened.
pub fn kind_at(folder: impl AsFd, path: &CStr) -> io::Result<Kind> {
    let folder = folder.as_fd().as_raw_fd();
    // SAFETY: `path` ends with a NUL; it and the place for the answer live through the call.
    stat(|place| unsafe { libc::fstatat(folder, path.as_ptr(), place, 0) }).map(|facts| facts.kind)
}

/// The facts of an open file by `fstat`, which takes less CPU time than the `statx` behind [`File::metadata`].
pub fn facts(file: &File) -> io::Result<Facts> {
    // SAFETY: the descriptor is open, and the place for the answer lives through the call.
    stat(|place| unsafe { libc::fstat(file.as_raw_fd(), place) })
}

fn stat(call: impl FnOnce(&mut libc::stat) -> libc::c_int) -> io::Result<Facts> {
    // SAFETY: `stat` is plain old data, for which all zeroes is a valid value.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    if call(&mut stat) < 0 {
        return Err(io::Error::last_os_error());
    }
    let kind = match stat.st_mode & libc::S_IFMT {
        libc::S_IFREG => Kind::File,
        libc::S_IFDIR => Kind::Folder,
        _ => Kind::Special,
    };
    Ok(Facts {
        kind,
        bytes: u64::try_from(stat.st_size).unwrap_or(0),
        modified_unix_s: stat.st_mtime,
        modified_ns: u32::try_from(stat.st_mtime_nsec).unwrap_or(0),
    })
}

/// Sends up to `bytes` bytes of `file` from `offset` to a socket (`sendfile`). 0 is the end of the file.
pub fn send_file(socket: impl AsFd, file: &File, offset: u64, bytes: usize) -> io::Result<usize> {
    let mut at = libc::off64_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
    retry(|| {
        // SAFETY: both descriptors are open, and `at` is a valid offset that lives through the call.
        unsafe { libc::sendfile64(socket.as_fd().as_raw_fd(), file.as_raw_fd(), &mut at, bytes) }
    })
}

/// A file in a folder that has no name, and is gone with its last descriptor, also when the process is killed (`O_TMPFILE`).
///
/// # Errors
/// As `open`; `EOPNOTSUPP` on a file system that has no such files.
pub fn nameless(folder: &Path) -> io::Result<File> {
    File::options().read(true).write(true).custom_flags(libc::O_TMPFILE).open(folder)
}

/// Whether reads and writes go past the page cache (`O_DIRECT`): buffer, length and offset must then be multiples of the device's block.
///
/// # Errors
/// As `fcntl`; `EINVAL` on a file system that has no such reads.
pub fn set_direct(file: &File, on: bool) -> io::Result<()> {
    let raw = file.as_raw_fd();
    // SAFETY: no pointers are passed; the descriptor is open.
    let flags = retry(|| unsafe { libc::fcntl(raw, libc::F_GETFL) as isize })? as i32;
    let flags = if on { flags | libc::O_DIRECT } else { flags & !libc::O_DIRECT };
    // SAFETY: as above.
    retry(|| unsafe { libc::fcntl(raw, libc::F_SETFL, flags) as isize }).map(|_| ())
}

/// Writes to disk what is not there yet (`sync`), and waits for it.
pub fn sync() {
    // SAFETY: takes no arguments, touches no memory, cannot fail.
    unsafe { libc::sync() };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn what_lies_there_is_known_without_opening_it() {
        let root = File::open("/").unwrap();
        let kinds = [c"dev/null", c"proc/self/status", c"proc/self/fd"].map(|p| kind_at(&root, p).unwrap());
        assert_eq!(kinds, [Kind::Special, Kind::File, Kind::Folder]);
        assert!(kind_at(&root, c"no/such/file").is_err());
        let file = File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap();
        let (facts, metadata) = (facts(&file).unwrap(), file.metadata().unwrap());
        assert_eq!((facts.kind, facts.bytes), (Kind::File, metadata.len()));
        assert_eq!(facts.modified_unix_s, std::os::unix::fs::MetadataExt::mtime(&metadata));
    }

    #[test]
    fn a_file_without_a_name_is_in_no_folder() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let count = || std::fs::read_dir(folder).unwrap().count();
        let before = count();
        // A file system may have no such files, and no direct reads.
        let Ok(file) = nameless(folder) else { return };
        std::os::unix::fs::FileExt::write_all_at(&file, b"kept", 0).unwrap();
        assert_eq!(count(), before);
        if set_direct(&file, true).is_ok() {
            set_direct(&file, false).unwrap();
        }
        let mut kept = [0; 4];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut kept, 0).unwrap();
        assert_eq!(&kept, b"kept");
    }

    #[test]
    fn nothing_outside_the_folder_is_opened() {
        let folder = File::open("/proc/self").unwrap();
        let mut text = String::new();
        open_beneath(&folder, c"status").unwrap().read_to_string(&mut text).unwrap();
        assert!(text.starts_with("Name:"));
        for out in [c"../1/status", c"/etc/passwd", c"task/../../1/status", c"cwd/Cargo.toml", c"root/etc"] {
            assert!(open_beneath(&folder, out).is_err(), "{out:?}");
        }
    }

    #[test]
    fn the_folder_is_the_root() {
        let folder = File::open("/proc/self").unwrap();
        for inside in [c"/status", c"status", c"../../status", c"task/../../../status"] {
            assert!(open_in_root(&folder, inside, Purpose::Read).is_ok(), "{inside:?}");
        }
        for out in [c"/etc/passwd", c"cwd/Cargo.toml", c"root/etc"] {
            assert!(open_in_root(&folder, out, Purpose::Look).is_err(), "{out:?}");
        }
    }
}
