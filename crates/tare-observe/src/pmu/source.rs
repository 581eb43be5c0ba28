//! Where hardware counts come from: the kernel, or a made-up machine in a test.

use std::io;
use tare_model::metric::Descriptor;
use tare_model::metrics::pmu;
use tare_sys::perf::{Cache, Event, Group, Whom};

/// Something that counts hardware events of threads.
pub(super) trait Source: Send {
    /// Counts these of thread `tid` (0: the caller) from now on. Errors as [`Group::open`]'s.
    fn open(&self, tid: u32, events: &[Event]) -> io::Result<Box<dyn Counts>>;
}

/// A group of counters at work.
pub(super) trait Counts: Send {
    /// Reads the counts as the kernel writes them; how many bytes.
    fn read(&self, bytes: &mut [u8]) -> io::Result<usize>;

    /// Counts, or stops counting.
    fn enable(&self, on: bool);
}

/// This machine's PMU.
pub(super) struct Kernel;

impl Source for Kernel {
    fn open(&self, tid: u32, events: &[Event]) -> io::Result<Box<dyn Counts>> {
        Ok(Box::new(Group::open(Whom::Thread(tid), events)?))
    }
}

impl Counts for Group {
    fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        self.read_raw(bytes)
    }

    fn enable(&self, on: bool) {
        // One that cannot be stopped goes on counting rightly.
        let _ = Group::enable(self, on);
    }
}

/// What the kernel calls a metric.
pub(super) fn event(metric: &Descriptor) -> Option<Event> {
    EVENTS.iter().find(|(known, _)| known.id == metric.id).map(|(_, event)| *event)
}

static EVENTS: &[(&Descriptor, Event)] = &[
    (&pmu::CYCLES, Event::CYCLES),
    (&pmu::INSTRUCTIONS, Event::INSTRUCTIONS),
    (&pmu::STALLED_FRONTEND, Event::STALLED_FRONTEND),
    (&pmu::STALLED_BACKEND, Event::STALLED_BACKEND),
    (&pmu::BRANCHES, Event::BRANCHES),
    (&pmu::BRANCH_MISSES, Event::BRANCH_MISSES),
    (&pmu::L1D_LOADS, Event::loads(Cache::L1d)),
    (&pmu::L1D_MISSES, Event::load_misses(Cache::L1d)),
    (&pmu::L1I_LOADS, Event::loads(Cache::L1i)),
    (&pmu::L1I_MISSES, Event::load_misses(Cache::L1i)),
    (&pmu::LLC_LOADS, Event::loads(Cache::LastLevel)),
    (&pmu::LLC_MISSES, Event::load_misses(Cache::LastLevel)),
    (&pmu::DTLB_LOADS, Event::loads(Cache::Dtlb)),
    (&pmu::DTLB_MISSES, Event::load_misses(Cache::Dtlb)),
    (&pmu::ITLB_LOADS, Event::loads(Cache::Itlb)),
    (&pmu::ITLB_MISSES, Event::load_misses(Cache::Itlb)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_of_a_group_is_an_event() {
        for metric in pmu::GROUPS.iter().flat_map(|group| group.events) {
            assert!(event(metric).is_some(), "{}", metric.id);
        }
    }
}
