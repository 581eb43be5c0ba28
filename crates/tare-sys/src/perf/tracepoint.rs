//! Finding a tracepoint's number in tracefs, mounted or not.

use super::Format;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

/// A tracepoint of the running kernel.
#[derive(Debug, Clone, Copy)]
pub struct Tracepoint {
    /// What `perf_event_open` knows it by.
    pub(super) id: u64,
}

const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

impl Tracepoint {
    /// Looks a tracepoint up. Where tracefs is not mounted, it is mounted nowhere, so that only a descriptor leads to it; nobody else sees the
    /// mount and nothing of it stays. (Before Linux 5.2 a thread mounts it in a namespace of its own, reads, and ends.)
    ///
    /// # Errors
    /// `EPERM`/`EACCES` without root's rights, `ENOENT` for a kernel without the tracepoint.
    pub fn find(category: &str, name: &str) -> io::Result<Tracepoint> {
        Format::find(category, name).map(|format| format.tracepoint())
    }

    /// Its number: what the field `common_type` of its records holds.
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl Format {
    /// As [`Tracepoint::find`], with the fields of the tracepoint's records.
    ///
    /// # Errors
    /// As [`Tracepoint::find`].
    pub fn find(category: &str, name: &str) -> io::Result<Format> {
        let mut error = io::Error::from_raw_os_error(libc::ENOENT);
        for mount in MOUNTED {
            match read(Path::new(mount), category, name) {
                Ok(found) => return Ok(found),
                Err(other) => error = other,
            }
        }
        if error.kind() != io::ErrorKind::NotFound {
            return Err(error);
        }
        match detached() {
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {}
            mounted => {
                let mounted = mounted?;
                let path = format!("/proc/self/fd/{}", mounted.as_raw_fd());
                return read(Path::new(&path), category, name);
            }
        }
        let (category, name) = (category.to_string(), name.to_string());
        std::thread::Builder::new()
            .name("tare-tracefs".into())
            .spawn(move || {
                mount_privately()?;
                read(Path::new(MOUNTED[0]), &category, &name)
            })?
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that mounts tracefs ended early")))
    }

    /// What the fields are of.
    pub fn tracepoint(&self) -> Tracepoint {
        Tracepoint { id: self.id }
    }
}

/// tracefs, mounted nowhere. Also in a changed root, which need not be a place where something is mounted.
fn detached() -> io::Result<OwnedFd> {
    const CLOSE_ON_EXEC: libc::c_long = 1;
    // `FSCONFIG_CMD_CREATE` and `MOUNT_ATTR_RDONLY` of `linux/mount.h`.
    const CREATE: libc::c_long = 6;
    const READ_ONLY: libc::c_long = 1;
    // SAFETY: the name ends with a NUL and lives through the call.
    let opened = unsafe { libc::syscall(libc::SYS_fsopen, c"tracefs".as_ptr(), CLOSE_ON_EXEC) };
    let context = owned(opened)?;
    let none = std::ptr::null::<libc::c_void>();
    // SAFETY: the descriptor is open; this command takes no key and no value.
    let made = unsafe {
        libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), CREATE, none, none, 0 as libc::c_long)
    };
    succeeded(made)?;
    // SAFETY: the descriptor is open.
    owned(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), CLOSE_ON_EXEC, READ_ONLY) })
}

fn succeeded(rc: libc::c_long) -> io::Result<()> {
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn owned(rc: libc::c_long) -> io::Result<OwnedFd> {
    succeeded(rc)?;
    let fd = RawFd::try_from(rc).map_err(io::Error::other)?;
    // SAFETY: the kernel has just given it to us, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Mounts tracefs for the calling thread alone.
fn mount_privately() -> io::Result<()> {
    // SAFETY: plain flags. The calling thread leaves the namespace that it shares with the process.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    // Without this, a mount would travel back through shared propagation (the default under systemd).
    mount(c"none", c"/", None, libc::MS_REC | libc::MS_PRIVATE)?;
    mount(c"tracefs", c"/sys/kernel/tracing", Some(c"tracefs"), libc::MS_RDONLY)
}

fn mount(source: &CStr, target: &CStr, kind: Option<&CStr>, flags: libc::c_ulong) -> io::Result<()> {
    let kind = kind.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: all strings are NUL-terminated and live through the call; a null type or data is allowed.
    check(unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind, flags, std::ptr::null()) })
}

fn check(rc: libc::c_int) -> io::Result<()> {
    succeeded(libc::c_long::from(rc))
}

fn read(mount: &Path, category: &str, name: &str) -> io::Result<Format> {
    let path = mount.join("events").join(category).join(name).join("format");
    let text = std::fs::read_to_string(&path)?;
    Format::parse(&text).ok_or_else(|| io::Error::other(format!("{}: no format", path.display())))
}
