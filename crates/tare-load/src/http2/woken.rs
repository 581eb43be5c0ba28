//! What can go on: `h2` wakes connections and streams by number, their owner polls them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// Everything that was woken and not polled since, each once, in order.
#[derive(Debug)]
pub(crate) struct Woken {
    queue: Arc<Queue>,
    bells: Vec<Arc<Bell>>,
}

#[derive(Debug, Default)]
struct Queue(Mutex<VecDeque<u32>>);

impl Queue {
    fn lock(&self) -> MutexGuard<'_, VecDeque<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Bell {
    number: u32,
    rung: AtomicBool,
    queue: Arc<Queue>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.rung.swap(true, Ordering::Relaxed) {
            self.queue.lock().push_back(self.number);
        }
    }
}

impl Woken {
    /// For numbers below `count`.
    pub(crate) fn new(count: u32) -> Self {
        let queue = Arc::<Queue>::default();
        let bell = |number| Bell { number, rung: AtomicBool::new(false), queue: Arc::clone(&queue) };
        Woken { bells: (0..count).map(|number| Arc::new(bell(number))).collect(), queue }
    }

    /// How many are woken now.
    pub(crate) fn len(&self) -> usize {
        self.queue.lock().len()
    }

    /// What wakes `number`.
    pub(crate) fn waker(&self, number: u32) -> Waker {
        Waker::from(Arc::clone(&self.bells[number as usize]))
    }

    pub(crate) fn wake(&self, number: u32) {
        self.bells[number as usize].wake_by_ref();
    }

    /// The next one to poll, which may be woken again from here on.
    pub(crate) fn next(&self) -> Option<u32> {
        let number = self.queue.lock().pop_front()?;
        self.bells[number as usize].rung.store(false, Ordering::Relaxed);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_reported_once_until_it_was_polled() {
        let woken = Woken::new(3);
        let waker = woken.waker(2);
        waker.wake_by_ref();
        woken.wake(0);
        waker.wake();
        assert_eq!((woken.next(), woken.next(), woken.next()), (Some(2), Some(0), None));
        woken.wake(2);
        assert_eq!(woken.next(), Some(2));
    }
}
