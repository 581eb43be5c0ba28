//! How the threads of a server are stopped, woken and read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tare_sys::epoll::Waker;

use crate::counters::Counters;
use crate::report::{Report, ThreadReport};

/// Stops a server, from any thread.
#[derive(Debug, Clone)]
pub struct StopHandle {
    shared: Arc<Stop>,
}

#[derive(Debug)]
struct Stop {
    flag: AtomicBool,
    /// Connections that are open in all loops.
    open: AtomicUsize,
    signals: Vec<Arc<Signal>>,
}

/// One thread's way to be woken and to be read.
#[derive(Debug)]
pub(crate) struct Signal {
    pub(crate) waker: Waker,
    pub(crate) is_loop: bool,
    pub(crate) cpu: Option<u32>,
    pub(crate) counters: Counters,
}

impl StopHandle {
    pub(crate) fn new(signals: Vec<Arc<Signal>>) -> StopHandle {
        StopHandle {
            shared: Arc::new(Stop { flag: AtomicBool::new(false), open: AtomicUsize::new(0), signals }),
        }
    }

    /// The signal of a thread.
    pub(crate) fn signal(&self, thread: usize) -> Arc<Signal> {
        Arc::clone(&self.shared.signals[thread])
    }

    /// Begins the graceful end: connections that wait are accepted, requests that have arrived are answered
    /// with `Connection: close`, and the server ends when all are done or the drain timeout has passed.
    pub fn stop(&self) {
        self.shared.flag.store(true, Ordering::Release);
        for signal in &self.shared.signals {
            // A waker fails only when it is woken already.
            let _ = signal.waker.wake();
        }
    }

    /// Connections that are open in all loops.
    pub(crate) fn open(&self) -> usize {
        self.shared.open.load(Ordering::Relaxed)
    }

    /// A connection is opened; how many there were before.
    pub(crate) fn enter(&self) -> usize {
        self.shared.open.fetch_add(1, Ordering::Relaxed)
    }

    /// A connection is closed.
    pub(crate) fn leave(&self) {
        self.shared.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether the end has begun.
    #[inline]
    pub fn is_stopping(&self) -> bool {
        self.shared.flag.load(Ordering::Acquire)
    }

    /// What each loop has done so far.
    pub fn report(&self) -> Report {
        let loops = self.shared.signals.iter().filter(|signal| signal.is_loop);
        let threads = loops.map(|s| ThreadReport { cpu: s.cpu, counts: s.counters.read() });
        Report { threads: threads.collect() }
    }
}
