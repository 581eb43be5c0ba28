//! Counts of hardware events that belong together: on the PMU at the same time or not at all, so that their ratios
//! (instructions per cycle) hold even where groups take turns on the PMU.

use super::event::{Attr, COUNT_SW_TASK_CLOCK, DISABLED, IOC_DISABLE, IOC_ENABLE, TYPE_SOFTWARE, open_at};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;

const TYPE_HARDWARE: u32 = 0;
const TYPE_HW_CACHE: u32 = 3;
/// Times enabled and running, and all values of the group in one reading (`PERF_FORMAT_*`).
const FORMAT: u64 = 1 | 2 | 8;
/// The request is for the whole group.
const IOC_FLAG_GROUP: libc::c_ulong = 1;

/// What a counter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    kind: u32,
    config: u64,
}

/// A cache of `enum perf_hw_cache_id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // the names are the kernel's
pub enum Cache {
    L1d = 0,
    L1i = 1,
    LastLevel = 2,
    Dtlb = 3,
    Itlb = 4,
}

impl Event {
    /// Cycles of the clock that the CPU really ran at.
    pub const CYCLES: Event = Event { kind: TYPE_HARDWARE, config: 0 };
    /// Instructions that were completed.
    pub const INSTRUCTIONS: Event = Event { kind: TYPE_HARDWARE, config: 1 };
    /// Branches that were completed.
    pub const BRANCHES: Event = Event { kind: TYPE_HARDWARE, config: 4 };
    /// Branches that the CPU predicted wrongly.
    pub const BRANCH_MISSES: Event = Event { kind: TYPE_HARDWARE, config: 5 };
    /// Cycles in which no instruction was fetched.
    pub const STALLED_FRONTEND: Event = Event { kind: TYPE_HARDWARE, config: 7 };
    /// Cycles in which no instruction could be completed.
    pub const STALLED_BACKEND: Event = Event { kind: TYPE_HARDWARE, config: 8 };
    /// Nanoseconds on a CPU: counted by the kernel, without a PMU.
    pub const TASK_CLOCK: Event = Event { kind: TYPE_SOFTWARE, config: COUNT_SW_TASK_CLOCK };

    /// Loads through a cache.
    pub const fn loads(cache: Cache) -> Event {
        Event { kind: TYPE_HW_CACHE, config: cache as u64 }
    }

    /// Loads that missed the cache.
    pub const fn load_misses(cache: Cache) -> Event {
        Event { kind: TYPE_HW_CACHE, config: cache as u64 | 1 << 16 }
    }

    /// An event of a PMU that the kernel lists below `/sys/bus/event_source/devices`.
    pub const fn of_device(kind: u32, config: u64) -> Event {
        Event { kind, config }
    }
}

/// Whose events are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whom {
    /// One thread, wherever it runs, user and kernel mode; 0 is the calling one. Threads that it starts are not.
    Thread(u32),
    /// Every task of one CPU.
    Cpu(u32),
}

/// A group of counters at work.
#[derive(Debug)]
pub struct Group {
    /// The leader first; the others live as long as it does.
    files: Vec<File>,
}

impl Group {
    /// Opens counters that count from now on.
    ///
    /// # Errors
    /// `ENOENT` or `EOPNOTSUPP` where the CPU does not count one of them (or there is no PMU), `EACCES` or `EPERM`
    /// without the right, `ESRCH` when the thread is gone, `EINVAL` for more than fit on the PMU at once or for none.
    pub fn open(whom: Whom, events: &[Event]) -> io::Result<Group> {
        let mut files: Vec<File> = Vec::with_capacity(events.len());
        for event in events {
            let flags = if files.is_empty() { DISABLED } else { 0 };
            let attr = Attr {
                kind: event.kind,
                config: event.config,
                read_format: FORMAT,
                flags,
                ..Attr::default()
            };
            let (pid, cpu) = match whom {
                Whom::Thread(tid) => (number(tid, libc::ESRCH)?, -1),
                Whom::Cpu(cpu) => (-1, number(cpu, libc::ENODEV)?),
            };
            files.push(open_at(attr, pid, cpu, files.first())?);
        }
        let group = Group { files };
        group.enable(true)?;
        Ok(group)
    }

    /// Reads all counts as the kernel writes them, for [`GroupCount::parse`]; the bytes written.
    ///
    /// # Errors
    /// As `read`; `ENOSPC` when `bytes` is too short.
    pub fn read_raw(&self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut leader = self.leader()?;
        leader.read(bytes)
    }

    /// Counts from now on, or stops counting.
    ///
    /// # Errors
    /// None that the kernel documents.
    pub fn enable(&self, on: bool) -> io::Result<()> {
        let request = if on { IOC_ENABLE } else { IOC_DISABLE };
        // SAFETY: the fd is open; these requests take a plain flag word.
        let rc = unsafe { libc::ioctl(self.leader()?.as_raw_fd(), request as _, IOC_FLAG_GROUP) };
        if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn leader(&self) -> io::Result<&File> {
        self.files.first().ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))
    }
}

fn number(id: u32, otherwise: i32) -> io::Result<libc::c_int> {
    libc::c_int::try_from(id).map_err(|_| io::Error::from_raw_os_error(otherwise))
}

/// One reading of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupCount {
    /// Time in which the events should have been counted: of a thread, that in which it ran.
    pub enabled_ns: u64,
    /// Time in which they were on the PMU; less where more is asked for than fits.
    pub running_ns: u64,
    /// Counts while running, in the order in which the events were given.
    pub values: Vec<u64>,
}

impl GroupCount {
    /// Most values of a group that is read.
    pub const VALUES_MAX: usize = 8;
    /// Room for the reading of any group of so many.
    pub const BYTES_MAX: usize = 8 * (3 + GroupCount::VALUES_MAX);

    /// What [`Group::read_raw`] read; `None` when it is something else.
    pub fn parse(bytes: &[u8]) -> Option<GroupCount> {
        let (words, []) = bytes.as_chunks::<8>() else { return None };
        let mut words = words.iter().map(|word| u64::from_ne_bytes(*word));
        let (count, enabled_ns, running_ns) = (words.next()?, words.next()?, words.next()?);
        let values: Vec<u64> = words.collect();
        (values.len() as u64 == count).then_some(GroupCount { enabled_ns, running_ns, values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(group: &Group) -> GroupCount {
        let mut bytes = [0; GroupCount::BYTES_MAX];
        let length = group.read_raw(&mut bytes).unwrap();
        GroupCount::parse(&bytes[..length]).unwrap()
    }

    /// Software events are counted like hardware events are, and every machine has them.
    #[test]
    fn a_group_counts_while_its_thread_runs() {
        let Ok(group) = Group::open(Whom::Thread(0), &[Event::TASK_CLOCK, Event::TASK_CLOCK]) else { return };
        let before = read(&group);
        let end = crate::time::thread_cpu_ns() + 20_000_000;
        while crate::time::thread_cpu_ns() < end {}
        let after = read(&group);
        assert_eq!(after.values.len(), 2);
        assert!(after.values[0] - before.values[0] >= 15_000_000, "{before:?} {after:?}");
        assert!(after.enabled_ns > before.enabled_ns && after.running_ns <= after.enabled_ns);
        group.enable(false).unwrap();
        let stopped = read(&group);
        assert_eq!(read(&group).values, stopped.values);
    }

    #[test]
    fn what_cannot_be_counted_is_refused() {
        let none = Group::open(Whom::Thread(0), &[]);
        assert_eq!(none.unwrap_err().raw_os_error(), Some(libc::EINVAL));
        let nobody = Group::open(Whom::Thread(u32::MAX), &[Event::TASK_CLOCK]);
        assert_eq!(nobody.unwrap_err().raw_os_error(), Some(libc::ESRCH));
        let unknown = Group::open(Whom::Thread(0), &[Event::of_device(9999, 0)]);
        assert!(unknown.is_err());
    }

    #[test]
    fn a_reading_that_is_cut_is_none() {
        let whole: Vec<u8> = [2u64, 30, 20, 7, 8].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let expected = GroupCount { enabled_ns: 30, running_ns: 20, values: vec![7, 8] };
        assert_eq!(GroupCount::parse(&whole), Some(expected));
        for cut in 0..whole.len() {
            assert_eq!(GroupCount::parse(&whole[..cut]), None);
        }
    }
}
