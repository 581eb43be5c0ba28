//! What a server did.

use crate::counters::Counts;

/// What a server did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// By event loop. Uneven counts of `accepted` are a cause of uneven load: see [`Report::imbalance`].
    pub threads: Vec<ThreadReport>,
}

impl Report {
    /// The counts of all loops together.
    pub fn sum(&self) -> Counts {
        self.threads.iter().fold(Counts::default(), |sum, thread| sum.plus(&thread.counts))
    }

    /// Connections of the loop that was given most, over its even share: 1 is even, the number of loops is all to
    /// one. `None` for a single loop or without connections.
    pub fn imbalance(&self) -> Option<f64> {
        let most = self.threads.iter().map(|thread| thread.counts.accepted).max()?;
        let sum = self.sum().accepted;
        let applies = self.threads.len() > 1 && sum > 0;
        applies.then(|| most as f64 * self.threads.len() as f64 / sum as f64)
    }
}

/// What one loop did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadReport {
    /// The CPU that it is pinned to.
    pub cpu: Option<u32>,
    /// Its counts.
    pub counts: Counts,
}
