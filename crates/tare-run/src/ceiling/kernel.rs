//! What the kernel's basic services take: system calls, wake-ups, switches, pipes, events.

use super::kind::Kind;
use tare_machine::probes::{dispatch, handover, parked, syscall};

const S_PER_NS: f64 = 1e-9;

pub(super) fn kinds(_: usize) -> Vec<Kind> {
    vec![
        Kind::new("system-call", "s", "enter the kernel and leave it (getppid)", |ground, ns| {
            syscall::run(ground.cpu(), ns).map(|found| found.call_ns.median * S_PER_NS)
        }),
        Kind::new(
            "wake-up-same-cpu",
            "s",
            "wake a thread that sleeps on the same CPU (futex)",
            |ground, ns| parked::run([ground.cpu(); 2], ns),
        ),
        Kind::new(
            "wake-up-other-cpu",
            "s",
            "wake a thread that sleeps on another CPU (futex)",
            |ground, ns| parked::run(ground.apart()?, ns),
        ),
        Kind::new(
            "context-switch",
            "s",
            "from one thread to another on one CPU: a hand-over through a pipe less its two calls",
            |ground, ns| handover::run([ground.cpu(); 2], ns).map(|found| found.switch_ns * S_PER_NS),
        ),
        Kind::new("pipe-same-cpu", "s", "a byte through a pipe to a thread on the same CPU", |ground, ns| {
            handover::run([ground.cpu(); 2], ns).map(|found| found.handover_ns.median * S_PER_NS)
        }),
        Kind::new("pipe-other-cpu", "s", "a byte through a pipe to a thread on another CPU", |ground, ns| {
            handover::run(ground.apart()?, ns).map(|found| found.handover_ns.median * S_PER_NS)
        }),
        Kind::new(
            "epoll-event",
            "s",
            "an event in an event loop: eventfd written, epoll_wait, read (three calls)",
            |ground, ns| dispatch::run(ground.cpu(), ns),
        ),
    ]
}
