//! Kernel counters and sampling rings of a CPU through `perf_event_open`: no tool, no change to the system.
//! A [`Counter`] only counts; a [`Ring`] (`ring`) is filled with records (`record`), whose fields of a tracepoint
//! a [`Format`] (`format`) names.
//!
//! Software events and tracepoints are there in virtual machines that expose no PMU; [`Group`] counts what only a
//! PMU can. Watching every task of a CPU needs root, `CAP_PERFMON` or `perf_event_paranoid` ≤ 0 (tracepoints: -1).

mod format;
mod group;
mod record;
mod ring;
mod tracepoint;

pub use format::{Field, Format};
pub use group::{Cache, Event, Group, GroupCount, Whom};
pub use record::{Chain, Frame, Record, Registers, Sample};
pub use ring::{Detail, Ring, Trigger};
pub use tracepoint::Tracepoint;

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};

const TYPE_SOFTWARE: u32 = 1;
const TYPE_TRACEPOINT: u32 = 2;
const COUNT_SW_TASK_CLOCK: u64 = 1;
const COUNT_SW_CONTEXT_SWITCHES: u64 = 3;
/// The first bit of `perf_event_attr`'s flags: opened, but not counting yet.
const DISABLED: u64 = 1;
const FD_CLOEXEC: libc::c_ulong = 8;
const IOC_ENABLE: libc::c_ulong = 0x2400;
const IOC_DISABLE: libc::c_ulong = 0x2401;
const IOC_SET_FILTER: libc::c_ulong = 0x4008_2406;

/// User registers that are sampled with the stack, by their numbers in `asm/perf_regs.h`: all general ones, flags and
/// instruction pointer. On x86-64 without the segments of data, which it has no more.
#[cfg(target_arch = "x86_64")]
pub const USER_REGISTERS: u64 = 0xff_0fff;
/// As above: x0 to x30, stack pointer, program counter.
#[cfg(not(target_arch = "x86_64"))]
pub const USER_REGISTERS: u64 = (1 << 33) - 1;

/// The number, among the registers, of the one that holds a system call's first argument: `rdi`.
#[cfg(target_arch = "x86_64")]
pub const FIRST_ARGUMENT: u32 = 5;
/// As above: `x0`.
#[cfg(not(target_arch = "x86_64"))]
pub const FIRST_ARGUMENT: u32 = 0;

/// `struct perf_event_attr` as of Linux 4.8 (`PERF_ATTR_SIZE_VER5`), `include/uapi/linux/perf_event.h`.
#[repr(C)]
#[derive(Default)]
struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

/// A running count of an event on one CPU. It counts from when it is opened.
#[derive(Debug)]
pub struct Counter {
    file: File,
}

impl Counter {
    /// Context switches of a CPU, to and from the idle task included.
    ///
    /// # Errors
    /// `EACCES` or `EPERM` without the right, `ENOENT`/`ENODEV` for a CPU that is not online.
    pub fn context_switches(cpu: u32) -> io::Result<Counter> {
        let attr = Attr { kind: TYPE_SOFTWARE, config: COUNT_SW_CONTEXT_SWITCHES, ..Attr::default() };
        Ok(Counter { file: open(attr, cpu)? })
    }

    /// Hits of a tracepoint on a CPU that pass `filter` (the kernel's filter language: `prev_pid==0`).
    ///
    /// # Errors
    /// As [`Counter::context_switches`]; `EINVAL` for a filter that the kernel does not accept.
    pub fn tracepoint(cpu: u32, tracepoint: &Tracepoint, filter: &str) -> io::Result<Counter> {
        let attr = Attr { kind: TYPE_TRACEPOINT, config: tracepoint.id, flags: DISABLED, ..Attr::default() };
        let counter = Counter { file: open(attr, cpu)? };
        // What happens before the filter is there must not be counted.
        set_filter(&counter.file, filter)?;
        counter.enable(true)?;
        Ok(counter)
    }

    /// The count so far.
    ///
    /// # Errors
    /// As `read`.
    pub fn read(&self) -> io::Result<u64> {
        let mut value = [0u8; 8];
        (&self.file).read_exact(&mut value)?;
        Ok(u64::from_ne_bytes(value))
    }

    /// Counts from now on, or stops counting (which also takes its cost away).
    ///
    /// # Errors
    /// None that the kernel documents.
    pub fn enable(&self, on: bool) -> io::Result<()> {
        enable(&self.file, on)
    }
}

fn open(attr: Attr, cpu: u32) -> io::Result<File> {
    let cpu = libc::c_int::try_from(cpu).map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))?;
    open_at(attr, -1, cpu, None)
}

/// Of thread `pid` (-1: every task) on `cpu` (-1: any), on its own or in the group of `leader`.
fn open_at(attr: Attr, pid: libc::pid_t, cpu: libc::c_int, leader: Option<&File>) -> io::Result<File> {
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

fn enable(event: &File, on: bool) -> io::Result<()> {
    let request = if on { IOC_ENABLE } else { IOC_DISABLE };
    // SAFETY: the fd is open; these requests take a plain flag word.
    let rc = unsafe { libc::ioctl(event.as_raw_fd(), request as _, 0) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn set_filter(file: &File, filter: &str) -> io::Result<()> {
    let filter = CString::new(filter)?;
    // SAFETY: the fd is open; `filter` is a NUL-terminated string that lives through the call.
    let rc = unsafe { libc::ioctl(file.as_raw_fd(), IOC_SET_FILTER as _, filter.as_ptr()) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity;

    /// `None` where this machine does not let us count: then there is nothing to test.
    pub(super) fn permitted<T>(outcome: io::Result<T>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(error) => {
                let known = [libc::EACCES, libc::EPERM, libc::ENOENT, libc::ENOSYS, libc::EOPNOTSUPP];
                assert!(error.raw_os_error().is_some_and(|code| known.contains(&code)), "{error}");
                None
            }
        }
    }

    /// Sleeps of the calling thread on `cpu`, each of which is at least one switch there.
    pub(super) fn sleep_on(cpu: u32, times: u32) {
        std::thread::spawn(move || {
            affinity::set(0, &[cpu]).unwrap();
            for _ in 0..times {
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn switches_are_counted_while_enabled() {
        let cpu = affinity::get(0).unwrap()[0];
        let Some(counter) = permitted(Counter::context_switches(cpu)) else { return };
        let before = counter.read().unwrap();
        sleep_on(cpu, 50);
        let after = counter.read().unwrap();
        assert!(after - before >= 50, "{before} {after}");
        counter.enable(false).unwrap();
        let stopped = counter.read().unwrap();
        sleep_on(cpu, 10);
        assert_eq!(counter.read().unwrap(), stopped);
    }

    #[test]
    fn a_tracepoint_is_found_and_filtered() {
        let cpu = affinity::get(0).unwrap()[0];
        let Some(tracepoint) = permitted(Tracepoint::find("sched", "sched_switch")) else { return };
        assert!(Tracepoint::find("sched", "no_such_event").is_err());
        let Some(all) = permitted(Counter::tracepoint(cpu, &tracepoint, "prev_pid>=0")) else { return };
        let nobody = Counter::tracepoint(cpu, &tracepoint, "prev_pid==-7").unwrap();
        assert!(Counter::tracepoint(cpu, &tracepoint, "no such field").is_err());
        sleep_on(cpu, 50);
        assert!(all.read().unwrap() >= 50);
        assert_eq!(nobody.read().unwrap(), 0);
    }
}
