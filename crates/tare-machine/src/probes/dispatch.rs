//! What an event loop pays for an event: a descriptor becomes ready, `epoll_wait` says so, it is read: three system calls on one thread.

use super::place::on_cpu;
use std::io;
use std::time::Duration;
use tare_model::Missing;
use tare_stats::median;
use tare_sys::epoll::{Epoll, Events, Interest, Waker};
use tare_sys::time::monotonic_ns;

/// Events of one batch.
const BATCH: u32 = 50;

/// Seconds of an event on `cpu`: the median of batches.
///
/// # Errors
/// Why the CPU could not be used, or that no descriptors are left.
pub fn run(cpu: u32, duration_ns: u64) -> Result<f64, Missing> {
    on_cpu(cpu, duration_ns, move || {
        batches(duration_ns).map_err(|error| {
            Missing::with_remedy(
                format!("no epoll instance: {error}"),
                "raise the limit on open files (ulimit -n)",
            )
        })
    })
}

fn batches(duration_ns: u64) -> io::Result<f64> {
    let (epoll, waker, mut events) = (Epoll::new()?, Waker::new()?, Events::with_capacity(16));
    epoll.add(&waker, Interest::READ, 0)?;
    let end_ns = monotonic_ns().saturating_add(duration_ns);
    let mut batches_ns = Vec::new();
    loop {
        let begun_ns = monotonic_ns();
        for _ in 0..BATCH {
            waker.wake()?;
            epoll.wait(&mut events, Some(Duration::ZERO))?;
            waker.drain();
        }
        let now_ns = monotonic_ns();
        batches_ns.push((now_ns - begun_ns) as f64);
        if now_ns >= end_ns {
            let batch_ns = median(&batches_ns).ok_or(io::ErrorKind::TimedOut)?;
            return Ok(batch_ns / f64::from(BATCH) / 1e9);
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_event_takes_some_time() {
        let cpu = tare_sys::affinity::get(0).unwrap()[0];
        let event_s = super::run(cpu, 1_000_000).unwrap();
        assert!((1e-8..0.1).contains(&event_s), "{event_s}");
    }
}
