//! Opening and steering one event, whoever counts or samples it.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};

pub(super) const TYPE_SOFTWARE: u32 = 1;
pub(super) const TYPE_TRACEPOINT: u32 = 2;
pub(super) const COUNT_SW_TASK_CLOCK: u64 = 1;
pub(super) const COUNT_SW_CONTEXT_SWITCHES: u64 = 3;
/// The first bit of `perf_event_attr`'s flags: opened, but not counting yet.
pub(super) const DISABLED: u64 = 1;
const FD_CLOEXEC: libc::c_ulong = 8;
pub(super) const IOC_ENABLE: libc::c_ulong = 0x2400;
pub(super) const IOC_DISABLE: libc::c_ulong = 0x2401;
const IOC_SET_FILTER: libc::c_ulong = 0x4008_2406;

/// `struct perf_event_attr` as of Linux 4.8 (`PERF_ATTR_SIZE_VER5`), `include/uapi/linux/perf_event.h`: its fields are the kernel's.
#[repr(C)]
#[derive(Default)]
pub(super) struct Attr {
    pub(super) kind: u32,
    pub(super) size: u32,
    pub(super) config: u64,
    pub(super) sample_period: u64,
    pub(super) sample_type: u64,
    pub(super) read_format: u64,
    pub(super) flags: u64,
    pub(super) wakeup_events: u32,
    pub(super) bp_type: u32,
    pub(super) config1: u64,
    pub(super) config2: u64,
    pub(super) branch_sample_type: u64,
    pub(super) sample_regs_user: u64,
    pub(super) sample_stack_user: u32,
    pub(super) clockid: i32,
    pub(super) sample_regs_intr: u64,
    pub(super) aux_watermark: u32,
    pub(super) sample_max_stack: u16,
    pub(super) reserved: u16,
}

pub(super) fn open(attr: Attr, cpu: u32) -> io::Result<File> {
    let cpu = libc::c_int::try_from(cpu).map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))?;
    open_at(attr, -1, cpu, None)
}

/// Of thread `pid` (-1: every task) on `cpu` (-1: any), on its own or in the group of `leader`.
pub(super) fn open_at(
    attr: Attr,
    pid: libc::pid_t,
    cpu: libc::c_int,
    leader: Option<&File>,
) -> io::Result<File> {
    let attr = Attr { size: std::mem::size_of::<Attr>() as u32, ..attr };
    let leader = leader.map_or(-1, AsRawFd::as_raw_fd);
    // SAFETY: `attr` is a live local whose `size` says how much of it may be read; the rest are plain numbers, the
    // leader's of an fd that is open.
    let fd =
        unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attr, pid, cpu, leader, FD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fd` was just opened and belongs to nobody else.
    Ok(unsafe { File::from_raw_fd(fd as libc::c_int) })
}

pub(super) fn enable(event: &File, on: bool) -> io::Result<()> {
    let request = if on { IOC_ENABLE } else { IOC_DISABLE };
    // SAFETY: the fd is open; these requests take a plain flag word.
    let rc = unsafe { libc::ioctl(event.as_raw_fd(), request as _, 0) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

pub(super) fn set_filter(file: &File, filter: &str) -> io::Result<()> {
    let filter = CString::new(filter)?;
    // SAFETY: the fd is open; `filter` is a NUL-terminated string that lives through the call.
    let rc = unsafe { libc::ioctl(file.as_raw_fd(), IOC_SET_FILTER as _, filter.as_ptr()) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
