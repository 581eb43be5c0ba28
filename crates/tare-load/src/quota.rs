//! How many requests may still be sent, over all threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most requests that a thread takes from the shared number at once: few, so that threads end together. One where requests have
/// times of their own: a thread that took more would send them late.
const PORTION: u64 = 64;
const PORTION_IN_TIME: u64 = 1;

/// The requests that one thread may still send.
#[derive(Debug)]
pub(crate) struct Quota {
    /// Taken for this thread and not sent.
    own: u64,
    /// `None`: as many as it likes.
    shared: Option<Arc<AtomicU64>>,
    portion: u64,
    spent: bool,
}

impl Quota {
    /// A share in `shared` requests; `None`: no bound. `in_time` where requests have times of their own.
    pub(crate) fn new(shared: Option<Arc<AtomicU64>>, in_time: bool) -> Self {
        let portion = if in_time { PORTION_IN_TIME } else { PORTION };
        Quota { own: 0, shared, portion, spent: false }
    }

    /// Takes one request, if there is one left.
    #[inline]
    pub(crate) fn spend(&mut self) -> bool {
        if self.own > 0 {
            self.own -= 1;
            return true;
        }
        self.refill()
    }

    /// Takes so many requests, or those that are left.
    #[inline]
    pub(crate) fn spend_up_to(&mut self, most: u32) -> u32 {
        if self.own >= u64::from(most) {
            self.own -= u64::from(most);
            return most;
        }
        (0..most).take_while(|_| self.spend()).count() as u32
    }

    /// Puts back what was taken and not sent.
    #[inline]
    pub(crate) fn give_back(&mut self) {
        self.own += 1;
    }

    /// Nothing more is sent.
    pub(crate) fn end(&mut self) {
        (self.own, self.shared, self.spent) = (0, Some(Arc::default()), true);
    }

    /// Whether a request was refused.
    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        self.spent
    }

    #[cold]
    fn refill(&mut self) -> bool {
        let Some(shared) = &self.shared else {
            // One less than the most there is, so that it can be given back.
            self.own = u64::MAX - 1;
            return true;
        };
        let left = shared.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            Some(left.saturating_sub(self.portion))
        });
        let taken = left.unwrap_or(0).min(self.portion);
        self.own = taken.saturating_sub(1);
        self.spent = taken == 0;
        taken > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_given_out_once() {
        let shared = Arc::new(AtomicU64::new(1000));
        let mut threads = [(); 3].map(|()| Quota::new(Some(Arc::clone(&shared)), false));
        let mut sent = 0;
        while threads.iter().any(|quota| !quota.is_spent()) {
            sent += threads.iter_mut().filter_map(|quota| quota.spend().then_some(())).count();
        }
        assert_eq!(sent, 1000);
        let shared = Arc::new(AtomicU64::new(1000));
        let mut threads = [(); 2].map(|()| Quota::new(Some(Arc::clone(&shared)), false));
        let portions: Vec<u32> = (0..40).map(|k| threads[k % 2].spend_up_to(30)).collect();
        assert_eq!((portions[0], portions.iter().sum()), (30, 1000));
        let shared = Arc::new(AtomicU64::new(3));
        let mut threads = [(); 3].map(|()| Quota::new(Some(Arc::clone(&shared)), true));
        assert!(threads.iter_mut().all(Quota::spend) && !threads[0].spend(), "one for each");
        let mut free = Quota::new(None, false);
        assert!((0..1000).all(|_| free.spend()) && !free.is_spent());
        assert_eq!(free.spend_up_to(16), 16);
        free.end();
        assert!(free.is_spent() && !free.spend() && free.spend_up_to(16) == 0);
    }
}
