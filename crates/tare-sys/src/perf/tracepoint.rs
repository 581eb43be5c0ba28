//! Finding a tracepoint's number and layout in tracefs, mounted or not.

use std::ffi::CStr;
use std::io;
use std::path::Path;

/// A tracepoint of the running kernel.
#[derive(Debug, Clone)]
pub struct Tracepoint {
    /// What `perf_event_open` knows it by.
    pub(super) id: u64,
    fields: Vec<Field>,
}

/// Where one value stands in the raw record of a hit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    name: String,
    pub(super) offset: usize,
    pub(super) size: usize,
}

const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

impl Tracepoint {
    /// Looks a tracepoint up. Where tracefs is not mounted, a thread gives itself a private mount namespace,
    /// mounts it there, reads, and ends: nobody else sees the mount and nothing of it stays.
    ///
    /// # Errors
    /// `EPERM`/`EACCES` without root's rights, `ENOENT` for a kernel without the tracepoint.
    pub fn find(category: &str, name: &str) -> io::Result<Tracepoint> {
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

    /// The field with this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
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

fn read(mount: &Path, category: &str, name: &str) -> io::Result<Tracepoint> {
    let event = mount.join("events").join(category).join(name);
    let id = std::fs::read_to_string(event.join("id"))?;
    let id = id.trim().parse().map_err(|_| io::Error::other(format!("tracepoint id {id:?}")))?;
    Ok(Tracepoint { id, fields: parse_format(&std::fs::read_to_string(event.join("format"))?) })
}

/// Lines such as `field:pid_t prev_pid; offset:24; size:4; signed:1;`; others are passed over.
fn parse_format(text: &str) -> Vec<Field> {
    text.lines().filter_map(parse_field).collect()
}

fn parse_field(line: &str) -> Option<Field> {
    let (declaration, rest) = line.trim().strip_prefix("field:")?.split_once(';')?;
    let name = declaration.split('[').next()?.split_whitespace().last()?.to_string();
    let number =
        |key: &str| rest.split(';').find_map(|part| part.trim().strip_prefix(key))?.parse::<usize>().ok();
    Some(Field { name, offset: number("offset:")?, size: number("size:")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_format_is_read() {
        let text = "name: sched_switch\nID: 293\nformat:\n\
            \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
            \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
            \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
            \tfield:broken;\n\tfield:x y;\toffset:q;\tsize:4;\n\nprint fmt: \"x\"\n";
        let tracepoint = Tracepoint { id: 1, fields: parse_format(text) };
        assert_eq!(tracepoint.fields.len(), 3);
        let pid = tracepoint.field("prev_pid").unwrap();
        assert_eq!((pid.offset, pid.size), (24, 4));
        assert_eq!(tracepoint.field("prev_comm").unwrap().size, 16);
    }
}
