//! How many connections all loops of a server have open together.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Connections that are answered with 503 at a time; more wait in the accept queue.
const TURNED_AWAY_MAX: usize = 64;

/// The count, and its bound.
#[derive(Debug)]
pub(crate) struct Connections {
    max: usize,
    served: AtomicUsize,
    /// Open for their 503 alone: they take no place of those that are served.
    turned_away: AtomicUsize,
}

/// What a connection that is accepted is open for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    Served,
    TurnedAway,
}

impl Connections {
    pub(crate) fn new(max: usize) -> Connections {
        Connections { max, served: AtomicUsize::new(0), turned_away: AtomicUsize::new(0) }
    }

    /// Whether as many are open as can be served or answered with 503.
    pub(crate) fn is_full(&self) -> bool {
        self.served.load(Ordering::Relaxed) >= self.max
            && self.turned_away.load(Ordering::Relaxed) >= TURNED_AWAY_MAX
    }

    /// A connection is opened. Loops that do this at once never pass the bound, nor fail to reach it.
    pub(crate) fn enter(&self) -> Admission {
        let one_more = |served: usize| (served < self.max).then_some(served + 1);
        if self.served.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok() {
            return Admission::Served;
        }
        self.turned_away.fetch_add(1, Ordering::Relaxed);
        Admission::TurnedAway
    }

    /// One that was opened so is closed.
    pub(crate) fn leave(&self, admission: Admission) {
        let count = match admission {
            Admission::Served => &self.served,
            Admission::TurnedAway => &self.turned_away,
        };
        count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_come_at_once_are_served_up_to_the_bound_and_no_further() {
        let connections = Connections::new(100);
        let enter = || (0..1000).filter(|_| connections.enter() == Admission::Served).count();
        let served: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(enter)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert!(served == 100 && connections.is_full());
        connections.leave(Admission::Served);
        assert_eq!((connections.is_full(), connections.enter()), (false, Admission::Served));
    }
}
