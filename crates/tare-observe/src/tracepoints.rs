//! What all who use the scheduler's tracepoints must know of them.

use std::collections::BTreeSet;
use tare_machine::Root;
use tare_model::Missing;

/// What the kernel takes of a filter: a page less its end mark.
pub(crate) const FILTER_BYTES_MAX: usize = 4095;
/// Hard, soft and non-maskable interrupts in an event's `common_flags` (`enum trace_flag_type`, since 2.6).
pub(crate) const IN_INTERRUPT: u32 = 0x08 | 0x10 | 0x40;
/// The machine's own PID namespace has this number in every kernel (`PROC_PID_INIT_INO`).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";
/// Events older than this are all in their rings.
pub(crate) const SETTLED_NS: u64 = 20_000_000;

/// Tracepoints tell threads by the machine's own numbers.
pub(crate) fn in_first_pid_namespace(root: &Root) -> Result<(), Missing> {
    let namespace = std::fs::read_link(root.path("/proc/self/ns/pid"));
    if namespace.is_ok_and(|name| name.as_os_str() != FIRST_PID_NAMESPACE) {
        return Err(Missing::with_remedy(
            "the kernel tells threads by numbers that are others in this container",
            "run tare in the machine's own PID namespace (docker run --pid=host)",
        ));
    }
    Ok(())
}

/// Threads that were started together have numbers in a row, so there are few ranges of many threads.
pub(crate) fn one_of(field: &str, threads: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &tid in threads {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == tid => *last = tid,
            _ => ranges.push((tid, tid)),
        }
    }
    let word = |&(first, last): &(u32, u32)| match first == last {
        true => format!("{field}=={first}"),
        false => format!("({field}>={first}&&{field}<={last})"),
    };
    ranges.iter().map(word).collect::<Vec<_>>().join("||")
}
