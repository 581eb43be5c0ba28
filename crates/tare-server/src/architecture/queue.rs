//! The queue between an acceptor and a loop.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tare_sys::epoll::Waker;

/// Connections that may wait in one queue; more wait in the kernel.
const QUEUE_MAX: usize = 1024;

/// Connections on their way from the acceptor to a loop.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Wakes the loop.
    pub(crate) waker: Waker,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<OwnedFd>,
    closed: bool,
}

impl Queue {
    pub(super) fn new() -> io::Result<Queue> {
        Ok(Queue { state: Mutex::default(), waker: Waker::new()? })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Never inlined: it is a frame of its own in a profile, under which the cost of handing over stands.
    #[inline(never)]
    pub(super) fn push(&self, fd: OwnedFd) -> Result<(), OwnedFd> {
        let mut state = self.lock();
        if state.waiting.len() >= QUEUE_MAX {
            return Err(fd);
        }
        state.waiting.push_back(fd);
        // The loop takes all that wait at each wake-up: only the first one has to wake it.
        if state.waiting.len() == 1 {
            let _ = self.waker.wake();
        }
        Ok(())
    }

    /// Nothing more will come.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        let _ = self.waker.wake();
    }

    pub(crate) fn pop(&self) -> Option<OwnedFd> {
        self.lock().waiting.pop_front()
    }

    /// Whether nothing waits and nothing more will come.
    pub(crate) fn is_finished(&self) -> bool {
        let state = self.lock();
        state.closed && state.waiting.is_empty()
    }
}
