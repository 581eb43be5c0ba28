//! How the threads of a server are stopped, woken and read, and what they share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tare_sys::epoll::Waker;

use crate::body::BodyMemory;
use crate::config::Config;
use crate::connections::Connections;
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
    /// Those of all loops.
    connections: Connections,
    bodies: Arc<BodyMemory>,
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
    pub(crate) fn new(signals: Vec<Arc<Signal>>, config: &Config) -> StopHandle {
        StopHandle {
            shared: Arc::new(Stop {
                flag: AtomicBool::new(false),
                connections: Connections::new(config.connections_max),
                bodies: Arc::new(BodyMemory::new(config.bodies_bytes_max, &config.limits)),
                signals,
            }),
        }
    }

    /// The memory for bodies of all loops.
    pub(crate) fn bodies(&self) -> Arc<BodyMemory> {
        Arc::clone(&self.shared.bodies)
    }

    /// The count of connections of all loops.
    pub(crate) fn connections(&self) -> &Connections {
        &self.shared.connections
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
