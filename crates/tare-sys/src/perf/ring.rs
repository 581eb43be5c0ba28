//! A bounded trace of context switches of one CPU over a short stretch of time.

use super::{Attr, FLAG_DISABLED, FLAG_USE_CLOCKID, TYPE_TRACEPOINT, Tracepoint, enable, open, set_filter};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Pages of 4 KiB that hold records, a power of two: about 20,000 switches.
const DATA_PAGES: usize = 512;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_RAW: u64 = 1 << 10;
/// Room that the kernel needs for one record, generously.
const RECORD_BYTES_MAX: usize = 512;
const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;
/// Offset of `data_head` in the first page (`struct perf_event_mmap_page`).
const HEAD_AT: usize = 1024;

/// One context switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub at_ns: u64,
    /// The thread that left the CPU; 0 is the idle task.
    pub prev_pid: u32,
    /// The thread that got it.
    pub next_pid: u32,
}

/// What was traced.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// In time order.
    pub switches: Vec<Switch>,
    /// The buffer was full at this stamp and what came later is not there.
    pub cut_at_ns: Option<u64>,
}

/// A tracer of `sched:sched_switch` on one CPU. It keeps the first switches after [`SwitchTrace::start`] that
/// its buffer has room for.
#[derive(Debug)]
pub struct SwitchTrace {
    file: File,
    map: Map,
    /// Offsets of `prev_pid` and `next_pid` in a raw record.
    pids_at: [usize; 2],
}

impl SwitchTrace {
    /// Prepares the tracer; `filter` as in [`super::Counter::tracepoint`].
    ///
    /// # Errors
    /// Those of `perf_event_open` and `mmap`; `EINVAL` for a tracepoint without both pids.
    pub fn open(cpu: u32, tracepoint: &Tracepoint, filter: &str) -> io::Result<SwitchTrace> {
        let pid_at = |name| match tracepoint.field(name) {
            Some(field) if field.size == 4 => Ok(field.offset),
            _ => Err(io::Error::from_raw_os_error(libc::EINVAL)),
        };
        let pids_at = [pid_at("prev_pid")?, pid_at("next_pid")?];
        let attr = Attr {
            kind: TYPE_TRACEPOINT,
            config: tracepoint.id,
            sample_period: 1,
            sample_type: SAMPLE_TIME | SAMPLE_RAW,
            flags: FLAG_DISABLED | FLAG_USE_CLOCKID,
            clockid: libc::CLOCK_MONOTONIC,
            // No wake-ups: nobody polls, the buffer is read at the end.
            wakeup_events: u32::MAX,
            ..Attr::default()
        };
        let file = open(attr, cpu)?;
        set_filter(&file, filter)?;
        let map = Map::of(&file)?;
        Ok(SwitchTrace { file, map, pids_at })
    }

    /// Starts tracing.
    ///
    /// # Errors
    /// None that the kernel documents.
    pub fn start(&self) -> io::Result<()> {
        enable(&self.file, true)
    }

    /// Stops tracing and takes what was traced.
    ///
    /// # Errors
    /// None that the kernel documents.
    pub fn stop(&mut self) -> io::Result<Trace> {
        enable(&self.file, false)?;
        let (mut trace, full) =
            self.map.take(|bytes, room| (parse(bytes, self.pids_at), room < RECORD_BYTES_MAX));
        // A loss is reported with the next record that fits: with none after it, only the full buffer tells.
        if full && trace.cut_at_ns.is_none() {
            trace.cut_at_ns = trace.switches.last().map(|last| last.at_ns);
        }
        Ok(trace)
    }
}

/// The mapped buffer: one page of bookkeeping, then the records.
#[derive(Debug)]
struct Map {
    base: NonNull<u8>,
    page: usize,
}

// SAFETY: the mapping belongs to this value alone and is not tied to a thread.
unsafe impl Send for Map {}

impl Map {
    fn of(file: &File) -> io::Result<Map> {
        // SAFETY: a plain question.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let length = page * (DATA_PAGES + 1);
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice, of an open fd.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), length, access, flags, file.as_raw_fd(), 0) };
        match NonNull::new(base.cast::<u8>()) {
            Some(base) if base.as_ptr().cast() != libc::MAP_FAILED => Ok(Map { base, page }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Hands everything between tail and head to `read`, with the bytes still free, then gives the room back.
    fn take<T>(&mut self, read: impl FnOnce(&[u8], usize) -> T) -> T {
        let size = self.page * DATA_PAGES;
        // SAFETY: `data_head` and `data_tail` are aligned u64 fields of the first page, which is mapped as
        // long as `self` lives; the kernel writes the first and reads the second concurrently, hence atomics.
        let [head, tail] =
            [0, 8].map(|field| unsafe { &*self.base.as_ptr().add(HEAD_AT + field).cast::<AtomicU64>() });
        let (end, start) = (head.load(Ordering::Acquire), tail.load(Ordering::Relaxed));
        let length = usize::try_from(end.saturating_sub(start)).unwrap_or(0).min(size);
        let mut bytes = vec![0u8; length];
        let from = (start % size as u64) as usize;
        let first = length.min(size - from);
        // SAFETY: `from + first <= size` and `length - first <= from` or 0, so both copies stay within the
        // `size` bytes mapped behind the first page; the destination has `length` bytes. The kernel does not
        // write between tail and head until tail moves.
        unsafe {
            let data = self.base.as_ptr().add(self.page);
            std::ptr::copy_nonoverlapping(data.add(from), bytes.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(data, bytes.as_mut_ptr().add(first), length - first);
        }
        tail.store(end, Ordering::Release);
        read(&bytes, size - length)
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: `base` and the length are those of the mapping made in `of`; nothing refers to it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.page * (DATA_PAGES + 1)) };
    }
}

/// Reads records: header (type u32, misc u16, size u16), then for a sample: time u64, raw size u32, raw.
fn parse(mut bytes: &[u8], pids_at: [usize; 2]) -> Trace {
    let mut trace = Trace::default();
    while let (Some(kind), Some(size)) = (u32_at(bytes, 0), u16_at(bytes, 6)) {
        let Some(record) = bytes.get(..usize::from(size)).filter(|record| record.len() >= 8) else { break };
        match kind {
            RECORD_SAMPLE => trace.switches.extend(parse_switch(record, pids_at)),
            RECORD_LOST => break,
            _ => {}
        }
        bytes = &bytes[record.len()..];
    }
    if u32_at(bytes, 0) == Some(RECORD_LOST) {
        trace.cut_at_ns = trace.switches.last().map(|last| last.at_ns);
    }
    trace
}

fn parse_switch(record: &[u8], [prev_at, next_at]: [usize; 2]) -> Option<Switch> {
    const RAW_AT: usize = 8 + 8 + 4;
    Some(Switch {
        at_ns: u64::from_ne_bytes(record.get(8..16)?.try_into().ok()?),
        prev_pid: u32_at(record, RAW_AT + prev_at)?,
        next_pid: u32_at(record, RAW_AT + next_at)?,
    })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_ns: u64, prev: u32, next: u32) -> Vec<u8> {
        let mut raw = vec![0u8; 12];
        raw[4..8].copy_from_slice(&prev.to_ne_bytes());
        raw[8..12].copy_from_slice(&next.to_ne_bytes());
        let mut record = RECORD_SAMPLE.to_ne_bytes().to_vec();
        record.extend([0, 0]);
        record.extend(32u16.to_ne_bytes());
        record.extend(at_ns.to_ne_bytes());
        record.extend(12u32.to_ne_bytes());
        record.extend(raw);
        record
    }

    #[test]
    fn records_are_read_until_one_was_lost() {
        let mut bytes = sample(5, 0, 7);
        bytes.extend(sample(9, 7, 0));
        assert_eq!(parse(&bytes, [4, 8]).cut_at_ns, None);
        let mut lost = RECORD_LOST.to_ne_bytes().to_vec();
        lost.extend([0, 0, 24, 0]);
        lost.extend([0; 16]);
        bytes.extend(lost);
        bytes.extend(sample(20, 0, 7));
        let trace = parse(&bytes, [4, 8]);
        let wanted =
            [Switch { at_ns: 5, prev_pid: 0, next_pid: 7 }, Switch { at_ns: 9, prev_pid: 7, next_pid: 0 }];
        assert_eq!((trace.switches.as_slice(), trace.cut_at_ns), (&wanted[..], Some(9)));
    }

    #[test]
    fn a_buffer_cut_anywhere_is_read_as_far_as_it_goes() {
        let bytes = sample(5, 0, 7);
        for length in 0..bytes.len() {
            assert!(parse(&bytes[..length], [4, 8]).switches.is_empty());
        }
        assert!(parse(&[0; 64], [4, 8]).switches.is_empty());
        assert!(parse(&sample(5, 0, 7), [usize::MAX / 2, 0]).switches.is_empty());
    }
}
