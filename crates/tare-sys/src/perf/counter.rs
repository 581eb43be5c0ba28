//! Counts of one event on a CPU.

use super::Tracepoint;
use super::event::{
    Attr, COUNT_SW_CONTEXT_SWITCHES, DISABLED, TYPE_SOFTWARE, TYPE_TRACEPOINT, enable, open, set_filter,
};
use std::fs::File;
use std::io::{self, Read};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity;
    use crate::permitted::{permitted, sleep_on};

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
