//! Finding a tracepoint's number in tracefs, mounted or not.

use super::Format;
use std::ffi::CStr;
use std::io;
use std::path::Path;

/// A tracepoint of the running kernel.
#[derive(Debug, Clone, Copy)]
pub struct Tracepoint {
    /// What `perf_event_open` knows it by.
    pub(super) id: u64,
}

const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

impl Tracepoint {
    /// Looks a tracepoint up. Where tracefs is not mounted, a thread gives itself a private mount namespace,
    /// mounts it there, reads, and ends: nobody else sees the mount and nothing of it stays.
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
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn read(mount: &Path, category: &str, name: &str) -> io::Result<Format> {
    let path = mount.join("events").join(category).join(name).join("format");
    let text = std::fs::read_to_string(&path)?;
    Format::parse(&text).ok_or_else(|| io::Error::other(format!("{}: no format", path.display())))
}
