//! Rings that the kernel fills with records of what happened on a CPU, and that are emptied from time to time.
//!
//! A ring belongs to one CPU. Several events (a clock, tracepoints) may write into it; all of their samples hold
//! the same [`Detail`], and a tracepoint's samples name it in `common_type`, the first field of their raw bytes.

use super::Tracepoint;
use super::detail::Detail;
use super::event::{Attr, DISABLED, TYPE_SOFTWARE, TYPE_TRACEPOINT, enable, open, set_filter};
use super::record::{self, Record};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

const COUNT_SW_CPU_CLOCK: u64 = 0;
const COUNT_SW_DUMMY: u64 = 9;
const SAMPLE_IP: u64 = 1 << 0;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_CALLCHAIN: u64 = 1 << 5;
const SAMPLE_RAW: u64 = 1 << 10;
const SAMPLE_REGS_USER: u64 = 1 << 12;
const SAMPLE_STACK_USER: u64 = 1 << 13;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_IDLE: u64 = 1 << 7;
const FREQUENCY: u64 = 1 << 10;
const EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
const USE_CLOCKID: u64 = 1 << 25;
const IOC_SET_OUTPUT: libc::c_ulong = 0x2405;
/// Where head, tail and size stand in `struct perf_event_mmap_page`.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;
const HEADER_BYTES: u64 = 8;
/// No ring is larger.
const RING_BYTES_MAX: usize = 64 << 20;

/// When a sample is taken.
#[derive(Debug, Clone, Copy)]
pub enum Trigger<'a> {
    /// Each time a tracepoint is hit and the filter (the kernel's language: `prev_pid==0`; empty: always) passes.
    Tracepoint(&'a Tracepoint, &'a str),
    /// So many times a second while the CPU is not idle, by a timer: code that has interrupts off is seen
    /// where it lets them on again.
    CpuClock {
        /// Hertz; at most `kernel.perf_event_max_sample_rate`.
        hz: u32,
    },
}

/// One CPU's ring and the events that write into it.
pub struct Ring {
    cpu: u32,
    detail: Detail,
    /// Unmapped before the events are closed.
    pages: Pages,
    /// Whose ring it is: an event that never happens.
    owner: File,
    events: Vec<File>,
    /// A record that wraps round the end of the ring is put together here.
    whole: Vec<u8>,
}

impl Ring {
    /// Opens an event of `cpu` and a ring of at least `bytes` (rounded up to a power of two, 4 KiB to 64 MiB) for
    /// it. Nothing is written before [`Ring::enable`].
    ///
    /// # Errors
    /// `EACCES` or `EPERM` without the right; also where the ring is larger than an ordinary user may lock
    /// (`kernel.perf_event_mlock_kb`); `ENOENT`/`ENODEV` for a CPU that is not online; `EINVAL` for a filter,
    /// rate or stack size that the kernel does not take.
    pub fn open(cpu: u32, trigger: &Trigger, detail: Detail, bytes: usize) -> io::Result<Ring> {
        let attr = Attr { kind: TYPE_SOFTWARE, config: COUNT_SW_DUMMY, ..attr_of(&detail) };
        let owner = open(attr, cpu)?;
        let pages = Pages::new(&owner, bytes.clamp(1, RING_BYTES_MAX))?;
        let mut ring = Ring { cpu, detail, pages, owner, events: Vec::new(), whole: Vec::new() };
        ring.add(trigger)?;
        Ok(ring)
    }

    /// Lets another event of the same CPU write into this ring, once enabled.
    ///
    /// # Errors
    /// As [`Ring::open`].
    pub fn add(&mut self, trigger: &Trigger) -> io::Result<()> {
        let event = self.attach(trigger)?;
        self.events.push(event);
        Ok(())
    }

    /// Replaces all events by others, which are not enabled yet; what is in the ring stays.
    ///
    /// # Errors
    /// As [`Ring::open`]; then the old ones stay.
    pub fn replace(&mut self, triggers: &[Trigger]) -> io::Result<()> {
        let events: io::Result<Vec<File>> = triggers.iter().map(|trigger| self.attach(trigger)).collect();
        self.events = events?;
        Ok(())
    }

    fn attach(&self, trigger: &Trigger) -> io::Result<File> {
        let event = open_event(self.cpu, trigger, &self.detail)?;
        // SAFETY: both fds are open; the request takes a plain fd.
        let rc = unsafe { libc::ioctl(event.as_raw_fd(), IOC_SET_OUTPUT as _, self.owner.as_raw_fd()) };
        if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(event) }
    }

    /// The CPU that is watched.
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Starts or stops sampling; what is in the ring stays.
    ///
    /// # Errors
    /// None that the kernel documents.
    pub fn enable(&self, on: bool) -> io::Result<()> {
        std::iter::once(&self.owner).chain(&self.events).try_for_each(|event| enable(event, on))
    }

    /// Hands over the records that are there now, oldest first, and makes room for new ones. Returns how many.
    pub fn drain(&mut self, mut each: impl FnMut(Record)) -> usize {
        let (head, mut tail) = self.pages.bounds();
        let mut count = 0;
        while head.wrapping_sub(tail) >= HEADER_BYTES {
            let mut header = [0; HEADER_BYTES as usize];
            self.pages.copy(tail, &mut header);
            let [k0, k1, k2, k3, _, _, s0, s1] = header;
            let bytes = u64::from(u16::from_ne_bytes([s0, s1]));
            if bytes < HEADER_BYTES || bytes > head.wrapping_sub(tail) {
                // Not written by a kernel that keeps to its own rules: give up what is there.
                break;
            }
            let length = (bytes - HEADER_BYTES) as usize;
            let body = match self.pages.slice(tail.wrapping_add(HEADER_BYTES), length) {
                Some(body) => body,
                None => {
                    self.whole.resize(length, 0);
                    self.pages.copy(tail.wrapping_add(HEADER_BYTES), &mut self.whole);
                    &self.whole
                }
            };
            each(record::parse(u32::from_ne_bytes([k0, k1, k2, k3]), body, &self.detail));
            tail = tail.wrapping_add(bytes);
            count += 1;
        }
        self.pages.release(head);
        count
    }
}

fn attr_of(detail: &Detail) -> Attr {
    let flag = |on: bool, flags: u64| if on { flags } else { 0 };
    Attr {
        sample_type: SAMPLE_IP
            | SAMPLE_TID
            | SAMPLE_TIME
            | flag(detail.chain_max > 0, SAMPLE_CALLCHAIN)
            | flag(detail.raw, SAMPLE_RAW)
            | flag(detail.registers() != 0, SAMPLE_REGS_USER)
            | flag(detail.stack_bytes > 0, SAMPLE_STACK_USER),
        flags: DISABLED
            | USE_CLOCKID
            | flag(detail.user_only, EXCLUDE_KERNEL)
            | flag(detail.kernel_chain, EXCLUDE_CALLCHAIN_USER),
        clockid: libc::CLOCK_MONOTONIC,
        sample_max_stack: detail.chain_max,
        sample_regs_user: detail.registers(),
        sample_stack_user: detail.stack_bytes,
        ..Attr::default()
    }
}

fn open_event(cpu: u32, trigger: &Trigger, detail: &Detail) -> io::Result<File> {
    let mut attr = attr_of(detail);
    let filter = match trigger {
        Trigger::Tracepoint(tracepoint, filter) => {
            (attr.kind, attr.config, attr.sample_period) = (TYPE_TRACEPOINT, tracepoint.id, 1);
            *filter
        }
        Trigger::CpuClock { hz } => {
            (attr.kind, attr.config, attr.sample_period) =
                (TYPE_SOFTWARE, COUNT_SW_CPU_CLOCK, u64::from(*hz));
            attr.flags |= FREQUENCY | EXCLUDE_IDLE;
            ""
        }
    };
    let event = open(attr, cpu)?;
    if !filter.is_empty() {
        set_filter(&event, filter)?;
    }
    Ok(event)
}

/// The mapping that is shared with the kernel: a page about the ring, then the ring, whose size is a power of two.
struct Pages {
    at: NonNull<u8>,
    page: usize,
    size: usize,
}

// SAFETY: the mapping belongs to this value alone, wherever it goes; the kernel's side is atomic.
unsafe impl Send for Pages {}

impl Pages {
    fn new(event: &File, bytes: usize) -> io::Result<Pages> {
        // SAFETY: a plain question.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let page = usize::try_from(page).ok().filter(|page| page.is_power_of_two() && *page >= 4096);
        let page = page.ok_or_else(|| io::Error::other("the size of a page is not known"))?;
        let size = bytes.max(page).next_power_of_two();
        let (protection, fd) = (libc::PROT_READ | libc::PROT_WRITE, event.as_raw_fd());
        // SAFETY: a new mapping at a place that the kernel chooses touches no memory that exists.
        let at = unsafe { libc::mmap(ptr::null_mut(), page + size, protection, libc::MAP_SHARED, fd, 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let at = NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Pages { at, page, size })
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: an aligned word within the first page, which lives as long as `self`; the kernel's side of it
        // is written atomically.
        unsafe { AtomicU64::from_ptr(self.at.as_ptr().add(offset).cast()) }
    }

    /// Up to where the kernel has written, and from where on that has not been read.
    fn bounds(&self) -> (u64, u64) {
        // Acquire: what was written before the head moved is seen.
        (self.word(DATA_HEAD).load(Ordering::Acquire), self.word(DATA_TAIL).load(Ordering::Relaxed))
    }

    /// Frees all up to `head`. Release: the reads are done before the kernel writes there again.
    fn release(&self, head: u64) {
        self.word(DATA_TAIL).store(head, Ordering::Release);
    }

    /// `length` bytes from a position that was written and not released, where they stand in one piece.
    fn slice(&self, position: u64, length: usize) -> Option<&[u8]> {
        let begin = position as usize & (self.size - 1);
        if length > self.size - begin {
            return None;
        }
        // SAFETY: within the ring, and the kernel does not write to what has not been released.
        Some(unsafe { std::slice::from_raw_parts(self.at.as_ptr().add(self.page + begin), length) })
    }

    /// As [`Pages::slice`], in one piece or two.
    fn copy(&self, position: u64, to: &mut [u8]) {
        let first = (self.size - (position as usize & (self.size - 1))).min(to.len());
        let (front, back) = to.split_at_mut(first);
        for (part, at) in [(front, position), (back, position.wrapping_add(first as u64))] {
            if let Some(bytes) = self.slice(at, part.len()) {
                part.copy_from_slice(bytes);
            }
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new` with this size, and nothing borrowed from it outlives `self`.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.page + self.size) };
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Format, Frame};
    use super::*;
    use crate::permitted::{permitted, sleep_on};
    use crate::{affinity, time};

    fn first_cpu() -> u32 {
        affinity::get(0).unwrap()[0]
    }

    #[test]
    fn switches_of_a_thread_come_in_order() {
        let cpu = first_cpu();
        let Some(format) = permitted(Format::find("sched", "sched_switch")) else { return };
        let tracepoint = format.tracepoint();
        let detail = Detail { raw: true, ..Detail::default() };
        let trigger = Trigger::Tracepoint(&tracepoint, "prev_pid>0");
        let Some(mut ring) = permitted(Ring::open(cpu, &trigger, detail, 1 << 20)) else { return };
        sleep_on(cpu, 20);
        assert_eq!(ring.drain(|_| {}), 0);
        let begin_ns = time::monotonic_ns();
        ring.enable(true).unwrap();
        sleep_on(cpu, 100);
        ring.enable(false).unwrap();
        let (kind, prev) = (format.field("common_type").unwrap(), format.field("prev_pid").unwrap());
        let mut times = Vec::new();
        ring.drain(|record| {
            let Record::Sample(sample) = record else { return };
            assert_eq!(kind.unsigned(sample.raw), Some(tracepoint.id));
            // In its last switch a thread has no number any more but in the tracepoint's own field.
            let tid = prev.unsigned(sample.raw).filter(|_| sample.tid != u32::MAX);
            assert!(tid.is_none_or(|tid| tid == u64::from(sample.tid)), "{tid:?} {sample:?}");
            times.push(sample.time_ns);
        });
        assert!(times.len() >= 100, "{}", times.len());
        assert!(times.is_sorted() && times[0] >= begin_ns && times[99] <= time::monotonic_ns());
        assert_eq!(ring.drain(|_| {}), 0);
    }

    #[test]
    fn what_has_no_room_is_counted_as_lost() {
        let cpu = first_cpu();
        let Some(format) = permitted(Format::find("sched", "sched_switch")) else { return };
        let tracepoint = format.tracepoint();
        let trigger = Trigger::Tracepoint(&tracepoint, "");
        let detail = Detail { raw: true, ..Detail::default() };
        let Some(mut ring) = permitted(Ring::open(cpu, &trigger, detail, 4096)) else { return };
        ring.enable(true).unwrap();
        sleep_on(cpu, 300);
        // The first drain finds a full ring; the loss is reported with the next record that fits.
        let fitted = ring.drain(|_| {});
        sleep_on(cpu, 10);
        let mut lost = 0;
        ring.drain(|record| {
            if let Record::Lost(count) = record {
                lost += count;
            }
        });
        assert!(fitted < 200 && lost >= 100, "{fitted} {lost}");
    }

    #[test]
    fn a_clock_and_a_tracepoint_share_a_ring() {
        let cpu = first_cpu();
        let Some(format) = permitted(Format::find("sched", "sched_switch")) else { return };
        let detail = Detail { raw: true, chain_max: 16, stack_bytes: 64, ..Detail::default() };
        let Some(mut ring) = permitted(Ring::open(cpu, &Trigger::CpuClock { hz: 999 }, detail, 1 << 20))
        else {
            return;
        };
        ring.add(&Trigger::Tracepoint(&format.tracepoint(), "")).unwrap();
        assert!(ring.add(&Trigger::Tracepoint(&format.tracepoint(), "no such field")).is_err());
        ring.enable(true).unwrap();
        let kind = format.field("common_type").unwrap();
        let (mut ticks, mut switches) = (0, 0);
        let busy = |cpu| {
            move || {
                affinity::set(0, &[cpu]).unwrap();
                let end_ns = time::thread_cpu_ns() + 20_000_000;
                while time::thread_cpu_ns() < end_ns {}
            }
        };
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while ticks == 0 || switches == 0 {
            assert!(std::time::Instant::now() < deadline, "{ticks} ticks, {switches} switches");
            std::thread::spawn(busy(cpu)).join().unwrap();
            ring.drain(|record| match record {
                Record::Sample(sample) if kind.unsigned(sample.raw) == Some(format.id) => switches += 1,
                Record::Sample(sample) => {
                    let user = sample.chain.frames().any(|frame| matches!(frame, Frame::User(_)));
                    ticks += u32::from(user && sample.registers.is_some() && !sample.stack.is_empty());
                }
                _ => {}
            });
        }
    }
}
